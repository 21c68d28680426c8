"""A load balancer that speaks the PROXY protocol: clients are known, counted and told by their own addresses."""

import asyncio

import pytest

from harness.api import Api
from harness.haproxy import HAProxy
from harness.inbox import deadline
from harness.light import Light
from harness.raw import STREAM, STREAM_ERRORS, Raw, header
from harness.server import unique
from harness.upgrade import Upgradable
from harness.websocket import RawWebSocket

VERSIONS = {
    "version 1": "send-proxy",
    "version 2": "send-proxy-v2",
    "version 2 with a checksum": "send-proxy-v2 proxy-v2-options crc32c",
}
BOUND = 4
PROXIED = {
    "listen__trusted_proxies": "127.0.0.1",
    "listen__proxy_protocol": "c2s,c2s_tls,websocket,light",
    "light__port": 0,
}


@pytest.fixture(scope="module")
def settings():
    return PROXIED | {"limits__connections_per_address": BOUND}


@pytest.fixture(scope="module", params=VERSIONS.values(), ids=VERSIONS.keys())
def proxy(server, tmp_path_factory, request):
    proxy = HAProxy(server, tmp_path_factory.mktemp("proxy"), request.param)
    yield proxy
    proxy.end()


def an_address():
    """An address of this host that nobody else comes from."""
    number = int(unique(""))
    return f"127.0.{1 + number // 250}.{1 + number % 250}"


async def address_of(api, jid):
    listed = await api.ok("GET", f"/v1/admin/sessions?account={jid}")
    return [session["address"] for session in listed["sessions"]]


@pytest.mark.parametrize("port", ["c2s", "c2s_tls"])
async def test_a_session_has_the_address_of_its_client(proxy, api, account, port):
    jid, source = await account(), an_address()
    raw = await Raw.connect(proxy, port, source=source)
    await raw.begin()
    if port == "c2s":
        await raw.starttls()
        await raw.begin()
    await raw.log_in(jid.partition("@")[0])
    assert await address_of(api, jid) == [source]
    await raw.close()


async def test_websockets_and_light_clients_come_through(proxy):
    socket = await RawWebSocket.opened(proxy)
    await socket.close()
    light = await Light.open(proxy)
    light.close()


async def test_limits_and_refusals_are_those_of_the_client(proxy):
    source = an_address()
    taken = [await Raw.connect(proxy, source=source) for _ in range(BOUND)]
    for raw in taken:
        await raw.begin()
    refused = await Raw.connect(proxy, source=source)
    error = await refused.element()
    assert error.tag == STREAM + "error"
    assert error.find(STREAM_ERRORS + "resource-constraint") is not None
    other = await Raw.connect(proxy, source=an_address())
    await other.begin()
    for raw in (*taken, refused, other):
        await raw.close()


async def test_who_comes_from_elsewhere_has_no_header(server):
    raw = await Raw.connect(server, source=an_address())
    await raw.begin()
    await raw.close()
    forger = await Raw.connect(server, source=an_address())
    forger.send("PROXY TCP4 192.0.2.7 198.51.100.1 4711 5222\r\n")
    # It is bad XML, and nothing else.
    assert (await forger.element()).tag == STREAM + "error"
    await forger.close()


async def test_a_proxy_that_sends_no_header_is_refused(server):
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port("c2s"))
    writer.write(header().encode())
    async with deadline("the end of the connection"):
        assert await reader.read() == b""
    writer.close()
    assert "listen.proxy_protocol" in server.log.read_text()


async def test_addresses_outlive_an_upgrade(tmp_path):
    server = Upgradable(tmp_path, **PROXIED)
    api = Api(server)
    await api.account("alice")
    proxy = HAProxy(server, tmp_path, "send-proxy-v2")
    raw = await Raw.connect(proxy, "c2s_tls", source="127.0.1.250")
    await raw.begin()
    await raw.log_in("alice")
    await server.upgrade()
    assert await address_of(api, "alice@localhost") == ["127.0.1.250"]
    await raw.ping()
    await raw.close()
    await api.aclose()
    proxy.end()
    server.end()
