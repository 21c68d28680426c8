"""slixmpp over TCP and xmpp.js over WebSocket, each as the other's peer."""

import asyncio
import os
import pathlib

import pytest

from harness.inbox import deadline

HERE = pathlib.Path(__file__).parent
NODE = os.environ.get("NODE", "node")


@pytest.fixture
async def echo(server, account):
    """Starts xmpp.js; the JID under which it sends back what it is sent."""
    started = []

    async def start(greets=""):
        user = (await account("echo")).partition("@")[0]
        process = await asyncio.create_subprocess_exec(
            NODE,
            str(HERE / "js/echo.mjs"),
            server.websocket,
            user,
            greets,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        started.append(process)
        async with deadline("the login of xmpp.js"):
            jid = (await process.stdout.readline()).decode().strip()
        assert jid.startswith(f"{user}@localhost/"), jid
        return jid

    yield start
    for process in started:
        process.stdin.close()
        async with deadline("the end of xmpp.js"):
            assert await process.wait() == 0


@pytest.mark.parametrize("direct_tls", [False, True], ids=["starttls", "direct"])
async def test_a_conversation(peer, echo, direct_tls):
    alice = await peer(direct_tls=direct_tls, plugins=["xep_0198"])
    other = await echo(alice.bare)
    assert (await alice.message("hello from xmpp.js")).get("from") == other
    for text in ("é 🔔 <&>", "x" * 50_000, "last"):
        alice.chat(other, text)
        assert (await alice.message(f"echo: {text}")).get("from") == other


async def test_it_asks_and_is_answered_across(peer, echo):
    alice = await peer()
    assert await alice.plugin("xep_0199").ping(await echo()) >= 0
