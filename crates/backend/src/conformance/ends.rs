//! How notifications end, and how long that is remembered.

use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::Store;

fn one(store: &dyn Store) -> (DomainId, Notification) {
    let domain = domain(store);
    account(store, domain, "alice");
    let notification = notification(domain, "alice", 1);
    stored(store, notification.clone());
    (domain, notification)
}

fn sweep(store: &dyn Store, now: UnixMs, forget: UnixMs, max: u32) -> (Vec<Trace>, bool) {
    let answer = ask(store, Sweep { now, forget, max });
    both(answer)
}

pub(super) fn are_traced(store: &dyn Store) {
    let (domain, first) = one(store);
    let dropped = NotificationChange {
        id: id(2),
        state: NotificationState::Dropped,
        sent: None,
        at: T.plus(5),
        acknowledged_by: None,
        reason: Some(DropReason::ConnectionLost),
    };
    let expired =
        NotificationChange { id: id(3), state: NotificationState::Expired, reason: None, ..dropped.clone() };
    for n in [2, 3] {
        stored(store, notification(domain, "alice", n));
    }
    end(store, vec![acknowledged(id(1)), dropped, expired]);
    let expected = Trace {
        state: NotificationState::Acknowledged,
        stored: Some(T),
        sent: Some(T.plus(900)),
        ended: Some(T.plus(1000)),
        acknowledged_by: Some(AcknowledgedBy::StreamManagement),
        ..Trace::of(&first)
    };
    assert_eq!(trace(store, id(1)), expected);
    let second = trace(store, id(2));
    assert_eq!((second.state, second.reason), (NotificationState::Dropped, Some(DropReason::ConnectionLost)));
    assert_eq!((second.sent, second.ended), (None, Some(T.plus(5))));
    assert_eq!(state(store, id(3)), NotificationState::Expired);
    assert!(waiting(store, domain, "alice", T).is_empty());
}

pub(super) fn happen_once(store: &dyn Store) {
    let _ = one(store);
    assert!(end(store, vec![acknowledged(id(1)), acknowledged(id(1))]).is_empty());
    let before = trace(store, id(1));
    let otherwise =
        NotificationChange { state: NotificationState::Dropped, at: T.plus(5000), ..acknowledged(id(1)) };
    let sent = NotificationChange { state: NotificationState::Sent, ..otherwise.clone() };
    assert_eq!(end(store, vec![otherwise.clone(), sent]), [id(1)], "it had ended, and by another change");
    assert_eq!(trace(store, id(1)), before);
    assert!(end(store, vec![acknowledged(id(1))]).is_empty(), "asked again it is answered the same");
    // Many of which some have ended.
    let (domain, other) = (domain(store), "bob");
    account(store, domain, other);
    for n in 10..60 {
        stored(store, notification(domain, other, n));
    }
    end(store, vec![acknowledged(id(20)), acknowledged(id(59))]);
    let all = (10..60).map(|n| NotificationChange { id: id(n), ..otherwise.clone() });
    assert_eq!(end(store, all.collect()), [20, 59].map(id));
}

pub(super) fn of_what_is_not_there(store: &dyn Store) {
    let (domain, _) = one(store);
    end(store, Vec::new());
    let missing_ones = end(store, vec![acknowledged(id(9)), acknowledged(id(1)), acknowledged(id(8))]);
    assert_eq!(missing_ones, [9, 8].map(id));
    assert!(waiting(store, domain, "alice", T).is_empty(), "those that are there end all the same");
    missing(store, trace_ask(id(9)));
}

pub(super) fn note_when_it_was_sent(store: &dyn Store) {
    let (domain, _) = one(store);
    let sent = |at| NotificationChange {
        state: NotificationState::Sent,
        sent: Some(at),
        acknowledged_by: None,
        ..acknowledged(id(1))
    };
    end(store, vec![sent(T.plus(3))]);
    let noted = trace(store, id(1));
    assert_eq!((noted.state, noted.sent, noted.ended), (NotificationState::Sent, Some(T.plus(3)), None));
    assert_eq!(waiting(store, domain, "alice", T), [id(1)], "it waits until the device has it");
    end(store, vec![sent(T.plus(6))]);
    assert_eq!(trace(store, id(1)).sent, Some(T.plus(6)));
    end(store, vec![NotificationChange { sent: None, ..acknowledged(id(1)) }]);
    assert_eq!(trace(store, id(1)).sent, Some(T.plus(6)), "what was noted stays");
}

pub(super) fn by_cancelling(store: &dyn Store) {
    let (domain, first) = one(store);
    let cancel = |n, at| ask(store, CancelNotification { id: id(n), now: at });
    assert_eq!(cancel(9, T), CancelNotificationAnswer::Missing);
    let expected = Trace {
        state: NotificationState::Cancelled,
        stored: Some(T),
        ended: Some(T.plus(4)),
        ..Trace::of(&first)
    };
    assert_eq!(cancel(1, T.plus(4)), CancelNotificationAnswer::Cancelled(Box::new(expected.clone())));
    for at in [4, 5] {
        let ended = CancelNotificationAnswer::Ended(Box::new(expected.clone()));
        assert_eq!(cancel(1, T.plus(at)), ended, "one of them ended it, also of those of one millisecond");
    }
    assert!(waiting(store, domain, "alice", T).is_empty());
    stored(store, notification(domain, "alice", 2));
    end(store, vec![acknowledged(id(2))]);
    let kept = trace(store, id(2));
    assert_eq!(cancel(2, T.plus(9)), CancelNotificationAnswer::Ended(Box::new(kept)), "what it already was");
}

pub(super) fn by_expiry(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    for (n, expires) in [(1, 30), (2, 10), (3, 20)] {
        stored(store, Notification { expires: Some(T.plus(expires)), ..notification(domain, "alice", n) });
    }
    stored(store, notification(domain, "alice", 4));
    assert_eq!(sweep(store, T.plus(9), UnixMs(0), 10), (Vec::new(), false));
    let (traces, more) = sweep(store, T.plus(20), UnixMs(0), 10);
    assert_eq!(traces.iter().map(|t| t.id).collect::<Vec<_>>(), [2, 3].map(id));
    assert!(!more);
    for trace in traces {
        assert_eq!((trace.state, trace.ended), (NotificationState::Expired, Some(T.plus(20))));
        assert_eq!(trace, self::trace(store, trace.id));
    }
    assert_eq!(waiting(store, domain, "alice", T), [1, 4].map(id));
    assert_eq!(sweep(store, T.plus(20), UnixMs(0), 10), (Vec::new(), false));
}

pub(super) fn are_forgotten(store: &dyn Store) {
    let (domain, _) = one(store);
    stored(store, notification(domain, "alice", 2));
    end(store, vec![acknowledged(id(1))]);
    sweep(store, T.plus(2000), T.plus(1000), 10);
    assert_eq!(state(store, id(1)), NotificationState::Acknowledged, "it ended then, and not before");
    sweep(store, T.plus(2000), T.plus(1001), 10);
    missing(store, trace_ask(id(1)));
    assert_eq!(state(store, id(2)), NotificationState::Stored, "what waits is not forgotten");
}

pub(super) fn come_in_pages(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    for n in 0..5 {
        stored(store, Notification { expires: Some(T.plus(n)), ..notification(domain, "alice", n) });
    }
    let (first, more) = sweep(store, T.plus(100), UnixMs(0), 3);
    assert_eq!((first.len(), more), (3, true));
    let (rest, more) = sweep(store, T.plus(100), UnixMs(0), 3);
    assert_eq!((rest.len(), more), (2, false));
    let forgets: Vec<bool> = (0..2).map(|_| sweep(store, T.plus(200), T.plus(150), 3).1).collect();
    assert_eq!(forgets, [true, false], "forgetting comes in pages too");
    for n in 0..5 {
        missing(store, trace_ask(id(n)));
    }
}

pub(super) fn drop_the_payload(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let payload = Payload::Json(format!("\"{}\"", "x".repeat(10_000)).into());
    for round in 0..30 {
        let ids: Vec<u64> = (round * 20..round * 20 + 20).collect();
        let waiting: Vec<_> = ids
            .iter()
            .map(|n| Notification { payload: payload.clone(), ..notification(domain, "alice", *n) })
            .map(|notification| asked(store, store_at(notification, T)))
            .collect();
        for receiver in &waiting {
            answer!(waited(receiver), StoreNotificationAnswer::Stored { .. } => ());
        }
        end(store, ids.iter().map(|n| acknowledged(id(*n))).collect());
    }
    let bytes = store.stats().bytes;
    // 6 MB of payload went through. A log of writes may still hold some of it, the tables must not.
    assert!(bytes < 32 << 20, "{bytes} bytes for 600 traces");
    assert_eq!(state(store, id(0)), NotificationState::Acknowledged);
}
