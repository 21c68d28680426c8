"""What waits for a device reaches it, whatever the device does: it reads slowly or not at all, is cut, stays silent for long, or has
another session. Seen from outside, over raw sockets.
"""

import asyncio
import collections
import contextlib
import datetime
import functools
import json

import pytest

from harness import store
from harness.api import Api
from harness.inbox import deadline
from harness.raw import CLIENT, Raw
from harness.server import Server, unique

JSON = "{urn:xmpp:json:0}json"
ENABLE = "<enable xmlns='urn:xmpp:sm:3'/>"
SM = "{urn:xmpp:sm:3}"
WINDOW = 64 * 1024
PENDING = 400
AUDIENCES = ["always", "connected", "active"]


@pytest.fixture(scope="module")
def settings():
    return {
        "limits__stanzas_per_second": 0,
        "limits__bytes_per_second": 0,
        "limits__pending_notifications": PENDING,
        "http__payload_bytes_max": "256KiB",
        "notifications__receipt_wait_ms": 1000,
        # What a login read counts as fresh for as long as a login may take.
        "timeouts__auth_ms": "2s",
        "timeouts__bind_ms": "2s",
    }


def is_message(element):
    return element.tag == CLIENT + "message"


async def notifications(stream, count):
    """The ids of the next notifications, in order."""
    ids = []
    while len(ids) < count:
        ids.append((await stream.until(is_message)).get("id"))
        # What was read is not kept in the parser's tree.
        stream.root.clear()
    return ids


async def bodies(stream, count):
    found = []
    while len(found) < count:
        found.append((await stream.until(is_message)).findtext(CLIENT + "body"))
        stream.root.clear()
    return found


async def no_more_messages(stream):
    """Nothing but the answer to a ping is on its way."""
    stream.send("<iq type='get' id='end'><ping xmlns='urn:xmpp:ping'/></iq>")
    while (element := await stream.until(lambda e: True)).get("id") != "end":
        assert not is_message(element), element.attrib


async def batch(api, lines):
    """Sends a batch; the ids."""
    content = "".join(json.dumps(line) + "\n" for line in lines)
    answer = await api.http.post(
        "/v1/notifications/batch", content=content, headers={"content-type": "application/x-ndjson"}
    )
    return [json.loads(line)["id"] for line in answer.text.splitlines()]


async def test_what_has_not_arrived_when_a_device_is_cut_comes_again(raw, account, api):
    """A client without stream management that sends no receipts: the socket's word is what its TCP acknowledged."""
    jid, other = await account(), await account()
    deaf = await raw.logged_in(jid, receive_bytes=WINDOW)
    witness = await raw.logged_in(other)
    deaf.stop_reading()
    async with api.events(state="acknowledged") as events:
        sent = [(await api.notify(jid, "x" * 6000))["id"] for _ in range(40)]
        assert (await events.state(sent[0], "acknowledged"))["acknowledged_by"] == "socket"
        # All of the others have had their time when one that was sent later has.
        last = (await api.notify(other, "later"))["id"]
        await notifications(witness, 1)
        await events.state(last, "acknowledged")
    deaf.reset()
    traces = {id: await api.trace(id) for id in sent}
    acknowledged = [id for id in sent if traces[id]["state"] == "acknowledged"]
    assert len(acknowledged) < 2 * WINDOW / 6000, "no more than its buffers hold"
    # Whether the reset is known yet or not: this login takes the place of what is left of the other.
    device = await raw.logged_in(jid)
    device.send(ENABLE)
    assert await notifications(device, len(sent) - len(acknowledged)) == sent[len(acknowledged) :]
    await no_more_messages(device)


async def test_chats_that_had_not_arrived_when_a_client_is_cut_come_again(raw, account):
    """A client without stream management: what its TCP had not acknowledged is not covered by `<a h>` before it is stored."""
    jid = await account()
    sender = await raw.logged_in(await account())
    sender.send(ENABLE)
    await sender.until(lambda e: e.tag == SM + "enabled")
    deaf = await raw.logged_in(jid, receive_bytes=WINDOW)
    deaf.stop_reading()
    for n in range(40):
        sender.send(f"<message type='chat' to='{jid}' id='{n}'><body>{n} {'x' * 6000}</body></message>")

    async def covered():
        sender.send("<r xmlns='urn:xmpp:sm:3'/>")
        return int((await sender.until(lambda e: e.tag == SM + "a")).get("h"))

    # Its TCP took something, and no more than its buffers hold.
    while not (arrived := await covered()):
        pass
    assert arrived < 2 * WINDOW / 6000, "no more than its buffers hold"
    deaf.reset()
    while await covered() < 40:
        pass
    # The last of its sender comes behind all others.
    sender.send(f"<message type='chat' to='{jid}'><body>40</body></message>")
    device = await raw.logged_in(jid)
    got = []
    while 40 not in got:
        got += [int(body.split()[0]) for body in await bodies(device, 1)]
    # What arrived after it was last asked is not there again.
    assert got == list(range(41))[-len(got) :]
    assert len(got) > 40 - 2 * WINDOW / 6000
    await no_more_messages(device)


async def test_what_has_arrived_does_not_come_again(raw, account, api):
    """The same client, which reads: also when it closes its stream at once."""
    jid = await account()
    device = await raw.logged_in(jid)
    sent = [(await api.notify(jid, n))["id"] for n in range(3)]
    assert await notifications(device, 3) == sent
    device.send("</stream:stream>")
    await device.end_of_stream()
    for id in sent:
        await api.eventually(f"/v1/notifications/{id}", lambda trace: trace["state"] == "acknowledged")
    await no_more_messages(await raw.logged_in(jid))


async def test_a_session_that_was_silent_for_long_gets_what_came_meanwhile(raw, account, api):
    """Bound without presence, and unavailable: for longer than it is remembered what came during a login."""
    silent, unavailable = [await raw.logged_in(await account(), presence=n == 1) for n in range(2)]
    await unavailable.available("<presence type='unavailable'/>")
    streams = {stream: stream.jid.partition("/")[0] for stream in (silent, unavailable)}
    sender, clock = await raw.logged_in(await account()), await raw.logged_in(await account())
    sent = {}
    for stream, jid in streams.items():
        sender.send(f"<message type='chat' to='{jid}'><body>hello</body></message>")
        sent[stream] = [(await api.notify(jid, n))["id"] for n in range(5)]
    await sender.ping()
    # Half a minute, by the server's own clock.
    for _ in range(2):
        at = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=15)
        await api.notify(clock.jid.partition("/")[0], "time is up", send_at=at.isoformat())
        await notifications(clock, 1)
    for stream in streams:
        await stream.available()
        assert await bodies(stream, 1) == ["hello"]
        assert await notifications(stream, 5) == sent[stream]
        await no_more_messages(stream)


async def test_what_is_scheduled_arrives_once_whoever_it_is_for(raw, account, api):
    """More than a node claims at once, all due in the same second."""
    at = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=4)).isoformat()
    devices, sent = {}, {}
    for audience in AUDIENCES:
        devices[audience] = device = await raw.logged_in(await account())
        jid = device.jid.partition("/")[0]
        notify = functools.partial(api.notify, jid, audience=audience, send_at=at)
        sent[audience] = {(await notify(n))["id"] for n in range(220)}
    for audience, device in devices.items():
        assert set(await notifications(device, 220)) == sent[audience]
    for audience, device in devices.items():
        await no_more_messages(device)
        trace = f"/v1/notifications/{sent[audience].pop()}"
        await api.eventually(trace, lambda trace: trace["state"] in ("sent", "acknowledged"))


async def test_chats_larger_than_the_queue_wait_and_arrive(raw, account):
    jid, sender = await account(), await raw.logged_in(await account())
    for n in range(35):
        sender.send(f"<message type='chat' to='{jid}'><body>{n:03}{'x' * 200_000}</body></message>")
        await sender.writer.drain()
    await sender.ping()
    device = await raw.logged_in(jid, receive_bytes=WINDOW)
    assert [body[:3] for body in await bodies(device, 35)] == [f"{n:03}" for n in range(35)]
    await no_more_messages(device)
    device.send("</stream:stream>")
    await device.end_of_stream()
    await no_more_messages(await raw.logged_in(jid))


@pytest.mark.parametrize("managed", [False, True], ids=["socket", "0198"])
async def test_notifications_larger_than_the_queue_wait_and_arrive_behind_a_small_window(raw, account, api, managed):
    jid = await account()
    sent = await batch(api, [{"to": jid, "payload": "x" * 30_000} for _ in range(100)])
    device = await raw.logged_in(jid, receive_bytes=WINDOW, presence=False)
    if managed:
        device.send(ENABLE)
    device.stop_reading()
    device.send("<presence/>")
    # The device of another reads meanwhile.
    other = await raw.logged_in(await account())
    await api.notify(other.jid.partition("/")[0], "undisturbed")
    await notifications(other, 1)
    device.read_again()
    assert await notifications(device, 100) == sent
    await no_more_messages(device)
    assert await api.figure("overflows_total") == 0


async def test_last_items_larger_than_the_queue_arrive(raw, account, api):
    jid, topics = await account(), [unique("large") for _ in range(40)]
    for topic in topics:
        await api.ok("PUT", f"/v1/topics/{topic}", {"max_items": 1}, status=201)
        await api.ok("PUT", f"/v1/devices/{jid.partition('@')[0]}/subscriptions/{topic}", status=201)
        await api.ok("POST", f"/v1/topics/{topic}/items", {"id": topic, "payload": "x" * 200_000}, status=202)
    device = await raw.logged_in(jid, receive_bytes=WINDOW, presence=False)
    device.send("<presence/>")
    found = []
    while len(found) < len(topics):
        message = await device.until(is_message)
        found.append(next(message.iter("{http://jabber.org/protocol/pubsub#event}item")).get("id"))
        device.root.clear()
    assert collections.Counter(found) == collections.Counter(topics), "each once"
    await no_more_messages(device)
    assert await api.figure("overflows_total") == 0


async def test_newer_ones_do_not_overtake_a_backlog(raw, account, api):
    jid = await account()
    sent = await batch(api, [{"to": jid, "payload": f"{n} {'x' * 20_000}"} for n in range(170)])
    device = await raw.logged_in(jid, receive_bytes=WINDOW)
    device.stop_reading()
    sent += [(await api.notify(jid, f"new {n}"))["id"] for n in range(5)]
    device.read_again()
    assert await notifications(device, len(sent)) == sent
    await no_more_messages(device)


async def test_a_session_that_has_a_message_is_not_given_it_again_when_another_is_lost(raw, account):
    jid, sender = await account(), await raw.logged_in(await account())
    lost = await raw.logged_in(jid, resource="lost")
    lost.send(ENABLE)
    stays = await raw.logged_in(jid, resource="stays")
    sender.send(f"<message type='chat' to='{jid}'><body>to both</body></message>")
    sender.send(f"<message type='chat' to='{jid}/lost'><body>to one</body></message>")
    assert await bodies(lost, 2) == ["to both", "to one"]
    assert await bodies(stays, 1) == ["to both"]
    lost.reset()
    # It has the first, and takes what only the other had.
    assert await bodies(stays, 1) == ["to one"]
    await no_more_messages(stays)


async def test_who_acknowledges_and_comes_back_at_once_is_not_given_it_again(raw, account, api):
    jid = await account()
    device = await raw.logged_in(jid)
    for n in range(20):
        id = (await api.notify(jid, n))["id"]
        assert await notifications(device, 1) == [id]
        device.send(f"<message to='push.localhost'><received xmlns='urn:xmpp:receipts' id='{id}'/></message>")
        # The same resource: the old session ends, without having been closed.
        device = await raw.logged_in(jid)
        await no_more_messages(device)


async def test_a_newcomer_that_is_dropped_at_once_is_said_to_be(account, api):
    jid = await account()
    await batch(api, [{"to": jid, "payload": n} for n in range(PENDING)])
    dropped = await api.notify(jid, "of little weight", priority="low")
    assert (dropped["state"], dropped["reason"]) == ("dropped", "queue-full")
    kept = await api.notify(jid, "of some weight")
    assert kept["state"] == "stored"


async def test_devices_that_come_and_go_lose_nothing(raw, account, api):
    """Many at once that are cut in the middle of what waits for them, until they have it all."""

    async def device(n):
        jid = await account()
        sent = await batch(api, [{"to": jid, "payload": f"{i} {'x' * (n * 1000)}"} for i in range(60)])
        seen = []
        for cut in range(6):
            stream = await raw.logged_in(jid, receive_bytes=WINDOW)
            stream.send(ENABLE)
            if cut < 5:
                seen += await notifications(stream, 7 * cut)
                stream.reset()
        seen += await notifications(stream, 60)
        assert seen[-60:] == sent, "what was not acknowledged comes again, all of it, in order"

    await asyncio.gather(*(device(n) for n in range(1, 9)))


@pytest.fixture
async def start(tmp_path):
    """Starts nodes of the test's own, one after the other in the same folder, and their API."""
    started = []

    async def start(**settings):
        started.append((Server(tmp_path, **settings), stack := contextlib.AsyncExitStack()))
        server = started[-1][0]
        api = Api(server)
        stack.push_async_callback(api.aclose)
        return server, api

    yield start
    for server, stack in started:
        await stack.aclose()
        if server.is_running():
            server.kill()


async def test_what_is_acknowledged_while_the_store_fails_does_not_come_again(start):
    """The store refuses the ends of notifications and the deletion of messages: it is told later, and nobody gets them again."""
    server, api = await start()
    for name in ("alice", "bob"):
        await api.account(f"{name}@localhost")
    bob = await Raw.logged_in(server, "bob")
    for n in range(5):
        bob.send(f"<message type='chat' to='alice@localhost'><body>{n}</body></message>")
    await bob.ping()
    sent = await batch(api, [{"to": "alice@localhost", "payload": n} for n in range(20)])
    alice = await Raw.logged_in(server, "alice", presence=False)
    alice.send(ENABLE)
    await alice.available()
    assert await bodies(alice, 5) == [str(n) for n in range(5)]
    assert await notifications(alice, 20) == sent
    with store.locked(server):
        # Its presence came back, too.
        alice.send(f"<a xmlns='urn:xmpp:sm:3' h='{1 + 5 + 20}'/>")
        await api.figure_is("store_failures_total", lambda n: n >= 2)
        for resource in ("raw", "other"):
            await no_more_messages(await Raw.logged_in(server, "alice", resource=resource))
    async with deadline("the store to be told", 60):
        while store.count(server, "notification") or store.count(server, "offline"):
            await bob.ping()
    assert [(await api.trace(id))["acknowledged_by"] for id in sent] == ["stream-management"] * 20
    assert await api.figure("store_given_up_total") == 0
    server.kill()
    server, api = await start()
    await no_more_messages(await Raw.logged_in(server, "alice"))
    assert [(await api.trace(id))["state"] for id in sent] == ["acknowledged"] * 20
    server.end()


async def test_an_acknowledgement_is_told_however_many_notifications_come_in_between(start):
    """120,000 that end at once, on one shard: six seconds of 20,000 per second."""
    server, api = await start(shards=1)
    for name in ("alice", "bob"):
        await api.account(f"{name}@localhost")
    alice = await Raw.logged_in(server, "alice", presence=False)
    alice.send(ENABLE)
    await alice.available()
    sent = [(await api.notify("alice@localhost", n, audience=audience))["id"] for n, audience in enumerate(AUDIENCES)]
    assert await notifications(alice, len(sent)) == sent
    for _ in range(12):
        await batch(api, [{"to": "bob@localhost", "payload": 0, "audience": "active"}] * 10_000)
    await api.figure_is('notifications_ended_total{reason="not-connected"}', lambda n: n == 120_000)
    async with api.events(state="acknowledged") as events:
        alice.send(f"<a xmlns='urn:xmpp:sm:3' h='{1 + len(sent)}'/>")
        for id in sent:
            assert (await events.state(id, "acknowledged"))["acknowledged_by"] == "stream-management"
    assert [(await api.trace(id))["state"] for id in sent] == ["acknowledged"] * len(sent)
    server.end()
