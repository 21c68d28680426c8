//! Notifications for later.

use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::Store;

fn later(domain: DomainId, n: u64, ms: u64) -> Notification {
    Notification { send_at: Some(T.plus(ms)), ..notification(domain, "alice", n) }
}

fn take(store: &dyn Store, now: UnixMs, max: u16) -> (Vec<Notification>, bool) {
    let answer = ask(store, TakeDue { now, max });
    both(answer)
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
    assert_eq!(take(store, T.plus(9), 10), (Vec::new(), false));
    assert_eq!(take(store, T.plus(10), 10), (vec![second], false));
    assert_eq!(take(store, T.plus(10), 10), (Vec::new(), false), "each is handed out once");
    assert_eq!(state(store, id(2)), NotificationState::Stored);
    assert_eq!(trace(store, id(2)).stored, Some(T.plus(10)));
    assert_eq!(waiting(store, domain, "alice", T.plus(10)), [2, 3].map(id));
    assert_eq!(take(store, T.plus(5000), 10), (vec![first], false));
    stored(store, later(domain, 4, 0));
    assert_eq!(state(store, id(4)), NotificationState::Stored, "what is due at once is not scheduled");
}

pub(super) fn removes_what_is_not_kept(store: &dyn Store) {
    let domain = with_alice(store);
    for (n, audience) in [(1, Audience::Active), (2, Audience::Connected)] {
        let notification = Notification { audience, ..later(domain, n, 10) };
        stored(store, notification.clone());
        assert_eq!(take(store, T.plus(10), 9).0, [notification]);
        missing(store, trace_ask(id(n)));
    }
    assert!(waiting(store, domain, "alice", T.plus(10)).is_empty());
}

pub(super) fn comes_in_pages(store: &dyn Store) {
    let domain = with_alice(store);
    for n in 0..5 {
        stored(store, later(domain, n, 100 - n));
    }
    let ids = |page: Vec<Notification>| page.iter().map(|n| n.id).collect::<Vec<_>>();
    let (first, more) = take(store, T.plus(1000), 3);
    assert_eq!((ids(first), more), ([4, 3, 2].map(id).to_vec(), true));
    let (rest, more) = take(store, T.plus(1000), 3);
    assert_eq!((ids(rest), more), ([1, 0].map(id).to_vec(), false));
}

pub(super) fn leaves_out_what_expired(store: &dyn Store) {
    let domain = with_alice(store);
    stored(store, Notification { expires: Some(T.plus(20)), ..later(domain, 1, 10) });
    assert!(take(store, T.plus(20), 9).0.is_empty());
    let swept = ask(store, Sweep { now: T.plus(20), forget: UnixMs(0), max: 9 });
    let traces = swept.entries;
    assert_eq!(
        traces.iter().map(|t| (t.id, t.state)).collect::<Vec<_>>(),
        [(id(1), NotificationState::Expired)]
    );
}

pub(super) fn is_bounded_and_collapsed(store: &dyn Store) {
    let domain = with_alice(store);
    let within = |n| StoreNotification { notification: later(domain, n, 10).into(), queue_max: 2, now: T };
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
    answer!(cancelled, Some(trace) => assert_eq!(trace.state, NotificationState::Cancelled));
    assert!(take(store, T.plus(10), 9).0.is_empty());
}
