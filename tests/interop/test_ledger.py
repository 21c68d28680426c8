"""The ledger of ``kills`` finds what it is there to find."""

import pytest

from kills.ledger import HIGH, NORMAL, Ledger, Session
from kills.load import Topic
from kills.managed import Management
from kills.pace import Times

ALICE = "alice@localhost"
BOB = "bob@localhost"


@pytest.fixture
def ledger():
    return Ledger()


def accept(ledger, priority=NORMAL, to=ALICE, **body):
    notification = ledger.notification(to, priority, {"ttl": 3600, **body})
    ledger.accepted(notification, f"id{notification.number}")
    return notification


def give(ledger, session, *notifications):
    for notification in notifications:
        ledger.given(session, notification.id, notification.number)


def found(ledger):
    return [kind for kind, _ in ledger.violations]


def test_a_run_in_which_all_is_well(ledger):
    first, second, urgent, replaced = (
        accept(ledger, priority, **body)
        for priority, body in ((NORMAL, {}), (NORMAL, {}), (HIGH, {}), (NORMAL, {"collapse_key": "k"}))
    )
    session = Session(ALICE)
    give(ledger, session, urgent, first, second)
    give(ledger, Session(ALICE), second)
    ledger.told(first.id, "acknowledged")
    assert ledger.outstanding() == [replaced]
    ends = {n.id: "acknowledged" for n in (first, second, urgent)}
    ledger.settle({**ends, replaced.id: "replaced"})
    assert (found(ledger), ledger.again) == ([], 1)


@pytest.mark.parametrize("state", [None, "stored", "acknowledged", "expired", "replaced", "cancelled", "dropped"])
def test_what_was_accepted_and_never_given_is_lost_whatever_the_node_says_of_it(ledger, state):
    accept(ledger)
    ledger.settle({"id0": state} if state else {})
    assert found(ledger) == ["lost"]


def test_what_is_given_after_its_end_was_told_is_given_again(ledger):
    one = accept(ledger)
    session = Session(ALICE)
    give(ledger, session, one)
    ledger.told(one.id, "acknowledged")
    give(ledger, Session(ALICE), one)
    assert found(ledger) == ["again"]


def test_what_is_given_twice_in_one_session_is_given_again(ledger):
    one = accept(ledger)
    session = Session(ALICE)
    give(ledger, session, one, one)
    assert found(ledger) == ["again"]


def test_what_is_cancelled_is_not_given(ledger):
    one = accept(ledger)
    session = Session(ALICE)
    ledger.told(one.id, "cancelled")
    give(ledger, session, one)
    assert found(ledger) == ["again"]


def test_an_older_one_after_a_newer_one_is_out_of_order(ledger):
    first, second = accept(ledger), accept(ledger)
    give(ledger, Session(ALICE), second, first)
    assert found(ledger) == ["order"]


def test_an_urgent_one_that_waited_comes_first(ledger):
    first, urgent = accept(ledger), accept(ledger, HIGH)
    give(ledger, Session(ALICE), first, urgent)
    assert found(ledger) == ["order"]
    ledger.violations.clear()
    session = Session(ALICE)
    give(ledger, session, accept(ledger), accept(ledger, HIGH))
    assert found(ledger) == [], "one that came later may come later"


def test_an_end_that_changes_and_one_that_never_comes(ledger):
    changed, stuck = accept(ledger), accept(ledger)
    give(ledger, Session(ALICE), changed, stuck)
    ledger.told(changed.id, "acknowledged")
    ledger.settle({changed.id: "expired", stuck.id: "sent"})
    assert found(ledger) == ["state", "stuck"]


def test_another_id_and_another_device(ledger):
    one = accept(ledger)
    ledger.accepted(one, "other")
    give(ledger, Session(BOB), one)
    assert found(ledger) == ["two-ids", "stranger"]


def test_chats_that_were_counted_and_not_heard(ledger):
    heard, unheard, refused, _ = (ledger.chat(ALICE, "kind", True) for _ in range(4))
    for chat in (heard, unheard, refused):
        chat.counted = True
    ledger.refused(refused.number)
    ledger.heard(Session(ALICE), heard.number, BOB)
    assert ledger.unheard("kind", True) == [unheard]


def chat_from(ledger, management, to=ALICE):
    chat = ledger.chat(to, "kind", True)
    management.sends(f"<message id='c{chat.number}'/>", chat)
    return chat


def test_a_chat_that_comes_twice_in_a_session_or_after_its_acknowledgement_is_given_again(ledger):
    chat = ledger.chat(ALICE, "kind", True)
    session, management = Session(ALICE), Management(ledger, ALICE, "key", Times())
    management.reads(ledger.heard(session, chat.number, BOB))
    ledger.heard(session, chat.number, BOB)
    assert found(ledger) == ["again"]
    ledger.heard(Session(ALICE), chat.number, BOB)
    assert found(ledger) == ["again"], "whether the node knows that it was read is not known"
    management.is_answered(management.acknowledges())
    assert management.acknowledges() is None
    ledger.heard(Session(ALICE), chat.number, BOB)
    assert found(ledger) == ["again", "again"]
    ledger.heard(Session(ALICE, Times(1)), chat.number, BOB)
    assert found(ledger) == ["again", "again"], "the end may not have been committed when the node was killed"


@pytest.mark.parametrize("restarts", [0, 1])
def test_what_is_said_again_may_come_twice_only_after_a_restart(ledger, restarts):
    management = Management(ledger, BOB, "key", Times())
    settled, unsettled = chat_from(ledger, management), chat_from(ledger, management)
    session = Session(ALICE)
    for chat in (settled, unsettled):
        ledger.heard(session, chat.number, BOB)
    assert management.goes_on(1, Times(restarts=restarts)) == ["<message id='c1'/>"]
    assert (settled.counted, unsettled.counted) == (True, False)
    ledger.heard(session, unsettled.number, BOB)
    assert found(ledger) == ([] if restarts else ["again"])


@pytest.mark.parametrize("h", [0, 3])
def test_a_count_neither_falls_nor_runs_ahead(ledger, h):
    management = Management(ledger, BOB, "key", Times())
    for _ in range(2):
        chat_from(ledger, management)
    management.counts(1)
    management.counts(h)
    assert found(ledger) == ["count"]


@pytest.mark.parametrize(("crashes", "resumed"), [(0, False), (1, True)])
def test_a_session_ends_with_a_crash_and_with_nothing_else(ledger, crashes, resumed):
    ledger.came_back(Session(ALICE), not resumed, Times(crashes))
    assert found(ledger) == []
    ledger.came_back(Session(ALICE), resumed, Times(crashes))
    assert found(ledger) == ["session"]


def test_a_session_is_given_every_item_once_and_in_order(ledger):
    ledger.items["news"] = Topic(repeated={5})
    session = Session(ALICE)
    for number in (3, 4, 5, 5, 6):
        ledger.told_item(session, "news", number)
    assert found(ledger) == []
    for number in (8, 7, 8):
        ledger.told_item(session, "news", number)
    assert found(ledger) == ["lost", "order", "order"]
