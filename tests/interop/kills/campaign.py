"""A run: devices and senders, a node that is killed under them again and again, and what is left in the end."""

import asyncio
import random
import time

from . import load
from .cell import Nodes
from .device import ENABLE, MANAGED, PLAIN, RECEIPTS, RESUMING, Device, LightDevice
from .ledger import ENDS, Ledger
from .node import Node
from .pace import pause
from .rooms import Rooms
from .sleepers import Sleepers

KINDS = [MANAGED, RECEIPTS, PLAIN, RESUMING, RESUMING]
LIGHT_SHARE = 0.1
FOLLOWER_SHARE = 0.2
PROVIDERS = 6
# Devices that are sent one message after the other by another, at their full addresses.
PURSUITS = 2
SETTLE_S = 40
# A notification for every account is sent so often.
BROADCAST_EVERY_S = 3
# Notifications per second for accounts that are woken by pushes.
PUSHED_PER_S = 10
# Messages per second to rooms.
SAID_PER_S = 30


class Campaign:
    """Everybody who takes part, and their book."""

    def __init__(self, folder, seed, clients=300, rate=200, nodes=0, has_redis=False, **settings):
        """`nodes`: so many of a cell, or one alone. `has_redis`: those of a cell write their sessions down."""
        # By the seed: who sends what to whom, and when faults come. What meets what is up to the machine.
        self.random = random.Random(seed)
        self.folder = folder
        self.node = Nodes(folder, self._randomness(), nodes, has_redis) if nodes else Node(folder, **settings)
        self.ledger = Ledger(nodes > 0)
        make = self._randomness
        light = int(clients * LIGHT_SHARE)
        kinds = [KINDS[n % len(KINDS)] for n in range(clients - light)]
        self.devices = [Device(self.node, self.ledger, make(), f"d{n}", kind) for n, kind in enumerate(kinds)]
        self.publishers = [load.Publisher(self.node, self.ledger, f"t{n}", 3) for n in range(3)]
        self.followers = {p.name: [] for p in self.publishers}
        for n, device in enumerate(self.devices[: int(clients * FOLLOWER_SHARE)]):
            self.followers[f"t{n % 3}"].append(device)
        self.light = [LightDevice(self.node, self.ledger, make(), f"t{n % 3}") for n in range(light)]
        for device in self.light:
            self.followers[device.topic].append(device)
        self.providers = [
            load.Provider(self.node, self.ledger, make(), f"p{n}", self.devices[n::PROVIDERS], rate / PROVIDERS)
            for n in range(PROVIDERS)
        ]
        self.broadcaster = load.Broadcaster(self.node, self.ledger, make(), self.devices, BROADCAST_EVERY_S)
        self.chats_per_second = rate / 2
        senders, recipients = ([d for d in self.devices if d.kind is kind] for kind in (MANAGED, RESUMING))
        self.pursuits = list(zip(senders[:PURSUITS], recipients[:PURSUITS], strict=False))
        self.faults = self.node.faults(self.ledger, self.devices, make())
        # A cell has its settings for itself.
        self.sleepers = None if nodes else Sleepers(self.node, self.ledger, make(), PUSHED_PER_S)
        self.faults.sleepers = self.sleepers
        # What becomes of rooms whose nodes come and go is for tests of a cell.
        self.rooms = None if nodes else Rooms(self.node, self.ledger, make(), self.devices, SAID_PER_S)

    async def run(self, rounds, fault=None, tell=lambda text: None):
        """So many rounds, of one kind or of all, and a time of peace. Raises where something cannot go on; what is wrong is in the ledger."""
        if self.sleepers:
            await self.sleepers.prepare(self.folder)
        await self.node.start()
        try:
            async with asyncio.TaskGroup() as group:
                await self._make_accounts()
                background = [group.create_task(task) for task in self._always()]
                stopped = asyncio.Event()
                busy = [group.create_task(task) for task in self._load(stopped)]
                for n in range(rounds):
                    what = await self._round(fault)
                    tell(f"round {n + 1} of {rounds}, {what}: {self.summary()}")
                stopped.set()
                await asyncio.wait(busy)
                await self._settle()
                for task in background:
                    task.cancel()
            await self._audit()
        except BaseException:
            await self.node.kill()
            raise
        for line in await self.node.end():
            self.ledger.wrong("log", line)
        if self.sleepers:
            await self.sleepers.close()

    def _randomness(self):
        return random.Random(self.random.random())

    async def _make_accounts(self):
        room = asyncio.Semaphore(16)

        async def ask(method, path, body=None):
            async with room:
                answer = await self.node.http.request(method, path, json=body)
                assert answer.status_code == 201, f"{path}: {answer.text}"

        accounts = ({"jid": device.jid, "password": "secret"} for device in self.devices)
        await asyncio.gather(*(ask("POST", "/v1/admin/accounts", account) for account in accounts))
        topics = (f"/v1/topics/{publisher.name}" for publisher in self.publishers)
        await asyncio.gather(*(ask("PUT", topic, {"max_items": 10_000}) for topic in topics))
        followed = [(topic, one.user) for topic, all in self.followers.items() for one in all if hasattr(one, "user")]
        await asyncio.gather(*(ask("PUT", f"/v1/devices/{user}/subscriptions/{topic}") for topic, user in followed))
        if self.sleepers:
            await self.sleepers.register()
        if self.rooms:
            await self.rooms.make()

    def _always(self):
        yield from (device.run() for device in (*self.devices, *self.light))
        yield load.follow_ends(self.node, self.ledger)
        yield load.ask_for_ends(self.node, self.ledger, self._randomness())

    def _load(self, stopped):
        yield from (sender.run(stopped) for sender in (*self.providers, *self.publishers, self.broadcaster))
        if self.sleepers:
            yield self.sleepers.run(stopped)
        if self.rooms:
            yield self.rooms.run(stopped)
        yield load.chat(self.devices, self._randomness(), self.chats_per_second, stopped)
        for sender, recipient in self.pursuits:
            yield load.pursue(sender, recipient, self._randomness(), stopped)
        yield load.come_and_go(self.devices, self._randomness(), stopped)

    async def _round(self, fault):
        # Two kinds of moments: while everybody logs in, and later.
        early = self.random.random() < 0.3
        await pause(self.random.uniform(0.05, 0.8) if early else self.random.uniform(0.8, 4))
        return await self.faults.next(fault)

    async def _settle(self):
        """Until everybody is back and has what was accepted; what is not there within the time is missing."""
        for publisher in self.publishers:
            await publisher.publish()
        if self.sleepers:
            await self.sleepers.settle()
        if self.rooms:
            await self.rooms.settle()
        ends = time.monotonic() + SETTLE_S
        while not await self._is_settled():
            if time.monotonic() > ends:
                for device in self.devices:
                    if not device.is_here:
                        self.ledger.wrong("away", f"{device.jid} has no session: {device.failure!r}")
                return
            await pause(0.1)

    async def _is_settled(self):
        if not all(device.is_here for device in self.devices) or self._without_last_item():
            return False
        if self._unheard():
            return False
        for broadcast in self.ledger.broadcasts:
            if await self.broadcaster.progress(broadcast) < len(self.devices):
                return False
        for notification in self.ledger.outstanding():
            # It may have ended while nobody followed the events.
            trace = (await self.node.http.get(f"/v1/notifications/{notification.id}")).json()
            if trace.get("state") not in ENDS:
                return False
            self.ledger.told(notification.id, trace["state"])
        query = {"state": "scheduled,stored,sent", "limit": 1}
        page = (await self.node.http.get("/v1/notifications", params=query)).json()
        return not page["notifications"] and page.get("next") is None

    def _unheard(self):
        return [chat for kind in ENABLE for present in (True, False) for chat in self.ledger.unheard(kind, present)]

    def _without_last_item(self):
        last = {publisher.name: str(publisher.next - 1) for publisher in self.publishers}
        return [one for topic, all in self.followers.items() for one in all if last[topic] not in one.items]

    async def _audit(self):
        """What the node says in the end, against the book."""
        states, cursor = {}, None
        while True:
            query = {"limit": 1000} | ({"cursor": cursor} if cursor else {})
            page = (await self.node.http.get("/v1/notifications", params=query)).json()
            states |= {notification["id"]: notification["state"] for notification in page["notifications"]}
            if (cursor := page.get("next")) is None:
                break
        self.ledger.settle(states)
        if self.sleepers:
            self.sleepers.audit(self.faults.ends())
        if self.rooms:
            await self.rooms.audit()
        for publisher in self.publishers:
            answer = await self.node.http.get(f"/v1/topics/{publisher.name}/items", params={"limit": 1000})
            kept = [int(item["id"]) for item in answer.json()["items"]][::-1]
            for number in set(publisher.topic.accepted[-1000:]) - set(kept):
                self.ledger.wrong("lost", f"item {number} of {publisher.name} was accepted, and is not kept")
            if kept != sorted(kept):
                self.ledger.wrong("order", f"the items of {publisher.name} are kept out of order")
        for number, broadcast in enumerate(self.ledger.broadcasts):
            for device in self.devices:
                if not broadcast.given[device.jid]:
                    self.ledger.wrong("lost", f"broadcast {number} was accepted, and never given to {device.jid}")
            if (acknowledged := await self.broadcaster.progress(broadcast)) != len(self.devices):
                self.ledger.wrong(
                    "lost", f"broadcast {number} is acknowledged by {acknowledged} of {len(self.devices)}"
                )
        for chat in self._unheard():
            self.ledger.wrong("lost", f"chat {chat.number} for {chat.to} was counted by <a h>, and never given")
        for one in self._without_last_item():
            self.ledger.wrong("lost", f"{one} was not given the last item of its topic")

    def summary(self):
        ledger = self.ledger
        accepted = sum(1 for n in ledger.notifications if n.id)
        given = sum(len(n.given) for n in ledger.notifications)
        logins = sum(device.logins for device in (*self.devices, *self.light))
        wrong = len(ledger.violations)
        broadcasts = (
            f"{len(ledger.broadcasts)} broadcasts, given {sum(b.given.total() for b in ledger.broadcasts)} times"
        )
        rooms = f"{self.rooms.counts()[0]} said in rooms, " if self.rooms else ""
        sessions = f"{logins} logins, {ledger.resumed} resumed"
        pushes = f"{len(self.sleepers.ids)} to be pushed, {self.sleepers.doubled()} twice, " if self.sleepers else ""
        return f"{accepted} accepted, {given} given, {pushes}{broadcasts}, {len(ledger.chats)} chats, {rooms}{sessions}, {wrong} wrong"
