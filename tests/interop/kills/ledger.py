"""What senders were promised, what devices were given, and whether the two agree."""

import collections
import dataclasses
import itertools
import time

from .pace import Times

HIGH, NORMAL, LOW = "high", "normal", "low"
RANK = {HIGH: 0, NORMAL: 1, LOW: 2}
BEGINNING = Times()
# Ends that leave nothing to be delivered.
ENDS = ("acknowledged", "expired", "replaced", "cancelled", "dropped")


@dataclasses.dataclass(eq=False)
class Notification:
    """One that a sender wants to be delivered; its number is in its payload."""

    number: int
    to: str
    # Its place among those for the same device. Each device has one sender, which waits for each answer.
    place: int
    priority: str
    body: dict
    id: str | None = None
    accepted_at: float | None = None
    cancelled: bool = False
    # Nodes of a cell came or went when it was sent: then it may change places with others of the moment.
    may_change_places: bool = False
    told: str | None = None
    told_at: float | None = None
    # The ids under which it was given: one, or something is wrong.
    given: list[str] = dataclasses.field(default_factory=list)

    @property
    def scheduled(self):
        return "send_at" in self.body

    def may_end_undelivered(self, state):
        """Whether its sender asked for something that ends it in this state without a delivery."""
        return {
            "expired": self.body["ttl"] < 60,
            "replaced": "collapse_key" in self.body,
            "cancelled": self.cancelled,
        }.get(state, False)


@dataclasses.dataclass(eq=False)
class Chat:
    """A chat message between devices."""

    number: int
    to: str
    # How its recipient acknowledges, and whether it was there when this was sent.
    kind: str
    present: bool
    # Nodes of a cell came or went when it was sent: then it may change places with others of the moment.
    may_change_places: bool = False
    counted: bool = False
    refused: bool = False
    given: int = 0
    # Its sender said it again after a restart that may not have known it, or no count covers it.
    may_come_again: bool = False
    # Between which crashes the node handled its recipient's acknowledgement: whatever else happens there, it has an end.
    acknowledged_in: int | None = None


@dataclasses.dataclass(eq=False)
class Broadcast:
    """One for every device."""

    id: str | None = None
    # By device: how often it was given, and when the API told that it had acknowledged it.
    given: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    told: dict[str, float] = dataclasses.field(default_factory=dict)


class Session:
    """What one session of a device was given, over all of its connections."""

    def __init__(self, device, times=BEGINNING):
        self.device = device
        # Between which crashes it began: with the next one it ends, or may end.
        self.crashes = times.crashes
        # When it was known to be there.
        self.times = times
        self.available_at = time.monotonic()
        self.resumed_at = self.available_at
        # The server has dealt with its presence: from then on what waits for its account comes first.
        self.is_available = False
        self.places = {}
        self.lowest = RANK[HIGH]
        self.numbers = set()
        self.broadcasts = set()
        self.heard = set()
        self.chats = {}
        self.items = {}
        # Its places in rooms, by their addresses.
        self.seats = {}


class Ledger:
    """The book of a run."""

    def __init__(self, is_cell=False):
        # A session of a cell may outlive the crash of a node, or not.
        self.is_cell = is_cell
        self.notifications = []
        self.by_id = {}
        self.broadcasts = []
        self.chats = []
        self.violations = []
        self.again = 0
        self.items = {}
        self.times = Times()
        # Until then a fault is in progress, which sessions may not outlive, or nodes tell each other what they have.
        self.disturbed_until = 0
        # What came behind a later one, where that is allowed.
        self.reordered = 0
        self.resumed = 0
        self.not_resumed = 0
        # Chat messages that were given to sessions after these had been resumed.
        self.heard_resumed = 0
        self._places = {}

    @property
    def is_disturbed(self):
        return time.monotonic() < self.disturbed_until

    # What is sent

    def notification(self, to, priority, body):
        """A new one, which nobody has accepted yet."""
        place = self._places.setdefault(to, itertools.count())
        notification = Notification(len(self.notifications), to, next(place), priority, body)
        notification.may_change_places = self.is_cell and self.is_disturbed
        self.notifications.append(notification)
        return notification

    def accepted(self, notification, id):
        if notification.id not in (None, id):
            self.wrong("two-ids", f"{notification.number} was accepted as {notification.id}, and again as {id}")
        notification.id = id
        notification.accepted_at = time.monotonic()
        notification.may_change_places |= self.is_cell and self.is_disturbed
        self.by_id[id] = notification

    def chat(self, to, kind, present):
        may_change_places = self.is_cell and self.is_disturbed
        self.chats.append(Chat(len(self.chats), to, kind, present, may_change_places))
        return self.chats[-1]

    # What is told

    def told(self, id, state):
        """The API told the end of a notification, which is committed by then."""
        if (notification := self.by_id.get(id)) is None or notification.told:
            return
        notification.told, notification.told_at = state, time.monotonic()

    # What is given

    def given(self, session, id, number):
        notification = self.notifications[number]
        if notification.to != session.device:
            self.wrong("stranger", f"{session.device} was given {id}, which is for {notification.to}")
        if number in session.numbers:
            self.wrong("again", f"{id} was given twice in one session of {session.device}")
        elif notification.told and (notification.told_at < session.resumed_at or notification.told == "cancelled"):
            self.wrong("again", f"{id} was given to {session.device} after its end was told: {notification.told}")
        elif notification.given:
            self.again += 1
        session.numbers.add(number)
        notification.given.append(id)
        self._in_order(session, notification)

    def given_broadcast(self, session, id, number):
        broadcast = self.broadcasts[number]
        told = broadcast.told.get(session.device)
        if broadcast.id not in (None, id):
            self.wrong("two-ids", f"broadcast {number} was accepted as {broadcast.id}, and given as {id}")
        if number in session.broadcasts:
            self.wrong("again", f"broadcast {number} was given twice in one session of {session.device}")
        elif told is not None and told < session.resumed_at:
            self.wrong(
                "again", f"broadcast {number} was given to {session.device}, which was told to have acknowledged it"
            )
        elif broadcast.given[session.device]:
            self.again += 1
        session.broadcasts.add(number)
        broadcast.given[session.device] += 1

    def _in_order(self, session, notification):
        if notification.scheduled:
            return
        what = f"{session.device} was given {notification.id or notification.given[0]}"
        last = session.places.get(notification.priority, -1)
        if notification.place < last:
            self._out_of_order(notification, f"{what} ({notification.place}) after a later one ({last})")
        session.places[notification.priority] = max(last, notification.place)
        rank = RANK[notification.priority]
        waited = notification.accepted_at is not None and notification.accepted_at < session.available_at
        if waited and rank < session.lowest:
            self._out_of_order(
                notification, f"{what} ({notification.priority}), which had waited, after one of a lower priority"
            )
        session.lowest = max(session.lowest, rank)

    def _out_of_order(self, what, text):
        if what.may_change_places:
            self.reordered += 1
        else:
            self.wrong("order", text)

    def heard(self, session, number, sender):
        chat = self.chats[number]
        comes_again = chat.given and chat.may_come_again
        if chat.to != session.device:
            self.wrong("stranger", f"{session.device} was given a chat message for {chat.to}")
        if number in session.heard and not comes_again:
            self.wrong("again", f"chat {number} was given twice in one session of {session.device}")
        elif chat.acknowledged_in == session.crashes and not comes_again:
            self.wrong("again", f"chat {number} was given to {session.device}, which had acknowledged it")
        if number < session.chats.get(sender, -1) and not comes_again:
            self._out_of_order(chat, f"{session.device} was given chat {number} of {sender} after a later one")
        chat.given += 1
        self.heard_resumed += session.resumed_at > session.available_at
        session.heard.add(number)
        if session.is_available:
            session.chats[sender] = max(number, session.chats.get(sender, -1))
        return chat

    def told_item(self, session, topic, number):
        """An item of a topic. Its first in a session may be any; none is left out after that."""
        last = session.items.get(topic)
        session.items[topic] = number if last is None else max(number, last)
        if last is None or number == last + 1 or (number <= last and number in self.items[topic].repeated):
            return
        kind = "lost" if number > last else "order"
        self.wrong(kind, f"{session.device} was given item {number} of {topic} after {last}")

    def came_back(self, session, resumed, times):
        """A device asked for its session, which outlives whatever is not a crash. In a cell a session of another node may outlive that, too."""
        if resumed:
            self.resumed += 1
        else:
            self.not_resumed += 1
        was_there, session.times = session.times, times
        is_right = (
            resumed or self.is_disturbed or was_there != times
            if self.is_cell
            else resumed == (session.crashes == times.crashes)
        )
        if not is_right:
            what = "was resumed after a crash" if resumed else "could not be resumed, though nothing has crashed"
            self.wrong("session", f"the session of {session.device} {what}")

    def refused(self, number):
        """A chat message came back as an error."""
        self.chats[number].refused = True

    def wrong(self, kind, what):
        self.violations.append((kind, what))

    # What is left

    def outstanding(self):
        """Those that were accepted, and neither given nor ended as far as anybody was told."""
        return [n for n in self.notifications if n.id and not n.given and not n.told]

    def counted(self, kind, present):
        """The chat messages to such recipients that `<a h>` counted."""
        return [chat for chat in self.chats if chat.counted and chat.kind == kind and chat.present == present]

    def unheard(self, kind, present):
        """Those of them that their recipients were not given. What a session without stream management has not read is lost with
        its connection, also if it is gone already and the node has yet to find out: that is allowed, the others are lost."""
        return [chat for chat in self.counted(kind, present) if not chat.given and not chat.refused]

    def settle(self, states):
        """Compares with what the node says of all notifications in the end: a state for each id."""
        for n in self.notifications:
            if any(id != n.id for id in n.given) and n.id:
                self.wrong("two-ids", f"{n.number} was accepted as {n.id} and given as {n.given}")
            if n.id is None:
                continue
            state = states.get(n.id)
            if state is None:
                self.wrong("lost", f"{n.id} was accepted, and the node knows nothing of it")
            elif state not in ENDS:
                self.wrong(
                    "lost" if not n.given else "stuck",
                    f"{n.id} for {n.to} is {state} for ever, accepted at {n.accepted_at:.1f}",
                )
            elif not n.given and not n.may_end_undelivered(state):
                self.wrong("lost", f"{n.id} for {n.to} was never given, and is {state}")
            elif n.told not in (None, state):
                self.wrong("state", f"{n.id} is {state}, and was told to be {n.told}")

    def count(self, kind):
        return sum(1 for of, _ in self.violations if of == kind)
