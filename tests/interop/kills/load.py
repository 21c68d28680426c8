"""Who sends: providers over HTTP, publishers, devices that chat; and who follows what becomes of it."""

import asyncio
import collections
import contextlib
import dataclasses
import datetime
import json
import time

import httpx

from .device import ENABLE
from .ledger import ENDS, HIGH, LOW, NORMAL, Broadcast
from .pace import pause, pause_unless

BATCH = 15
# Chat messages that a device sends at once, now and then.
BURST = 10
# Chat messages per second that one device sends to another.
FAST_PER_S = 100
# A provider gives up waiting after so long, and asks again under the same key.
ANSWER_S = 2
NDJSON = {"content-type": "application/x-ndjson"}


class Provider:
    """Sends notifications to devices that nobody else sends to, one request after the other; a request that got no answer
    is repeated under its key until it has one, so what was accepted is known for certain."""

    def __init__(self, node, ledger, random, name, devices, rate):
        self.node = node
        self.ledger = ledger
        self.random = random
        self.name = name
        self.devices = devices
        # Requests per second: three of ten are batches.
        self.pause_s = (0.7 + 0.3 * BATCH) / rate
        self.requests = 0
        # Requests that had to be repeated, by what came instead of an answer.
        self.repeated = collections.Counter()

    async def run(self, stopped):
        loop = asyncio.get_running_loop()
        due = loop.time()
        while not stopped.is_set():
            self.requests += 1
            if self.random.random() < 0.3:
                await self._batch()
            else:
                await self._one()
            # What was not sent during a restart is not made up for.
            due = max(due + self.pause_s, loop.time() - self.pause_s)
            await pause_unless(stopped, due - loop.time())

    def _new(self):
        device = self.random.choice(self.devices)
        priority = self.random.choices((HIGH, NORMAL, LOW), (2, 7, 1))[0]
        body = {"to": device.user, "audience": "always", "priority": priority, "ttl": 3600}
        match self.random.randrange(100):
            case n if n < 10:
                body["collapse_key"] = self.random.choice("ab")
            case n if n < 16:
                body["send_at"] = _in(self.random.uniform(0.5, 4))
            case n if n < 19:
                body["ttl"] = 1
        notification = self.ledger.notification(device.jid, priority, body)
        body["payload"] = {"n": notification.number}
        return notification

    async def _one(self):
        notification = self._new()
        answer = await self._until_answered("/v1/notifications", content=json.dumps(notification.body))
        if answer.status_code != 202:
            raise AssertionError(f"a notification was refused: {answer.text}")
        answer = answer.json()
        self.ledger.accepted(notification, answer["id"])
        if notification.scheduled and self.random.random() < 0.3:
            await self._cancel(notification)

    async def _batch(self):
        notifications = [self._new() for _ in range(BATCH)]
        content = "".join(json.dumps(n.body) + "\n" for n in notifications)
        answer = await self._until_answered("/v1/notifications/batch", content=content, headers=NDJSON)
        lines = [json.loads(line) for line in answer.text.splitlines()]
        if len(lines) != BATCH or any("id" not in line for line in lines):
            raise AssertionError(f"lines of a batch were refused: {lines}")
        for notification, line in zip(notifications, lines, strict=True):
            self.ledger.accepted(notification, line["id"])

    async def _cancel(self, notification):
        # Whether one without an answer was cancelled is not known.
        notification.cancelled = True
        await self.node.up.wait()
        with contextlib.suppress(httpx.HTTPError):
            answer = await self.node.http.delete(f"/v1/notifications/{notification.id}")
            if answer.status_code == 200:
                self.ledger.told(notification.id, "cancelled")

    async def _until_answered(self, path, content, headers=None):
        headers = {
            "content-type": "application/json",
            "idempotency-key": f"{self.name}-{self.requests}",
            **(headers or {}),
        }
        while True:
            await self.node.up.wait()
            try:
                answer = await self.node.http.post(path, content=content, headers=headers, timeout=ANSWER_S)
                # 409: the first request under this key is still being worked on.
                if answer.status_code not in (409, 429, 503, 504):
                    return answer
                self.repeated[answer.status_code] += 1
            except httpx.HTTPError as error:
                self.repeated[type(error).__name__] += 1
            await pause(0.05)


class Broadcaster:
    """Sends notifications to every account of the domain, one after the other, and asks whether devices have acknowledged them."""

    PATH = "/v1/domains/localhost/notifications"

    def __init__(self, node, ledger, random, devices, every_s):
        self.node = node
        self.ledger = ledger
        self.random = random
        self.devices = devices
        self.every_s = every_s

    async def run(self, stopped):
        while not stopped.is_set():
            await self._send(len(self.ledger.broadcasts))
            for _ in range(10):
                await self._ask()
                await pause_unless(stopped, self.every_s / 10)

    async def _send(self, number):
        self.ledger.broadcasts.append(Broadcast())
        headers = {"idempotency-key": f"broadcast-{number}"}
        while self.ledger.broadcasts[number].id is None:
            await self.node.up.wait()
            with contextlib.suppress(httpx.HTTPError):
                body = {"payload": {"b": number}, "ttl": 3600}
                answer = await self.node.http.post(self.PATH, json=body, headers=headers, timeout=ANSWER_S)
                if answer.status_code == 202:
                    self.ledger.broadcasts[number].id = answer.json()["id"]
                elif answer.status_code not in (409, 429, 503, 504):
                    raise AssertionError(f"a broadcast was refused: {answer.text}")
            await pause(0.05)

    async def _ask(self):
        broadcast, device = self.random.choice(self.ledger.broadcasts), self.random.choice(self.devices)
        await self.node.up.wait()
        with contextlib.suppress(httpx.HTTPError):
            answer = await self.node.http.get(f"{self.PATH}/{broadcast.id}/devices/{device.user}")
            if answer.status_code == 200 and answer.json()["state"] == "acknowledged":
                broadcast.told.setdefault(device.jid, time.monotonic())

    async def progress(self, broadcast):
        """How many accounts have acknowledged it."""
        return (await self.node.http.get(f"{self.PATH}/{broadcast.id}")).json()["acknowledged"]


def _in(seconds):
    return (datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)).isoformat()


@dataclasses.dataclass
class Topic:
    """What was published: the last item's number, and which were published twice for want of an answer."""

    accepted: list[int] = dataclasses.field(default_factory=list)
    repeated: set[int] = dataclasses.field(default_factory=set)


class Publisher:
    """Publishes items to a topic, numbered, one after the other."""

    def __init__(self, node, ledger, name, rate):
        self.node = node
        self.name = name
        # In a cell a request that got no answer may be done late, by a node that was cut off.
        self.is_keyed = ledger.is_cell
        self.pause_s = 1 / rate
        self.topic = ledger.items[name] = Topic()
        self.next = 0

    async def run(self, stopped):
        while not stopped.is_set():
            await self.publish()
            await pause_unless(stopped, self.pause_s)

    async def publish(self):
        number, self.next = self.next, self.next + 1
        item = {"id": str(number), "payload": number}
        headers = {"idempotency-key": f"{self.name}-{number}"} if self.is_keyed else {}
        while True:
            await self.node.up.wait()
            with contextlib.suppress(httpx.HTTPError):
                path = f"/v1/topics/{self.name}/items"
                answer = await self.node.http.post(path, json=item, headers=headers, timeout=ANSWER_S)
                if answer.status_code == 202:
                    self.topic.accepted.append(number)
                    return
                if answer.status_code not in (409, 429, 503, 504):
                    raise AssertionError(f"an item was refused: {answer.text}")
            self.topic.repeated.add(number)
            await pause(0.05)


async def chat(devices, random, rate, stopped):
    """Devices with stream management, which learn what was counted, send chat messages to anybody, absent or not: one, or
    some at once."""
    senders = [device for device in devices if device.kind in ENABLE]
    while not stopped.is_set():
        sender, recipient = random.choice(senders), random.choice(devices)
        burst = random.choice((1, 1, 1, BURST))
        for _ in range(burst):
            sender.chat(recipient, random.choice((recipient.jid, recipient.address)))
        await pause_unless(stopped, burst / rate)


async def pursue(sender, recipient, random, stopped):
    """One device sends another one message after the other, at its full address, while that loses its connections and resumes its session:
    what was stored meanwhile must come before what is sent now."""
    cut_in_s = 0
    while not stopped.is_set():
        sender.chat(recipient, recipient.address)
        await pause_unless(stopped, 1 / FAST_PER_S)
        cut_in_s -= 1 / FAST_PER_S
        if cut_in_s <= 0:
            recipient.interrupt()
            cut_in_s = random.uniform(0.3, 2)


async def come_and_go(devices, random, stopped):
    """At any time some of the devices are away."""
    away = []
    while not stopped.is_set():
        device = random.choice(devices)
        if device not in away:
            device.leave()
            away.append(device)
        if len(away) > len(devices) // 5:
            away.pop(0).come_back()
        await pause_unless(stopped, 0.03)
    for device in away:
        device.come_back()


async def follow_ends(node, ledger):
    """Reads the stream of events, and notes the ends that it tells."""
    while True:
        await node.up.wait()
        with contextlib.suppress(httpx.HTTPError):
            query = {"state": ",".join(ENDS)}
            async with node.http.stream("GET", "/v1/events", params=query, timeout=None) as answer:
                async for line in answer.aiter_lines():
                    if line.startswith("data:"):
                        event = json.loads(line[5:])
                        ledger.told(event["id"], event["state"])
        await pause(0.02)


async def ask_for_ends(node, ledger, random):
    """Asks for the newest notifications, as whoever does not follow the stream of events."""
    while True:
        await node.up.wait()
        with contextlib.suppress(httpx.HTTPError):
            query = {"state": "acknowledged", "limit": 50}
            answer = await node.http.get("/v1/notifications", params=query)
            for notification in answer.json().get("notifications", ()):
                ledger.told(notification["id"], notification["state"])
        await pause(random.uniform(0.05, 0.3))
