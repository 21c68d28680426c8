"""Connections that are not taken: they learn when to come back, where anything can be said before TLS."""

import asyncio

import pytest

from harness.inbox import deadline
from harness.raw import STREAM, STREAM_ERRORS, Raw, header


@pytest.fixture(scope="module")
def settings():
    return {"limits__connections_per_address": 1}


async def place(server):
    """A connection that is taken, as soon as the server knows that the last one is gone."""
    async with deadline("a place"):
        while True:
            raw = await Raw.connect(server)
            raw.send(header())
            if (await raw.element()).tag == STREAM + "features":
                return raw
            await raw.close()


async def test_starttls_is_told_by_a_stream_error(server):
    first = await place(server)
    waits = set()
    for _ in range(20):
        second = await Raw.connect(server)
        second.send(header())
        error = await second.element()
        assert error.tag == STREAM + "error"
        assert error.find(STREAM_ERRORS + "resource-constraint") is not None
        waits.add(int(error.find("{urn:carillon:retry:0}retry-after").get("seconds")))
        await second.end_of_stream()
        await second.close()
    assert min(waits) >= 15
    assert max(waits) <= 45
    assert len(waits) > 3, "those who are refused together must not come back together"
    await first.close()


async def test_websocket_is_told_by_http(server):
    first = await place(server)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port("websocket"))
    head = (await reader.read()).decode()
    assert head.startswith("HTTP/1.1 503 ")
    assert "\r\nRetry-After: " in head
    writer.close()
    await first.close()


async def connect_and_read(port):
    reader, _ = await asyncio.open_connection("127.0.0.1", port)
    return await reader.read()


async def test_direct_tls_is_reset_before_the_handshake(server):
    first = await place(server)
    with pytest.raises(ConnectionResetError):
        await connect_and_read(server.port("c2s_tls"))
    await first.close()


async def test_a_place_that_is_free_again_is_given(server):
    for _ in range(3):
        await (await place(server)).close()
