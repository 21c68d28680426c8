//! Notifications that wait.

use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::Store;

pub(super) fn are_stored_and_traced(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let sent = Notification {
        priority: Priority::High,
        expires: Some(T.plus(5000)),
        collapse_key: Some("mail".into()),
        ..notification(domain, "alice", 1)
    };
    answer!(ask(store, store_at(sent.clone(), T.plus(7))), StoreNotificationAnswer::Stored { ended } => assert!(ended.is_empty()));
    let expected = Trace { state: NotificationState::Stored, stored: Some(T.plus(7)), ..Trace::of(&sent) };
    assert_eq!(trace(store, id(1)), expected);
    let found = ask(store, pending_ask(domain, "alice", 9, T)).entries;
    assert_eq!(found, [sent]);
    missing(store, trace_ask(id(2)));
}

pub(super) fn need_an_account(store: &dyn Store) {
    let domain = domain(store);
    missing(store, store_at(notification(domain, "alice", 1), T));
    missing(store, store_at(Notification { to: jid("example.org"), ..notification(domain, "a", 1) }, T));
    missing(store, trace_ask(id(1)));
    let none = ask(store, pending_ask(domain, "alice", 9, T));
    answer!(none, Part { entries: notifications, more: false } => assert!(notifications.is_empty()));
}

pub(super) fn are_stored_once(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let first = notification(domain, "alice", 1);
    stored(store, first.clone());
    let second =
        Notification { payload: Payload::Json("2".into()), collapse_key: Some("k".into()), ..first.clone() };
    let again = ask(store, store_at(second.clone(), T.plus(1)));
    answer!(again, StoreNotificationAnswer::Known => ());
    let found = ask(store, pending_ask(domain, "alice", 9, T)).entries;
    assert_eq!(found, [first]);
    end(store, vec![acknowledged(id(1))]);
    assert_eq!(ask(store, store_at(second, T)), StoreNotificationAnswer::Known);
    assert!(waiting(store, domain, "alice", T).is_empty(), "nor after it has ended");
}

/// Whatever the clock said when they were accepted.
pub(super) fn wait_in_delivery_order(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let (low, high) = (Priority::Low, Priority::High);
    let sent =
        [(1, low, 30), (2, high, 20), (3, high, 10), (4, Priority::Normal, 5), (5, low, 1), (6, high, 10)];
    for (n, priority, accepted) in sent {
        let accepted = T.plus(accepted);
        stored(store, Notification { priority, accepted, ..notification(domain, "alice", n) });
    }
    assert_eq!(waiting(store, domain, "alice", T), [2, 3, 6, 4, 1, 5].map(id));
}

pub(super) fn are_handed_out_in_pages(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    for n in 0..5 {
        stored(store, notification(domain, "alice", n));
    }
    for (max, count, expected) in [(4, 4, true), (5, 5, false), (0, 0, true)] {
        let page = ask(store, pending_ask(domain, "alice", max, T));
        let (found, more) = both(page);
        assert_eq!((found.len(), more), (count, expected));
    }
}

pub(super) fn are_handed_out_in_pages_of_bytes(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    for (n, len) in [(0, 100), (1, 100), (2, 5000), (3, 10)] {
        let payload = Payload::Json("x".repeat(len).into());
        stored(store, Notification { payload, ..notification(domain, "alice", n) });
    }
    let at = |except: &[u64], entries, bytes| {
        let except = except.iter().copied().map(id).collect();
        let page = Page { entries, bytes };
        let question = Pending { domain, local: "alice".into(), resource: None, except, page, now: T };
        let (found, more) = both(ask(store, question));
        (found.iter().map(|n| n.id).collect::<Vec<_>>(), more)
    };
    assert_eq!(at(&[], 9, 199), ([0].map(id).to_vec(), true));
    assert_eq!(at(&[], 9, 200), ([0, 1].map(id).to_vec(), true));
    assert_eq!(at(&[], 9, 5199), ([0, 1].map(id).to_vec(), true), "a smaller one does not overtake");
    assert_eq!(at(&[], 9, 5210), ([0, 1, 2, 3].map(id).to_vec(), false));
    assert_eq!(at(&[0, 1], 9, 0), ([2].map(id).to_vec(), true), "the first, whatever its size");
    assert_eq!(at(&[0, 1, 2], 9, 0), ([3].map(id).to_vec(), false));
    assert_eq!(at(&[], 0, 9999), (Vec::new(), true));
}

pub(super) fn leave_out_what_is_excepted(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    for n in 0..6 {
        stored(store, notification(domain, "alice", n));
    }
    let except = vec![id(0), id(2), id(77)];
    let question = Pending { domain, local: "alice".into(), resource: None, except, page: page(3), now: T };
    let (found, more) = both(ask(store, question));
    assert_eq!(found.iter().map(|n| n.id).collect::<Vec<_>>(), [1, 3, 4].map(id));
    assert!(more);
}

pub(super) fn replace_those_of_their_key(store: &dyn Store) {
    let domain = domain(store);
    for local in ["alice", "bob"] {
        account(store, domain, local);
    }
    let keyed = |local: &str, n, key: &str| Notification {
        collapse_key: Some(key.into()),
        ..notification(domain, local, n)
    };
    stored(store, keyed("alice", 1, "mail"));
    stored(store, Notification { send_at: Some(T.plus(99)), ..keyed("alice", 2, "news") });
    stored(store, keyed("bob", 3, "mail"));
    stored(store, notification(domain, "alice", 4));
    let ended = answer!(ask(store, store_at(keyed("alice", 5, "mail"), T.plus(8))), StoreNotificationAnswer::Stored { ended } => ended);
    let expected = Trace {
        state: NotificationState::Replaced,
        stored: Some(T),
        ended: Some(T.plus(8)),
        ..Trace::of(&keyed("alice", 1, "mail"))
    };
    assert_eq!(trace(store, id(1)), expected);
    assert_eq!(ended, [expected]);
    assert_eq!(waiting(store, domain, "alice", T), [4, 5].map(id));
    assert_eq!(waiting(store, domain, "bob", T), [3].map(id));
    let ended = stored(store, keyed("alice", 6, "news"));
    assert_eq!(ended.iter().map(|t| t.id).collect::<Vec<_>>(), [id(2)], "a scheduled one is replaced too");
}

pub(super) fn leave_sent_ones(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let keyed = |n| Notification { collapse_key: Some("mail".into()), ..notification(domain, "alice", n) };
    stored(store, keyed(1));
    let sent =
        NotificationChange { state: NotificationState::Sent, acknowledged_by: None, ..acknowledged(id(1)) };
    end(store, vec![sent]);
    assert!(stored(store, keyed(2)).is_empty(), "the device may have it already");
    assert_eq!(waiting(store, domain, "alice", T), [1, 2].map(id));
}

pub(super) fn are_bounded(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let store_within = |n, priority, queue_max| {
        // The clock goes back, which changes nothing.
        let accepted = T.plus(10 - n);
        let notification = Notification { priority, accepted, ..notification(domain, "alice", n) };
        let question =
            StoreNotification { notification: notification.into(), queue_max, now: T.plus(50), wake: None };
        let ended = answer!(ask(store, question), StoreNotificationAnswer::Stored { ended } => ended);
        for trace in &ended {
            assert_eq!(
                (trace.state, trace.reason),
                (NotificationState::Dropped, Some(DropReason::QueueFull))
            );
            assert_eq!(trace.ended, Some(T.plus(50)));
            assert_eq!(*trace, self::trace(store, trace.id));
        }
        ended.iter().map(|t| t.id).collect::<Vec<_>>()
    };
    for (n, priority) in [(1, Priority::High), (2, Priority::Low), (3, Priority::Normal), (4, Priority::Low)]
    {
        assert!(store_within(n, priority, 4).is_empty());
    }
    assert_eq!(store_within(5, Priority::Normal, 4), [id(2)], "the oldest of the lowest priority");
    assert_eq!(store_within(6, Priority::Low, 4), [id(4)]);
    assert_eq!(store_within(7, Priority::High, 2), [6, 3, 5].map(id), "a bound that came down");
    assert_eq!(store_within(8, Priority::Low, 2), [id(8)], "which may be the new one itself");
    assert_eq!(waiting(store, domain, "alice", T), [1, 7].map(id));
    assert_eq!(store_within(9, Priority::High, 0).len(), 3);
}

pub(super) fn carry_json_and_xml(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let payloads = [
        Payload::Json("{\"é\":\"\\u0000 ' \\\" \"}".into()),
        Payload::Json("".into()),
        Payload::Xml(bytes::Bytes::from_static("<x xmlns='urn:x'>ü</x>".as_bytes())),
        Payload::Xml(vec![b'x'; 300_000].into()),
        request("phone"),
    ];
    for (n, payload) in (0..).zip(&payloads) {
        stored(store, Notification { payload: payload.clone(), ..notification(domain, "alice", n) });
    }
    let found = ask(store, pending_ask(domain, "alice", 9, T)).entries;
    assert!(found.iter().map(|n| &n.payload).eq(&payloads));
}

/// A push to an endpoint of the client with this resource.
fn request(resource: &str) -> Payload {
    let element = bytes::Bytes::from_static(b"<push xmlns='urn:x'>aGVsbG8=</push>");
    Payload::Request(
        PushRequest { endpoint: EndpointId(u128::MAX - 7), resource: resource.into(), element }.into(),
    )
}

pub(super) fn are_for_the_client_that_they_name(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    for (n, payload) in (0..).zip([request("phone"), Payload::Json("1".into()), request("é / desk")]) {
        stored(store, Notification { payload, ..notification(domain, "alice", n) });
    }
    let of = |resource: Option<&str>, max| {
        let question = Pending { resource: resource.map(Box::from), ..pending_ask(domain, "alice", max, T) };
        let (found, more) = both(ask(store, question));
        (found.iter().map(|n| n.id).collect::<Vec<_>>(), more)
    };
    assert_eq!(of(None, 9), ([0, 1, 2].map(id).to_vec(), false));
    assert_eq!(of(Some("phone"), 9), ([0, 1].map(id).to_vec(), false));
    assert_eq!(of(Some("phone"), 1), ([id(0)].to_vec(), true));
    assert_eq!(of(Some("é / desk"), 9), ([1, 2].map(id).to_vec(), false));
    assert_eq!(of(Some("é / desk"), 1), ([id(1)].to_vec(), true), "what is for others takes no room");
    assert_eq!(of(Some("Phone"), 9), ([id(1)].to_vec(), false));
}

pub(super) fn that_expired_are_left_out(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    for (n, expires) in [(1, Some(10)), (2, None), (3, Some(20))] {
        let expires = expires.map(|ms| T.plus(ms));
        stored(store, Notification { expires, ..notification(domain, "alice", n) });
    }
    assert_eq!(waiting(store, domain, "alice", T.plus(9)), [1, 2, 3].map(id));
    assert_eq!(waiting(store, domain, "alice", T.plus(10)), [2, 3].map(id));
    assert_eq!(waiting(store, domain, "alice", T.plus(20)), [2].map(id));
    assert_eq!(state(store, id(1)), NotificationState::Stored, "reading ends nothing");
}

pub(super) fn that_have_not_ended_are_read_by_their_ids(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    account(store, domain, "bob");
    for n in [3, 1, 2] {
        stored(store, notification(domain, "alice", n));
    }
    let scheduled = Notification {
        send_at: Some(T.plus(50)),
        audience: Audience::Connected,
        ..notification(domain, "alice", 4)
    };
    stored(store, scheduled.clone());
    stored(store, Notification { expires: Some(T.plus(10)), ..notification(domain, "alice", 5) });
    stored(store, notification(domain, "bob", 6));
    let part = |after: u128, entries: u16| {
        let page = Page { entries, bytes: 1 << 20 };
        let asked =
            Unended { domain, local: "alice".into(), after: NotificationId(after), page, now: T.plus(10) };
        ask(store, asked)
    };
    let all = part(0, 100);
    let ids: Vec<_> = all.entries.iter().map(|found| found.id).collect();
    assert_eq!((ids, all.more), ([1, 2, 3, 4].map(id).to_vec(), false));
    assert_eq!(all.entries[3], scheduled);
    let first = part(0, 3);
    assert!(first.more && first.entries.len() == 3);
    let rest = part(first.entries[2].id.0, 3);
    assert_eq!((rest.entries, rest.more), (vec![scheduled], false));
}
