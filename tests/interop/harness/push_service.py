"""A push service (RFC 8030): it takes pushes for subscriptions, checks who sends them (RFC 8292), and gives their apps what they can decrypt (RFC 8291)."""

import asyncio
import base64
import json
import os
import time

import http_ece
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from py_vapid import Vapid02

from .inbox import Inbox
from .pushes import form


class Subscription:
    """An app's subscription, as a browser makes it."""

    def __init__(self, service, name):
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.auth = os.urandom(16)
        self.path = f"/push/{name}"
        self.endpoint = service.url + self.path
        self.pushes = Inbox(f"the app {name}")

    @property
    def keys(self):
        point = self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        return {"p256dh": encoded(point), "auth": encoded(self.auth)}

    def json(self):
        """As `PushSubscription.toJSON()` gives it."""
        return {"endpoint": self.endpoint, "keys": self.keys}

    def form(self, **more):
        """As a form of publish-options (XEP-0357)."""
        return form({"endpoint": self.endpoint, **self.keys, **more})

    async def next(self, **wanted):
        """The next push whose content has these members."""
        return await self.pushes.take(
            lambda push: all(push.json.get(name) == value for name, value in wanted.items()), f"a push {wanted}"
        )


class Push:
    """A push that was taken, as its app has it."""

    def __init__(self, headers, body, plaintext):
        self.headers = headers
        # As it came.
        self.body = body
        self.plaintext = plaintext
        self.json = json.loads(plaintext)


class PushService:
    """Answers as it is told, and keeps what came."""

    def __init__(self):
        self.subscriptions = {}
        # Its answer to a request: a status, or a status and headers.
        self.answer = lambda path: 201
        # What is cleared makes it hold its answers.
        self.goes_on = asyncio.Event()
        self.goes_on.set()
        # Every request: its path, and its status.
        self.seen = Inbox("the push service")
        self.count = 0
        self.vapid = None
        self._connections = set()

    @classmethod
    async def start(cls, port=0):
        self = cls()
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.port = self.server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    def subscribe(self, name):
        subscription = Subscription(self, name)
        self.subscriptions[subscription.path] = subscription
        return subscription

    async def close(self):
        self.goes_on.set()
        self.server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        self._connections.add(task)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await self._answer(head, reader, writer)
        # The node was killed or has no more to say, or the test has ended.
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _answer(self, head, reader, writer):
        lines = head.decode().split("\r\n")
        method, path, _ = lines[0].split(" ")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:] if line)}
        body = await reader.readexactly(int(headers["content-length"]))
        self.count += 1
        answer = self.answer(path)
        status, more = answer if isinstance(answer, tuple) else (answer, {})
        await self.goes_on.wait()
        if status == 201 and method == "POST":
            status = self._take(path, headers, body)
        self.seen.put((path, status))
        told = "".join(f"{name}: {value}\r\n" for name, value in more.items())
        writer.write(f"HTTP/1.1 {status} x\r\n{told}content-length: 0\r\n\r\n".encode())
        await writer.drain()

    def _take(self, path, headers, body):
        subscription = self.subscriptions.get(path)
        if subscription is None:
            return 404
        assert headers["content-encoding"] == "aes128gcm", headers
        assert len(body) <= 4096
        assert int(headers["ttl"]) >= 0
        assert headers["urgency"] in ("very-low", "low", "normal", "high"), headers
        self._check_sender(headers["authorization"])
        plaintext = http_ece.decrypt(
            body, private_key=subscription.key, auth_secret=subscription.auth, version="aes128gcm"
        )
        subscription.pushes.put(Push(headers, body, plaintext))
        return 201

    def _check_sender(self, authorization):
        # It wants no space where RFC 7235 allows one.
        assert Vapid02.verify(authorization.replace(", ", ",")), authorization
        parts = dict(part.strip().split("=", 1) for part in authorization.removeprefix("vapid ").split(","))
        assert self.vapid in (None, parts["k"])
        claims = json.loads(decoded(parts["t"].split(".")[1]))
        assert claims["aud"] == self.url, claims
        assert time.time() < claims["exp"] <= time.time() + 86_400, claims
        assert claims["sub"].startswith("mailto:"), claims


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
