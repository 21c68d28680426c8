"""Devices that come back by themselves, whatever ends their connections."""

import asyncio
import collections
import contextlib
import json
import time
import xml.etree.ElementTree as ET

from harness.raw import CLIENT, header, plain

from .ledger import Session
from .managed import SM, Management
from .pace import pause

STREAM_ERROR = "{http://etherx.jabber.org/streams}error"
JSON = "{urn:xmpp:json:0}json"
RECEIPT_REQUEST = "{urn:xmpp:receipts}request"
ITEMS = ".//{http://jabber.org/protocol/pubsub#event}items"
ITEM = ".//{http://jabber.org/protocol/pubsub#event}item"
RESOURCE = "r"
BIND = (
    f"<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>{RESOURCE}</resource></bind></iq>"
)
# How long one step of a login may take before the device tries again.
STEP_S = 10
# What waits before a device that lost its connection connects again: a random part of it.
BACKOFF_S = 0.4

MANAGED, RESUMING, RECEIPTS, PLAIN = "stream management", "resumption", "receipts", "TCP only"
ENABLE = {MANAGED: "<enable xmlns='urn:xmpp:sm:3'/>", RESUMING: "<enable xmlns='urn:xmpp:sm:3' resume='true'/>"}


class Stream(asyncio.Protocol):
    """The elements of a connection. Unlike a `StreamReader` it hands over all that came before an error."""

    def __init__(self):
        self.elements = collections.deque()
        self.listener = None
        self.lost = asyncio.Event()
        self._news = asyncio.Event()
        self.restart()

    def restart(self):
        self._parser = ET.XMLPullParser(("start", "end"))
        self._depth = 0
        self._root = None

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self._parser.feed(data)
        for event, element in self._parser.read_events():
            self._depth += 1 if event == "start" else -1
            if event == "start":
                self._root = element if self._depth == 1 else self._root
            elif self._depth == 1:
                self._take(element)
                self._root.clear()

    def _take(self, element):
        if self.listener:
            self.listener(element)
        else:
            self.elements.append(element)
            self._news.set()

    def connection_lost(self, error):
        self.lost.set()
        self._news.set()

    def send(self, text):
        if not self.lost.is_set() and not self.transport.is_closing():
            self.transport.write(text.encode())

    async def next(self):
        async with asyncio.timeout(STEP_S):
            while not self.elements:
                if self.lost.is_set():
                    raise ConnectionError("the connection ended")
                self._news.clear()
                await self._news.wait()
        return self.elements.popleft()

    def listen(self, listener):
        """From now on each element goes to the listener, those that have come first."""
        self.listener = listener
        while self.elements:
            listener(self.elements.popleft())

    async def close(self):
        self.transport.abort()
        await self.lost.wait()


class Device:
    """An account with one session at a time."""

    def __init__(self, node, ledger, random, user, kind):
        self.node = node
        self.ledger = ledger
        self.random = random
        self.user = user
        self.jid = f"{user}@localhost"
        self.kind = kind
        self.stream = None
        self.session = None
        # The session that it may resume: with its counts.
        self.parked = None
        self.logins = 0
        self.resumed = 0
        self.refused = 0
        # Why it could not connect last.
        self.failure = None
        # Connections that ended though the device did not want it.
        self.cut = 0
        self.items = []
        # The rooms in which it speaks.
        self.rooms = None
        self.management = None
        self._leaves = False
        self._wanted = asyncio.Event()
        self._wanted.set()

    async def run(self):
        """Connects, and connects again, until it is cancelled."""
        while True:
            await self._wanted.wait()
            await self.node.up.wait()
            self._leaves = False
            try:
                await self._connect()
                await self.stream.lost.wait()
                self.cut += not self._leaves
            except (OSError, TimeoutError, ET.ParseError) as failure:
                self.refused += 1
                self.failure = failure
            finally:
                if self.session and self.management and self.management.key:
                    self.parked = self.session, self.management
                self.session, self.management = None, None
                if self.stream:
                    await self.stream.close()
                    self.stream = None
            await pause(self.random.uniform(0, BACKOFF_S))

    async def _connect(self):
        loop, times = asyncio.get_running_loop(), self.ledger.times
        server, tls = self.node.entrance()
        async with asyncio.timeout(STEP_S):
            _, self.stream = await loop.create_connection(
                Stream, "127.0.0.1", server.port("c2s_tls"), ssl=tls, server_hostname="localhost"
            )
        stream = self.stream
        await self._exchange(header())
        await self._exchange(
            "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>" + plain(self.user) + "</auth>",
            "{urn:ietf:params:xml:ns:xmpp-sasl}success",
        )
        stream.restart()
        await self._exchange(header())
        if self.parked and await self._resume(times):
            return
        await self._exchange(BIND, CLIENT + "iq")
        management, early = None, []
        if self.kind in ENABLE:
            enabled = await self._exchange(ENABLE[self.kind], SM + "enabled", early)
            management = Management(self.ledger, self.jid, enabled.get("id"), times)
        self.session, self.management = Session(self.jid, times), management
        self.logins += 1
        for message in early:
            self._message(message, is_counted=False)
        stream.listen(self._stanza)
        self._send("<presence/>")
        if self.rooms:
            self.rooms.began(self)

    async def _resume(self, times):
        """Goes on with the session of an earlier connection, where the server lets it."""
        session, management = self.parked
        asked_at = time.monotonic()
        self.stream.send(f"<resume xmlns='urn:xmpp:sm:3' previd='{management.key}' h='{management.handled}'/>")
        answer = await self.stream.next()
        if answer.tag == STREAM_ERROR:
            raise ConnectionRefusedError(ET.tostring(answer))
        self.parked = None
        self.ledger.came_back(session, answer.tag == SM + "resumed", times)
        if answer.tag != SM + "resumed":
            return False
        self.resumed += 1
        session.resumed_at = asked_at
        for stanza in management.goes_on(int(answer.get("h")), times):
            self.stream.send(stanza)
        self.session, self.management = session, management
        self.stream.listen(self._stanza)
        return True

    async def _exchange(self, text, expected=None, early=None):
        """The answer to what is sent. `early`: where messages go that come before it, to the full address of a session that is bound."""
        self.stream.send(text)
        answer = await self.stream.next()
        while early is not None and answer.tag == CLIENT + "message":
            early.append(answer)
            answer = await self.stream.next()
        if expected not in (None, answer.tag):
            raise ConnectionRefusedError(ET.tostring(answer))
        return answer

    def _send(self, stanza, chat=None):
        if self.management:
            self.management.sends(stanza, chat)
        self.stream.send(stanza)

    def leave(self):
        """Goes away, until it is to come back."""
        self._wanted.clear()
        self.interrupt()

    def interrupt(self):
        """Its connection ends. One whose TCP speaks for it must not be cut: what it had not read would be lost, as is documented."""
        if not self.session:
            return
        self._leaves = True
        if self.kind is PLAIN:
            self.stream.send("</stream:stream>")
        else:
            self.stream.transport.abort()

    def come_back(self):
        self._wanted.set()

    @property
    def is_here(self):
        return self.session is not None

    @property
    def address(self):
        """Its full address, which stays the same over all of its sessions."""
        return f"{self.jid}/{RESOURCE}"

    def chat(self, to, address):
        """Sends a chat message to an address of another device, and asks whether it was counted."""
        if not self.session or self.stream.lost.is_set():
            return
        chat = self.ledger.chat(to.jid, to.kind, to.is_here)
        body = f"<body>{chat.number}</body>"
        self._send(f"<message type='chat' id='c{chat.number}' to='{address}'>{body}</message>", chat)
        self.stream.send("<r xmlns='urn:xmpp:sm:3'/>")

    def enter(self, room):
        """Enters a room, under its own name. What was said there before is in the archive."""
        x = "<x xmlns='http://jabber.org/protocol/muc'><history maxstanzas='0'/></x>"
        self._send(f"<presence to='{room.address}/{self.user}'>{x}</presence>")

    def say(self, room, said):
        """Says something in a room, and asks whether it was counted."""
        if self.stream.lost.is_set():
            return
        body = f"<body>{said.number}</body>"
        self._send(f"<message type='groupchat' id='g{said.number}' to='{room.address}'>{body}</message>", said)
        self.stream.send("<r xmlns='urn:xmpp:sm:3'/>")

    def _stanza(self, element):
        management = self.management
        if element.tag.startswith(CLIENT) and management:
            management.handled += 1
        match element.tag.removeprefix(CLIENT).removeprefix(SM):
            case "message":
                self._message(element)
            case "presence" if element.get("from") == self.address:
                self.session.is_available = True
            case "presence" if self.rooms:
                self.rooms.present(self, element)
            case "iq" if element.get("type") == "get":
                self._send(f"<iq type='result' id='{element.get('id')}' to='localhost'/>")
            case "iq" if management:
                management.is_answered(element.get("id"))
            case "r":
                self.stream.send(f"<a xmlns='urn:xmpp:sm:3' h='{management.handled}'/>")
                if id := management.acknowledges():
                    self._send(f"<iq type='get' id='{id}'><ping xmlns='urn:xmpp:ping'/></iq>")
            case "a":
                management.counts(int(element.get("h")))

    def _message(self, element, is_counted=True):
        """`is_counted`: not one that came before stream management was enabled. No count says that it has arrived: if the connection is lost
        before the server's TCP knows it, it is given again."""
        if self.rooms and (element.get("id") or "").startswith("g") and element.get("type") == "error":
            self.rooms.refused(self, element)
            return
        if element.get("type") == "groupchat":
            self.rooms.heard(self, element)
            return
        if element.get("type") == "error":
            self.ledger.refused(int(element.get("id")[1:]))
            return
        if element.get("from") == "push.localhost":
            id = element.get("id")
            payload = json.loads(element.findtext(JSON))
            if "n" in payload:
                self.ledger.given(self.session, id, payload["n"])
            else:
                self.ledger.given_broadcast(self.session, id, payload["b"])
            if self.kind is RECEIPTS and element.find(RECEIPT_REQUEST) is not None:
                receipt = f"<received xmlns='urn:xmpp:receipts' id='{id}'/>"
                self._send(f"<message to='push.localhost'>{receipt}</message>")
        elif (body := element.findtext(CLIENT + "body")) is not None:
            chat = self.ledger.heard(self.session, int(body), element.get("from").partition("/")[0])
            chat.may_come_again |= not is_counted
            if self.management and is_counted:
                self.management.reads(chat)
        elif (item := element.find(ITEM)) is not None:
            topic = element.find(ITEMS).get("node")
            self.ledger.told_item(self.session, topic, int(item.get("id")))
            self.items.append(item.get("id"))


class LightDevice:
    """A subscriber of one topic that speaks no XMPP."""

    def __init__(self, node, ledger, random, topic):
        self.node = node
        self.ledger = ledger
        self.random = random
        self.topic = topic
        self.items = []
        self.logins = 0

    async def run(self):
        while True:
            await self.node.up.wait()
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
                await self._connect()
            await pause(self.random.uniform(0, BACKOFF_S))

    async def _connect(self):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.node.entrance()[0].port("light"))
        try:
            subscribe = json.dumps({"action": "subscribe", "data": self.topic})
            writer.write(f"<regular-socket/>\0{subscribe}\0".encode())
            self.logins += 1
            last = -1
            while frame := (await reader.readuntil(b"\x01"))[:-1]:
                if frame.startswith(b"PUBLISH\0"):
                    last = self._item(json.loads(frame[8:]), last)
        finally:
            writer.transport.abort()

    def _item(self, event, last):
        place = int(event["message_id"])
        # One that was published twice, because its publisher got no answer, is given twice.
        if place < last or (place == last and place not in self.ledger.items[self.topic].repeated):
            self.ledger.wrong("order", f"item {place} of {self.topic} was given after {last}")
        self.items.append(event["message_id"])
        return max(place, last)
