"""TLS 1.3 record by record: the handshake is Python's, with records that a test may cut or add to; what follows is sealed and opened here.

The keys are those of the connection's secrets (RFC 8446 §7), which the handshake tells as browsers do (SSLKEYLOGFILE).
"""

import asyncio
import contextlib
import pathlib
import ssl
import tempfile

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

CCS, ALERT, HANDSHAKE, DATA = 20, 21, 22, 23
KEY_UPDATE = 24
CONTENT_MAX = 1 << 14
CLOSE_NOTIFY = 0
ALERTS = {
    0: "close_notify",
    10: "unexpected_message",
    20: "bad_record_mac",
    22: "record_overflow",
    47: "illegal_parameter",
    50: "decode_error",
    70: "protocol_version",
}


class Half:
    """The keys of one direction."""

    def __init__(self, secret, algorithm, aead):
        self._algorithm, self._aead = algorithm, aead
        self._take(secret)

    def _take(self, secret):
        self._secret, self._sequence = secret, 0
        self._cipher = self._aead(self._expanded(b"key", 16 if self._is_short else 32))
        self._iv = self._expanded(b"iv", 12)

    @property
    def _is_short(self):
        return self._aead is AESGCM and self._algorithm.digest_size == 32

    def _expanded(self, label, length):
        label = b"tls13 " + label
        info = length.to_bytes(2) + bytes([len(label)]) + label + b"\0"
        return HKDFExpand(self._algorithm, length, info).derive(self._secret)

    def update(self):
        """The next secret (RFC 8446 §7.2)."""
        self._take(self._expanded(b"traffic upd", self._algorithm.digest_size))

    def nonce(self):
        number = self._sequence.to_bytes(12)
        self._sequence += 1
        return bytes(a ^ b for a, b in zip(self._iv, number, strict=True))

    def seal(self, inner):
        """A record of inner plaintext as it is: content, its type, padding."""
        header = bytes([DATA, 3, 3]) + (len(inner) + 16).to_bytes(2)
        return header + self._cipher.encrypt(self.nonce(), inner, header)

    def open(self, record):
        inner = self._cipher.decrypt(self.nonce(), record[5:], record[:5]).rstrip(b"\0")
        return inner[-1], inner[:-1]


class Records:
    """A connection on which a test says what is in each record."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.client = self.server = None

    @classmethod
    async def connect(cls, port):
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def close(self):
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()

    def send(self, *records):
        for record in records:
            self.writer.write(record)

    async def read(self):
        """The next record as it comes; nothing at the end."""
        try:
            header = await self.reader.readexactly(5)
            return header + await self.reader.readexactly(int.from_bytes(header[3:]))
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""

    async def hello(self, cut=lambda record: [record]):
        """Sends a ClientHello, in such records as `cut` makes of it."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        self._folder = tempfile.TemporaryDirectory()
        self._keys = pathlib.Path(self._folder.name) / "keys"
        context.keylog_filename = str(self._keys)
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname="localhost")
        self._step()
        self.send(*cut(self._out.read()))

    def _step(self):
        try:
            self._tls.do_handshake()
            return True
        except ssl.SSLWantReadError:
            return False

    async def handshake(self, cut=lambda record: [record], before_finished=()):
        """Does the handshake, with these records before the client's last message."""
        await self.hello(cut)
        while not self._step():
            record = await self.read()
            assert record, "the server closed in the handshake"
            self._in.write(record)
        self.send(*before_finished, self._out.read())
        secrets = {}
        for line in self._keys.read_text().splitlines():
            if line.startswith("#"):
                continue
            name, _, secret = line.split()
            secrets[name] = bytes.fromhex(secret)
        suite = self._tls.cipher()[0]
        algorithm = hashes.SHA384() if suite.endswith("SHA384") else hashes.SHA256()
        aead = ChaCha20Poly1305 if "CHACHA20" in suite else AESGCM
        self.client = Half(secrets["CLIENT_TRAFFIC_SECRET_0"], algorithm, aead)
        self.server = Half(secrets["SERVER_TRAFFIC_SECRET_0"], algorithm, aead)
        self._folder.cleanup()
        return self

    def say(self, kind, content, padding=0):
        """Sends one sealed record."""
        self.send(self.client.seal(content + bytes([kind]) + bytes(padding)))

    def update(self, answered=False):
        """Sends a KeyUpdate, and goes on with the next keys."""
        self.say(HANDSHAKE, key_update(answered))
        self.client.update()

    async def hear(self):
        """The next record's type and content; nothing at the end. Tickets are passed over, and the server's updates followed."""
        while record := await self.read():
            if record[0] == ALERT:
                return ALERT, record[5:]
            try:
                kind, content = self.server.open(record)
            except InvalidTag:
                raise AssertionError("a record of the server cannot be opened") from None
            if kind == HANDSHAKE and content[0] == KEY_UPDATE:
                self.server.update()
            elif kind != HANDSHAKE:
                return kind, content
        return None

    async def alert(self):
        """The name of the alert by which the server ends the connection, if it gives one; data before it is passed over."""
        while heard := await self.hear():
            if heard[0] == ALERT:
                return ALERTS.get(heard[1][1], str(heard[1][1]))
        return None


def key_update(answered):
    return bytes([KEY_UPDATE, 0, 0, 1, answered])


def plain(kind, content, length=None):
    """A record without protection."""
    return bytes([kind, 3, 3]) + (len(content) if length is None else length).to_bytes(2) + content
