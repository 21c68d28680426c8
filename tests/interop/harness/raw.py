"""A stream spoken by hand: what no well-behaved client would send, and how it ends."""

import asyncio
import base64
import contextlib
import socket
import struct
import xml.etree.ElementTree as ET

from .inbox import deadline

CLIENT = "{jabber:client}"
STREAM = "{http://etherx.jabber.org/streams}"
STREAM_ERRORS = "{urn:ietf:params:xml:ns:xmpp-streams}"
STANZA_ERRORS = "{urn:ietf:params:xml:ns:xmpp-stanzas}"
SASL = "{urn:ietf:params:xml:ns:xmpp-sasl}"
TLS = "{urn:ietf:params:xml:ns:xmpp-tls}"
BIND = "{urn:ietf:params:xml:ns:xmpp-bind}"

STARTTLS = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"


def header(to="localhost", version="1.0", extra=""):
    """A stream header as RFC 6120 §4.7 has it."""
    to = f" to='{to}'" if to is not None else ""
    version = f" version='{version}'" if version is not None else ""
    return (
        f"<?xml version='1.0'?><stream:stream xmlns='jabber:client' "
        f"xmlns:stream='http://etherx.jabber.org/streams'{to}{version}{extra}>"
    )


def auth(mechanism, text):
    """Classic SASL's first message."""
    return f"<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='{mechanism}'>{text}</auth>"


def plain(user, password="secret"):
    """The message of PLAIN in base 64."""
    return base64.b64encode(f"\0{user}\0{password}".encode()).decode()


class Raw:
    """One connection."""

    def __init__(self, server, reader, writer):
        self.server = server
        self.reader = reader
        self.writer = writer
        self.jid = None
        self._restart()

    @classmethod
    async def connect(cls, server, port="c2s", name="localhost", receive_bytes=None, source=None):
        """A TCP connection on which nothing was said yet; for the direct port, after the handshake. `receive_bytes`: what the
        system keeps of what nobody reads, about. `source`: the address that it comes from."""
        tls = {"ssl": server.tls(), "server_hostname": name} if port == "c2s_tls" else {}
        with contextlib.ExitStack() as stack:
            sock = stack.enter_context(socket.socket())
            sock.setblocking(False)
            if receive_bytes:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes // 2)
            if source:
                sock.bind((source, 0))
            async with deadline(f"a connection to {port}"):
                await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", server.port(port)))
                reader, writer = await asyncio.open_connection(sock=sock, **tls)
            stack.pop_all()
        return cls(server, reader, writer)

    @classmethod
    async def secured(cls, server, to="localhost", receive_bytes=None):
        """A stream over direct TLS whose header was exchanged."""
        raw = await cls.connect(server, "c2s_tls", receive_bytes=receive_bytes)
        raw.features = await raw.begin(to)
        return raw

    @classmethod
    async def logged_in(cls, server, user, password="secret", resource="raw", presence=True, receive_bytes=None):
        """A bound session."""
        raw = await cls.secured(server, receive_bytes=receive_bytes)
        await raw.log_in(user, password, resource, presence)
        return raw

    def _restart(self):
        self.parser = ET.XMLPullParser(("start", "end"))
        self.root = None
        self.depth = 0
        self.closed = False

    def send(self, data):
        """Sends what is given, whatever it is. That the other side is gone is found out when reading."""
        with contextlib.suppress(ConnectionError):
            self.writer.write(data.encode() if isinstance(data, str) else data)

    async def begin(self, to="localhost"):
        """Opens a stream; its features."""
        self._restart()
        self.send(header(to))
        features = await self.element()
        assert features.tag == STREAM + "features", features.tag
        return features

    async def starttls(self):
        """Secures a stream that offered STARTTLS."""
        self.send(STARTTLS)
        proceed = await self.element()
        assert proceed.tag == TLS + "proceed", ET.tostring(proceed)
        async with deadline("the TLS handshake"):
            await self.writer.start_tls(self.server.tls(), server_hostname="localhost")

    async def authenticate(self, user, password="secret"):
        """Authenticates by PLAIN, and opens the stream in which a resource can be bound, or a session resumed."""
        self.send(auth("PLAIN", plain(user, password)))
        success = await self.element()
        assert success.tag == SASL + "success", ET.tostring(success)
        await self.begin()

    async def log_in(self, user, password="secret", resource="raw", presence=True):
        """Authenticates, binds, and sends presence if asked to."""
        await self.authenticate(user, password)
        bound = await self.ask(
            f"<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
            f"<resource>{resource}</resource></bind></iq>",
            "b",
        )
        self.jid = bound.findtext(f"{BIND}bind/{BIND}jid")
        assert self.jid == f"{user}@localhost/{resource}", ET.tostring(bound)
        if presence:
            await self.available()

    async def available(self, presence="<presence/>"):
        """Sends presence, and waits until it is told of it."""
        self.send(presence)
        await self.until(lambda e: e.tag == CLIENT + "presence" and e.get("from") == self.jid)

    async def header(self):
        """Waits for the server's stream header: `root` is its element then."""
        async with deadline("a stream header"):
            while self.root is None:
                first = next(self.parser.read_events(), None)
                if first:
                    self.root, self.depth = first[1], 1
                else:
                    data = await self.reader.read(65536)
                    assert data, "the connection ended before the stream"
                    self.parser.feed(data)

    def stop_reading(self):
        """Leaves what comes to the system, whose buffer fills."""
        if self.writer.get_extra_info("ssl_object"):
            # TLS reads ahead of whoever is paused.
            self.writer.transport.set_read_buffer_limits(1)
        self.writer.transport.pause_reading()

    def read_again(self):
        self.writer.transport.resume_reading()

    async def element(self):
        """The next top-level element; None for the end of the stream."""
        async with deadline("an element"):
            while True:
                for event, element in self.parser.read_events():
                    if event == "start":
                        self.root = element if self.depth == 0 else self.root
                        self.depth += 1
                        continue
                    self.depth -= 1
                    if self.depth == 1:
                        return element
                    if self.depth == 0:
                        self.closed = True
                        return None
                data = await self.reader.read(65536)
                assert data, "the connection ended inside the stream"
                self.parser.feed(data)

    async def until(self, wanted):
        """The next element that is wanted; those before it are dropped."""
        while True:
            element = await self.element()
            assert element is not None, "the stream ended"
            if wanted(element):
                return element

    async def ask(self, iq, id):
        """Sends an IQ; its answer."""
        self.send(iq)
        return await self.until(lambda e: e.tag == CLIENT + "iq" and e.get("id") == id)

    async def ping(self):
        """A round trip to the server."""
        answer = await self.ask("<iq type='get' id='ping'><ping xmlns='urn:xmpp:ping'/></iq>", "ping")
        assert answer.get("type") == "result", ET.tostring(answer)

    async def stream_error(self, condition):
        """The stream ends with this error, and then the connection with the stream."""
        error = await self.until(lambda e: e.tag == STREAM + "error")
        # What the application adds says more of the same.
        conditions = [e.tag for e in error if e.tag.startswith(STREAM_ERRORS) and not e.tag.endswith("}text")]
        assert conditions == [STREAM_ERRORS + condition], ET.tostring(error)
        await self.end_of_stream()

    async def end_of_stream(self):
        """`</stream:stream>`, and nothing after it."""
        last = await self.element()
        assert last is None, ET.tostring(last)
        await self.eof()

    async def eof(self):
        """The other side closed the connection."""
        async with deadline("the end of the connection"):
            try:
                left = await self.reader.read()
            except ConnectionError:
                left = b""
        assert left == b"", left

    async def failure(self, condition):
        """SASL fails with this condition."""
        failure = await self.element()
        assert failure.tag == SASL + "failure", ET.tostring(failure)
        assert failure[0].tag == SASL + condition, ET.tostring(failure)

    async def stanza_error(self, condition, id):
        """A stanza comes back with this error."""
        stanza = await self.until(lambda e: e.get("id") == id)
        assert stanza.get("type") == "error", ET.tostring(stanza)
        error = stanza.find(CLIENT + "error")
        assert error.find(STANZA_ERRORS + condition) is not None, ET.tostring(stanza)

    def reset(self):
        """Ends the connection with a reset."""
        linger = struct.pack("ii", 1, 0)
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.writer.transport.abort()

    async def close(self):
        """Ends the connection, whatever its state."""
        self.writer.close()
        with contextlib.suppress(Exception):
            async with asyncio.timeout(1):
                await self.writer.wait_closed()
