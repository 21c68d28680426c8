"""A WebSocket with TLS of its own: `wss:`, where PLAIN is safe."""

import asyncio

import pytest

from harness.api import Api
from harness.websocket import OPEN, SASL, TEXT, RawWebSocket, frame, request


@pytest.fixture(scope="module")
def settings():
    return {"websocket__tls": "true"}


@pytest.fixture
async def socket(server):
    context = server.tls()
    context.set_alpn_protocols(["http/1.1"])
    connection = RawWebSocket(
        *await asyncio.open_connection("127.0.0.1", server.port("websocket"), ssl=context, server_hostname="localhost")
    )
    yield connection
    await connection.close()


async def test_plain_is_offered_and_logs_in(socket, account):
    user = (await account()).partition("@")[0]
    assert socket.writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
    socket.send(request())
    assert (await socket.response())[0] == 101
    socket.send(frame(TEXT, OPEN))
    await socket.element()
    features = await socket.element()
    mechanisms = [m.text for m in features.find(SASL + "mechanisms")]
    assert "PLAIN" in mechanisms
    assert "SCRAM-SHA-256-PLUS" in mechanisms
    assert (await socket.authenticate(user)).tag == SASL + "success"


async def test_the_api_names_the_secure_address(server):
    api = Api(server, "")
    links = (await api.ok("GET", "/.well-known/host-meta.json"))["links"]
    assert links[0]["href"].startswith("wss://localhost:")
    await api.aclose()
