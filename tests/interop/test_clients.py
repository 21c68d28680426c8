"""Clients that others wrote, each as a program of its own: it logs in, chats both ways and follows a topic."""

import asyncio
import os
import pathlib
import shutil
import sys

import pytest

from harness.device import Device
from harness.inbox import deadline
from harness.server import unique

HERE = pathlib.Path(__file__).parent
# `setup` puts clients beside the environment that this runs in.
INSTALLED = pathlib.Path(sys.prefix).parent
COMMANDS = {
    "aioxmpp": [INSTALLED / "aioxmpp/bin/python", HERE / "clients/aioxmpp-0.13.py"],
    "mellium": [INSTALLED / "mellium"],
}


@pytest.fixture
async def device(server, account):
    """Starts a client of the name."""
    started = []

    async def start(name, topic, **options):
        device = await Device.start(COMMANDS[name], server, await account(), topic, **options)
        started.append(device)
        return device

    yield start
    for device in started:
        await device.kill()


@pytest.mark.parametrize("direct_tls", [False, True], ids=["starttls", "direct"])
@pytest.mark.parametrize("name", COMMANDS)
async def test_it_logs_in_chats_and_follows(device, peer, api, name, direct_tls):
    topic = unique("news")
    await api.ok("PUT", f"/v1/topics/{topic}", {})
    client = await device(name, topic, direct_tls=direct_tls)
    online = await client.says("online")

    friend = await peer()
    friend.chat(online["online"], "é <&>")
    assert (await friend.message("echo é <&>")).get("from") == online["online"]

    await api.ok("POST", f"/v1/topics/{topic}/items", {"payload": {"over": "HTTP"}})
    assert await client.says("item") == {"topic": topic, "item": {"over": "HTTP"}}
    await client.end()


async def test_go_sendxmpp(server, account, peer):
    """Debian's go-sendxmpp, which sends a line break after each element: it sends, and it listens."""
    jid = await account()
    friend = await peer()
    login = ["-u", jid, "-p", "secret", "-j", f"localhost:{server.port('c2s')}"]
    sender = await go_sendxmpp(server, *login, friend.jid)
    async with deadline("go-sendxmpp to send"):
        said, _ = await sender.communicate(b"hello from a shell\n")
    assert sender.returncode == 0, said.decode()
    assert (await friend.message("hello from a shell")).get("from").startswith(f"{jid}/")

    listener = await go_sendxmpp(server, *login, "-l")
    try:
        friend.chat(jid, "hello shell")
        async with deadline("go-sendxmpp to hear"):
            while b"hello shell" not in (line := await listener.stdout.readline()):
                assert line, "go-sendxmpp ended"
    finally:
        listener.kill()
        await listener.wait()


async def go_sendxmpp(server, *arguments):
    pipe, both = asyncio.subprocess.PIPE, asyncio.subprocess.STDOUT
    environment = {**os.environ, "SSL_CERT_FILE": str(server.certificate)}
    program = shutil.which("go-sendxmpp")
    assert program, "go-sendxmpp is not installed: run tests/interop/setup"
    return await asyncio.create_subprocess_exec(
        program, *arguments, stdin=pipe, stdout=pipe, stderr=both, env=environment
    )
