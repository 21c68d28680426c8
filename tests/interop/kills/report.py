"""The verdict of a run, as a table."""

import collections
import itertools
import statistics

from .device import MANAGED, PLAIN, RECEIPTS, RESUMING

# So many of a kind of what is wrong are told.
TOLD = 10


def rows(campaign):
    """What is printed: names and figures."""
    ledger, devices = campaign.ledger, (*campaign.devices, *campaign.light)
    accepted = [n for n in ledger.notifications if n.id]
    for kind, rounds in campaign.faults.rounds.items():
        yield f"rounds: {kind}", rounds
    for name, seconds in (("restart", campaign.faults.restarts_s), ("upgrade", campaign.faults.upgrades_s)):
        if seconds:
            yield f"{name}, median and longest, seconds", f"{statistics.median(seconds):.2f}, {max(seconds):.2f}"
    yield "logins", sum(device.logins for device in devices)
    yield "sessions resumed, gone with a crash", f"{ledger.resumed}, {ledger.not_resumed}"
    repeated = sum((provider.repeated for provider in campaign.providers), collections.Counter())
    reasons = "".join(f", {count} {reason}" for reason, count in repeated.most_common())
    yield "requests repeated for want of an answer", f"{repeated.total()}{reasons}"
    yield "notifications accepted", len(accepted)
    yield "delivered", sum(1 for n in accepted if n.given)
    yield "ended undelivered, as their senders wanted", sum(1 for n in accepted if not n.given)
    yield "ends told while the node ran", sum(1 for n in accepted if n.told)
    if sleepers := campaign.sleepers:
        yield "to be pushed, pushed twice", f"{len(sleepers.ids)}, {sleepers.doubled()}"
        yield "NEVER PUSHED", ledger.count("unpushed")
        yield "PUSHED TWICE more often than there were faults", ledger.count("doubled")
    yield "LOST", ledger.count("lost")
    yield "DELIVERED AGAIN after the end was told", ledger.count("again")
    yield "delivered again before that (allowed)", ledger.again
    yield "DEVICES that could not log in any more", ledger.count("away")
    yield "OUT OF ORDER", ledger.count("order")
    yield "out of order while nodes came or went (allowed)", ledger.reordered
    yield "STUCK: given, never ended", ledger.count("stuck")
    yield "STATES that changed after an end was told", ledger.count("state")
    yield "accepted under TWO IDS", ledger.count("two-ids")
    yield "SESSIONS that were not resumed, or after a crash", ledger.count("session")
    yield "COUNTS of stanzas that are wrong", ledger.count("count")
    yield "CONNECTIONS lost in an upgrade", ledger.count("closed")
    yield "UPGRADES that failed", ledger.count("upgrade")
    yield "given to a STRANGER", ledger.count("stranger")
    yield "ERRORS in the node's log", ledger.count("log")
    yield "items accepted", sum(len(topic.accepted) for topic in ledger.items.values())
    if rooms := campaign.rooms:
        said, counted, told = rooms.counts()
        yield "said in rooms, counted by <a h>", f"{said}, {counted}"
        yield "  told to sessions of occupants", told
    yield "chats sent, counted by <a h>", f"{len(ledger.chats)}, {sum(chat.counted for chat in ledger.chats)}"
    for kind, present in itertools.product((MANAGED, RESUMING, RECEIPTS, PLAIN), (True, False)):
        name = f"  to {'present' if present else 'absent'}, {kind}: counted, never given"
        yield name, f"{len(ledger.counted(kind, present))}, {len(ledger.unheard(kind, present))}"
    yield "chats given to sessions that had been resumed", ledger.heard_resumed
    yield "chats given more than once", sum(1 for chat in ledger.chats if chat.given > 1)


def table(campaign):
    """The rows, and the first of each kind of what is wrong."""
    lines = [f"{name:<56} {value:>16}" for name, value in rows(campaign)]
    told = collections.Counter()
    for kind, what in campaign.ledger.violations:
        told[kind] += 1
        if told[kind] <= TOLD:
            lines.append(f"{kind}: {what}")
    return "\n".join(lines)
