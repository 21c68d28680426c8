"""A client that resumes its session at any node of a cell, and counts as XEP-0198 has it."""

import asyncio
import collections
import contextlib
import time

from .peer import CLIENT
from .raw import Raw

SM = "{urn:xmpp:sm:3}"
ENABLE = "<enable xmlns='urn:xmpp:sm:3' resume='true'/>"
ITEM = ".//{http://jabber.org/protocol/pubsub#event}item"
STANZAS = {CLIENT + name for name in ("message", "presence", "iq")}
# How long an attempt to come back may take.
ATTEMPT_S = 20


class Resuming:
    """One client. What it was told is in `heard`: the bodies of messages and the ids of items, in their order."""

    def __init__(self, cell, name):
        self.cell, self.name = cell, name
        self.handled = self.sent = self.counted = 0
        self.unacknowledged = collections.deque()
        self.heard, self.refused = [], set()
        self.resumed, self.failed, self.away = 0, 0, []
        self.wrong = []
        self.connected, self.returned, self.news = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._ended = asyncio.Event()

    async def begin(self, node):
        """Logs in at a node, which is the home of its account from then on."""
        self.raw = await Raw.logged_in(node, self.name, presence=False)
        await self._bound(self.raw)
        self.task = asyncio.create_task(self._run())
        return self

    async def _bound(self, raw):
        self.raw, self.jid = raw, raw.jid
        self.handled = self.sent = self.counted = 0
        raw.send(ENABLE)
        enabled = await raw.until(lambda e: e.tag == SM + "enabled")
        self.key = enabled.get("id")
        again, self.unacknowledged = self.unacknowledged, collections.deque()
        self.say("<presence/>")
        for stanza in again:
            self.say(stanza)
        self.connected.set()

    def say(self, stanza):
        """Sends a stanza, now and whenever the server has to be told of it again."""
        self.sent += 1
        self.unacknowledged.append(stanza)
        self.raw.send(stanza)

    def chat(self, to, body):
        self.say(f"<message to='{to}' type='chat' id='{body}'><body>{body}</body></message>")

    def ask_for_acknowledgement(self):
        self.raw.send("<r xmlns='urn:xmpp:sm:3'/>")

    def _counts(self, h):
        if not self.counted <= h <= self.sent:
            self.wrong.append(f"{self.name} was told h={h} after {self.counted}, and has sent {self.sent}")
        for _ in range(h - self.counted):
            self.unacknowledged.popleft()
        self.counted = h
        self.news.set()

    def _take(self, element):
        if element.tag in STANZAS:
            self.handled += 1
            item = element.find(ITEM)
            body = element.findtext(CLIENT + "body") if item is None else item.get("id")
            if element.tag == CLIENT + "message" and element.get("type") == "error":
                self.refused.add(element.get("id"))
            elif element.tag == CLIENT + "message" and (body or element.get("id")):
                self.heard.append(body or element.get("id"))
                self.news.set()
        elif element.tag == SM + "r":
            self.raw.send(f"<a xmlns='urn:xmpp:sm:3' h='{self.handled}'/>")
        elif element.tag == SM + "a":
            self._counts(int(element.get("h")))

    async def _read(self):
        with contextlib.suppress(AssertionError, OSError):
            while True:
                for event, element in self.raw.parser.read_events():
                    self.raw.depth += 1 if event == "start" else -1
                    if event == "end" and self.raw.depth == 1:
                        self._take(element)
                    if self.raw.depth == 0:
                        return
                data = await self.raw.reader.read(65536)
                if not data:
                    return
                self.raw.parser.feed(data)

    async def _run(self):
        while not self._ended.is_set():
            await self._read()
            self.connected.clear()
            if self._ended.is_set():
                return
            began = time.monotonic()
            await self._come_back()
            self.away.append(time.monotonic() - began)
            self.returned.set()

    async def _come_back(self):
        attempt = 0
        while not self._ended.is_set():
            nodes = [node for node in self.cell.nodes if node.is_running()]
            node = nodes[(attempt + hash(self.name)) % len(nodes)]
            attempt += 1
            with contextlib.suppress(AssertionError, OSError, TimeoutError):
                async with asyncio.timeout(ATTEMPT_S):
                    await self.raw.close()
                    return await self._resume(await Raw.secured(node))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), 0.05)

    async def _resume(self, raw):
        await raw.authenticate(self.name)
        raw.send(f"<resume xmlns='urn:xmpp:sm:3' previd='{self.key}' h='{self.handled}'/>")
        answer = await raw.element()
        if answer.tag == SM + "resumed":
            self.raw = raw
            self.resumed += 1
            self._counts(int(answer.get("h")))
            for stanza in self.unacknowledged:
                raw.send(stanza)
            return self.connected.set()
        assert answer.tag == SM + "failed", answer.tag
        self.failed += 1
        bind = "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>raw</resource></bind>"
        await raw.ask(f"<iq type='set' id='b'>{bind}</iq>", "b")
        raw.jid = self.jid
        await self._bound(raw)

    async def hears(self, body, within=30):
        async with asyncio.timeout(within):
            while body not in self.heard:
                self.news.clear()
                await self.news.wait()

    async def hears_more(self, count, within=30):
        """Waits until it was told so many more."""
        wanted = len(self.heard) + count
        async with asyncio.timeout(within):
            while len(self.heard) < wanted:
                self.news.clear()
                await self.news.wait()

    async def is_acknowledged(self, within=30):
        """Waits until the server has acknowledged all that was sent."""
        async with asyncio.timeout(within):
            while self.unacknowledged:
                self.ask_for_acknowledgement()
                self.news.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.news.wait(), 0.1)

    def cut(self):
        """The connection is lost; the client comes back."""
        self.raw.reset()

    async def end(self):
        self._ended.set()
        await self.raw.close()
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await self.task


async def come_to_an_end(clients):
    """Waits until the server has taken what these clients sent, and each has heard the one before it: what comes late, or twice, comes before that."""
    for client in clients:
        await client.is_acknowledged()
    for n, client in enumerate(clients):
        client.chat(clients[(n + 1) % len(clients)].jid, f"last of {client.name}")
    for n, client in enumerate(clients):
        await client.hears(f"last of {clients[n - 1].name}")
