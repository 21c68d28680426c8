"""What somebody does with JetStream who is not Carillon: a small client of its own, over a plain socket."""

import itertools
import json
import socket
import sys

from .inbox import DEADLINE_S
from .nats import Nats


class JetStreamError(Exception):
    """The server refuses something."""


class JetStream:
    """A connection to a server of `harness.nats`."""

    def __init__(self, nats):
        self._socket = socket.create_connection(("127.0.0.1", nats.port), timeout=DEADLINE_S)
        self._file = self._socket.makefile("rb")
        self._inbox = f"_INBOX.{id(self)}"
        self._numbers = itertools.count(1)
        json.loads(self._file.readline().removeprefix(b"INFO "))
        self._send(
            b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true,"protocol":1}\r\n'
            + f"SUB {self._inbox}.* 1\r\n".encode()
        )

    def close(self):
        self._file.close()
        self._socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _send(self, text):
        self._socket.sendall(text)

    def request(self, subject, body=b"", headers=None):
        """What is answered, as JSON."""
        reply = f"{self._inbox}.{next(self._numbers)}"
        self._send(_publication(subject, reply, body, headers))
        return self._answer(reply)

    def _answer(self, reply):
        while True:
            line = self._file.readline()
            if not line:
                raise ConnectionError("NATS closed the connection")
            words = line.decode().split()
            match words[0]:
                case "PING":
                    self._send(b"PONG\r\n")
                case "MSG":
                    body = self._file.read(int(words[-1]) + 2)[:-2]
                    if words[1] == reply:
                        return _checked(json.loads(body))
                case "HMSG":
                    body = self._file.read(int(words[-1]) + 2)[:-2]
                    if words[1] == reply:
                        raise JetStreamError(body[: int(words[-2])].decode().strip())
                case "-ERR":
                    raise JetStreamError(line.decode())

    def api(self, operation, body=None):
        return self.request(f"$JS.API.{operation}", json.dumps(body or {}).encode())

    def stream(self, name, *subjects, retention="workqueue", **more):
        """Makes a stream."""
        config = {"name": name, "subjects": list(subjects), "retention": retention, "storage": "file", **more}
        return self.api(f"STREAM.CREATE.{name}", config)

    def publish(self, subject, body, **headers):
        """Has a stream keep a message: it has it when this returns. Headers are given with `_` for `-`."""
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request(subject, body, {name.replace("_", "-"): value for name, value in headers.items()})

    def publish_all(self, subject, bodies):
        """The same of many, answered together."""
        replies = []
        text = []
        for body in bodies:
            replies.append(f"{self._inbox}.{next(self._numbers)}")
            text.append(_publication(subject, replies[-1], json.dumps(body).encode(), None))
        self._send(b"".join(text))
        return [self._answer(reply) for reply in replies]

    def messages(self, stream):
        """How many a stream has."""
        return self.api(f"STREAM.INFO.{stream}")["state"]["messages"]

    def consumer(self, stream, consumer="carillon"):
        return self.api(f"CONSUMER.INFO.{stream}.{consumer}")


def _publication(subject, reply, body, headers):
    if not headers:
        return f"PUB {subject} {reply} {len(body)}\r\n".encode() + body + b"\r\n"
    head = "NATS/1.0\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n"
    sizes = f"{len(head.encode())} {len(head.encode()) + len(body)}"
    return f"HPUB {subject} {reply} {sizes}\r\n{head}".encode() + body + b"\r\n"


def _checked(answer):
    if "error" in answer:
        raise JetStreamError(answer["error"])
    return answer


def main(stream, subject):
    """Runs NATS with a stream for a program that says by lines of standard input what is published, and when it ends by closing it."""
    nats = Nats(jetstream=True)
    try:
        with JetStream(nats) as sender:
            sender.stream(stream, f"{subject}.>")
            print(json.dumps({"url": nats.url}), flush=True)
            for line in sys.stdin:
                sender.publish(f"{subject}.new", line.strip().encode())
    finally:
        nats.end()


if __name__ == "__main__":
    main(*sys.argv[1:])
