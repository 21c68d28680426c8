"""Rooms of both kinds, in which devices speak: what `<a h>` counted is in the archive, and each session was told the archive's order without a gap."""

import collections
import dataclasses
import time

from harness.raw import CLIENT

from .device import ENABLE
from .node import client
from .pace import pause, pause_unless

MUC, LIGHT = "rooms.localhost", "muclight.localhost"
# So many rooms of each kind, and devices in each.
ROOMS = 3
OCCUPANTS = 6
MUC_USER = "{http://jabber.org/protocol/muc#user}"
STANZA_ID = "{urn:xmpp:sid:0}stanza-id"
SETTLE_S = 40


@dataclasses.dataclass(eq=False)
class Said:
    """A message to a room. The fields that the management of a stream sets are those of a chat message."""

    number: int
    room: str
    sender: str
    counted: bool = False
    refused: bool = False
    # Its sender said it again after a restart that may not have known it: it may be in the archive twice.
    may_come_again: bool = False


class Seat:
    """What one session of a device was told in one room, over all of its connections."""

    def __init__(self, device, room):
        self.device = device
        self.room = room
        # By their numbers in the archive; again after a resumption, in the same order.
        self.heard = {}
        self.last = 0
        self.is_in = room.is_light


class Room:
    """A room, and the devices that are in it."""

    def __init__(self, name, host, devices):
        self.name = name
        self.address = f"{name}@{host}"
        self.is_light = host == LIGHT
        self.devices = devices
        self.seats = []


class Rooms:
    """All of them."""

    def __init__(self, node, ledger, random, devices, rate):
        self.node = node
        self.ledger = ledger
        self.random = random
        self.every_s = 1 / rate
        self.said = []
        able = [device for device in devices if device.kind in ENABLE]
        hosts = [MUC] * ROOMS + [LIGHT] * ROOMS
        self.rooms = [
            Room(f"r{n}", host, [able[(n * OCCUPANTS // 2 + at) % len(able)] for at in range(OCCUPANTS)])
            for n, host in enumerate(hosts)
        ]
        self.by_address = {room.address: room for room in self.rooms}
        for room in self.rooms:
            for device in room.devices:
                device.rooms = self

    async def make(self):
        """Creates them over HTTP, those of MUC Light with their members."""
        for room in self.rooms:
            path = f"/v1/rooms/{room.address.replace('@', '%40')}"
            answer = await self.node.http.put(path, json={"title": room.name})
            assert answer.status_code == 201, f"{room.address}: {answer.text}"
            for at, device in enumerate(room.devices if room.is_light else ()):
                body = {"affiliation": "owner" if at == 0 else "member"}
                answer = await self.node.http.put(f"{path}/members/{device.user}", json=body)
                assert answer.status_code in (200, 201, 204), f"{device.jid} in {room.address}: {answer.text}"
        answer = await self.node.http.post("/v1/admin/keys", json={"name": "rooms", "scopes": ["read_messages"]})
        assert answer.status_code == 201, answer.text
        self.key = answer.json()["key"]

    # What devices tell of

    def began(self, device):
        """A session of a device has begun: it is in the rooms of MUC Light, and enters the others."""
        for room in self._of(device):
            seat = Seat(device, room)
            room.seats.append(seat)
            device.session.seats[room.address] = seat
            if not room.is_light:
                device.enter(room)

    def present(self, device, element):
        """A presence from a room."""
        room = self.by_address.get(element.get("from", "").partition("/")[0])
        seat = room and device.session.seats.get(room.address)
        if seat is None:
            return
        codes = {status.get("code") for status in element.iter(MUC_USER + "status")}
        if element.get("type") == "error":
            # Too much waits for the room, or the store was away.
            device.enter(room)
        elif "110" in codes:
            seat.is_in = element.get("type") is None
            if not seat.is_in:
                # It was told that it has left: what it is told after it has entered again is another stretch.
                self._begins_again(device, room)

    def heard(self, device, element):
        """A message from a room, of somebody in it or of itself."""
        room = self.by_address[element.get("from").partition("/")[0]]
        seat = device.session.seats[room.address]
        body, kept = element.findtext(CLIENT + "body"), element.find(STANZA_ID)
        if not body or kept is None:
            # What is not kept, or the room says of itself.
            return
        id = int(kept.get("id"))
        if id <= seat.last and id not in seat.heard:
            self.ledger.wrong("order", f"{device.jid} was told {id} of {room.address} after {seat.last}")
        if seat.heard.setdefault(id, int(body)) != int(body):
            self.ledger.wrong("order", f"{device.jid} was told two messages of {room.address} as {id}")
        seat.last = max(seat.last, id)

    def refused(self, device, element):
        """A message came back from a room, in which its sender is not any more."""
        self.said[int(element.get("id")[1:])].refused = True
        room = self.by_address[element.get("from").partition("/")[0]]
        if not room.is_light and element.find(".//{*}not-acceptable") is not None:
            self._begins_again(device, room)

    def _begins_again(self, device, room):
        seat = Seat(device, room)
        room.seats.append(seat)
        device.session.seats[room.address] = seat
        device.enter(room)

    def _of(self, device):
        return [room for room in self.rooms if device in room.devices]

    # What is said

    async def run(self, stopped):
        while not stopped.is_set():
            room = self.random.choice(self.rooms)
            device = self.random.choice(room.devices)
            if device.is_here and (seat := device.session.seats.get(room.address)) and seat.is_in:
                self._say(room, device)
            await pause_unless(stopped, self.every_s)

    # What is left

    async def settle(self):
        """Waits until everybody is back in its rooms, and is told what is said there then. Whom that does not reach within the time has lost it."""
        ends = time.monotonic() + SETTLE_S
        while (away := self._away()) and time.monotonic() < ends:
            await pause(0.1)
        for device, room in away:
            self.ledger.wrong("away", f"{device.jid} is not in {room.address}")
        last = {room: self._say(room, room.devices[0]) for room in self.rooms if room.devices[0].is_here}
        while (missing := self._missing(last)) and time.monotonic() < ends:
            await pause(0.1)
        for device, room in missing:
            self.ledger.wrong("lost", f"{device.jid} was not told what was said last in {room.address}")

    def _say(self, room, device):
        said = Said(len(self.said), room.address, device.jid)
        self.said.append(said)
        device.say(room, said)
        return said

    def _away(self):
        every = ((device, room) for room in self.rooms for device in room.devices)
        return [(device, room) for device, room in every if not device.is_here or not self._seat(device, room).is_in]

    def _missing(self, last):
        every = ((device, room) for room in last for device in room.devices if device.is_here)
        return [one for one in every if last[one[1]].number not in self._seat(*one).heard.values()]

    @staticmethod
    def _seat(device, room):
        return device.session.seats[room.address]

    async def archive(self, room):
        """The messages of a room's archive, by their numbers there."""
        kept, before = {}, None
        async with client(self.node.server, self.key) as http:
            while True:
                query = {"limit": 1000} | ({"before": before} if before else {})
                answer = await http.get(f"/v1/rooms/{room.address.replace('@', '%40')}/messages", params=query)
                assert answer.status_code == 200, answer.text
                page = answer.json()
                bodies = ((message["id"], message["body"]) for message in page["messages"])
                kept |= {id: int(body) for id, body in bodies if body}
                if (before := page["next"]) is None:
                    return kept

    async def audit(self):
        """What was counted is kept, once; what a session was told is what is kept, in that order, and nothing is missing in between."""
        for room in self.rooms:
            kept = await self.archive(room)
            times = collections.Counter(kept.values())
            for said in self.said:
                if said.room != room.address:
                    continue
                if said.counted and not said.refused and not times[said.number]:
                    self.ledger.wrong("lost", f"g{said.number} in {room.address} was counted by <a h>, and is not kept")
                if times[said.number] > 1 and not said.may_come_again:
                    self.ledger.wrong("again", f"g{said.number} is kept {times[said.number]} times in {room.address}")
            for seat in room.seats:
                self._audit_seat(seat, kept)

    def _audit_seat(self, seat, kept):
        if not seat.heard:
            return
        first, last = min(seat.heard), max(seat.heard)
        expected = {id: number for id, number in kept.items() if first <= id <= last}
        for id in expected.keys() - seat.heard.keys():
            self.ledger.wrong(
                "lost", f"{seat.device.jid} in {seat.room.address} was not told {id}, between {first} and {last}"
            )
        for id, number in seat.heard.items():
            if kept.get(id) != number:
                self.ledger.wrong(
                    "lost",
                    f"{seat.device.jid} was told g{number} as {id} of {seat.room.address}, which has {kept.get(id)}",
                )

    def counts(self):
        """Messages said, counted by `<a h>`, and how often they were told."""
        told = sum(len(seat.heard) for room in self.rooms for seat in room.seats)
        return len(self.said), sum(said.counted for said in self.said), told
