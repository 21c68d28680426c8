"""`carillon connect`: a device in the terminal, against the real node."""

import asyncio
import contextlib
import json
import pathlib
import re
import signal

import pytest

from harness import store
from harness.api import Api
from harness.peer import Peer
from harness.program import Program
from harness.raw import Raw
from harness.server import Server, run, unique


@pytest.fixture
async def connect(server, tmp_path):
    """Opens terminals whose tokens are kept in a folder of the test."""
    opened = []

    async def open_terminal(*arguments, node=None, **options):
        options.setdefault("environment", {})
        data = (node or server).data
        terminal = await Program.open(
            "connect", *arguments, "--data-dir", str(data), "--state-dir", str(tmp_path / "state"), **options
        )
        opened.append(terminal)
        return terminal

    yield open_terminal
    for terminal in opened:
        await terminal.close()


async def test_it_prints_what_comes_and_acknowledges_it(api, account, connect):
    alice, topic = await account(), unique("news")
    await api.ok("PUT", f"/v1/topics/{topic}", {}, status=201)
    await api.ok("POST", f"/v1/topics/{topic}/items", {"id": "before", "payload": 1}, status=202)
    terminal = await connect(alice, "--topic", topic, "--password", "secret")
    assert "by password (SCRAM-SHA-256-PLUS, TLS 1.3)" in await terminal.line(alice, "logged in")
    await terminal.line("subscribed to", topic)
    assert "published 20" in await terminal.line("topic", topic, "before")
    sent = await api.notify(alice, {"hello": 1})
    line = await terminal.line("notification", sent["id"])
    assert '{"hello":1}  after ' in line
    assert " ms  " in line
    await api.ok("POST", f"/v1/topics/{topic}/items", {"id": "now", "payload": {"sky": "rain"}}, status=202)
    assert "published" not in await terminal.line("topic", topic, '{"sky":"rain"}', "now")
    trace = await api.eventually(f"/v1/notifications/{sent['id']}", lambda trace: trace["state"] == "acknowledged")
    assert trace["acknowledged_by"] == "stream-management"
    assert await terminal.interrupt() == 0, terminal.errors
    await terminal.line("closed")
    sessions = await api.ok("GET", f"/v1/admin/sessions?account={alice}")
    assert sessions["sessions"] == []


async def test_json_is_one_object_per_line(api, server, account, connect):
    alice = await account()
    terminal = await connect(alice, "--password", "secret", "--json")
    connected = await terminal.event("connected", by="password")
    assert connected["jid"].startswith(f"{alice}/terminal")
    sent = await api.notify(alice, {"b": 1, "a": [2]}, priority="high", collapse_key="k", ttl=60)
    notification = await terminal.event("notification", id=sent["id"])
    assert notification["payload"] == {"b": 1, "a": [2]}
    assert (notification["priority"], notification["collapse_key"]) == ("high", "k")
    assert 0 <= notification["latency_ms"] < 20_000
    bob = await Peer.connect(server, await account())
    bob.chat(alice, "hello")
    assert await terminal.event("message", body="hello", **{"from": bob.jid})
    await bob.close()
    assert await terminal.interrupt() == 0
    await terminal.event("closed")


async def test_the_second_start_logs_in_by_token(account, connect, tmp_path):
    alice = await account()
    first = await connect(alice, "--password", "secret", "--json")
    await first.event("connected", by="password")
    assert await first.interrupt() == 0
    kept = tmp_path / "state" / "tokens.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    for _ in range(2):
        again = await connect(alice, "--json")
        assert (await again.event("connected", by="token"))["mechanism"] == "HT-SHA-256-EXPR"
        assert await again.interrupt() == 0, again.errors


async def test_a_token_that_is_refused_gives_way_to_the_password(server, account, connect):
    alice = await account()
    first = await connect(alice, "--password", "secret", "--json")
    await first.event("connected")
    assert await first.interrupt() == 0
    assert (await server.command("account", "password", alice, "--password", "other")).returncode == 0
    # Nobody is there to be asked.
    alone = await connect(alice)
    assert await alone.ended() == 1
    assert "give the password" in "".join(alone.errors)
    again = await connect(alice, "--password", "other", "--json")
    await again.event("connected", by="password")
    assert await again.interrupt() == 0


async def test_what_is_wrong_is_said_with_what_helps(server, account, connect, tmp_path):
    alice, nobody = await account(), f"{unique('nobody')}@localhost"
    for arguments, code, words in [
        ([alice, "--password", "wrong"], 1, f"the password of {alice} is wrong"),
        ([nobody, "--password", "x"], 1, f"create it with `carillon account create {nobody}`"),
        (["alice@elsewhere.example", "--password", "x"], 1, "carillon domain create elsewhere.example"),
        (["localhost", "--password", "x"], 2, "write the whole JID"),
        ([alice, "--password", "secret", "--topic", "nothing"], 1, "carillon topic create nothing"),
        ([nobody, "--password", "x", "--register"], 1, f"carillon account create {nobody}"),
        ([alice, "--password", "secret", "--server", "localhost:no"], 2, "HOST:PORT"),
    ]:
        terminal = await connect(*arguments)
        assert await terminal.ended() == code, arguments
        assert words in "".join(terminal.errors), arguments

    # Where nobody listens; and a certificate that nobody vouches for, unless it is said that this does not matter.
    empty = tmp_path / "empty"
    empty.mkdir()
    port = server.port("c2s")
    nowhere = run("connect", alice, "--password", "x", "--server", "127.0.0.1:1", "--data-dir", str(server.data))
    assert nowhere.returncode == 3
    assert "start a node with `carillon serve`" in nowhere.stderr
    at = ["--server", f"127.0.0.1:{port}", "--data-dir", str(empty), "--state-dir", str(tmp_path / "state")]
    stranger = run("connect", alice, "--password", "secret", *at)
    assert stranger.returncode in (1, 2), stranger.stderr
    assert "--ca FILE" in stranger.stderr
    for trust in (["--insecure"], ["--ca", str(server.certificate)]):
        terminal = await Program.open("connect", alice, "--password", "secret", *trust, *at)
        await terminal.line("logged in")
        assert await terminal.interrupt() == 0


async def test_passwords_come_from_a_file_or_from_standard_input(account, connect, tmp_path):
    alice = await account()
    file = tmp_path / "password"
    file.write_text("secret\n")
    for arguments, input in [(["--password-file", str(file)], None), (["--direct-tls"], "secret\n")]:
        terminal = await connect(alice, "--json", *arguments, input=input)
        await terminal.event("connected")
        assert await terminal.interrupt() == 0
        # A token would do from now on.
        pathlib.Path(tmp_path / "state" / "tokens.json").unlink()


async def test_it_registers_where_the_domain_lets_it(server, connect):
    name = f"{unique('open')}.example"
    made = await server.command("domain", "create", name, "--registration", "true")
    assert made.returncode == 0, made.stderr
    terminal = await connect(f"new@{name}", "--register", "--password", "secret", "--json")
    await terminal.event("registered", jid=f"new@{name}")
    await terminal.event("connected", by="password")
    assert await terminal.interrupt() == 0
    # An account that is there already is logged in to.
    again = await connect(f"new@{name}", "--register", "--password", "secret", "--json")
    await again.event("connected")
    assert await again.interrupt() == 0


async def test_it_comes_back_after_the_node_was_restarted(tmp_path, connect):
    folder = tmp_path / "node"
    folder.mkdir()
    node = Server(folder)
    made = await node.command("account", "create", "alice@localhost", "--password", "secret")
    assert made.returncode == 0, made.stderr
    terminal = await connect("alice@localhost", "--password", "secret", "--json", node=node)
    await terminal.event("connected", by="password")
    node.end()
    lost = await terminal.event("disconnected")
    assert 0 < lost["retry_in_ms"] <= 1000
    node = Server(folder)
    await terminal.event("connected", by="token")
    sent = await node.command("send", "alice@localhost", "--payload", "1", "--wait")
    assert sent.returncode == 0, sent.stderr
    assert json.loads("1") == (await terminal.event("notification"))["payload"]
    # The second signal would end it at once; the first is enough.
    terminal.process.send_signal(signal.SIGTERM)
    assert await terminal.ended() == 0
    node.end()


async def test_it_lets_a_node_that_drains_go(tmp_path, connect):
    folder = tmp_path / "node"
    folder.mkdir()
    # A client that left its end of the stream open would hold the drain up for a minute.
    node = Server(folder, timeouts__close_ms=60_000)
    made = await node.command("account", "create", "alice@localhost", "--password", "secret")
    assert made.returncode == 0, made.stderr
    terminal = await connect("alice@localhost", "--password", "secret", "--json", node=node)
    await terminal.event("connected")
    drained = await asyncio.wait_for(node.command("drain", "--over", "0ms"), 30)
    assert (drained.returncode, drained.stdout.splitlines()[-1]) == (0, "drained: none of 1 left"), drained
    lost = await terminal.event("disconnected")
    assert "system-shutdown" in lost["reason"]
    # Who starts now is told why the node takes no login.
    late = await connect("alice@localhost", "--password", "secret", node=node)
    assert await late.ended() == 1
    assert "draining" in "".join(late.errors)
    assert await terminal.interrupt() == 0
    node.end()


async def test_a_session_that_another_took_over_is_not_taken_back(server, connect):
    name = f"{unique('single')}.example"
    made = await server.command("domain", "create", name, "--sessions", "single")
    assert made.returncode == 0, made.stderr
    made = await server.command("account", "create", f"alice@{name}", "--password", "secret")
    assert made.returncode == 0, made.stderr
    first = await connect(f"alice@{name}", "--password", "secret", "--json")
    await first.event("connected")
    second = await connect(f"alice@{name}", "--password", "secret", "--json")
    await second.event("connected")
    assert await first.ended() == 1
    assert "another login" in "".join(first.errors)
    assert await second.interrupt() == 0


async def test_it_stays_away_for_as_long_as_a_full_server_asks(tmp_path, connect):
    folder = tmp_path / "node"
    folder.mkdir()
    node = Server(folder)
    made = await node.command("account", "create", "alice@localhost", "--password", "secret")
    assert made.returncode == 0, made.stderr
    terminal = await connect("alice@localhost", "--password", "secret", "--json", node=node)
    await terminal.event("connected")
    node.kill()
    lost = await terminal.event("disconnected")
    assert lost["retry_in_ms"] <= 1000
    # It is stopped, as by Ctrl-Z, until somebody has taken the only place.
    terminal.process.send_signal(signal.SIGSTOP)
    node = Server(folder, limits__max_connections=1)
    other = await Raw.connect(node)
    await other.begin()
    terminal.process.send_signal(signal.SIGCONT)

    def refused(line):
        event = json.loads(line)
        return event["event"] == "disconnected" and "resource-constraint" in event["reason"]

    told = json.loads(await terminal.lines.take(refused, "the refusal"))
    assert 15_000 <= told["retry_in_ms"] <= 45_000, told
    # Who starts now is told so.
    late = await connect("alice@localhost", "--password", "secret", node=node)
    assert await late.ended() == 1
    assert re.search(r"resource-constraint \(.+\); try again in \d+ s$", "".join(late.errors).strip()), late.errors
    assert await terminal.interrupt() == 0
    await terminal.event("closed")
    await other.close()
    node.end()


async def test_it_subscribes_again_when_the_topic_has_room(tmp_path, connect):
    folder = tmp_path / "node"
    folder.mkdir()
    node = Server(folder, pubsub__max_waiting=1)
    made = await node.command("account", "create", "alice@localhost", "--password", "secret")
    assert made.returncode == 0, made.stderr
    async with contextlib.AsyncExitStack() as stack:
        api = Api(node)
        stack.push_async_callback(api.aclose)
        await api.ok("PUT", "/v1/topics/news", {}, status=201)

        async def keep_busy():
            while True:
                await api.call("POST", "/v1/topics/news/items", {"payload": 0})

        with store.locked(node):
            busy = asyncio.create_task(keep_busy())
            terminal = await connect("alice@localhost", "--password", "secret", "--topic", "news", "--json", node=node)
            postponed = await terminal.event("postponed", topic="news")
            assert postponed["retry_in_ms"] == 1000
            busy.cancel()
        await terminal.event("subscribed", topic="news")
    assert await terminal.interrupt() == 0
    node.end(expected=["store commit failed"])
