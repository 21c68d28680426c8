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
from harness.terminal import Terminal

HERE = pathlib.Path(__file__).parent
# `setup` puts clients beside the environment that this runs in.
INSTALLED = pathlib.Path(sys.prefix).parent
COMMANDS = {
    "slixmpp 1.8": [INSTALLED / "slixmpp-1.8/bin/python", HERE / "clients/slixmpp-1.8.py"],
    "aioxmpp": [INSTALLED / "aioxmpp/bin/python", HERE / "clients/aioxmpp-0.13.py"],
    "mellium": [INSTALLED / "mellium"],
}
# Orders for one of them only.
ORDERS = {"slixmpp 1.8": {"tls": "TLSv1_2"}}


@pytest.fixture
async def device(server, account):
    """Starts a client of the name."""
    started = []

    async def start(name, topic, **options):
        orders = ORDERS.get(name, {}) | options
        device = await Device.start(COMMANDS[name], server, await account(), topic, **orders)
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
    if name == "slixmpp 1.8":
        # What Debian 12 has does not know the channel bindings that TLS 1.2 leaves.
        assert (online["tls"], online["mechanism"]) == ("TLSv1.2", "SCRAM-SHA-256")

    friend = await peer()
    friend.chat(online["online"], "é <&>")
    assert (await friend.message("echo é <&>")).get("from") == online["online"]

    await api.ok("POST", f"/v1/topics/{topic}/items", {"payload": {"over": "HTTP"}})
    assert await client.says("item") == {"topic": topic, "item": {"over": "HTTP"}}
    await client.end()


@pytest.mark.parametrize("direct_tls", [False, True], ids=["starttls", "direct"])
async def test_slixmpp_1_8_gets_in_on_tls_1_3(device, peer, api, direct_tls):
    """By PLAIN: it knows no channel binding but `tls-unique`, and without one it says that the server has none. See the book."""
    topic = unique("news")
    await api.ok("PUT", f"/v1/topics/{topic}", {})
    client = await device("slixmpp 1.8", topic, direct_tls=direct_tls, tls="TLSv1_3")
    online = await client.says("online")
    assert (online["tls"], online["mechanism"]) == ("TLSv1.3", "PLAIN")
    assert dict(online["refused"]) == {
        "SCRAM-SHA-256-PLUS": "malformed-request",
        "SCRAM-SHA-1-PLUS": "malformed-request",
        "SCRAM-SHA-256": "not-authorized",
        "SCRAM-SHA-1": "not-authorized",
    }
    friend = await peer()
    friend.chat(online["online"], "hello")
    assert (await friend.message("echo hello")).get("from") == online["online"]
    await client.end()


@pytest.mark.parametrize("direct_tls", [False, True], ids=["starttls", "direct"])
async def test_go_sendxmpp(server, account, peer, direct_tls):
    """Debian's go-sendxmpp, which sends a line break after each element: it sends, and it listens."""
    jid = await account()
    friend = await peer()
    port = server.port("c2s_tls" if direct_tls else "c2s")
    login = ["-u", jid, "-p", "secret", "-j", f"localhost:{port}", *(["-t"] if direct_tls else [])]
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


PROFANITY = """[alice]
enabled=true
jid={jid}
server=127.0.0.1
port={port}
password=secret
resource=terminal
tls.policy=force
"""


@pytest.mark.parametrize("direct_tls", [False, True], ids=["starttls", "direct"])
async def test_profanity(server, account, peer, tmp_path, direct_tls):
    """Debian's Profanity, which has libstrophe inside, at a terminal."""
    jid = await account()
    friend = await peer()
    accounts = tmp_path / "profanity/accounts"
    accounts.parent.mkdir()
    text = PROFANITY.format(jid=jid, port=server.port("c2s_tls" if direct_tls else "c2s"))
    accounts.write_text(text.replace("force", "legacy") if direct_tls else text)
    accounts.chmod(0o600)
    program = shutil.which("profanity")
    assert program, "profanity is not installed: run tests/interop/setup"
    folders = dict.fromkeys(["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"], str(tmp_path))
    terminal = Terminal(program, "-a", "alice", env={**os.environ, **folders, "TERM": "xterm", "LC_ALL": "C.UTF-8"})
    try:
        await terminal.shows("/tls deny")
        terminal.type("/tls allow")
        await terminal.shows("logged in successfully")
        terminal.type(f"/msg {friend.bare} hello-from-the-terminal")
        message = await friend.message("hello-from-the-terminal")
        assert message.get("from") == f"{jid}/terminal"
        friend.chat(message.get("from"), "hello-to-the-terminal")
        await terminal.shows("hello-to-the-terminal")
        terminal.type("/quit")
        assert await terminal.code() == 0
    finally:
        terminal.close()
