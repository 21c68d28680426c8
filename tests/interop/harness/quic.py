"""A player who speaks carillon-match/1 over QUIC, by aioquic: one stream for what must arrive, and datagrams."""

import asyncio

from aioquic.asyncio import QuicConnectionProtocol
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, DatagramFrameReceived, StreamDataReceived

from .inbox import deadline
from .matches import ALPN, ERROR, INPUT, JOIN, TICK, Frame, encoded, take_varint, varint

STREAM, DATAGRAM = "stream", "datagram"
LOCAL = "127.0.0.1"


def configuration(server, alpn=ALPN, datagrams=True):
    config = QuicConfiguration(is_client=True, alpn_protocols=[alpn] if alpn else [], server_name="localhost")
    config.max_datagram_frame_size = 65536 if datagrams else None
    config.load_verify_locations(cadata=server.certificate.read_bytes())
    return config


def cut(data):
    """The whole frames at the beginning, and the rest."""
    frames = []
    while data:
        try:
            length, at = take_varint(data, 0)
        except IndexError:
            break
        if len(data) < at + length:
            break
        frames.append(Frame(data[at : at + length]))
        data = data[at + length :]
    return frames, data


class _Protocol(QuicConnectionProtocol):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.frames = asyncio.Queue()
        self.rest = b""
        self.drop = 0
        self.packets = 0
        self.ended = None

    def datagram_received(self, data, addr):
        self.packets += 1
        if self.drop > 0:
            self.drop -= 1
            return
        super().datagram_received(data, addr)

    def quic_event_received(self, event):
        if isinstance(event, StreamDataReceived):
            frames, self.rest = cut(self.rest + event.data)
            for frame in frames:
                self.frames.put_nowait((STREAM, frame))
        elif isinstance(event, DatagramFrameReceived):
            frames, rest = cut(event.data)
            assert rest == b"", "a datagram has whole frames"
            for frame in frames:
                self.frames.put_nowait((DATAGRAM, frame))
        elif isinstance(event, ConnectionTerminated):
            self.ended = event
            self.frames.put_nowait((None, None))


class QuicPlayer:
    """One connection of a player."""

    def __init__(self, protocol, address):
        self.protocol = protocol
        self.address = address
        self.stream = None
        # Ticks that came: the payload, and how each came first.
        self.ticks = {}
        self.next = 1

    @classmethod
    async def connect(cls, server, **options):
        quic = QuicConnection(configuration=configuration(server, **options))
        loop = asyncio.get_running_loop()
        _, protocol = await loop.create_datagram_endpoint(lambda: _Protocol(quic), local_addr=(LOCAL, 0))
        address = (LOCAL, server.port("quic"))
        protocol.connect(address)
        async with deadline("a player's connection over QUIC"):
            await protocol.wait_connected()
        return cls(protocol, address)

    async def move(self):
        """Goes on from another address, as a phone does that leaves its network."""
        before = self.protocol._transport
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(lambda: self.protocol, local_addr=(LOCAL, 0))
        assert self.protocol._transport is not before
        before.close()

    def lose(self, packets):
        """Of what the server sends from now on, so many packets do not arrive."""
        self.protocol.drop = packets

    def send(self, data):
        if self.stream is None:
            self.stream = self.protocol._quic.get_next_available_stream_id()
        self.protocol._quic.send_stream_data(self.stream, data)
        self.protocol.transmit()

    def datagram(self, data):
        self.protocol._quic.send_datagram_frame(data)
        self.protocol.transmit()

    def join(self, token, have=0):
        self.next = have + 1
        self.send(encoded(JOIN, have, token.encode(), ack=have))

    def input(self, tick, *newest_first, ack=0, missing=0):
        payload = b"".join(varint(len(one)) + one for one in newest_first)
        self.datagram(encoded(INPUT, tick, payload, ack=ack, missing=missing))

    async def frame(self):
        """How the next frame came, and it; none when the connection has ended."""
        async with deadline("a frame of a match"):
            by, frame = await self.protocol.frames.get()
        if by is None:
            self.protocol.frames.put_nowait((None, None))
        elif frame.kind == TICK:
            first, _ = self.ticks.setdefault(frame.tick, (frame.payload, by))
            assert first == frame.payload
        return by, frame

    async def until(self, kind, tick=0):
        """The next frame of a kind, about this tick or a later one."""
        while True:
            _, frame = await self.frame()
            assert frame is not None, f"the connection ended before a frame of kind {kind}"
            assert frame.kind == kind or frame.kind != ERROR, frame.payload
            if frame.kind == kind and frame.tick >= tick:
                return frame

    async def refused(self):
        """The error that the server ends the connection with."""
        error = None
        while True:
            _, frame = await self.frame()
            if frame is None:
                assert error is not None, f"the connection ended without an error: {self.protocol.ended}"
                return error
            if frame.kind == ERROR:
                error = frame.error()

    def cut(self):
        """Loses the connection, without a word."""
        self.protocol.transmit = lambda: None
        self.protocol._transport.close()

    async def close(self):
        if self.protocol.ended is None:
            self.protocol.close()
        self.cut()
