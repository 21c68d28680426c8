"""Stream management (XEP-0198) as a client does it: what it counts, and what it says again on a session that goes on."""

import collections

from .pace import Times

SM = "{urn:xmpp:sm:3}"


class Management:
    """The counts of one session, and what its client sent and the server has not counted."""

    def __init__(self, ledger, who, key, times):
        self.ledger = ledger
        self.who = who
        # None if the session ends with its connection.
        self.key = key
        self.times: Times = times
        self.handled = 0
        self.sent = 0
        self.counted = 0
        self._uncounted = collections.deque()
        # Chat messages that were read and not yet acknowledged; those whose acknowledgement the server has not yet shown to have read.
        self._read = []
        self._unproved = {}

    def sends(self, stanza, chat=None):
        self.sent += 1
        self._uncounted.append((self.sent, stanza, chat))

    def counts(self, h):
        """The server says how many stanzas it has counted."""
        if not self.counted <= h <= self.sent:
            self.ledger.wrong("count", f"{self.who} was told h={h} after {self.counted}, and has sent {self.sent}")
        self.counted = h
        while self._uncounted and self._uncounted[0][0] <= h:
            chat = self._uncounted.popleft()[2]
            if chat:
                chat.counted = True

    def goes_on(self, h, times):
        """The session was resumed: what its client has to say again."""
        self.counts(h)
        if times.restarts != self.times.restarts:
            # What was not settled when its session was written may reach its recipient twice.
            for _, _, chat in self._uncounted:
                if chat:
                    chat.may_come_again = True
        self.times = times
        self._unproved.clear()
        return [stanza for _, stanza, _ in self._uncounted]

    def reads(self, chat):
        self._read.append(chat)

    def acknowledges(self):
        """The client acknowledges all it has read: the id of a question, whose answer shows that this was handled. None if there
        is nothing to be shown: answers are acknowledged, too."""
        if not self._read:
            return None
        id = f"k{self.sent}"
        self._unproved[id] = self._read
        self._read = []
        return id

    def is_answered(self, id):
        for chat in self._unproved.pop(id, ()):
            chat.acknowledged_in = self.times.crashes
