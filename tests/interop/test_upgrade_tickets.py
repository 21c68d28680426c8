"""Session tickets of TLS 1.3 outlive live upgrades: whoever comes back with one needs no full handshake."""

import asyncio
import socket

import pytest

from harness.inbox import DEADLINE_S
from harness.raw import header
from harness.upgrade import Upgradable


@pytest.fixture
async def server(tmp_path):
    server = Upgradable(tmp_path)
    try:
        yield server
    finally:
        await asyncio.to_thread(server.end)


def stream(server, context, session=None):
    """Opens a stream, and says whether its session of TLS is the given one, and which it has for the next time."""
    address = ("127.0.0.1", server.port("c2s_tls"))
    with (
        socket.create_connection(address, timeout=DEADLINE_S) as tcp,
        context.wrap_socket(tcp, server_hostname="localhost", session=session) as tls,
    ):
        assert tls.version() == "TLSv1.3"
        tls.sendall(header().encode())
        # The ticket comes after the handshake, before what is read first.
        assert tls.recv(65536)
        return tls.session_reused, tls.session


@pytest.mark.parametrize("upgrades", [1, 20])
async def test_a_ticket_from_before_upgrades_is_taken_after_them(server, upgrades):
    # Of one context: it has the certificate, and tickets are a context's.
    context = server.tls()
    reused, ticket = await asyncio.to_thread(stream, server, context)
    assert not reused
    assert ticket.has_ticket
    for _ in range(upgrades):
        await server.upgrade()
    reused, _ = await asyncio.to_thread(stream, server, context, ticket)
    assert reused
