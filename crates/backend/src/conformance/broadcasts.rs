//! Broadcasts, and which accounts have acknowledged them.

use super::Noun;
use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::store::broadcasts::{
    AccountEnd, Broadcast as FindBroadcast, BroadcastBounds, BroadcastChange, BroadcastEndOf, Broadcasts,
    ChangeBroadcast, ChangeBroadcastAnswer, ChangedBroadcasts, CountAccounts, CreateBroadcast,
    CreateBroadcastAnswer, EndBroadcasts, EndedBroadcasts, GivenCount,
};
use carillon_core::ports::{Ask, Page, Part, Store};
use std::sync::Arc;

pub(super) const NOUN: Noun = Noun {
    writes: |domain| {
        let pause = BroadcastChange::Steer { paused: Some(true), rate: None, not_before: None, window: None };
        vec![
            Ask::from(create(domain, 7)),
            Ask::from(change(domain, 7, pause)),
            Ask::from(ended(&[(7, 1)], &[(7, 1, 5)])),
            Ask::from(change(domain, 7, BroadcastChange::Abort)),
        ]
    },
    state: |store, domain| {
        let changed = (open(store), changed_after(store, 0));
        format!("{:?} {changed:?} {:?}", listed(store, domain), end_of(store, 7, AccountId(1)))
    },
    write_lasting: |store, domain| {
        made(store, create(domain, 7));
        let alice = number(store, domain, "alice");
        ask(store, ended(&[(7, alice.0)], &[(7, 1, 5)]));
    },
    check_lasting: |store, domain| {
        let alice = number(store, domain, "alice");
        assert_eq!(progress(store, domain, 7), (5, 1));
        assert!(end_of(store, 7, alice).is_some());
        assert_eq!(open(store).len(), 1);
    },
};

const BOUNDS: BroadcastBounds = BroadcastBounds { open: 3, bytes: 10_000 };

fn broadcast(domain: DomainId, n: u64) -> Broadcast {
    Broadcast {
        id: id(n),
        domain,
        audience: Audience::Always,
        priority: Priority::High,
        payload: Payload::Json("{\"n\":1}".into()),
        key: Some(KeyId(3)),
        created: T,
        expires: T.plus(100),
        topic: Some(BroadcastTopic { id: TopicId(4), name: "été".into() }),
        pace: BroadcastPace { rate: Some(9), ..BroadcastPace::default() },
        state: BroadcastState::Running,
        ended: None,
        revision: 0,
    }
}

fn create(domain: DomainId, n: u64) -> CreateBroadcast {
    CreateBroadcast { broadcast: Arc::new(broadcast(domain, n)), bounds: BOUNDS }
}

fn made(store: &dyn Store, create: CreateBroadcast) -> Broadcast {
    answer!(ask(store, create), CreateBroadcastAnswer::Created(made) => *made)
}

fn change(domain: DomainId, n: u64, change: BroadcastChange) -> ChangeBroadcast {
    ChangeBroadcast { domain, id: id(n), change, now: T.plus(9) }
}

/// Ends as pairs of broadcast and account; counts as triples of broadcast, counter and count.
fn ended(ends: &[(u64, u64)], given: &[(u64, u64, u64)]) -> EndBroadcasts {
    let end = |&(n, account): &(u64, u64)| AccountEnd {
        id: id(n),
        account: AccountId(account),
        at: T.plus(5),
        by: AcknowledgedBy::Receipt,
    };
    let given = given.iter().map(|&(n, counter, given)| GivenCount { id: id(n), counter, given });
    EndBroadcasts { ends: ends.iter().map(end).collect(), given: given.collect() }
}

fn listed(store: &dyn Store, domain: DomainId) -> Vec<BroadcastReport> {
    ask(store, Broadcasts { domain, before: NotificationId(u128::MAX), limit: 99 })
}

fn changed(store: &dyn Store, after: u64, only_open: bool, page: Page) -> Part<Broadcast> {
    ask(store, ChangedBroadcasts { after, only_open, page })
}

fn changed_after(store: &dyn Store, after: u64) -> Vec<Broadcast> {
    changed(store, after, false, Page { entries: 99, bytes: 1 << 20 }).entries
}

fn open(store: &dyn Store) -> Vec<Broadcast> {
    changed(store, 0, true, Page { entries: 99, bytes: 1 << 20 }).entries
}

fn progress(store: &dyn Store, domain: DomainId, n: u64) -> (u64, u64) {
    let found = ask(store, FindBroadcast { domain, id: id(n) }).expect("it is there");
    (found.progress.given, found.progress.acknowledged)
}

fn end_of(store: &dyn Store, n: u64, account: AccountId) -> Option<BroadcastEnd> {
    ask(store, BroadcastEndOf { id: id(n), account })
}

fn number(store: &dyn Store, domain: DomainId, local: &str) -> AccountId {
    let found = ask(store, Accounts { domain, after: None, limit: 99 });
    found.iter().find(|found| found.jid.local() == Some(local)).expect("an account").id
}

fn ground(store: &dyn Store) -> (DomainId, AccountId, AccountId) {
    let domain = domain(store);
    account(store, domain, "alice");
    account(store, domain, "bob");
    (domain, number(store, domain, "alice"), number(store, domain, "bob"))
}

fn sweep(store: &dyn Store, now: UnixMs, forget: UnixMs, max: u32) -> bool {
    ask(store, Sweep { now, forget, max }).more
}

pub(super) fn are_created_once(store: &dyn Store) {
    let (domain, ..) = ground(store);
    let first = made(store, create(domain, 1));
    assert_eq!(first, Broadcast { revision: first.revision, ..broadcast(domain, 1) });
    let other = Broadcast { payload: Payload::Json("{}".into()), ..broadcast(domain, 1) };
    let again = CreateBroadcast { broadcast: Arc::new(other), bounds: BOUNDS };
    assert_eq!(made(store, again), first, "it is left as it is");
    assert_eq!(ask(store, create(DomainId(99), 2)), CreateBroadcastAnswer::NoDomain);
    made(store, create(domain, 3));
    let ids: Vec<_> = listed(store, domain).iter().map(|found| found.broadcast.id).collect();
    assert_eq!(ids, [id(3), id(1)]);
    let older = ask(store, Broadcasts { domain, before: id(3), limit: 99 });
    assert_eq!(older.len(), 1);
    assert_eq!(ask(store, FindBroadcast { domain: DomainId(99), id: id(1) }), None, "it is another domain's");
    assert_eq!(ask(store, CountAccounts { domain }), 2);
}

pub(super) fn are_bounded_while_they_are_open(store: &dyn Store) {
    let (domain, ..) = ground(store);
    let bytes = broadcast(domain, 1).bytes() as u64;
    let within =
        |n, bytes| CreateBroadcast { bounds: BroadcastBounds { bytes, ..BOUNDS }, ..create(domain, n) };
    made(store, within(1, bytes));
    assert_eq!(ask(store, within(2, 2 * bytes - 1)), CreateBroadcastAnswer::Full);
    made(store, within(2, 2 * bytes));
    made(store, create(domain, 3));
    assert_eq!(ask(store, create(domain, 4)), CreateBroadcastAnswer::TooMany);
    ask(store, change(domain, 1, BroadcastChange::Abort));
    made(store, create(domain, 4));
}

pub(super) fn are_steered_until_they_end(store: &dyn Store) {
    let (domain, ..) = ground(store);
    let first = made(store, create(domain, 1));
    let window = DayWindow { from: 60, to: 120, ahead: 30 };
    let steer = |paused, rate| BroadcastChange::Steer {
        paused,
        rate,
        not_before: Some(Some(T.plus(1))),
        window: Some(Some(window)),
    };
    let steered =
        |asked| answer!(ask(store, asked), ChangeBroadcastAnswer::Changed(found) => found.broadcast);
    let paused = steered(change(domain, 1, steer(Some(true), Some(None))));
    assert!(paused.revision > first.revision);
    let pace = BroadcastPace { rate: None, not_before: Some(T.plus(1)), window: Some(window) };
    assert_eq!((paused.state, paused.pace), (BroadcastState::Paused, pace));
    assert_eq!(steered(change(domain, 1, steer(Some(true), None))), paused, "nothing is different");
    let goes_on = steered(change(domain, 1, steer(Some(false), Some(Some(5)))));
    assert_eq!((goes_on.state, goes_on.pace.rate), (BroadcastState::Running, Some(5)));
    let told = changed_after(store, paused.revision);
    assert_eq!(told, std::slice::from_ref(&goes_on));
    let aborted = steered(change(domain, 1, BroadcastChange::Abort));
    assert_eq!((aborted.state, aborted.ended), (BroadcastState::Aborted, Some(T.plus(9))));
    assert_eq!(steered(change(domain, 1, BroadcastChange::Abort)), aborted);
    let late = ask(store, change(domain, 1, steer(Some(true), None)));
    assert!(matches!(late, ChangeBroadcastAnswer::Ended(found) if found.broadcast == aborted));
    assert_eq!(ask(store, change(domain, 2, BroadcastChange::Abort)), ChangeBroadcastAnswer::Missing);
    assert_eq!(ask(store, change(DomainId(99), 1, BroadcastChange::Abort)), ChangeBroadcastAnswer::Missing);
    assert_eq!(changed_after(store, goes_on.revision), [aborted]);
    assert!(open(store).is_empty(), "it has ended");
}

pub(super) fn are_heard_of_page_by_page(store: &dyn Store) {
    let (domain, ..) = ground(store);
    let made = [1, 2, 3].map(|n| made(store, create(domain, n)));
    let [first, second, third] = &made;
    ask(store, change(domain, 1, BroadcastChange::Abort));
    let page = |entries, bytes| Page { entries, bytes };
    let of = |after, only_open, page| {
        let found = changed(store, after, only_open, page);
        (found.entries.iter().map(|one| one.id).collect::<Vec<_>>(), found.more)
    };
    assert_eq!(of(0, false, page(1, 1 << 20)), (vec![id(2)], true), "one that is changed comes again");
    assert_eq!(of(second.revision, false, page(2, 1 << 20)), (vec![id(3), id(1)], false));
    assert_eq!(of(0, false, page(9, first.payload.bytes())), (vec![id(2)], true));
    assert_eq!(of(0, true, page(9, 1 << 20)), (vec![id(2), id(3)], false));
    assert_eq!(of(second.revision, true, page(1, 0)), (vec![id(3)], false));
    assert_eq!(of(third.revision + 1, false, page(9, 0)), (vec![], false));
}

pub(super) fn end_once_per_account(store: &dyn Store) {
    let (domain, alice, bob) = ground(store);
    made(store, create(domain, 1));
    made(store, create(domain, 2));
    ask(store, ended(&[(1, alice.0), (1, alice.0), (1, 999), (2, bob.0), (3, bob.0)], &[]));
    ask(store, ended(&[(1, alice.0)], &[]));
    assert_eq!(progress(store, domain, 1), (0, 1), "one that is not there does not count");
    assert_eq!(progress(store, domain, 2), (0, 1));
    let asked = EndedBroadcasts { broadcasts: vec![id(1), id(2), id(3)], accounts: vec![alice, bob] };
    let mut found = ask(store, asked);
    found.sort();
    assert_eq!(found, [(id(1), alice), (id(2), bob)]);
    let end = BroadcastEnd { at: T.plus(5), by: AcknowledgedBy::Receipt };
    assert_eq!(end_of(store, 1, alice), Some(end));
    assert_eq!(end_of(store, 1, bob), None);
    ask(store, change(domain, 1, BroadcastChange::Abort));
    ask(store, ended(&[(1, bob.0)], &[]));
    assert_eq!(progress(store, domain, 1), (0, 1), "it has ended");
}

pub(super) fn are_counted_by_many(store: &dyn Store) {
    let (domain, ..) = ground(store);
    made(store, create(domain, 1));
    let counter = u64::MAX - 5;
    for given in [[(1, 1, 5), (1, counter, 7)], [(1, 1, 5), (1, counter, 9)], [(1, 1, 4), (2, 1, 8)]] {
        ask(store, ended(&[], &given));
    }
    assert_eq!(progress(store, domain, 1), (14, 0));
}

pub(super) fn finish_and_are_forgotten(store: &dyn Store) {
    let (domain, alice, bob) = ground(store);
    let first = made(store, create(domain, 1));
    ask(store, ended(&[(1, alice.0), (1, bob.0)], &[(1, 1, 2)]));
    assert!(!sweep(store, T.plus(99), UnixMs(0), 1));
    assert!(sweep(store, T.plus(100), UnixMs(0), 1), "what is kept of accounts goes bit by bit");
    let told = changed_after(store, first.revision);
    let finished = answer!(&told[..], [found] => found.clone());
    assert_eq!((finished.state, finished.ended), (BroadcastState::Finished, Some(T.plus(100))));
    while sweep(store, T.plus(100), UnixMs(0), 1) {}
    assert_eq!([alice, bob].map(|account| end_of(store, 1, account)), [None, None]);
    assert_eq!(progress(store, domain, 1), (2, 2), "that is known further");
    assert!(!sweep(store, T.plus(200), T.plus(100), 9));
    assert_eq!(listed(store, domain).len(), 1);
    assert!(!sweep(store, T.plus(200), T.plus(101), 9));
    assert!(listed(store, domain).is_empty());
    let next = made(store, create(domain, 9));
    assert!(next.revision > finished.revision, "no revision is given twice");
}

pub(super) fn go_with_their_account_and_their_domain(store: &dyn Store) {
    let (domain, alice, _) = ground(store);
    made(store, create(domain, 1));
    ask(store, ended(&[(1, alice.0)], &[]));
    done(store, DeleteAccount { domain, local: "alice".into(), now: T, held_until: T, rows_max: u32::MAX });
    assert_eq!(end_of(store, 1, alice), None);
    while ask(store, delete_domain(domain)).expect("it is there").more {}
    assert_eq!(ask(store, FindBroadcast { domain, id: id(1) }), None);
    assert!(open(store).is_empty());
}
