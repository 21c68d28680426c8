"""A WebSocket spoken by hand (RFC 6455), for frames that no library would send."""

import asyncio
import base64
import contextlib
import os
import struct
import xml.etree.ElementTree as ET

from .inbox import deadline
from .raw import plain

OPEN = "<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' to='localhost' version='1.0'/>"
FRAMING = "{urn:ietf:params:xml:ns:xmpp-framing}"
SASL = "{urn:ietf:params:xml:ns:xmpp-sasl}"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def request(path="/xmpp-websocket", protocol="xmpp", **fields):
    """The request for a WebSocket; a field that is None is left out."""
    wanted = {
        "host": "localhost",
        "upgrade": "websocket",
        "connection": "Upgrade",
        "sec-websocket-key": base64.b64encode(os.urandom(16)).decode(),
        "sec-websocket-version": "13",
        "sec-websocket-protocol": protocol,
        **{name.replace("_", "-"): value for name, value in fields.items()},
    }
    lines = [f"{name}: {value}" for name, value in wanted.items() if value is not None]
    return "\r\n".join([f"GET {path} HTTP/1.1", *lines, "", ""])


def frame(opcode, payload, fin=True, masked=True, length=None):
    """One frame of a client. `length` overrides what the header promises."""
    payload = payload.encode() if isinstance(payload, str) else payload
    size = len(payload) if length is None else length
    first = bytes([(0x80 if fin else 0) | opcode])
    bit = 0x80 if masked else 0
    if size < 126:
        head = first + bytes([bit | size])
    elif size < 65536:
        head = first + bytes([bit | 126]) + struct.pack(">H", size)
    else:
        head = first + bytes([bit | 127]) + struct.pack(">Q", size)
    if not masked:
        return head + payload
    mask = os.urandom(4)
    return head + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))


class RawWebSocket:
    """One connection to the WebSocket's port."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, server):
        async with deadline("a connection"):
            return cls(*await asyncio.open_connection("127.0.0.1", server.port("websocket")))

    @classmethod
    async def upgraded(cls, server):
        """A WebSocket on which nothing was said yet."""
        socket = await cls.connect(server)
        socket.send(request())
        status, fields = await socket.response()
        assert status == 101, status
        assert fields["sec-websocket-protocol"] == "xmpp"
        return socket

    @classmethod
    async def opened(cls, server):
        """A stream whose features were received."""
        socket = await cls.upgraded(server)
        socket.send(frame(TEXT, OPEN))
        assert (await socket.element()).tag == FRAMING + "open"
        assert (await socket.element()).tag.endswith("}features")
        return socket

    @classmethod
    async def logged_in(cls, server, user):
        """A bound session, where the port is inside of TLS."""
        port = server.port("websocket")
        tls = {"ssl": server.tls(), "server_hostname": "localhost"}
        socket = cls(*await asyncio.open_connection("127.0.0.1", port, **tls))
        socket.send(request())
        await socket.response()
        socket.send(frame(TEXT, OPEN))
        assert (await socket.element()).tag == FRAMING + "open"
        assert (await socket.element()).tag.endswith("}features")
        assert (await socket.authenticate(user)).tag == SASL + "success"
        socket.send(frame(TEXT, OPEN))
        assert (await socket.element()).tag == FRAMING + "open"
        assert (await socket.element()).tag.endswith("}features")
        bind = "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>socket</resource></bind>"
        socket.say(f"<iq xmlns='jabber:client' type='set' id='b'>{bind}</iq>")
        assert (await socket.element()).get("type") == "result"
        socket.jid = f"{user}@localhost/socket"
        return socket

    def say(self, xml):
        """Sends an element in one frame."""
        self.send(frame(TEXT, xml))

    def send(self, data):
        with contextlib.suppress(ConnectionError):
            self.writer.write(data.encode() if isinstance(data, str) else data)

    async def response(self):
        """Status and fields of the HTTP response."""
        async with deadline("a response"):
            head = await self.reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in lines if line)
        return int(first.split(" ")[1]), fields

    async def frame(self):
        """The next frame: its opcode and payload."""
        async with deadline("a frame"):
            first, second = await self.reader.readexactly(2)
            assert first & 0x80, "a server has no reason to cut its messages into fragments"
            assert not second & 0x80, "a server masks nothing"
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack(">H", await self.reader.readexactly(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", await self.reader.readexactly(8))
            return first & 0x0F, await self.reader.readexactly(size)

    async def element(self):
        opcode, payload = await self.frame()
        assert opcode == TEXT, (opcode, payload)
        return ET.fromstring(payload)

    async def close_code(self):
        """The code of the close frame; text before it is passed over."""
        opcode, payload = await self.frame()
        while opcode == TEXT:
            opcode, payload = await self.frame()
        assert opcode == CLOSE, (opcode, payload)
        await self.eof()
        return struct.unpack(">H", payload[:2])[0]

    async def eof(self):
        async with deadline("the end of the connection"):
            try:
                left = await self.reader.read()
            except ConnectionError:
                left = b""
        assert left == b"", left

    async def authenticate(self, user, mechanism="PLAIN"):
        self.send(frame(TEXT, f"<auth xmlns='{SASL[1:-1]}' mechanism='{mechanism}'>{plain(user)}</auth>"))
        return await self.element()

    async def close(self):
        self.writer.close()
        with contextlib.suppress(Exception):
            async with asyncio.timeout(1):
                await self.writer.wait_closed()
