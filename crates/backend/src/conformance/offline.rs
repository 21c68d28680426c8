//! Offline messages.

use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::Store;

fn keep(domain: DomainId, local: &str, n: u64, queue_max: u32) -> StoreOffline {
    let stanza = format!("<message id='{n}'><body>é\u{1F514}</body></message>").into_bytes().into();
    StoreOffline {
        domain,
        local: local.into(),
        received: T.plus(n),
        stanza,
        expires: None,
        queue_max,
        bytes_max: u64::MAX,
        wake: None,
    }
}

fn list(
    store: &dyn Store,
    domain: DomainId,
    local: &str,
    after: u64,
    max: u16,
) -> (Vec<OfflineMessage>, bool) {
    let question = Offline { domain, local: local.into(), after, page: page(max) };
    both(ask(store, question))
}

fn with_messages(store: &dyn Store, count: u64) -> DomainId {
    let domain = domain(store);
    account(store, domain, "alice");
    for n in 0..count {
        done(store, keep(domain, "alice", n, 100));
    }
    domain
}

pub(super) fn messages_come_back_in_order(store: &dyn Store) {
    let domain = with_messages(store, 2);
    let last =
        answer!(ask(store, keep(domain, "alice", 2, 100)), StoreOfflineAnswer::Stored(number) => number);
    let (messages, more) = list(store, domain, "alice", 0, 10);
    assert!(!more);
    assert_eq!(messages.last().map(|message| message.seq), Some(last));
    assert!(messages.is_sorted_by(|a, b| a.seq < b.seq));
    for (n, message) in (0..).zip(&messages) {
        assert_eq!(message.received, T.plus(n));
        assert_eq!(message.stanza, format!("<message id='{n}'><body>é\u{1F514}</body></message>"));
    }
}

pub(super) fn messages_come_in_pages(store: &dyn Store) {
    let domain = with_messages(store, 5);
    let (first, more) = list(store, domain, "alice", 0, 3);
    assert_eq!((first.len(), more), (3, true));
    let (rest, more) = list(store, domain, "alice", first[2].seq, 3);
    assert_eq!((rest.len(), more), (2, false));
    assert_eq!(list(store, domain, "alice", rest[1].seq, 3), (Vec::new(), false));
    assert_eq!(list(store, domain, "alice", u64::MAX, 3), (Vec::new(), false));
}

pub(super) fn messages_come_in_pages_of_bytes(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    for len in [100, 100, 5000, 10] {
        let (local, stanza) = ("alice".into(), vec![b'x'; len].into());
        done(
            store,
            StoreOffline {
                domain,
                local,
                received: T,
                stanza,
                expires: None,
                queue_max: 9,
                bytes_max: u64::MAX,
                wake: None,
            },
        );
    }
    let all = list(store, domain, "alice", 0, 9).0;
    let at = |after, bytes| {
        let page = Page { entries: 9, bytes };
        let question = Offline { domain, local: "alice".into(), after, page };
        both(ask(store, question))
    };
    assert_eq!(at(0, 199), (all[..1].to_vec(), true));
    assert_eq!(at(0, 5199), (all[..2].to_vec(), true));
    assert_eq!(at(all[1].seq, 0), (all[2..3].to_vec(), true), "the first, whatever its size");
    assert_eq!(at(all[1].seq, 5010), (all[2..].to_vec(), false));
}

pub(super) fn messages_are_bounded(store: &dyn Store) {
    let domain = with_messages(store, 2);
    assert_eq!(ask(store, keep(domain, "alice", 3, 2)), StoreOfflineAnswer::Full);
    assert_eq!(list(store, domain, "alice", 0, 9).0.len(), 2);
    done(store, keep(domain, "alice", 3, 3));
    assert_eq!(ask(store, keep(domain, "alice", 4, 0)), StoreOfflineAnswer::Full);
}

pub(super) fn messages_are_bounded_in_bytes(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let keep = |n: u64, len: usize| {
        let (local, received, stanza) = ("alice".into(), T.plus(n), vec![b'x'; len].into());
        StoreOffline {
            domain,
            local,
            received,
            stanza,
            expires: None,
            queue_max: 100,
            bytes_max: 1000,
            wake: None,
        }
    };
    done(store, keep(1, 600));
    done(store, keep(2, 400));
    assert_eq!(ask(store, keep(3, 1)), StoreOfflineAnswer::Full);
    // What is deleted makes room, once; what is not there makes none.
    let first = list(store, domain, "alice", 0, 9).0[0].seq;
    for seqs in [vec![first, first, 9999], vec![first]] {
        done(store, DeleteOffline { domain, local: "alice".into(), seqs });
    }
    assert_eq!(ask(store, keep(3, 601)), StoreOfflineAnswer::Full);
    done(store, keep(3, 600));
    assert_eq!(ask(store, keep(4, 1)), StoreOfflineAnswer::Full);
    let all = list(store, domain, "alice", 0, 9).0;
    assert_eq!(all.iter().map(|message| message.stanza.len()).collect::<Vec<_>>(), [400, 600]);
}

pub(super) fn messages_are_deleted(store: &dyn Store) {
    let domain = with_messages(store, 3);
    let seqs: Vec<u64> = list(store, domain, "alice", 0, 9).0.iter().map(|m| m.seq).collect();
    let delete = |seqs| DeleteOffline { domain, local: "alice".into(), seqs };
    done(store, delete(vec![seqs[0], seqs[2], 9999, u64::MAX]));
    done(store, delete(vec![seqs[0]]));
    assert_eq!(list(store, domain, "alice", 0, 9).0.iter().map(|m| m.seq).collect::<Vec<_>>(), [seqs[1]]);
    done(store, delete(vec![seqs[1]]));
    done(store, keep(domain, "alice", 7, 100));
    assert!(list(store, domain, "alice", 0, 9).0[0].seq > seqs[2], "later messages have higher numbers");
}

pub(super) fn messages_expire(store: &dyn Store) {
    let domain = with_messages(store, 1);
    account(store, domain, "bob");
    let over = |now| both(ask(store, ExpiredOffline { now, page: page(2) }));
    let until = |local, n, at| StoreOffline { expires: Some(T.plus(at)), ..keep(domain, local, n, 100) };
    for question in [until("bob", 1, 30), until("alice", 2, 10), until("bob", 3, 20)] {
        done(store, question);
    }
    assert_eq!(over(T.plus(9)), (Vec::new(), false));
    let (first, more) = over(T.plus(10));
    assert!(!more);
    let [ExpiredMessage { to, message }] = &first[..] else { panic!("{first:?}") };
    assert_eq!((to.local(), message.expires), (Some("alice"), Some(T.plus(10))));
    assert_eq!(list(store, domain, "alice", 0, 9).0.last(), Some(message), "it is there until it is deleted");

    let (found, more) = over(T.plus(30));
    let times: Vec<_> = found.iter().map(|found| found.message.expires).collect();
    assert_eq!((times, more), (vec![Some(T.plus(10)), Some(T.plus(20))], true));
    for found in found {
        let local = found.to.local().expect("an account").into();
        done(store, DeleteOffline { domain, local, seqs: vec![found.message.seq] });
    }
    let (rest, more) = over(UnixMs(u64::MAX >> 1));
    assert_eq!((rest.len(), more, rest[0].message.expires), (1, false, Some(T.plus(30))));
}

pub(super) fn messages_need_an_account(store: &dyn Store) {
    let domain = domain(store);
    missing(store, keep(domain, "alice", 1, 9));
    assert_eq!(list(store, domain, "alice", 0, 9), (Vec::new(), false));
    done(store, DeleteOffline { domain, local: "alice".into(), seqs: vec![1] });
}

pub(super) fn messages_are_of_their_account(store: &dyn Store) {
    let domain = with_messages(store, 1);
    account(store, domain, "bob");
    done(store, keep(domain, "bob", 2, 9));
    let of_alice = list(store, domain, "alice", 0, 9).0;
    done(store, DeleteOffline { domain, local: "bob".into(), seqs: vec![of_alice[0].seq] });
    assert_eq!(list(store, domain, "alice", 0, 9).0, of_alice);
    assert_eq!(list(store, domain, "bob", 0, 9).0.len(), 1);
}
