//! What a shard knows of broadcasts, without sessions.

use super::Broadcasts;
use crate::model::*;
use crate::ports::store::broadcasts::{AccountEnd, GivenCount};
use bytes::Bytes;
use std::sync::Arc;

const ID: NotificationId = NotificationId(7);
const DOMAIN: DomainId = DomainId(1);
const NOW: Now = Now { mono: Mono(10_000), unix: UnixMs(1_795_167_000_000) };

fn broadcast(revision: u64, state: BroadcastState) -> Arc<Broadcast> {
    let ended = matches!(state, BroadcastState::Aborted | BroadcastState::Finished).then_some(NOW.unix);
    Arc::new(Broadcast {
        id: ID,
        domain: DOMAIN,
        audience: Audience::Always,
        priority: Priority::Normal,
        payload: Payload::Json("1".into()),
        key: None,
        created: NOW.unix,
        expires: NOW.unix.plus(1000),
        topic: None,
        pace: BroadcastPace::default(),
        state,
        ended,
        revision,
    })
}

fn hear(broadcasts: &mut Broadcasts, revision: u64, state: BroadcastState) {
    broadcasts.put(broadcast(revision, state), [Bytes::new(), Bytes::new()], false, 5);
}

fn session(slot: u32) -> SessionId {
    SessionId { slot, generation: 1 }
}

#[test]
fn what_is_older_than_what_is_known_changes_nothing() {
    let mut broadcasts = Broadcasts::default();
    hear(&mut broadcasts, 3, BroadcastState::Paused);
    hear(&mut broadcasts, 2, BroadcastState::Running);
    assert!(broadcasts.due(9, false, NOW).is_empty());
    hear(&mut broadcasts, 4, BroadcastState::Running);
    assert_eq!(broadcasts.due(9, false, NOW), [ID]);
    hear(&mut broadcasts, 5, BroadcastState::Aborted);
    assert!(broadcasts.is_empty());
    hear(&mut broadcasts, 5, BroadcastState::Aborted);
    assert!(broadcasts.is_empty(), "one that has ended is of no interest");
}

#[test]
fn one_that_has_ended_is_known_until_the_store_knows_how_often_it_was_given() {
    let mut broadcasts = Broadcasts::default();
    hear(&mut broadcasts, 1, BroadcastState::Running);
    broadcasts.find(ID).unwrap().given = 9;
    hear(&mut broadcasts, 2, BroadcastState::Aborted);
    assert!(broadcasts.due(9, false, NOW).is_empty());
    let given = broadcasts.untold();
    assert_eq!(given, [GivenCount { id: ID, counter: 5, given: 9 }]);
    broadcasts.told(&given);
    assert!(broadcasts.is_empty());
}

#[test]
fn a_walk_leaves_out_who_came_and_begins_anew_after_a_pause() {
    let mut broadcasts = Broadcasts::default();
    hear(&mut broadcasts, 1, BroadcastState::Running);
    assert_eq!(broadcasts.due(9, false, NOW), [ID]);
    broadcasts.find(ID).unwrap().walk.next = 4;
    for slot in [2, 6, 12] {
        broadcasts.came(session(slot), DOMAIN);
        broadcasts.came(session(slot), DomainId(2));
    }
    let came: Vec<_> = std::iter::from_fn(|| broadcasts.next_that_came()).map(|it| it.slot).collect();
    assert_eq!(came, [2, 6, 12], "those of the other domain have nothing to be asked about");
    let walk = &broadcasts.find(ID).unwrap().walk;
    assert_eq!(walk.passed.iter().map(|it| it.slot).collect::<Vec<_>>(), [6], "it has not come to this one");
    assert!(!walk.asks);
    hear(&mut broadcasts, 2, BroadcastState::Paused);
    assert!(broadcasts.due(9, false, NOW).is_empty());
    hear(&mut broadcasts, 3, BroadcastState::Running);
    assert_eq!(broadcasts.due(20, false, NOW), [ID]);
    let walk = &broadcasts.find(ID).unwrap().walk;
    assert_eq!((walk.next, walk.end, walk.asks, walk.passed.len()), (0, 20, true, 0));
}

#[test]
fn an_account_ends_it_once_and_is_not_asked_about_meanwhile() {
    let mut broadcasts = Broadcasts::default();
    let end = AccountEnd { id: ID, account: AccountId(3), at: NOW.unix, by: AcknowledgedBy::Receipt };
    let pair = (ID, AccountId(3));
    let read = broadcasts.reads.begin();
    assert!(broadcasts.end(end) && !broadcasts.end(end));
    assert!(broadcasts.has_ended(pair));
    assert_eq!(broadcasts.take_ends(), [end]);
    assert!(broadcasts.take_ends().is_empty() && broadcasts.has_ended(pair), "it is being written");
    broadcasts.ended(pair);
    assert!(broadcasts.has_ended(pair), "an answer that is on its way does not know of it");
    broadcasts.reads.end(read);
    assert!(!broadcasts.has_ended(pair), "every later answer does");
}

#[test]
fn those_that_wait_take_turns() {
    let mut broadcasts = Broadcasts::default();
    for n in 1..=3 {
        let id = NotificationId(n);
        let one = Broadcast { id, ..(*broadcast(1, BroadcastState::Running)).clone() };
        broadcasts.put(Arc::new(one), [Bytes::new(), Bytes::new()], false, 5);
    }
    let due = |broadcasts: &mut Broadcasts| -> Vec<u128> {
        broadcasts.due(9, false, NOW).into_iter().map(|id| id.0).collect()
    };
    assert_eq!(due(&mut broadcasts), [1, 2, 3]);
    let open = broadcasts.take(NotificationId(2)).unwrap();
    broadcasts.give_back(open);
    assert_eq!(due(&mut broadcasts), [3, 1, 2]);
    broadcasts.find(NotificationId(1)).unwrap().walk.next = 9;
    assert_eq!(due(&mut broadcasts), [3, 2], "all were given the first");
}

#[test]
fn a_session_that_has_left_is_remembered_nowhere() {
    let mut broadcasts = Broadcasts::default();
    hear(&mut broadcasts, 1, BroadcastState::Running);
    broadcasts.due(9, false, NOW);
    broadcasts.came(session(6), DOMAIN);
    broadcasts.is_crowded(session(6));
    broadcasts.find(ID).unwrap().walk.queue.push(session(6));
    broadcasts.left(session(6));
    assert_eq!(broadcasts.next_that_came(), None);
    assert!(!broadcasts.was_crowded(session(6)));
    let walk = &broadcasts.find(ID).unwrap().walk;
    assert!(walk.queue.is_empty() && walk.passed.is_empty());
}

#[test]
fn it_says_when_there_is_something_to_do() {
    let mut broadcasts = Broadcasts::default();
    let later = BroadcastPace { not_before: Some(NOW.unix.plus(40)), ..BroadcastPace::default() };
    let waits = Broadcast { pace: later, ..(*broadcast(1, BroadcastState::Running)).clone() };
    broadcasts.put(Arc::new(waits), [Bytes::new(), Bytes::new()], false, 5);
    assert!(broadcasts.due(9, false, NOW).is_empty());
    broadcasts.plan_wake(1, NOW);
    assert_eq!(broadcasts.next_wake(), Some(NOW.mono.plus(40)));
    hear(&mut broadcasts, 2, BroadcastState::Paused);
    broadcasts.plan_wake(1, NOW);
    assert_eq!(broadcasts.next_wake(), Some(NOW.mono.plus(1000)), "its time is over then");
}
