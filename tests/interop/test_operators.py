"""An operator's commands beside a node, and the node's own beginning and end."""

import asyncio
import json
import signal
import socket

import httpx
import pytest

from harness.inbox import deadline
from harness.peer import Peer
from harness.program import Program
from harness.raw import Raw
from harness.server import Server, run, unique

FREE = [f"--set={listener}.port=0" for listener in ("c2s", "c2s_tls", "websocket", "http")]


def done(result):
    """The output of a command that must succeed."""
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture
def node(tmp_path):
    """Starts a node with settings of its own; ends what the test did not."""
    started = []

    def start(**settings):
        started.append(Server(tmp_path, **settings))
        return started[-1]

    yield start
    for server in started:
        if server.is_running():
            server.end()


async def readiness(http):
    return (await http.get("/readyz")).status_code


async def test_a_node_that_is_about_to_end_says_so_and_still_takes_sessions(node):
    server = node(drain__delay_ms="1h")
    done(await server.command("account", "create", "alice@localhost", "--password", "secret"))
    done(await server.command("account", "create", "bob@localhost", "--password", "secret"))
    alice = await Peer.connect(server, "alice@localhost")
    async with httpx.AsyncClient(base_url=server.http, trust_env=False) as http:
        assert await readiness(http) == 200
        server.process.send_signal(signal.SIGTERM)
        async with deadline("503"):
            while await readiness(http) != 503:
                pass
        # Whom the load balancer sends before it has noticed is served as ever.
        bob = await Peer.connect(server, "bob@localhost")
        bob.chat("alice@localhost", "hello")
        await alice.message("hello")
        # The second signal ends the wait, not the node.
        server.process.send_signal(signal.SIGTERM)
        assert await alice.stream_error() == "system-shutdown"
        assert await bob.stream_error() == "system-shutdown"
    assert server.process.wait(timeout=20) == 0, server.log.read_text()


async def test_readiness_is_told_for_as_long_as_sessions_take_to_leave(node):
    server = node()
    done(await server.command("account", "create", "alice@localhost", "--password", "secret"))
    # It does not see the end of its stream, so that the node waits for its answer.
    stubborn = await Raw.logged_in(server, "alice", resource="raw")
    stubborn.stop_reading()
    async with httpx.AsyncClient(base_url=server.http, trust_env=False) as http:
        assert await readiness(http) == 200
        server.process.send_signal(signal.SIGTERM)
        async with deadline("503"):
            while await readiness(http) != 503:
                pass
    stubborn.reset()
    assert await asyncio.to_thread(server.process.wait, 20) == 0, server.log.read_text()


async def test_settings_come_from_the_environment(tmp_path):
    environment = {
        "CARILLON_DATA_DIR": str(tmp_path / "data"),
        "CARILLON_DOMAIN": "example.org",
        "CARILLON_C2S_PROT": "1",
    }
    ports = {f"CARILLON_{listener}_PORT": "0" for listener in ("C2S", "C2S_TLS", "WEBSOCKET", "HTTP")}
    serve = await Program.open("serve", environment={**environment, **ports})
    try:
        await serve.line("carillon account create alice@example.org --password secret")
        assert any("did you mean CARILLON_C2S_PORT?" in line for line in serve.errors), serve.errors
        added = await Program.open(
            "account", "create", "alice@example.org", "--password", "secret", environment=environment
        )
        assert await added.ended() == 0, added.errors
        assert await serve.interrupt() == 0
    finally:
        await serve.close()
    explain = await Program.open("config", "explain", "domain", environment=environment)
    await explain.line("from", "CARILLON_DOMAIN")
    assert await explain.ended() == 0


def test_ports_that_are_taken_are_named_before_the_start_and_at_it(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = [*FREE[1:], f"--set=c2s.port={port}", "--data-dir", str(tmp_path / "data")]
        checked = run("config", "check", *settings)
        assert checked.returncode == 1
        assert f"error: c2s.port: 127.0.0.1:{port} is in use by another program" in checked.stdout
        served = run("serve", *settings)
        assert served.returncode == 1
        assert f"c2s.port: 127.0.0.1:{port} is in use by another program" in served.stderr
        assert not (tmp_path / "data").exists()
    assert done(run("config", "check", *FREE, "--data-dir", str(tmp_path / "data"))) == "the settings are valid\n"


def test_a_node_that_runs_is_no_finding_and_a_second_one_is(node):
    server = node()
    ports = {"c2s": "c2s", "c2s_tls": "c2s_tls", "websocket": "websocket", "http": "http"}
    taken = [f"--set={setting}.port={server.port(port)}" for setting, port in ports.items()]
    settings = [*taken, "--data-dir", str(server.data)]
    assert done(run("config", "check", *settings)) == "the settings are valid\n"
    second = run("serve", *settings)
    assert second.returncode == 1
    assert f"by the node that runs on this data folder (process {server.process.pid})" in second.stderr


async def test_figures_again_and_again(server):
    watch = await Program.open("status", "--watch", "1", "--json", "--data-dir", str(server.data))
    try:
        first = json.loads(await watch.line("uptime_ms"))
        second = json.loads(await watch.line("uptime_ms"))
        assert second["uptime_ms"] > first["uptime_ms"]
    finally:
        watch.process.send_signal(signal.SIGINT)
        assert await watch.ended() == -signal.SIGINT


async def test_who_is_not_there_cannot_be_ended_and_what_is_removed_is_asked_for(server, api, account):
    alice, topic = await account(), unique("topic")
    kicked = await server.command("session", "end", alice)
    assert kicked.returncode == 1
    assert f"`{alice}` has no session" in kicked.stderr
    await api.problem(404, "unknown-session", "DELETE", f"/v1/admin/sessions/{alice}")
    done(await server.command("topic", "create", topic))
    key = json.loads(done(await server.command("key", "create", "k", "--scope", "send", "--json")))["id"]
    for command in (["account", "delete", alice], ["topic", "delete", topic], ["key", "delete", str(key)]):
        unasked = await server.command(*command)
        assert unasked.returncode == 2
        assert "say --yes" in unasked.stderr
        done(await server.command(*command, "--yes"))


async def test_generated_accounts_log_in_and_their_file_can_be_imported_again(server, tmp_path):
    prefix, file = unique("made"), tmp_path / "accounts.csv"
    command = ["account", "generate", "--count", "3", "--prefix", prefix, "--csv", str(file)]
    assert f"created {prefix}0@localhost to {prefix}2@localhost" in done(await server.command(*command))
    assert file.stat().st_mode & 0o777 == 0o600
    lines = file.read_text().splitlines()
    jid, password = lines[3].split(",")
    peer = await Peer.connect(server, jid, password)
    await peer.close()
    assert (await server.command(*command)).returncode == 1
    headless = tmp_path / "headless.csv"
    headless.write_text("\n".join(lines[1:]))
    for again in (file, headless):
        assert done(await server.command("account", "import", str(again))) == "3 imported, 0 failed\n"


async def test_a_notification_nobody_takes_says_why(server, account):
    alice = await account()
    sent = await server.command("send", alice, "--payload", "1", "--wait", "--timeout", "0")
    assert sent.returncode == 1
    assert f"was not delivered after 0 s (stored): {alice} has no active session" in sent.stderr


async def test_the_end_of_the_demo_is_no_error(tmp_path):
    demo = await Program.open("demo", "--data-dir", str(tmp_path / "demo"), *FREE)
    try:
        await demo.line(f"admin key is in {tmp_path / 'demo' / 'admin.key'}")
        game = (await demo.line("Game:")).split()[1]
        async with httpx.AsyncClient(trust_env=False) as client:
            page = await client.get(game)
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        await demo.line("Ctrl-C ends the demo")
        assert await demo.interrupt() == 0
        assert demo.errors == []
        assert not [line for line in demo.lines.left() if "lost" in line], demo.lines.left()
    finally:
        await demo.close()
