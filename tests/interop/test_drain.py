"""Draining a node over a time: who ends first, what they are told, how far it has come, and the way back."""

import asyncio

import pytest

from harness.api import Api
from harness.inbox import deadline
from harness.peer import Peer
from harness.raw import STREAM, STREAM_ERRORS, Raw
from harness.server import Server

DRAIN = "/v1/admin/drain"
SESSIONS = 200
OTHER = "b.example.org:5222"


@pytest.fixture
async def node(tmp_path):
    """A node of its own: nobody else's sessions end."""
    server = Server(tmp_path)
    api = Api(server)
    await api.account("alice")
    yield server, api
    await api.aclose()
    server.end()


async def other_host(raw):
    """Where the end of a stream sends its client."""
    error = await raw.until(lambda e: e.tag == STREAM + "error")
    await raw.end_of_stream()
    return error.findtext(STREAM_ERRORS + "see-other-host")


async def drained(api):
    """The progress of the drain until nobody is left."""
    seen = []
    async with deadline("the end of the drain"):
        while True:
            seen.append(await api.ok("GET", DRAIN))
            if seen[-1]["state"] == "drained":
                return seen


async def test_sessions_end_in_slices_and_are_told_where_to_go(tmp_path):
    server = Server(tmp_path)
    api = Api(server)
    for n in range(SESSIONS // 10):
        await api.account(f"user{n}")
    raws = await asyncio.gather(
        *(
            Raw.logged_in(server, f"user{n % (SESSIONS // 10)}", resource=f"r{n}", presence=False)
            for n in range(SESSIONS)
        )
    )
    # It reads nothing, and must not hold the others up.
    deaf = raws[0]
    deaf.writer.transport.pause_reading()
    begun = await api.ok("PUT", DRAIN, {"over_ms": 2000, "to": OTHER}, status=202)
    assert (begun["state"], begun["total"], begun["slices"]) == ("draining", SESSIONS, 20)
    assert (await api.call("GET", "/readyz")).status_code == 503
    told = asyncio.gather(*(other_host(raw) for raw in raws[1:]))
    seen = await drained(api)
    assert await told == [OTHER] * (SESSIONS - 1)
    assert (seen[-1]["left"], seen[-1]["total"]) == (0, SESSIONS)
    # Each slice of the twenty ends a twentieth, so that at no time more are gone than were due.
    for progress in seen:
        gone = SESSIONS - progress["left"]
        assert gone <= progress["slices_done"] * SESSIONS / 20, progress
    assert len({progress["left"] for progress in seen}) > 3, seen
    # Who comes now is told the same.
    late = await Raw.connect(server, "c2s_tls")
    late.send(
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='localhost' version='1.0'>"
    )
    assert await other_host(late) == OTHER
    for raw in [*raws, late]:
        await raw.close()
    await api.aclose()
    server.end()


async def test_slixmpp_is_told_and_the_drain_can_be_cancelled(node):
    server, api = node
    alice = await Peer.connect(server, "alice@localhost")
    ran = await server.command("drain", "--over", "0ms", "--to", OTHER)
    assert (ran.returncode, ran.stdout.splitlines()[-1]) == (0, "drained: none of 1 left"), ran
    assert await alice.stream_error() == "see-other-host"
    assert (await server.command("drain", "--cancel")).returncode == 0
    assert (await api.ok("GET", DRAIN))["state"] == "none"
    assert (await api.call("GET", "/readyz")).status_code == 200
    alice = await Peer.connect(server, "alice@localhost")
    await api.ok("PUT", DRAIN, {"over_ms": 3_600_000}, status=202)
    # The first slice is a thousandth: one session stays till the end.
    await alice.ping()
    await api.ok("DELETE", DRAIN, status=204)
    await alice.ping()
    await alice.close()


async def test_a_host_that_is_none_is_refused(node):
    server, api = node
    for to in ["b.example:0", "2001:db8::1", "b.example/x"]:
        await api.problem(422, "invalid-value", "PUT", DRAIN, {"over_ms": 0, "to": to})
    ran = await server.command("drain", "--to", "2001:db8::1")
    assert ran.returncode == 1, ran
    assert "an IPv6 address stands in brackets" in ran.stderr
    assert (await api.ok("GET", DRAIN))["state"] == "none"
