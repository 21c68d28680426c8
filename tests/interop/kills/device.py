"""Devices that come back by themselves, whatever ends their connections."""

import asyncio
import collections
import contextlib
import json
import xml.etree.ElementTree as ET

from harness.raw import CLIENT, header, plain

from .ledger import Session
from .pace import pause

SM = "{urn:xmpp:sm:3}"
JSON = "{urn:xmpp:json:0}json"
RECEIPT_REQUEST = "{urn:xmpp:receipts}request"
ITEM = ".//{http://jabber.org/protocol/pubsub#event}item"
BIND = "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>r</resource></bind></iq>"
# How long one step of a login may take before the device tries again.
STEP_S = 10
# What waits before a device that lost its connection connects again: a random part of it.
BACKOFF_S = 0.4

MANAGED, RECEIPTS, PLAIN = "stream management", "receipts", "TCP only"


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
        self.here = True
        self.stream = None
        self.session = None
        self.logins = 0
        self.refused = 0
        self.items = []
        self._handled = None
        self._sent = 0
        self._uncounted = collections.deque()
        self._wanted = asyncio.Event()
        self._wanted.set()

    async def run(self):
        """Connects, and connects again, until it is cancelled."""
        while True:
            await self._wanted.wait()
            await self.node.up.wait()
            try:
                await self._connect()
                await self.stream.lost.wait()
            except (OSError, TimeoutError, ET.ParseError):
                self.refused += 1
            finally:
                self.session, self._handled = None, None
                if self.stream:
                    await self.stream.close()
                    self.stream = None
            await pause(self.random.uniform(0, BACKOFF_S))

    async def _connect(self):
        loop, server = asyncio.get_running_loop(), self.node.server
        async with asyncio.timeout(STEP_S):
            _, self.stream = await loop.create_connection(
                Stream, "127.0.0.1", server.port("c2s_tls"), ssl=self.node.tls, server_hostname="localhost"
            )
        stream = self.stream
        await self._exchange(header())
        await self._exchange(
            "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>" + plain(self.user) + "</auth>",
            "{urn:ietf:params:xml:ns:xmpp-sasl}success",
        )
        stream.restart()
        await self._exchange(header())
        await self._exchange(BIND, CLIENT + "iq")
        self._uncounted.clear()
        if self.kind is MANAGED:
            await self._exchange("<enable xmlns='urn:xmpp:sm:3'/>", SM + "enabled")
            self._handled = self._sent = 0
        self.session = Session(self.jid)
        self.logins += 1
        stream.listen(self._stanza)
        self._send("<presence/>")

    async def _exchange(self, text, expected=None):
        self.stream.send(text)
        answer = await self.stream.next()
        if expected not in (None, answer.tag):
            raise ConnectionRefusedError(ET.tostring(answer))

    def _send(self, stanza):
        self._sent += 1
        self.stream.send(stanza)

    def leave(self):
        """Goes away. One whose TCP speaks for it must not be cut: what it had not read would be lost, as is documented."""
        self._wanted.clear()
        if not self.session:
            return
        if self.kind is PLAIN:
            self.stream.send("</stream:stream>")
        else:
            self.stream.transport.abort()

    def come_back(self):
        self._wanted.set()

    @property
    def is_here(self):
        return self.session is not None

    def chat(self, to):
        """Sends a chat message to another device, and asks whether it was counted."""
        if not self.session or self.stream.lost.is_set():
            return
        chat = self.ledger.chat(to.jid, to.kind, to.is_here)
        body = f"<body>{chat.number}</body>"
        self._send(f"<message type='chat' id='c{chat.number}' to='{to.jid}'>{body}</message>")
        if self.kind is MANAGED:
            self._uncounted.append((self._sent, chat))
            self.stream.send("<r xmlns='urn:xmpp:sm:3'/>")

    def _stanza(self, element):
        if element.tag.startswith(CLIENT) and self._handled is not None:
            self._handled += 1
        match element.tag.removeprefix(CLIENT).removeprefix(SM):
            case "message":
                self._message(element)
            case "iq" if element.get("type") == "get":
                self._send(f"<iq type='result' id='{element.get('id')}' to='localhost'/>")
            case "r":
                self.stream.send(f"<a xmlns='urn:xmpp:sm:3' h='{self._handled}'/>")
            case "a":
                while self._uncounted and self._uncounted[0][0] <= int(element.get("h")):
                    self._uncounted.popleft()[1].counted = True

    def _message(self, element):
        if element.get("type") == "error":
            self.ledger.refused(int(element.get("id")[1:]))
            return
        if element.get("from") == "push.localhost":
            id = element.get("id")
            self.ledger.given(self.session, id, json.loads(element.findtext(JSON))["n"])
            if self.kind is RECEIPTS and element.find(RECEIPT_REQUEST) is not None:
                receipt = f"<received xmlns='urn:xmpp:receipts' id='{id}'/>"
                self._send(f"<message to='push.localhost'>{receipt}</message>")
        elif (body := element.findtext(CLIENT + "body")) is not None:
            self.ledger.heard(self.session, int(body), element.get("from").partition("/")[0])
        elif (item := element.find(ITEM)) is not None:
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
        reader, writer = await asyncio.open_connection("127.0.0.1", self.node.server.port("light"))
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
