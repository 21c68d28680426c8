//! Notifications for later.

use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::Store;

fn later(domain: DomainId, n: u64, ms: u64) -> Notification {
    Notification { send_at: Some(T.plus(ms)), ..notification(domain, "alice", n) }
}

/// Claims for ten milliseconds.
fn claim(store: &dyn Store, now: UnixMs, max: u16) -> (Vec<Notification>, bool) {
    both(ask(store, ClaimDue { now, until: now.plus(10), page: page(max) }))
}

fn claim_ids(store: &dyn Store, now: UnixMs) -> Vec<NotificationId> {
    claim(store, now, 99).0.iter().map(|notification| notification.id).collect()
}

/// Its home stores what it was handed.
fn handed_over(store: &dyn Store, notification: Notification, now: UnixMs) {
    assert_eq!(ask(store, store_at(notification, now)), StoreNotificationAnswer::Known);
}

fn with_alice(store: &dyn Store) -> DomainId {
    let domain = domain(store);
    account(store, domain, "alice");
    domain
}

pub(super) fn hands_out_what_is_due(store: &dyn Store) {
    let domain = with_alice(store);
    let (first, second) = (later(domain, 1, 20), later(domain, 2, 10));
    stored(store, first.clone());
    stored(store, second.clone());
    stored(store, notification(domain, "alice", 3));
    let expected = Trace { state: NotificationState::Scheduled, ..Trace::of(&first) };
    assert_eq!(trace(store, id(1)), expected);
    assert_eq!(waiting(store, domain, "alice", T), [id(3)]);
    assert_eq!(claim(store, T.plus(9), 10), (Vec::new(), false));
    assert_eq!(claim(store, T.plus(10), 10), (vec![second.clone()], false));
    assert_eq!(state(store, id(2)), NotificationState::Scheduled, "its home does not have it yet");
    assert_eq!(waiting(store, domain, "alice", T.plus(10)), [id(3)]);
    handed_over(store, second.clone(), T.plus(11));
    let expected = Trace { state: NotificationState::Stored, stored: Some(T.plus(11)), ..Trace::of(&second) };
    assert_eq!(trace(store, id(2)), expected);
    handed_over(store, second, T.plus(12));
    assert_eq!(trace(store, id(2)), expected, "it is handed over once");
    assert_eq!(waiting(store, domain, "alice", T.plus(12)), [3, 2].map(id));
    assert_eq!(
        claim(store, T.plus(5000), 10),
        (vec![first], false),
        "what was handed over is not due any more"
    );
    stored(store, later(domain, 4, 0));
    assert_eq!(state(store, id(4)), NotificationState::Stored, "what is due at once is not scheduled");
}

pub(super) fn takes_its_place_when_it_is_handed_over(store: &dyn Store) {
    let domain = with_alice(store);
    let (first, second) = (later(domain, 1, 20), later(domain, 2, 10));
    stored(store, first.clone());
    stored(store, second.clone());
    stored(store, notification(domain, "alice", 3));
    claim(store, T.plus(20), 9);
    handed_over(store, second.clone(), T.plus(20));
    stored(store, notification(domain, "alice", 4));
    handed_over(store, first.clone(), T.plus(20));
    handed_over(store, second, T.plus(21));
    assert_eq!(waiting(store, domain, "alice", T.plus(21)), [3, 2, 4, 1].map(id));
    assert_eq!(stored(store, notification(domain, "alice", 5)), []);
    assert_eq!(waiting(store, domain, "alice", T.plus(21)), [3, 2, 4, 1, 5].map(id));
    end(store, [3, 2, 4, 5].map(|n| acknowledged(id(n))).into());
    handed_over(store, first, T.plus(22));
    assert_eq!(waiting(store, domain, "alice", T.plus(22)), [id(1)]);
}

pub(super) fn for_who_is_there_waits_for_nobody_else(store: &dyn Store) {
    let domain = with_alice(store);
    for (n, audience) in [(1, Audience::Active), (2, Audience::Connected)] {
        let notification = Notification { audience, ..later(domain, n, 10) };
        stored(store, notification.clone());
        assert_eq!(claim_ids(store, T.plus(10)), [id(n)]);
        handed_over(store, notification, T.plus(10));
        assert_eq!(state(store, id(n)), NotificationState::Stored);
    }
    assert!(
        waiting(store, domain, "alice", T.plus(10)).is_empty(),
        "sessions that come later are not given it"
    );
    assert!(claim_ids(store, T.plus(99)).is_empty());
    assert!(end(store, vec![acknowledged(id(1))]).is_empty());
    assert_eq!(state(store, id(1)), NotificationState::Acknowledged);
}

pub(super) fn a_claim_is_one_nodes(store: &dyn Store) {
    let domain = with_alice(store);
    for n in 0..40 {
        stored(store, later(domain, n, 10));
    }
    let claims = || {
        let mut claimed = Vec::new();
        loop {
            let (entries, more) = claim(store, T.plus(10), 3);
            claimed.extend(entries.iter().map(|notification| notification.id));
            if !more {
                return claimed;
            }
        }
    };
    let mut claimed: Vec<_> = std::thread::scope(|scope| {
        let nodes = [(); 3].map(|()| scope.spawn(claims));
        nodes.into_iter().flat_map(|node| node.join().expect("it claims")).collect()
    });
    claimed.sort_unstable();
    assert_eq!(claimed, (0..40).map(id).collect::<Vec<_>>());
}

pub(super) fn what_was_not_handed_over_is_due_again(store: &dyn Store) {
    let domain = with_alice(store);
    for n in [1, 2, 3] {
        stored(store, later(domain, n, 10));
    }
    stored(store, Notification { audience: Audience::Active, ..later(domain, 4, 10) });
    stored(store, Notification { expires: Some(T.plus(15)), ..later(domain, 5, 10) });
    assert_eq!(claim_ids(store, T.plus(10)), [1, 2, 3, 4, 5].map(id));
    handed_over(store, later(domain, 1, 10), T.plus(11));
    end(store, vec![acknowledged(id(2))]);
    assert!(claim_ids(store, T.plus(19)).is_empty());
    assert_eq!(claim_ids(store, T.plus(20)), [3, 4].map(id));
    assert!(claim_ids(store, T.plus(29)).is_empty());
    assert_eq!(claim_ids(store, T.plus(30)), [3, 4].map(id), "also when it was claimed before");
    assert_eq!(trace(store, id(3)).send_at, Some(T.plus(10)));
}

pub(super) fn comes_in_pages(store: &dyn Store) {
    let domain = with_alice(store);
    for n in 0..5 {
        stored(store, later(domain, n, 100 - n));
    }
    let ids = |page: Vec<Notification>| page.iter().map(|n| n.id).collect::<Vec<_>>();
    let (first, more) = claim(store, T.plus(1000), 3);
    assert_eq!((ids(first), more), ([4, 3, 2].map(id).to_vec(), true));
    let (rest, more) = claim(store, T.plus(1000), 3);
    assert_eq!((ids(rest), more), ([1, 0].map(id).to_vec(), false));
}

pub(super) fn comes_in_pages_of_bytes(store: &dyn Store) {
    let domain = with_alice(store);
    let payload = Payload::Json(format!("\"{}\"", "x".repeat(998)).into());
    for n in 0..5 {
        stored(store, Notification { payload: payload.clone(), ..later(domain, n, 10 + n) });
    }
    let pages: Vec<_> = [2500, 999, 0, 9000]
        .map(|bytes| {
            ask(store, ClaimDue { now: T.plus(50), until: T.plus(99), page: Page { entries: 9, bytes } })
        })
        .iter()
        .map(|page| (page.entries.len(), page.more))
        .collect();
    assert_eq!(pages, [(2, true), (1, true), (1, true), (1, false)]);
}

pub(super) fn leaves_out_what_expired(store: &dyn Store) {
    let domain = with_alice(store);
    stored(store, Notification { expires: Some(T.plus(20)), ..later(domain, 1, 10) });
    assert!(claim(store, T.plus(20), 9).0.is_empty());
    let swept = ask(store, Sweep { now: T.plus(20), forget: UnixMs(0), max: 9 });
    let traces = swept.entries;
    assert_eq!(
        traces.iter().map(|t| (t.id, t.state)).collect::<Vec<_>>(),
        [(id(1), NotificationState::Expired)]
    );
}

pub(super) fn is_bounded_and_collapsed(store: &dyn Store) {
    let domain = with_alice(store);
    let within =
        |n| StoreNotification { notification: later(domain, n, 10).into(), queue_max: 2, now: T, wake: None };
    for n in [1, 2] {
        answer!(ask(store, within(n)), StoreNotificationAnswer::Stored { ended } => assert!(ended.is_empty()));
    }
    let ended = answer!(ask(store, within(3)), StoreNotificationAnswer::Stored { ended } => ended);
    assert_eq!(
        ended.iter().map(|t| (t.id, t.reason)).collect::<Vec<_>>(),
        [(id(1), Some(DropReason::QueueFull))]
    );
}

pub(super) fn can_be_cancelled(store: &dyn Store) {
    let domain = with_alice(store);
    stored(store, later(domain, 1, 10));
    let cancelled = ask(store, CancelNotification { id: id(1), now: T.plus(1) });
    answer!(cancelled, CancelNotificationAnswer::Cancelled(trace) => assert_eq!(trace.state, NotificationState::Cancelled));
    assert!(claim(store, T.plus(10), 9).0.is_empty());
}
