"""Clients that take their time, for ever: each step of a session has an end (here made short)."""

import asyncio
import contextlib
import socket
import struct

import pytest

from harness.inbox import deadline
from harness.raw import STARTTLS, TLS, Raw, auth, header, plain
from harness.websocket import OPEN, TEXT, RawWebSocket, frame, request


@pytest.fixture(scope="module")
def settings():
    # Long enough for an honest client on a busy machine.
    return {
        "timeouts__auth_ms": 2000,
        "timeouts__bind_ms": 2000,
        "ping__idle_ms": 1000,
        "ping__wait_ms": 2000,
    }


@pytest.mark.parametrize("port", ["c2s", "c2s_tls", "websocket"])
async def test_half_open_connections_end(server, peer, port):
    """Connections that never say a word, a hundred at once; the next client gets in all the same."""
    silent = [await asyncio.open_connection("127.0.0.1", server.port(port)) for _ in range(100)]
    await (await peer()).ping()
    async with deadline("the end of them all"):
        for reader, writer in silent:
            with contextlib.suppress(ConnectionError):
                await reader.read()
            writer.close()


async def test_a_header_byte_by_byte_ends(server):
    """Slowloris: each byte is progress of a kind, and not enough."""
    stream = await Raw.connect(server)
    text = header(extra=" " * 10_000).encode()

    async def drip():
        for i in range(len(text)):
            stream.send(text[i : i + 1])
            await asyncio.wait({reading}, timeout=0.02)
            if reading.done():
                return

    reading = asyncio.create_task(stream.stream_error("connection-timeout"))
    async with deadline("the end of patience"):
        await drip()
        await reading
    await stream.close()


async def test_an_http_request_byte_by_byte_ends(server):
    socket = await RawWebSocket.connect(server)
    text = request(x_padding="y" * 5000).encode()
    reading = asyncio.create_task(socket.reader.read())
    async with deadline("the end of patience"):
        for i in range(len(text)):
            socket.send(text[i : i + 1])
            await asyncio.wait({reading}, timeout=0.02)
            if reading.done():
                break
        await reading
    await socket.close()


async def test_half_a_handshake_ends(server):
    stream = await Raw.connect(server)
    await stream.begin()
    stream.send(STARTTLS)
    assert (await stream.element()).tag == TLS + "proceed"
    # The first bytes of a ClientHello whose record promises 512.
    stream.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
    async with deadline("the end of the handshake"):
        await stream.reader.read()
    await stream.close()


async def test_no_login_ends(server):
    stream = await Raw.secured(server)
    await stream.stream_error("connection-timeout")
    await stream.close()


async def test_no_resource_ends(server, account):
    stream = await Raw.secured(server)
    stream.send(auth("PLAIN", plain((await account()).partition("@")[0])))
    await stream.element()
    await stream.begin()
    await stream.stream_error("connection-timeout")
    await stream.close()


async def test_no_login_over_websocket_ends(server):
    socket = await RawWebSocket.opened(server)
    error = await socket.element()
    assert error.find("{urn:ietf:params:xml:ns:xmpp-streams}connection-timeout") is not None
    await socket.close()


async def test_a_websocket_without_a_stream_ends(server):
    socket = await RawWebSocket.upgraded(server)
    async with deadline("the end of the connection"):
        await socket.reader.read()
    await socket.close()


async def test_a_client_that_answers_no_ping_is_gone(server, account):
    stream = await Raw.logged_in(server, (await account()).partition("@")[0])
    ping = await stream.until(lambda e: e.find("{urn:xmpp:ping}ping") is not None)
    assert ping.get("type") == "get"
    await stream.stream_error("connection-timeout")
    await stream.close()


async def test_a_client_that_answers_stays(server, account):
    stream = await Raw.logged_in(server, (await account()).partition("@")[0])
    for _ in range(2):
        ping = await stream.until(lambda e: e.find("{urn:xmpp:ping}ping") is not None)
        stream.send(f"<iq type='result' id='{ping.get('id')}' to='localhost'/>")
    await stream.ping()
    await stream.close()


async def test_a_reader_that_does_not_read_is_cut_off_and_its_sender_is_not(server, account, peer):
    """Its queue is bounded: it ends, and everybody else goes on."""
    deaf_jid = await account("deaf")
    deaf = await Raw.logged_in(server, deaf_jid.partition("@")[0])
    raw_socket = deaf.writer.get_extra_info("socket")
    raw_socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.writer.transport.pause_reading()
    sender = await peer()
    watcher = await peer(f"{deaf_jid}/watcher")
    await watcher.presence(deaf.jid)
    gone = asyncio.create_task(watcher.presence(deaf.jid, "unavailable"))
    async with deadline("the end of the deaf"):
        while not gone.done():
            for _ in range(20):
                sender.chat(deaf.jid, "x" * 20_000)
            await sender.ping()
        await gone
    await sender.ping()
    raw_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    deaf.writer.transport.abort()


async def test_an_open_frame_is_not_a_session(server):
    socket = await RawWebSocket.upgraded(server)
    socket.send(frame(TEXT, OPEN)[:20])
    async with deadline("the end of the connection"):
        await socket.reader.read()
    await socket.close()
