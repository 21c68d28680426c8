"""A live upgrade: the node goes on in another process, and clients notice nothing."""

import asyncio
import json

import pytest

from harness.api import Api
from harness.light import Light
from harness.peer import CLIENT, JSON, Peer
from harness.raw import Raw
from harness.server import run
from harness.upgrade import Upgradable
from harness.websocket import TEXT, RawWebSocket, frame

ENABLED = "{urn:xmpp:sm:3}enabled"


@pytest.fixture
def node():
    """Starts nodes. What a failed test leaves behind is ended."""
    started = []

    def start(*arguments, **options):
        started.append(Upgradable(*arguments, **options))
        return started[-1]

    yield start
    for server in started:
        if server.is_running():
            server.process.kill()


@pytest.fixture
def server(node, tmp_path):
    server = node(tmp_path, websocket__tls="true")
    yield server
    server.end(expected=["not handed over"])


@pytest.fixture
async def api(server):
    api = Api(server)
    for name in ("alice", "bob", "carol"):
        await api.account(name)
    yield api
    await api.aclose()


def body(text):
    return lambda element: element.findtext(CLIENT + "body") == text


async def talk(one, other, text):
    """A message each way between two streams."""
    for source, target in ((one, other), (other, one)):
        source.send(f"<message to='{target.jid}' type='chat'><body>{text}</body></message>")
        await target.until(body(text))


async def test_sessions_of_every_kind_go_on(server, api):
    direct = await Raw.logged_in(server, "alice")
    peer = await Peer.connect(server, "bob@localhost", plugins=["xep_0198"])
    socket = await RawWebSocket.logged_in(server, "carol")
    await api.ok("PUT", "/v1/topics/news", {"max_items": 5}, status=201)
    await api.ok("PUT", "/v1/devices/bob/subscriptions/news", status=201)
    for n in range(3):
        await server.upgrade()
        direct.send(f"<message to='{peer.jid}' type='chat'><body>{n}</body></message>")
        await peer.message(str(n))
        peer.chat(direct.jid, f"back {n}")
        await direct.until(body(f"back {n}"))
        socket.say(f"<message xmlns='jabber:client' to='{peer.jid}' type='chat'><body>socket {n}</body></message>")
        await peer.message(f"socket {n}")
        # What is sent over HTTP, kept or not, and what a topic's followers are sent.
        kept = await api.notify("bob", f"kept {n}")
        assert (await peer.notification(kept["id"])).findtext(JSON) == f'"kept {n}"'
        now = await api.notify("bob", f"now {n}", audience="active")
        assert (await peer.notification(now["id"])).findtext(JSON) == f'"now {n}"'
        await api.ok("POST", "/v1/topics/news/items", {"payload": f"item {n}"}, status=202)
        item = await peer.messages.take(lambda m: m.get("from") == "pubsub.localhost", "an item")
        assert item.find(f".//{JSON}").text == f'"item {n}"'
        await api.eventually(f"/v1/notifications/{kept['id']}", lambda seen: seen["state"] == "acknowledged")
        # Somebody new.
        new = await Raw.logged_in(server, "alice", resource=f"new{n}")
        await talk(new, direct, f"new {n}")
        await new.close()
    await api.figure_is("carillon_sessions", lambda seen: seen == 3)
    await api.figure_is("carillon_connections", lambda seen: seen == 3)
    await peer.close()
    await direct.close()
    await socket.close()


async def test_connections_of_the_light_protocol_go_on(node, tmp_path):
    server = node(tmp_path, light__port=0, light__tls="true", light__domain="localhost")
    api = Api(server)
    for topic in ("news", "scores"):
        await api.ok("PUT", f"/v1/topics/{topic}", {"max_items": 5}, status=201)
    both = await Light.open(server, tls=server.tls(), receive_bytes=8192)
    one = await Light.open(server, tls=server.tls())
    silent = await Light.connect(server, tls=server.tls())
    for light, topics in ((both, ("news", "scores")), (one, ("news",))):
        for topic in topics:
            await light.subscribe(topic)
    for n in range(3):
        # Half a frame, and items that wait in a socket, go along.
        one.send("PI")
        both.stop_reading()
        for part in range(30):
            await api.ok("POST", "/v1/topics/scores/items", {"payload": f"{n} {part} " + "x" * 2000}, status=202)
        await server.upgrade()
        both.read_again()
        one.send("NG\0")
        assert await one.frame() == "PONG"
        for part in range(30):
            assert (await both.event())["data"].startswith(f"{n} {part} ")
        await api.ok("POST", "/v1/topics/news/items", {"payload": f"news {n}"}, status=202)
        for light in (both, one):
            assert (await light.event())["data"] == f"news {n}"
        new = await Light.open(server, tls=server.tls())
        await new.subscribe("news")
        assert (await new.event())["data"] == f"news {n}"
        new.close()
    one.ask("unsubscribe", "news")
    assert await one.frame() == "ACK"
    await api.ok("POST", "/v1/topics/news/items", {"payload": "the last"}, status=202)
    assert (await both.event())["data"] == "the last"
    one.send("PING\0")
    assert await one.frame() == "PONG"
    assert await silent.until_closed()
    await api.figure_is("carillon_light_sessions", lambda seen: seen == 2)
    for light in (both, one):
        light.close()
    await api.aclose()
    server.end(expected=["shutting down"])


async def test_what_nobody_stores_is_told_after_it(server, api):
    """A notification that is given by the one process and acknowledged to the other."""
    bob = await Raw.logged_in(server, "bob", presence=False)
    bob.send("<enable xmlns='urn:xmpp:sm:3'/>")
    await bob.until(lambda e: e.tag == ENABLED)
    await bob.available()
    sent = await api.notify("bob", "now", audience="connected")
    await bob.until(lambda e: e.get("id") == sent["id"])
    await server.upgrade()
    assert (await api.ok("GET", f"/v1/notifications/{sent['id']}"))["state"] == "sent"
    # Behind his own presence.
    bob.send("<a xmlns='urn:xmpp:sm:3' h='2'/>")
    await api.eventually(f"/v1/notifications/{sent['id']}", lambda seen: seen["state"] == "acknowledged")
    await server.upgrade()
    assert (await api.ok("GET", f"/v1/notifications/{sent['id']}"))["state"] == "acknowledged"
    await bob.close()


async def test_input_goes_on_at_any_byte(server, api):
    alice = await Raw.logged_in(server, "alice")
    carol = await RawWebSocket.logged_in(server, "carol")
    bob = await Raw.logged_in(server, "bob")
    stanza = f"<message to='{bob.jid}' type='chat'><body>in two</body></message>"
    alice.send(stanza[:40])
    text = f"<message xmlns='jabber:client' to='{bob.jid}' type='chat'><body>in four</body></message>"
    frames = frame(TEXT, text[:50], fin=False) + frame(0, text[50:])
    carol.writer.write(frames[:70])
    # They have arrived when what was sent later by others is answered.
    await bob.ping()
    await server.upgrade()
    alice.send(stanza[40:])
    await bob.until(body("in two"))
    carol.writer.write(frames[70:])
    await bob.until(body("in four"))
    for stream in (alice, bob, carol):
        await stream.close()


async def test_output_that_waits_goes_on(server, api):
    """A client that reads slowly: what the socket has not taken is written by the new process, under the same keys."""
    alice = await Raw.logged_in(server, "alice")
    bob = await Raw.logged_in(server, "bob", receive_bytes=8192)
    bob.stop_reading()
    text = "x" * 2000
    for n in range(100):
        alice.send(f"<message to='{bob.jid}' type='chat'><body>{n} {text}</body></message>")
    await alice.ping()
    await server.upgrade()
    bob.read_again()
    for n in range(100):
        await bob.until(body(f"{n} {text}"))
    await talk(alice, bob, "after it")
    await alice.close()
    await bob.close()


async def test_a_stream_that_was_managed_before_is_managed_and_resumed_after_it(server, api):
    alice = await Raw.logged_in(server, "alice")
    bob = await Raw.logged_in(server, "bob", presence=False)
    bob.send("<enable xmlns='urn:xmpp:sm:3' resume='true'/>")
    enabled = await bob.until(lambda e: e.tag == ENABLED)
    await bob.available()
    parked = await Raw.logged_in(server, "carol", presence=False)
    parked.send("<enable xmlns='urn:xmpp:sm:3' resume='true'/>")
    parked_id = (await parked.until(lambda e: e.tag == ENABLED)).get("id")
    await parked.available()
    jid = parked.jid
    parked.reset()
    alice.send(f"<message to='{bob.jid}' type='chat'><body>not acknowledged</body></message>")
    await bob.until(body("not acknowledged"))
    await server.upgrade()
    alice.send(f"<message to='{jid}' type='chat'><body>for one who is away</body></message>")
    bob.reset()
    for user, id, text in (
        ("bob", enabled.get("id"), "not acknowledged"),
        ("carol", parked_id, "for one who is away"),
    ):
        again = await Raw.secured(server)
        await again.authenticate(user)
        again.send(f"<resume xmlns='urn:xmpp:sm:3' h='0' previd='{id}'/>")
        await again.until(lambda e: e.tag == "{urn:xmpp:sm:3}resumed")
        await again.until(body(text))
        await again.close()
    await alice.close()


async def test_event_streams_go_on_by_their_ids(server, api):
    bob = await Peer.connect(server, "bob@localhost", plugins=["xep_0198"])
    async with api.events() as events:
        first = await api.notify("bob", "first")
        await bob.notification(first["id"])
        await events.state(first["id"], "acknowledged")
        await server.upgrade()
        await events.ended()
    second = await api.notify("bob", "second")
    await bob.notification(second["id"])
    async with api.events() as events:
        third = await api.notify("bob", "third")
        await bob.notification(third["id"])
        await events.state(third["id"], "acknowledged")
    await bob.close()


SCENARIO = """
name = "upgrade"
summary = "Something is under way while the node is upgraded."
[players]
count = 1000
resumption = true
[[phases]]
do = "login"
[[phases]]
do = "subscribe"
topic = "news"
[[phases]]
do = "%s"
%s
"""
PHASES = {
    "talk": 'rate = 2000\nfor = "8s"\npayload_bytes = 100',
    "notify": 'rate = 1000\nfor = "8s"\nbatch = 100',
    "publish": 'topic = "news"\nby = "pubsub"\nrate = 5\nitems = 40',
}


@pytest.mark.parametrize("phase", PHASES)
async def test_nothing_is_lost_under_load(node, tmp_path, phase):
    """A thousand players of the load tester, while the node goes on in other processes."""
    server = node(tmp_path, registration__in_band="true", limits__profile="benchmark")
    scenario = tmp_path / "upgrade.toml"
    # An upgrade closes HTTP connections: each of the four that send may lose the request that is on it.
    allowed = "\n[allow]\nerrors = 4\n" if phase == "notify" else ""
    scenario.write_text(SCENARIO % (phase, PHASES[phase]) + allowed)
    report = tmp_path / "report.json"
    old = server.process
    target = ["--target", f"127.0.0.1:{server.port('c2s')}", "--domain", "localhost", "--password", "pw"]
    http = ["--http", server.http, "--key", server.key, "--publisher", "u0", "--mechanism", "SCRAM-SHA-256"]
    command = f"{server.binary} upgrade --data-dir {server.data}"
    upgrade = ["--upgrade-cmd", command, "--upgrade-at", "2s", "--upgrade-phase", phase]
    done = await asyncio.to_thread(
        run, "load", "run", str(scenario), *target, *http, "--register", *upgrade, "--report", str(report), timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr + server.log.read_text()
    await asyncio.to_thread(server.adopt, old)
    seen = json.loads(report.read_text())["upgrade"]
    assert seen["exitCode"] == 0, seen
    assert (seen["disconnects"], seen["lost"], seen["duplicates"], seen["outOfOrder"]) == (0, 0, 0, 0), seen
    await asyncio.to_thread(server.end)


SAYS = {
    "ends at once": "it ended",
    "hangs at once": "it takes too long",
    "garbage": "",
    "refuses": "is not for me",
    "ends when it is ready to take over": "",
    "hangs when it is ready to take over": "it takes too long",
    "ends among the sessions": "",
    "ends with all sessions": "it ended",
    "cannot read the sessions": "these are no sessions",
    "hangs with all sessions": "it takes too long",
}


@pytest.mark.parametrize("mode", SAYS)
async def test_a_new_process_that_fails_leaves_the_old_one_serving(node, tmp_path, mode):
    settings = {"upgrade__start_timeout_ms": 2000, "upgrade__pause_timeout_ms": 1000}
    server = node(tmp_path, **settings)
    api = Api(server)
    for name in ("alice", "bob"):
        await api.account(name)
    alice = await Raw.logged_in(server, "alice")
    bob = await Peer.connect(server, "bob@localhost", plugins=["xep_0198"])
    server.replace_binary(mode)
    why = await server.fails_to_upgrade()
    assert SAYS[mode] in why, why
    alice.send(f"<message to='{bob.jid}' type='chat'><body>goes on</body></message>")
    await bob.message("goes on")
    kept = await api.notify("bob", "kept")
    await bob.notification(kept["id"])
    await api.eventually(f"/v1/notifications/{kept['id']}", lambda seen: seen["state"] == "acknowledged")
    new = await Raw.logged_in(server, "alice", resource="new")
    await talk(new, alice, "new")
    await api.figure_is("carillon_sessions", lambda seen: seen == 3)
    # And with a binary that works it does.
    server.restore_binary()
    await server.upgrade()
    alice.send(f"<message to='{bob.jid}' type='chat'><body>over there</body></message>")
    await bob.message("over there")
    for stream in (alice, new):
        await stream.close()
    await bob.close()
    await api.aclose()
    await asyncio.to_thread(server.end, ["not handed over"])


async def test_a_binary_that_is_not_there_is_said(server, api):
    alice = await Raw.logged_in(server, "alice")
    server.binary.unlink()
    assert "No such file" in await server.fails_to_upgrade()
    bob = await Raw.logged_in(server, "bob")
    await talk(alice, bob, "goes on")
    server.restore_binary()
    for stream in (alice, bob):
        await stream.close()


async def test_a_node_that_is_drained_is_not_handed_over(server, api):
    """The new process would take sessions again."""
    await api.ok("PUT", "/v1/admin/drain", {"over_ms": 3_600_000}, status=202)
    assert "being drained" in await server.fails_to_upgrade()
    assert (await api.ok("GET", "/v1/admin/drain"))["state"] != "none"
    assert (await server.command("drain", "--cancel")).returncode == 0
    await server.upgrade()


async def test_settings_that_are_wrong_by_now_are_said(node, tmp_path):
    """The new process reads the settings anew: what it cannot start with, it does not take over with."""
    settings = tmp_path / "carillon.toml"
    settings.write_text("[limits]\nmax_connections = 1000\n")
    server = node(tmp_path, arguments=["--config", str(settings)])
    api = Api(server)
    await api.account("alice")
    alice = await Raw.logged_in(server, "alice")
    settings.write_text("[limits]\nmax_connections = 'many'\n")
    assert "max_connections" in await server.fails_to_upgrade()
    await alice.ping()
    await alice.close()
    await api.aclose()
    await asyncio.to_thread(server.end, ["not handed over"])
