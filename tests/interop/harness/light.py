"""The light protocol spoken by hand (docs/book/protocol.md)."""

import asyncio
import contextlib
import json
import socket

from .inbox import deadline

OPENING = b"<regular-socket/>\0"


class Light:
    """One connection."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, server, tls=None, receive_bytes=None):
        """A connection on which nothing was said yet."""
        options = {"ssl": tls, "server_hostname": "localhost"} if tls else {}
        sock = socket.socket()
        if receive_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        sock.setblocking(False)
        async with deadline("a light connection"):
            await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", server.port("light")))
            reader, writer = await asyncio.open_connection(sock=sock, limit=2**20, **options)
        return cls(reader, writer)

    @classmethod
    async def open(cls, server, **options):
        """A connection whose opening was answered."""
        light = await cls.connect(server, **options)
        light.send(OPENING)
        light.greeting = json.loads(await light.frame())
        return light

    def send(self, data):
        with contextlib.suppress(ConnectionError):
            self.writer.write(data.encode() if isinstance(data, str) else data)

    def stop_reading(self):
        """Leaves what comes to the system, whose buffer fills."""
        if self.writer.get_extra_info("ssl_object"):
            # TLS reads ahead of whoever is paused.
            self.writer.transport.set_read_buffer_limits(1)
        self.writer.transport.pause_reading()

    def read_again(self):
        self.writer.transport.resume_reading()

    def ask(self, action, topic):
        self.send(json.dumps({"action": action, "data": topic}) + "\0")

    async def frame(self):
        """The next frame, without its end."""
        async with deadline("a frame"):
            frame = await self.reader.readuntil(b"\x01")
        return frame[:-1].decode()

    async def subscribe(self, topic):
        self.ask("subscribe", topic)
        assert await self.frame() == "ACK"

    async def event(self):
        """What happened on a topic."""
        word, _, body = (await self.frame()).partition("\0")
        assert word == "PUBLISH", word
        body = json.loads(body)
        assert list(body) == ["topic", "event", "message_id", "data"]
        return body

    async def error(self, code):
        """An error of this code, with words."""
        body = json.loads(await self.frame())
        assert body["error"] == code, body
        assert body["message"]
        return body

    async def ping(self):
        self.send(b"PING\0")
        assert await self.frame() == "PONG"

    async def ended(self, code):
        """An error of this code, and nothing after it."""
        await self.error(code)
        assert await self.until_closed() == b""

    async def until_closed(self):
        """What is sent until the server ends the connection."""
        async with deadline("the end of the connection"):
            return await self.reader.read()

    def close(self):
        self.writer.close()
