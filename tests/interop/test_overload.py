"""More than the node can do, or a client can take: who causes it is told, what waits is bounded, and nobody else notices.

The bounds are small here, so that little is needed to reach them. Connections past their bound: ``test_refused.py``.
"""

import asyncio
import itertools
import json
import os
import re
import subprocess
import xml.etree.ElementTree as ET

import pytest

from harness.api import Api, check_problem
from harness.follower import Follower
from harness.inbox import deadline
from harness.raw import CLIENT, STANZA_ERRORS
from harness.server import Server, run, unique

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
    before = await api.figure("resident_bytes")
    pouring = asyncio.create_task(flood.pour())
    accepted, refused, waiting, undisturbed = [], 0, 0, []
    async with deadline("both publishers to be refused for their speed", 60):
        for n in itertools.count():
            if refused >= 3 and await api.figure("publications_refused_total") >= 100:
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
    assert await api.figure("resident_bytes") - before < 100 * 2**20


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


EVENT_LOG = {
    "event_log__enabled": "true",
    "event_log__memory_bytes": "1MiB",
    "event_log__events": '["publish", "item"]',
}


class Busy:
    """A node whose event log gets a line for each item that a crowd is given."""

    def __init__(self, server, api, topic, crowd):
        self.server = server
        self.api = api
        self.topic = topic
        self.crowd = crowd
        self.published = []

    @classmethod
    async def start(cls, server):
        api, topic = Api(server), unique("busy")
        await api.ok("PUT", f"/v1/topics/{topic}", {}, status=201)
        jids = [f"{unique('busy')}@localhost" for _ in range(30)]
        for jid in jids:
            await api.account(jid)
        return cls(server, api, topic, [await Follower.of(api, server, jid, topic) for jid in jids])

    async def until(self, figure, wanted):
        """Publishes until a figure is as wanted; everybody is given every item all the same."""
        async with deadline(f"{figure} as wanted", 60):
            while not wanted(await self.api.figure(figure)):
                await self.publish(20)
                assert await self.api.figure("event_log_held_bytes") <= 2**20

    async def publish(self, count):
        for _ in range(count):
            id = f"item-{len(self.published)}"
            await self.api.ok("POST", f"/v1/topics/{self.topic}/items", {"id": id, "payload": 0}, status=202)
            self.published.append(id)
        for one in self.crowd:
            await one.got(lambda items: items == self.published, "every item")

    async def close(self):
        for one in self.crowd:
            await one.close()
        await self.api.aclose()


@pytest.fixture
def small_disk(tmp_path):
    """A disk of one MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "carillon-test", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


async def test_a_full_disk_of_the_event_log_slows_nobody_and_what_is_lost_is_said(small_disk, tmp_path):
    server = Server(tmp_path, event_log__path=small_disk, **EVENT_LOG)
    busy = await Busy.start(server)
    await busy.until("event_log_dropped_total", lambda n: n > 0)
    assert await busy.api.figure("event_log_failures_total") > 0
    # Somebody makes room: nothing need be told to the node.
    await asyncio.to_thread(subprocess.run, ["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    await busy.api.figure_is("event_log_held_bytes", lambda n: n == 0)
    dropped = await busy.api.figure("event_log_dropped_total")
    lines = await busy.api.figure("event_log_lines_total")
    await busy.publish(1)
    await busy.api.figure_is("event_log_lines_total", lambda n: n >= lines + 1 + len(busy.crowd))
    assert await busy.api.figure("event_log_dropped_total") == dropped
    await busy.close()
    server.end(expected=["the event log"])
    log = server.log.read_text()
    assert "the event log loses events" in log
    assert "the event log is written again" in log
    # The log itself says what is missing, and it is what was counted.
    found = await asyncio.to_thread(run, "events", "verify", str(small_disk))
    missing = [int(n) for n in re.findall(r"(\d+) missing before", found.stdout)]
    assert sum(missing) == dropped, found.stdout
    assert len(found.stdout.splitlines()) == len(missing) + 1, found.stdout


async def test_a_slow_disk_of_the_event_log_slows_nobody_and_loses_nothing(tmp_path):
    folder = tmp_path / "events"
    folder.mkdir()
    # A pipe is a disk that takes nothing for as long as nobody reads it.
    os.mkfifo(folder / "events.jsonl")
    pipe = os.open(folder / "events.jsonl", os.O_RDONLY | os.O_NONBLOCK)
    server = Server(tmp_path, event_log__path=folder, **EVENT_LOG)
    busy = await Busy.start(server)
    await busy.until("event_log_spilled_bytes_total", lambda n: n > 2**20)
    os.set_blocking(pipe, True)
    with os.fdopen(pipe, "rb") as reading:
        reader = asyncio.create_task(asyncio.to_thread(reading.read))
        await busy.api.figure_is("event_log_held_bytes", lambda n: n == 0)
        assert await busy.api.figure("event_log_dropped_total") == 0
        await busy.close()
        await asyncio.to_thread(server.end)
        async with deadline("the end of the pipe"):
            lines = await reader
    whole = tmp_path / "whole.jsonl"
    whole.write_bytes(lines)
    found = await asyncio.to_thread(run, "events", "verify", str(whole))
    assert found.returncode == 0, found.stdout
    items = lines.count(b'"kind":"item"')
    assert items == len(busy.published) * len(busy.crowd)
    assert not list(folder.glob("spill-*"))
