"""Removals of much data in the middle of which the node is killed: they are finished after the restart."""

import asyncio
import contextlib

import pytest

from harness import store
from harness.api import Api
from harness.inbox import deadline
from harness.raw import CLIENT, STANZA_ERRORS, Raw
from harness.server import Server

# They go in parts of a thousand rows or some thousands, each with a commit of its own.
ROWS = 200_000
REMOVE = "<iq type='set' id='remove'><query xmlns='jabber:iq:register'><remove/></query></iq>"
REGISTER = (
    "<iq type='set' id='register'><query xmlns='jabber:iq:register'>"
    "<username>alice</username><password>secret</password></query></iq>"
)


@pytest.fixture
def start(tmp_path):
    """Starts the node of the test, which it kills."""
    servers = []

    def starts():
        settings = {"limits__removed_names_held_ms": "2s", "limits__registrations_per_address": 0}
        servers.append(Server(tmp_path, registration__in_band="true", **settings))
        return servers[-1]

    yield starts
    if servers[-1].is_running():
        servers[-1].end()


def fill(server, local):
    """Gives an account a long block list."""
    store.run(
        server,
        f"""WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {ROWS})
        INSERT INTO blocked (account, jid) SELECT a.id, 'b' || n.n || '@elsewhere.example' FROM n, account a
        WHERE a.local = '{local}'""",
    )


async def killed_in_the_middle(server):
    """Kills the node once a removal has begun; how many rows are left then."""
    async with deadline("a removal that has begun"):
        while await asyncio.to_thread(store.count, server, "removal") == 0:
            pass
    server.kill()
    left = store.count(server, "blocked")
    assert 0 < left < ROWS
    assert store.count(server, "removal") > 0
    return left


async def finished(server):
    async with deadline("the end of the removal", 60):
        while await asyncio.to_thread(store.count, server, "removal") > 0:
            pass
    assert store.count(server, "blocked") == 0


async def test_an_account_is_gone_after_a_restart_in_the_middle_of_its_removal(start):
    server = start()
    api = Api(server)
    await api.account("alice@localhost")
    fill(server, "alice")
    alice = await Raw.secured(server)
    await alice.log_in("alice")
    alice.send(REMOVE)
    await killed_in_the_middle(server)
    await alice.close()
    await api.aclose()

    server = start()
    api = Api(server)
    await finished(server)
    await api.problem(404, "unknown-account", "GET", "/v1/admin/accounts/alice@localhost")
    # It is held back for its time.
    async with deadline("the name to be free again"):
        registered = False
        while not registered:
            stream = await Raw.secured(server)
            answer = await stream.ask(REGISTER, "register")
            await stream.close()
            registered = answer.get("type") == "result"
            assert registered or answer.find(f"{CLIENT}error/{STANZA_ERRORS}conflict") is not None
    again = await Raw.secured(server)
    await again.log_in("alice")
    await again.close()
    await api.aclose()


async def test_a_domain_is_gone_after_a_restart_in_the_middle_of_its_removal(start):
    server = start()
    api = Api(server)
    await api.ok("PUT", "/v1/admin/domains/tenant.example", {}, status=201)
    await api.account("bob@tenant.example")
    fill(server, "bob")
    removal = asyncio.create_task(api.call("DELETE", "/v1/admin/domains/tenant.example"))
    await killed_in_the_middle(server)
    with contextlib.suppress(Exception):
        await removal
    await api.aclose()

    server = start()
    api = Api(server)
    await finished(server)
    async with deadline("the end of the domain"):
        while (await api.call("GET", "/v1/admin/domains/tenant.example")).status_code != 404:
            pass
    await api.ok("PUT", "/v1/admin/domains/tenant.example", {}, status=201)
    await api.account("bob@tenant.example")
    await api.aclose()
