"""A receiver of webhooks: an HTTPS server with a certificate of an authority of its own."""

import asyncio
import datetime
import ipaddress
import itertools
import json
import ssl

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from .inbox import Inbox

DAY = datetime.timedelta(days=1)


class Authority:
    """An authority that certifies receivers, and engines and those who come to them."""

    def __init__(self, folder):
        self.folder, self._numbers = folder, itertools.count(1)
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "an authority of tests")])
        certificate = self._sign(self.name, self.key, x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self.file = folder / "authority.pem"
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def context(self, *names):
        """A server's side of TLS, with a certificate for these names."""
        certificate, key = self.issue(*names)
        both = self.folder / f"{names[0]}.pem"
        both.write_bytes(key.read_bytes() + certificate.read_bytes())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(both)
        return context

    def issue(self, *names):
        """Files of its own with a certificate for these names, of a server or of who comes to one, and with its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        certificate = self._sign(subject, key, x509.SubjectAlternativeName([_name(name) for name in names]))
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        stem = f"{names[0]}-{next(self._numbers)}"
        files = self.folder / f"{stem}.crt", self.folder / f"{stem}.key"
        files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        files[1].write_bytes(private)
        return files

    def _sign(self, subject, key, extension, critical=False):
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateBuilder(self.name, subject, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - DAY).not_valid_after(now + DAY)
        return builder.add_extension(extension, critical).sign(self.key, hashes.SHA256())


def _name(name):
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


class Request:
    """A request that came."""

    def __init__(self, headers, body):
        self.headers = headers
        self.body = body
        self.json = json.loads(body)

    @property
    def events(self):
        return self.json["events"]


class Receiver:
    """Answers as it is told, and keeps what came."""

    def __init__(self):
        self.requests = Inbox("the receiver")
        self.answer = lambda request: 204
        # What is cleared makes it hold its answers.
        self.goes_on = asyncio.Event()
        self.goes_on.set()
        self.seen = []
        self._connections = set()

    @classmethod
    async def start(cls, context, host="localhost"):
        self = cls()
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        self.port = self.server.sockets[0].getsockname()[1]
        self.url = f"https://{host}:{self.port}/receipts"
        return self

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
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError, ssl.SSLError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _answer(self, head, reader, writer):
        lines = head.decode().split("\r\n")
        pairs = (line.split(": ", 1) for line in lines[1:] if line)
        headers = {name.lower(): value for name, value in pairs}
        request = Request(headers, await reader.readexactly(int(headers["content-length"])))
        self.seen.append(request)
        self.requests.put(request)
        await self.goes_on.wait()
        status = self.answer(request)
        writer.write(f"HTTP/1.1 {status} x\r\ncontent-length: 2\r\n\r\nno".encode() if status != 204 else NO_CONTENT)
        await writer.drain()

    def events(self):
        """All events that came, in the order in which they came."""
        return [event for request in self.seen for event in request.events]


NO_CONTENT = b"HTTP/1.1 204 x\r\n\r\n"
