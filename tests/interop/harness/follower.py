"""A session that follows topics and keeps of what comes only which items it got: many of them cost little."""

import asyncio
import re
import socket

from .inbox import deadline
from .raw import Raw

ITEM = re.compile(rb"<item id='([^']+)'")
END = b"</message>"


class Follower:
    """One session."""

    def __init__(self, stream):
        self.stream = stream
        self.items = []
        self.last_bytes = b""
        self._news = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def of(cls, api, server, jid, *topics):
        """A session of an account that follows these topics from now on."""
        user = jid.partition("@")[0]
        for topic in topics:
            await api.ok("PUT", f"/v1/devices/{user}/subscriptions/{topic}", status=201)
        stream = await Raw.logged_in(server, user)
        return cls(stream)

    async def _read(self):
        rest = b""
        while data := await self.stream.reader.read(1 << 16):
            self.last_bytes = (self.last_bytes + data)[-1000:]
            data = rest + data
            cut = data.rfind(END) + len(END) if END in data else 0
            whole, rest = data[:cut], data[cut:]
            self.items += [id.decode() for id in ITEM.findall(whole)]
            self._news.set()

    async def got(self, wanted, what):
        """Waits until its items are as wanted."""
        async with deadline(f"{self.stream.jid} to have {what}", 60):
            while not wanted(self.items):
                self._news.clear()
                await self._news.wait()

    def stop_reading(self):
        # Its buffer shall not grow. (It must not shrink either: a window below a segment drains for minutes.)
        self.stream.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        self.stream.writer.transport.pause_reading()

    async def read_to_the_end(self):
        """Reads again; the last bytes before the server closed the connection."""
        self.stream.writer.transport.resume_reading()
        async with deadline(f"the end of {self.stream.jid}"):
            await self._reading
        return self.last_bytes

    async def close(self):
        self._reading.cancel()
        await self.stream.close()
