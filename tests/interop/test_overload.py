"""More than the node can do, or a client can take: who causes it is told, what waits is bounded, and nobody else notices.

The bounds are small here, so that little is needed to reach them. Connections past their bound: ``test_refused.py``; disks that are
slow or full: ``test_disks.py``.
"""

import asyncio
import itertools
import json
import time
import xml.etree.ElementTree as ET

import pytest

from harness.api import Api, check_problem
from harness.follower import Follower
from harness.inbox import deadline
from harness.raw import CLIENT, STANZA_ERRORS, Raw
from harness.server import Server, unique

FOLLOWERS = 40
SHARDS = 2
MAX_WAITING = 200
OPERATIONS = 20
# What an XMPP publisher sends before it looks whether there is any answer.
BURST = 50
PENDING = 50


@pytest.fixture(scope="module")
def settings():
    return {
        "limits__stanzas_per_second": 0,
        "limits__bytes_per_second": 0,
        "limits__out_queue_bytes": "1MiB",
        "limits__pending_notifications": PENDING,
        "fanout__slice": 1,
        "fanout__max_waiting": MAX_WAITING,
        "pubsub__max_waiting": OPERATIONS,
        # A slow reader is given time to read why it is closed.
        "timeouts__close_ms": "1m",
    }


@pytest.fixture
async def follower(server, api, account):
    """Makes a session of a new account that follows topics."""
    made = []

    async def make(*topics):
        made.append(await Follower.of(api, server, await account("follower"), *topics))
        return made[-1]

    yield make
    for one in made:
        await one.close()


class Flood:
    """An XMPP client that publishes as fast as its socket takes it, and notes what became of each item."""

    def __init__(self, stream, topic):
        self.stream = stream
        self.topic = topic
        self.accepted = []
        self.refusals = []
        self._enough = False
        self._news = asyncio.Event()
        self._sent = float("inf")

    async def create(self):
        create = f"<pubsub xmlns='http://jabber.org/protocol/pubsub'><create node='{self.topic}'/></pubsub>"
        iq = f"<iq type='set' id='create' to='pubsub.localhost'>{create}</iq>"
        assert (await self.stream.ask(iq, "create")).get("type") == "result"

    async def pour(self):
        """Publishes until it is enough, whatever the answers are; then waits for the last of them."""
        answers = asyncio.create_task(self._read())
        for sent in itertools.count(1):
            self._news.clear()
            self.stream.send(
                f"<iq type='set' id='x{sent}' to='pubsub.localhost'><pubsub xmlns='http://jabber.org/protocol/pubsub'>"
                f"<publish node='{self.topic}'><item id='x{sent}'><flood xmlns='urn:test'/></item></publish>"
                "</pubsub></iq>"
            )
            await self.stream.writer.drain()
            if sent % BURST == 0:
                # Whoever reads the answers gets a turn, not to be a slow reader.
                await self._news.wait()
            if self._enough:
                break
        self._sent = sent
        # Whoever reads learns of it by one more answer, should all others have come.
        self.stream.send("<iq type='get' id='end'><ping xmlns='urn:xmpp:ping'/></iq>")
        async with deadline("the last answer", 60):
            await answers

    def enough(self):
        self._enough = True

    async def _read(self):
        while len(self.accepted) + len(self.refusals) < self._sent:
            answer = await self.stream.until(lambda e: e.tag == CLIENT + "iq")
            self._news.set()
            # What was read is not kept in the parser's tree.
            self.stream.root.clear()
            if answer.get("id") == "end":
                continue
            if answer.get("type") == "result":
                self.accepted.append(answer.get("id"))
                continue
            error = answer.find(CLIENT + "error")
            assert error.get("type") == "wait", ET.tostring(answer)
            assert error.find(STANZA_ERRORS + "resource-constraint") is not None, ET.tostring(answer)
            assert int(error.find("{urn:carillon:retry:0}retry-after").get("seconds")) > 0
            self.refusals.append(error.findtext(STANZA_ERRORS + "text"))


async def publish(api, topic, id, payload=0):
    """Publishes; whether it was taken. Otherwise it was refused as it should be."""
    answer = await api.call("POST", f"/v1/topics/{topic}/items", {"id": id, "payload": payload})
    if answer.status_code == 202:
        return True
    check_problem(answer, 429, "too-fast")
    assert int(answer.headers["retry-after"]) > 0
    return False


async def test_publishers_that_are_too_fast_are_refused_and_nobody_loses_anything(api, raw, account, follower):
    topic, quiet = unique("flooded"), unique("quiet")
    publisher = await raw.logged_in(await account("publisher"))
    flood = Flood(publisher, topic)
    await flood.create()
    await api.ok("PUT", f"/v1/topics/{quiet}", {}, status=201)
    crowd = [await follower(topic) for _ in range(FOLLOWERS)]
    bystander = await follower(quiet)
    before = await api.figure("process_resident_memory_bytes")
    pouring = asyncio.create_task(flood.pour())
    accepted, refused, waiting, undisturbed = [], 0, 0, []
    async with deadline("both publishers to be refused for their speed", 60):
        for n in itertools.count():
            # The figure of what waits is a sample, so it may be that of a moment between two items.
            if refused >= 3 and waiting and await api.figure("publications_refused_total") >= 100:
                break
            if await publish(api, topic, f"h{n}"):
                accepted.append(f"h{n}")
            else:
                refused += 1
            assert await publish(api, quiet, f"q{n}"), "a topic that nobody floods takes what comes"
            undisturbed.append(f"q{n}")
            await bystander.got(lambda items: items == undisturbed, "all of the quiet topic")
            waiting = max(waiting, await api.figure("fanout_waiting_deliveries"))
    flood.enough()
    await pouring
    assert any("faster than the topic's followers" in text for text in flood.refusals)
    # What was on its way to the store when a shard fell behind comes on top.
    assert 0 < waiting <= SHARDS * (MAX_WAITING + 2 * OPERATIONS * FOLLOWERS)
    # Recovered by itself, and nothing that was accepted is missing anywhere.
    await api.figure_is("fanout_waiting_deliveries", lambda n: n == 0)
    assert await api.figure("fanout_waiting_bytes") == 0
    await api.ok("POST", f"/v1/topics/{topic}/items", {"id": "last", "payload": 0}, status=202)
    for one in crowd:
        await one.got(lambda items: items[-1:] == ["last"], "the last item")
    assert {*crowd[0].items} == {*flood.accepted, *accepted, "last"}
    assert all(one.items == crowd[0].items for one in crowd), "all see the same items in the same order"
    assert await api.figure("process_resident_memory_bytes") - before < 100 * 2**20


async def test_followers_that_stop_reading_are_cut_off_and_the_others_get_every_item(api, follower):
    topic = unique("slow")
    await api.ok("PUT", f"/v1/topics/{topic}", {}, status=201)
    good = [await follower(topic) for _ in range(10)]
    deaf = [await follower(topic) for _ in range(3)]
    for one in deaf:
        one.stop_reading()
    overflows = await api.figure("overflows_total")
    closed = await api.figure('stream_errors_total{condition="policy-violation"}')
    published = []
    async with deadline("the deaf to be found out", 60):
        while await api.figure("overflows_total") < overflows + len(deaf):
            id = f"i{len(published)}"
            if await publish(api, topic, id, "x" * 30_000):
                published.append(id)
                for one in good:
                    await one.got(lambda items: items == published, "every item")
    assert await api.figure('stream_errors_total{condition="policy-violation"}') == closed + len(deaf)
    for one in deaf:
        last = await one.read_to_the_end()
        assert b"<policy-violation " in last, last
        assert last.endswith(b"</stream:stream>"), last
        assert one.items == published[: len(one.items)], "what it got has no gap"
    for one in good:
        await one.stream.writer.drain()
    assert await publish(api, topic, "after")
    for one in good:
        await one.got(lambda items: items == [*published, "after"], "what comes after")
    assert await api.figure("overflows_total") == overflows + len(deaf)


async def test_a_batch_too_large_for_its_device_is_answered_line_by_line(account, peer, api):
    """A thousand for one that is away: it is given what its queue keeps, the sender can ask what became of the others."""
    away, other = await account("away"), await peer(plugins=["xep_0198"])
    lines = [{"to": away, "payload": {"n": n}} for n in range(1000)]
    lines[500]["to"] = other.bare
    answer = await api.http.post(
        "/v1/notifications/batch",
        content="".join(json.dumps(line) + "\n" for line in lines),
        headers={"content-type": "application/x-ndjson"},
    )
    results = [json.loads(line) for line in answer.text.splitlines()]
    assert [result["line"] for result in results] == list(range(1, 1001))
    await other.notification(results.pop(500)["id"])
    ids = [result["id"] for result in results]
    assert {result["state"] for result in results} == {"stored"}
    for id in (ids[0], ids[-PENDING - 1]):
        trace = await api.trace(id)
        assert (trace["state"], trace["reason"]) == ("dropped", "queue-full"), trace
    device = await peer(away, plugins=["xep_0198"])
    for id in ids[-PENDING:]:
        await device.notification(id)
    assert not device.messages.left()


@pytest.fixture
async def bounded(tmp_path):
    """A node with bounds of its own, and its API."""
    nodes = []

    async def start(**settings):
        nodes.append((server := Server(tmp_path, **settings), api := Api(server)))
        return server, api

    yield start
    for server, api in nodes:
        await api.aclose()
        server.end()


async def test_a_session_that_sends_too_fast_is_read_more_slowly_and_loses_nothing(bounded):
    per_second, burst, seconds = 20, 30, 3
    server, api = await bounded(limits__stanzas_per_second=per_second, limits__stanzas_burst=burst)
    for name in ("hasty", "calm", "other"):
        await api.account(f"{name}@localhost")
    calm = await Raw.logged_in(server, "calm")
    calm.send("<presence/>")
    await calm.ping()
    began = time.monotonic()
    hasty = await Raw.logged_in(server, "hasty")
    messages = [f"m{n}" for n in range(burst + per_second * seconds)]
    for id in messages:
        hasty.send(f"<message type='chat' to='calm@localhost' id='{id}'><body>.</body></message>")
    seen = []
    while len(seen) < len(messages):
        message = await calm.until(lambda e: e.tag == CLIENT + "message")
        seen.append(message.get("id"))
        if len(seen) == len(messages) // 2:
            # Others are not made to wait.
            await api.ok("GET", "/v1/admin/status")
            await (await Raw.logged_in(server, "other")).close()
    took = time.monotonic() - began
    assert took >= seconds - 0.5, "the last ones had to wait until the rate allowed them"
    assert seen == messages
    await hasty.ping()
    for stream in (hasty, calm):
        await stream.close()
