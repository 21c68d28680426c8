"""The self-signed certificate: whom it is for, and when it is made anew."""

import asyncio

import pytest

from harness.inbox import deadline
from harness.server import Server


async def reach(server, address, name):
    """Connects with TLS to an address, as a client that trusts the certificate for this name."""
    async with deadline(f"TLS with {name}"):
        _, writer = await asyncio.open_connection(
            address, server.port("c2s_tls"), ssl=server.tls(), server_hostname=name
        )
        writer.close()


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1"])
async def test_it_is_for_this_machine_by_name_and_address(server, name):
    await reach(server, "127.0.0.1", name)


async def test_it_is_for_the_addresses_listened_on(tmp_path):
    first = Server(tmp_path)
    made = first.certificate.read_bytes()
    first.end()
    again = Server(tmp_path)
    assert again.certificate.read_bytes() == made, "it is kept while it fits"
    again.end()
    moved = Server(tmp_path, listen__address='["127.0.0.1", "127.0.0.2"]', listen__host="push.example")
    assert moved.certificate.read_bytes() != made
    for name in ("127.0.0.2", "127.0.0.1", "push.example", "localhost"):
        await reach(moved, "127.0.0.2", name)
    moved.end()
