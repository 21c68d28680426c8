"""The end of a node, in order or by a power cut, and what is still there when it comes back."""

import asyncio
import contextlib

import pytest

from harness import store
from harness.api import Api
from harness.inbox import Inbox, deadline
from harness.peer import CLIENT, JSON, Peer
from harness.raw import STREAM, STREAM_ERRORS, Raw
from harness.server import Server

SM = ["xep_0198"]
A = "{urn:xmpp:sm:3}a"


class Node:
    """A node that can be started again with what it left."""

    def __init__(self, folder):
        self.folder = folder
        self.server = Server(folder)

    def restart(self, how):
        if how == "power cut":
            self.server.kill()
        else:
            self.server.end()
        self.server = Server(self.folder)

    @contextlib.asynccontextmanager
    async def api(self):
        api = Api(self.server)
        try:
            yield api
        finally:
            await api.aclose()


@pytest.fixture
def node(tmp_path):
    node = Node(tmp_path)
    yield node
    node.server.end()


async def test_what_waits_with_a_session_without_a_connection_is_there_after_an_orderly_end(node):
    async with node.api() as api:
        await api.account("alice")
        await api.account("bob")
    alice = await Peer.connect(node.server, "alice@localhost")
    bob = await Raw.logged_in(node.server, "bob", presence=False)
    bob.send("<enable xmlns='urn:xmpp:sm:3' resume='true'/>")
    await bob.until(lambda e: e.tag == "{urn:xmpp:sm:3}enabled")
    await bob.available()
    alice.chat("bob@localhost", "under way")
    await bob.until(lambda e: e.findtext(CLIENT + "body") == "under way")
    bob.reset()
    await alice.ping()
    node.restart("in order")
    bob = await Peer.connect(node.server, "bob@localhost")
    await bob.message("under way")
    await bob.close()


@pytest.mark.parametrize("how", ["in order", "power cut"])
async def test_what_was_accepted_is_there_after_the_restart(node, how):
    async with node.api() as api:
        await api.account("alice")
        await api.account("bob")
        await api.ok("PUT", "/v1/admin/domains/tenant.example", {"sessions": "single"}, status=201)
        await api.ok("PUT", "/v1/topics/news", {"title": "News", "max_items": 5}, status=201)
        await api.ok("PUT", "/v1/devices/bob/subscriptions/news", status=201)
        await api.ok("POST", "/v1/topics/news/items", {"id": "i", "payload": "item"}, status=202)
        waiting = await api.notify("bob", "waiting", priority="high")
        gone = await api.notify("bob", "gone", ttl=1)
        made = await api.ok("POST", "/v1/admin/keys", {"name": "k", "scopes": ["send"]}, status=201)
    alice = await Peer.connect(node.server, "alice@localhost")
    alice.chat("bob@localhost", "kept")
    await alice.ping()
    before = (node.server.key, node.server.certificate.read_bytes())
    await alice.close()
    # In the middle of accepting: what was answered by 202 must be there, what was not may be.
    async with node.api() as api:
        accepted = [(await api.notify("bob", i))["id"] for i in range(20)]
    node.restart(how)
    assert (node.server.key, node.server.certificate.read_bytes()) == before
    async with node.api() as api:
        own = Api(node.server, made["key"])
        assert (await own.ok("GET", "/v1/key"))["scopes"] == ["send"]
        await own.aclose()
        assert (await api.ok("GET", "/v1/admin/domains/tenant.example"))["policy"]["sessions"] == "single"
        assert (await api.ok("GET", "/v1/topics/news"))["config"]["title"] == "News"
        assert [i["id"] for i in (await api.ok("GET", "/v1/topics/news/items"))["items"]] == ["i"]
        await api.eventually(f"/v1/notifications/{gone['id']}", lambda seen: seen["state"] == "expired")
        async with api.events() as events:
            bob = await Peer.connect(node.server, "bob@localhost", plugins=SM)
            assert await bob.message("kept") is not None
            assert (await bob.notification(waiting["id"])).findtext(JSON) == '"waiting"'
            for id in accepted:
                await bob.notification(id)
            item = await bob.messages.take(lambda m: m.get("from") == "pubsub.localhost", "the last item")
            assert item.find(f".//{JSON}").text == '"item"'
            await events.state(accepted[-1], "acknowledged")
        await bob.close()


async def test_sessions_are_told_before_the_node_ends(node):
    async with node.api() as api:
        await api.account("alice")
        await api.account("bob")
        alice = await Peer.connect(node.server, "alice@localhost")
        raw = await Raw.logged_in(node.server, "bob")
        opening = await Raw.secured(node.server)
        async with api.events() as events:
            ending = asyncio.create_task(asyncio.to_thread(node.server.end))
            assert await alice.stream_error() == "system-shutdown"
            await raw.stream_error("system-shutdown")
            await opening.stream_error("system-shutdown")
            await events.ended()
            async with deadline("the end of the node"):
                await ending
    for stream in (raw, opening):
        await stream.close()
    node.server = Server(node.folder)


async def test_a_session_that_does_not_listen_does_not_hold_the_node_up(tmp_path):
    server = Server(tmp_path, drain__timeout_ms=500)
    api = Api(server)
    await api.account("deaf")
    deaf = await Raw.logged_in(server, "deaf")
    deaf.writer.transport.pause_reading()
    await asyncio.to_thread(server.end)
    await deaf.close()
    await api.aclose()


@pytest.mark.embedded
async def test_two_nodes_do_not_share_a_folder(node):
    other = node.server.folder / "other"
    other.mkdir()
    with pytest.raises(AssertionError, match="ended with 1"):
        Server(other, data_dir=node.server.data)
    async with node.api() as api:
        await api.ok("GET", "/v1/key")


async def test_a_message_to_someone_away_is_kept_by_a_node_that_ends_at_once(node):
    async with node.api() as api:
        for name in ("alice", "bob"):
            await api.account(name)
    alice = await Peer.connect(node.server, "alice@localhost", plugins=SM)
    for i in range(50):
        alice.chat("bob@localhost", f"kept {i}")
    await alice.ping()
    await alice.close()
    node.restart("in order")
    bob = await Peer.connect(node.server, "bob@localhost")
    for i in range(50):
        assert (await bob.message()).findtext(CLIENT + "body") == f"kept {i}"
    await bob.close()


async def test_chats_that_were_acknowledged_outlive_the_node(node):
    """The node is killed as soon as `<a h>` counts some of them: to an account that is away, and to a client that acknowledges."""
    async with node.api() as api:
        for name in ("alice", "bob", "carol"):
            await api.account(name)
    sent, expected, given = 0, {"bob": set(), "carol": set()}, {"bob": set(), "carol": set()}
    for _ in range(4):
        carol = await managed(node, "carol")
        reading = asyncio.create_task(acknowledge_all(carol, given["carol"]))
        alice = await managed(node, "alice")
        # Its presence came first.
        chats = {}
        for place in range(200):
            to = ("bob", "carol")[place % 2]
            chats[place + 2] = (to, sent)
            alice.send(f"<message to='{to}@localhost' type='chat'><body>{sent}</body></message>")
            sent += 1
            if place % 10 == 9:
                alice.send("<r xmlns='urn:xmpp:sm:3'/>")
        # Early ones may say that nothing is safe yet.
        acknowledged = await alice.until(lambda e: e.tag == A and int(e.get("h")) > 20)
        node.server.kill()
        for number in range(2, int(acknowledged.get("h")) + 1):
            to, chat = chats[number]
            expected[to].add(chat)
        await reading
        node.restart("power cut")
    for name, chats in given.items():
        last = await managed(node, name)
        task = asyncio.create_task(acknowledge_all(last, chats))
        async with deadline(f"what {name} was sent"):
            while not expected[name] <= chats:
                await last.arrived.wait()
                last.arrived.clear()
        task.cancel()
    assert len(expected["bob"]) > 30


async def managed(node, name):
    """A session with stream management, its presence counted."""
    raw = await Raw.logged_in(node.server, name, presence=False)
    raw.send("<enable xmlns='urn:xmpp:sm:3'/>")
    await raw.until(lambda e: e.tag == "{urn:xmpp:sm:3}enabled")
    raw.arrived, raw.stanzas = asyncio.Event(), 0
    raw.send("<presence/>")
    return raw


async def acknowledge_all(raw, chats):
    """Reads until the connection ends, acknowledges what is asked for, and notes the messages."""
    with contextlib.suppress(AssertionError, ConnectionError):
        while (element := await raw.element()) is not None:
            if element.tag == "{urn:xmpp:sm:3}r":
                raw.send(f"<a xmlns='urn:xmpp:sm:3' h='{raw.stanzas}'/>")
            elif element.tag.startswith(CLIENT):
                raw.stanzas += 1
            if body := element.findtext(CLIENT + "body"):
                chats.add(int(body))
                raw.arrived.set()


@pytest.mark.parametrize("how", ["in order", "power cut"])
async def test_an_event_stream_goes_on_after_a_restart(node, how):
    """What was told has an id; what ended while nobody followed comes with the next stream, once."""
    async with node.api() as api:
        await api.account("alice")
        alice = await Peer.connect(node.server, "alice@localhost", plugins=SM)
        async with api.events(state="acknowledged") as events:
            first = await api.notify("alice", "first")
            await events.state(first["id"], "acknowledged")
            last = events.last_id
        second = await api.notify("alice", "second")
        await api.eventually(f"/v1/notifications/{second['id']}", lambda it: it["state"] == "acknowledged")
        await alice.close()
    node.restart(how)
    async with node.api() as api, api.events(last_id=last, state="acknowledged") as events:
        assert (await events.next())["id"] == second["id"]
        assert int(events.last_id) == int(last) + 1
        alice = await Peer.connect(node.server, "alice@localhost", plugins=SM)
        third = await api.notify("alice", "third")
        assert (await events.next())["id"] == third["id"]
        await alice.close()


@pytest.mark.parametrize("how", ["in order", "power cut"])
async def test_an_item_that_is_published_again_after_the_restart_is_the_same_item(node, how):
    key, body = {"idempotency-key": "headline-1"}, {"payload": "once"}
    path = "/v1/topics/news/items"
    async with node.api() as api:
        await api.account("alice")
        await api.ok("PUT", "/v1/topics/news", {"max_items": 5}, status=201)
        await api.ok("PUT", "/v1/devices/alice/subscriptions/news", status=201)
        first = await api.call("POST", path, body, headers=key)
        assert first.status_code == 202
    node.restart(how)
    alice = await Peer.connect(node.server, "alice@localhost", plugins=SM)
    async with node.api() as api:
        again = await api.call("POST", path, body, headers=key)
        assert (again.status_code, again.content) == (first.status_code, first.content)
        assert again.headers["idempotent-replayed"] == "true"
        await api.problem(422, "idempotency-mismatch", "POST", path, {"payload": "twice"}, headers=key)
        await api.ok("POST", path, {"id": "last", "payload": "last"}, status=202)
        ids = [first.json()["id"], "last"]
        for id in ids:
            message = await alice.messages.take(lambda m: m.get("from") == "pubsub.localhost", "an item")
            assert message.find(".//{http://jabber.org/protocol/pubsub#event}item").get("id") == id
        assert [i["id"] for i in (await api.ok("GET", path))["items"]] == ids[::-1]
    await alice.close()


# ---- sessions that go on in the next process

STREAM_MANAGEMENT = "{urn:xmpp:sm:3}"


def body(element):
    return element.findtext(CLIENT + "body")


async def resumable(server, user, wanted=""):
    """A session that can be resumed, and the key of it."""
    raw = await Raw.logged_in(server, user, presence=False)
    raw.send(f"<enable xmlns='urn:xmpp:sm:3' resume='true'{wanted}/>")
    enabled = await raw.until(lambda e: e.tag == STREAM_MANAGEMENT + "enabled")
    assert enabled.get("resume") == "true"
    await raw.available()
    return raw, enabled.get("id")


async def resumed(server, user, key, h):
    """A client that wants to resume a session, and what it is answered."""
    raw = await Raw.secured(server)
    await raw.authenticate(user)
    raw.send(f"<resume xmlns='urn:xmpp:sm:3' previd='{key}' h='{h}'/>")
    return raw, await raw.element()


async def retry_after(raw):
    """The end of a stream before a restart: for how many seconds its client is to wait."""
    error = await raw.until(lambda e: e.tag == STREAM + "error")
    assert error.find(STREAM_ERRORS + "system-shutdown") is not None
    await raw.end_of_stream()
    return int(error.find("{urn:carillon:retry:0}retry-after").get("seconds"))


async def bodies(raw, count):
    """The bodies of the next messages, in order."""
    return [body(await raw.until(lambda e: e.tag == CLIENT + "message")) for _ in range(count)]


async def test_a_session_goes_on_after_the_restart_with_its_queue_in_order(node):
    async with node.api() as api:
        for user in ("alice", "bob"):
            await api.account(user)
        await api.ok("PUT", "/v1/topics/news", {"max_items": 5}, status=201)
        await api.ok("PUT", "/v1/devices/bob/subscriptions/news", status=201)
        bob, key = await resumable(node.server, "bob")
        alice, alices_key = await resumable(node.server, "alice")
        for text in ("one", "two"):
            alice.send(f"<message to='bob@localhost' type='chat' id='{text}'><body>{text}</body></message>")
            await bob.until(lambda e, text=text: body(e) == text)
        published = await api.ok("POST", "/v1/topics/news/items", {"id": "i", "payload": "item"}, status=202)
        assert published
        await bob.until(lambda e: e.find(".//{http://jabber.org/protocol/pubsub#event}item") is not None)
        # Bob has his presence and "one"; "two" and the item were under way when his connection broke.
        bob.reset()
        kept = await api.notify("bob", "kept")
        await api.eventually("/v1/admin/status", lambda seen: seen["parked"] == 1)
        alice.send("<message to='bob@localhost' type='chat' id='three'><body>three</body></message>")
        await alice.ping()
        ending = asyncio.create_task(asyncio.to_thread(node.server.end))
        assert await retry_after(alice) == 1
        async with deadline("the end of the node"):
            await ending
    node.server = Server(node.folder)
    async with node.api() as api:
        await api.figure_is("sessions_restored_total", lambda seen: seen == 2)
        sessions = (await api.ok("GET", "/v1/admin/sessions"))["sessions"]
        assert {(s["jid"], s["address"], s["presence"]) for s in sessions} == {
            ("bob@localhost/raw", "127.0.0.1", "available"),
            ("alice@localhost/raw", "127.0.0.1", "available"),
        }
        await api.ok("POST", "/v1/topics/news/items", {"id": "j", "payload": "while away"}, status=202)
        bob, answer = await resumed(node.server, "bob", key, h=2)
        assert answer.tag == STREAM_MANAGEMENT + "resumed"
        assert await bodies(bob, 1) == ["two"]
        for id in ("i", "j"):
            event = await bob.until(lambda e: e.tag == CLIENT + "message")
            assert event.find(".//{http://jabber.org/protocol/pubsub#event}item").get("id") == id
        # What was kept meanwhile comes from the store.
        left = [await bob.until(lambda e: e.tag == CLIENT + "message") for _ in range(2)]
        assert {body(e) or e.get("id") for e in left} == {"three", kept["id"]}
        bob.send("<a xmlns='urn:xmpp:sm:3' h='7'/>")
        # He was never away for Alice, who is back too.
        alice, answer = await resumed(node.server, "alice", alices_key, h=1)
        assert answer.tag == STREAM_MANAGEMENT + "resumed"
        bob.send("<message to='alice@localhost' type='chat'><body>back</body></message>")
        assert await bodies(alice, 1) == ["back"]
        await api.eventually(f"/v1/notifications/{kept['id']}", lambda seen: seen["state"] == "acknowledged")
    for raw in (alice, bob):
        await raw.close()


async def test_slixmpp_goes_on_after_the_restart(node):
    async with node.api() as api:
        for user in ("alice", "bob"):
            await api.account(user)
    bob = await Peer.connect(node.server, "bob@localhost", plugins=SM)
    back = Inbox("resumptions")
    bob.xmpp.add_event_handler("session_resumed", back.put)
    jid = bob.jid
    ending = asyncio.create_task(asyncio.to_thread(node.server.end))
    assert await bob.stream_error() == "system-shutdown"
    async with deadline("the end of the node"):
        await ending
    node.server = Server(node.folder)
    bob.reconnect(node.server)
    await back.take(what="the resumption")
    assert bob.jid == jid
    alice = await Peer.connect(node.server, "alice@localhost")
    alice.chat("bob@localhost", "hello again")
    await bob.message("hello again")
    for peer in (alice, bob):
        await peer.close()


async def test_a_session_whose_time_was_up_while_the_node_was_away_has_ended(node):
    async with node.api() as api:
        for user in ("alice", "bob"):
            await api.account(user)
        await api.ok("PATCH", "/v1/admin/domains/localhost", {"resumption_ms_max": 1})
        bob, key = await resumable(node.server, "bob")
        alice = await Peer.connect(node.server, "alice@localhost")
        alice.chat("bob@localhost", "under way")
        await bob.until(lambda e: body(e) == "under way")
        ending = asyncio.create_task(asyncio.to_thread(node.server.end))
        await alice.stream_error()
        async with deadline("the end of the node"):
            await ending
    node.server = Server(node.folder)
    async with node.api() as api:
        await api.figure_is("sessions_restored_total", lambda seen: seen == 0)
        # It ends shortly after those that go on are there, so that nobody is told of an end before that.
        await api.eventually("/v1/admin/sessions", lambda seen: seen["sessions"] == [])
    raw, answer = await resumed(node.server, "bob", key, h=1)
    assert answer.tag == STREAM_MANAGEMENT + "failed"
    await raw.close()
    # What it had not acknowledged was stored.
    bob = await Peer.connect(node.server, "bob@localhost")
    await bob.message("under way")
    await bob.close()


async def test_a_kill_after_the_restart_brings_no_session_back(node):
    """The start forgets what it restores: killed, it leaves what the store holds, and nothing of the sessions."""
    async with node.api() as api:
        for user in ("alice", "bob"):
            await api.account(user)
        bob, key = await resumable(node.server, "bob")
        bob.reset()
        await api.eventually("/v1/admin/status", lambda seen: seen["parked"] == 1)
        kept = await api.notify("bob", "kept")
    node.restart("in order")
    async with node.api() as api:
        await api.figure_is("sessions_restored_total", lambda seen: seen == 1)
    alice, _ = await resumable(node.server, "alice")
    alice.send("<message to='bob@localhost' type='chat'><body>stored</body></message><r xmlns='urn:xmpp:sm:3'/>")
    await alice.until(lambda e: e.tag == STREAM_MANAGEMENT + "a" and e.get("h") == "2")
    node.restart("power cut")
    async with node.api() as api:
        await api.figure_is("sessions_restored_total", lambda seen: seen == 0)
    raw, answer = await resumed(node.server, "bob", key, h=1)
    assert answer.tag == STREAM_MANAGEMENT + "failed"
    await raw.close()
    bob = await Peer.connect(node.server, "bob@localhost", plugins=SM)
    await bob.message("stored")
    await bob.notification(kept["id"])
    await bob.close()


async def everything(raw, last):
    """The ids of the messages that come: up to the last one, and what else comes before a later answer."""
    ids = []
    while not ids or ids[-1] != last:
        ids.append((await raw.until(lambda e: e.tag == CLIENT + "message")).get("id"))
    raw.send("<iq type='get' id='ping'><ping xmlns='urn:xmpp:ping'/></iq>")
    while (element := await raw.until(lambda e: e.tag in (CLIENT + "message", CLIENT + "iq"))).get("id") != "ping":
        ids.append(element.get("id"))
    return ids


def group_is_stored(server):
    """Waits until the store has the first group of parked sessions, or the node has ended."""
    while server.is_running() and store.count(server, "parked") == 0:
        pass


@pytest.mark.parametrize("moment", ["the first stream ends", "a group is stored", "the last stream ends"])
async def test_a_kill_while_sessions_are_written_loses_nothing_that_is_kept(node, moment):
    users = [f"user{n}" for n in range(8)]
    sessions = {}
    async with node.api() as api:
        for user in users:
            await api.account(user)
            raw, key = await resumable(node.server, user)
            # Large enough for a group of its own.
            waits = [
                (await api.notify(user, {"n": n, "text": "x" * 30_000}, audience="connected"))["id"] for n in range(7)
            ]
            for id in waits:
                await raw.until(lambda e, id=id: e.get("id") == id)
            kept = (await api.notify(user, "kept"))["id"]
            await raw.until(lambda e, kept=kept: e.get("id") == kept)
            sessions[user] = (raw, key, waits, kept)
    streams = [asyncio.create_task(retry_after(raw)) for raw, *_ in sessions.values()]
    node.server.process.terminate()
    if moment == "a group is stored":
        async with deadline("a group in the store"):
            await asyncio.to_thread(group_is_stored, node.server)
    else:
        when = asyncio.FIRST_COMPLETED if moment == "the first stream ends" else asyncio.ALL_COMPLETED
        await asyncio.wait(streams, return_when=when)
    node.server.kill()
    await asyncio.gather(*streams, return_exceptions=True)
    node.server = Server(node.folder)
    for user, (_, key, waits, kept) in sessions.items():
        raw, answer = await resumed(node.server, user, key, h=1)
        if answer.tag == STREAM_MANAGEMENT + "resumed":
            assert await everything(raw, kept) == [*waits, kept]
        else:
            await raw.close()
            raw = await Raw.logged_in(node.server, user)
            assert await everything(raw, kept) == [kept]
        await raw.close()
