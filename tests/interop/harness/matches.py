"""A player who speaks carillon-match/1 by hand (docs/book/matches.md), over TLS or over a WebSocket."""

import asyncio
import contextlib
import os

from .inbox import deadline
from .websocket import BINARY, frame, request

ALPN = "carillon-match/1"
SUBPROTOCOL = "carillon-match.1"
JOIN, INPUT, HASH, PING, PAUSE, CONTINUE, FORFEIT, OUTCOME, STATE = range(1, 10)
WELCOME, TICK, SEAT, DESYNC, PONG, CLOCK, ENDED, ERROR, UPDATE, SNAPSHOT, WANTED = range(16, 27)
ERRORS = {
    1: "malformed",
    2: "too-long",
    3: "bad-token",
    4: "expired-token",
    5: "no-match",
    6: "left",
    7: "replaced",
    8: "not-joined",
    9: "too-far",
    10: "too-old",
    11: "idle",
    12: "too-slow",
    13: "elsewhere",
    14: "shutdown",
}


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def take_varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at


def zigzag(number):
    return number * 2 if number >= 0 else -number * 2 - 1


def encoded(kind, tick=0, payload=b"", ack=0, missing=0):
    """A frame with its length. What acknowledges nothing says that it has 0."""
    body = varint(kind) + varint(tick) + varint(zigzag(tick - ack)) + varint(missing) + payload
    return varint(len(body)) + body


class Frame:
    """A frame of the server."""

    def __init__(self, body):
        self.kind, at = take_varint(body, 0)
        self.tick, at = take_varint(body, at)
        behind, at = take_varint(body, at)
        self.ack = self.tick - (behind // 2 if behind % 2 == 0 else -(behind + 1) // 2)
        self.missing, at = take_varint(body, at)
        self.payload = body[at:]

    def __repr__(self):
        return f"<frame {self.kind} of {self.tick}: {self.payload.hex()}>"

    def inputs(self):
        """The inputs by seat, and the seats whose input is repeated."""
        given, at = take_varint(self.payload, 0)
        repeated, at = take_varint(self.payload, at)
        even, at = take_varint(self.payload, at)
        inputs = {}
        for seat in range(64):
            if given >> seat & 1:
                length = even - 1
                if even == 0:
                    length, at = take_varint(self.payload, at)
                inputs[seat] = self.payload[at : at + length]
                at += length
        assert at == len(self.payload)
        return inputs, {seat for seat in range(64) if repeated >> seat & 1}

    def error(self):
        assert self.kind == ERROR, self
        return ERRORS[self.payload[0]]


class Player:
    """One connection of a player."""

    def __init__(self, reader, writer, framed):
        self.reader = reader
        self.writer = writer
        self.framed = framed
        self.kept = b""
        self.bytes_in = 0

    @classmethod
    async def over_tls(cls, server):
        context = server.tls()
        context.set_alpn_protocols([ALPN])
        async with deadline("a player's connection"):
            streams = await asyncio.open_connection(
                "127.0.0.1", server.port("c2s_tls"), ssl=context, server_hostname="localhost"
            )
        assert streams[1].get_extra_info("ssl_object").selected_alpn_protocol() == ALPN
        return cls(*streams, framed=False)

    @classmethod
    async def over_websocket(cls, server):
        async with deadline("a player's connection"):
            player = cls(*await asyncio.open_connection("127.0.0.1", server.port("websocket")), framed=True)
            player.writer.write(request(protocol=SUBPROTOCOL).encode())
            head = await player.reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101"), head
        assert f"Sec-WebSocket-Protocol: {SUBPROTOCOL}".encode() in head
        return player

    def send(self, data):
        with contextlib.suppress(ConnectionError):
            self.writer.write(frame(BINARY, data) if self.framed else data)

    def join(self, token, have=0):
        self.send(encoded(JOIN, have, token.encode(), ack=have))

    def input(self, tick, *newest_first):
        payload = b"".join(varint(len(one)) + one for one in newest_first)
        self.send(encoded(INPUT, tick, payload, ack=tick))

    def answer(self, wanted, state, sent=None):
        """Says the hash of a state that the server wants to have, and sends the state, or something else in its place."""
        tick, state_sent = wanted.tick, state if sent is None else sent
        self.send(encoded(HASH, tick, state_hash(state), ack=tick))
        if wanted.payload[0]:
            for at in range(0, len(state_sent), 1900):
                part = varint(at) + varint(len(state_sent)) + state_sent[at : at + 1900]
                self.send(encoded(STATE, tick, part, ack=tick))

    async def frame(self):
        """The next frame; none when the connection has ended."""
        async with deadline("a frame of a match"):
            while True:
                if self.kept:
                    with contextlib.suppress(IndexError):
                        length, at = take_varint(self.kept, 0)
                        if len(self.kept) >= at + length:
                            body, self.kept = self.kept[at : at + length], self.kept[at + length :]
                            return Frame(body)
                data = await self.some()
                if not data:
                    return None
                self.kept += data
                self.bytes_in += len(data)

    async def some(self):
        """Bytes of the stream; none at its end."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            if not self.framed:
                return await self.reader.read(65536)
            first, second = await self.reader.readexactly(2)
            length = second & 0x7F
            if length == 126:
                length = int.from_bytes(await self.reader.readexactly(2), "big")
            elif length == 127:
                length = int.from_bytes(await self.reader.readexactly(8), "big")
            payload = await self.reader.readexactly(length)
            assert first & 0x0F in (BINARY, 8), first
            return payload if first & 0x0F == BINARY else b""
        return b""

    async def until(self, kind, tick=0):
        """The next frame of a kind, about this tick or a later one."""
        while True:
            frame = await self.frame()
            assert frame is not None, f"the connection ended before a frame of kind {kind}"
            assert frame.kind == kind or frame.kind != ERROR, frame.payload
            if frame.kind == kind and frame.tick >= tick:
                return frame

    async def refused(self):
        """The error that the server ends the connection with."""
        while (frame := await self.frame()) is not None:
            if frame.kind == ERROR:
                assert await self.frame() is None
                return frame.error()
        raise AssertionError("the connection ended without an error")

    def cut(self):
        """Loses the connection, without a word."""
        self.writer.transport.abort()

    async def close(self):
        self.writer.close()
        with contextlib.suppress(Exception):
            await self.writer.wait_closed()


def state_hash(state):
    """FNV-1a of 32 bits, as a frame has it."""
    number = 0x811C9DC5
    for byte in state:
        number = (number ^ byte) * 0x01000193 & 0xFFFFFFFF
    return number.to_bytes(4, "little")


def stamp():
    return os.urandom(8)
