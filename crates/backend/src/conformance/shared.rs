//! What stores that share a database must do: one question is answered by one of them, the next by another, or both are asked at once.
//!
//! A store on a file is nobody else's while it is open (`OpenError::InUse`), so this is for stores on a server.

use super::ground::*;
use super::webhooks;
use carillon_core::model::*;
use carillon_core::ports::store::leases::TakeLease;
use carillon_core::ports::{Answer, Ask, Reply, Store, StoreHealth, StoreStats};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// One thing that two stores on one database must do.
#[derive(Clone, Copy)]
pub struct Case {
    /// Its module and function.
    pub name: &'static str,
    /// Asks two stores on a database that has nothing in it, and panics when they do not do what they must.
    pub run: fn(&dyn Store, &dyn Store),
}

macro_rules! cases {
    ($($case:ident),+ $(,)?) => { &[$(Case { name: concat!("shared::", stringify!($case)), run: $case }),+] };
}

/// Every case.
pub const CASES: &[Case] = cases![
    a_name_is_given_once,
    a_claim_is_refused_to_the_other,
    what_is_due_is_given_to_one,
    a_lease_is_one_holders,
    an_idempotency_key_goes_once,
    a_bound_is_one_for_both,
    revisions_are_given_once_and_seen_in_order,
    a_generation_is_raised_for_both,
    both_sides_of_a_subscription_change_together,
];

/// A store whose questions go by turns to two that share a database: whatever the one has answered, the other knows. It passes
/// [`super::CASES`], except those of [`OF_ONE_STORE`].
pub struct ByTurns<S> {
    stores: [S; 2],
    turn: AtomicUsize,
}

impl<S: Store> ByTurns<S> {
    /// Two stores on one database.
    pub fn new(stores: [S; 2]) -> ByTurns<S> {
        ByTurns { stores, turn: AtomicUsize::new(0) }
    }

    fn next(&self) -> &S {
        &self.stores[self.turn.fetch_add(1, Ordering::Relaxed) % 2]
    }
}

impl<S: Store> Store for ByTurns<S> {
    fn ask(&self, ask: Ask, reply: Reply<Answer>) {
        self.next().ask(ask, reply);
    }

    fn ask_all(&self, asks: &mut Vec<(Ask, Reply<Answer>)>) {
        self.next().ask_all(asks);
    }

    fn stats(&self) -> StoreStats {
        self.next().stats()
    }

    fn health(&self) -> StoreHealth {
        self.next().health()
    }

    fn close(&self) {
        self.stores.iter().for_each(Store::close);
    }
}

/// Cases about what one store promises of questions that wait with it together, of what it tells its own process, and of what is its own node's.
pub const OF_ONE_STORE: &[&str] = &[
    "together::writes_are_in_order",
    "logins::of_many_at_once",
    "push::are_hinted_at_where_there_are_registrations",
    "parked::groups_are_kept_by_their_numbers",
    "parked::groups_come_in_pages",
    "parked::groups_are_bounded_by_bytes",
    "parked::groups_are_forgotten",
];

/// Asks both stores at once, each on a thread of its own, and returns what each made of it.
fn at_once<T: Send>(stores: [&dyn Store; 2], ask_it: impl Fn(usize, &dyn Store) -> T + Sync) -> [T; 2] {
    let ask_it = &ask_it;
    thread::scope(|scope| {
        let [one, other] = [0, 1].map(|number| scope.spawn(move || ask_it(number, stores[number])));
        [one, other].map(|thread| thread.join().expect("it asks"))
    })
}

fn a_name_is_given_once(one: &dyn Store, other: &dyn Store) {
    let domain = domain(one);
    let names: Vec<String> = (0..40).map(|n| format!("u{n}")).collect();
    let created = at_once([one, other], |_, store| {
        let waiting: Vec<_> = names.iter().map(|name| asked(store, create_account(domain, name))).collect();
        waiting.iter().map(waited).collect::<Vec<_>>()
    });
    for (n, name) in names.iter().enumerate() {
        let ids = created.iter().filter_map(|answers| match &answers[n] {
            CreateAccountAnswer::Created(id) => Some(*id),
            CreateAccountAnswer::Exists => None,
            answer => panic!("{name}: {answer:?}"),
        });
        let ids: Vec<_> = ids.collect();
        assert_eq!(ids.len(), 1, "{name} is created once");
        for store in [one, other] {
            assert_eq!(identity(store, domain, name).account, ids[0]);
        }
    }
    // A name that was removed by one is held back by the other.
    let policy = Policy { registration: true, ..Policy::default() };
    let open = ask(one, PutDomain { name: "open.example".into(), policy }).domain.id;
    account(one, open, "alice");
    let held_until = T.plus(100);
    done(one, DeleteAccount { domain: open, local: "alice".into(), now: T, held_until, rows_max: u32::MAX });
    let registers = |now| CreateAccount { is_in_band: true, now, ..create_account(open, "alice") };
    assert_eq!(ask(other, registers(T.plus(99))), CreateAccountAnswer::Held);
    answer!(ask(other, registers(T.plus(100))), CreateAccountAnswer::Created(_) => ());
}

fn a_claim_is_refused_to_the_other(one: &dyn Store, other: &dyn Store) {
    let made = |store: &dyn Store| match ask(store, webhooks::create(None)) {
        CreateWebhookAnswer::Created(made) => made.id,
        answer => panic!("{answer:?}"),
    };
    let all: BTreeSet<WebhookId> = [one, other, one, other].map(made).into();
    let claim = |store: &dyn Store, owner, now: UnixMs| {
        let claim = ClaimWebhooks { owner, now, until: now.plus(1000), passed: Vec::new() };
        ask(store, claim).iter().map(|webhook| webhook.id).collect::<BTreeSet<_>>()
    };
    let [first, second] = at_once([one, other], |owner, store| claim(store, owner as u64, T));
    assert!(first.is_disjoint(&second), "{first:?} {second:?}");
    assert_eq!(&first | &second, all, "each has an owner");
    assert_eq!(claim(other, 1, T.plus(999)), second, "what is another's is refused until its claim ends");
    assert_eq!(claim(other, 1, T.plus(1000)), all);
    // Whoever had it before commits nothing any more.
    let commit = |id, owner: u64| {
        let progress = WebhookProgress { cursor: 1, ..WebhookProgress::default() };
        CommitWebhook { id, owner, progress, is_gone: false, letters: Vec::new() }
    };
    for id in all {
        assert_eq!(ask(one, commit(id, 0)), Err(Lost));
        assert_eq!(ask(one, commit(id, 1)), Ok(()), "an owner may use either store");
    }
}

fn what_is_due_is_given_to_one(one: &dyn Store, other: &dyn Store) {
    let domain = domain(one);
    account(one, domain, "alice");
    for n in 0..60 {
        let later = Notification { send_at: Some(T.plus(10)), ..notification(domain, "alice", n) };
        stored(if n % 2 == 0 { one } else { other }, later);
    }
    let claimed = at_once([one, other], |_, store| {
        let mut claimed = Vec::new();
        loop {
            let claim = ClaimDue { now: T.plus(10), until: T.plus(20), page: page(3) };
            let (entries, more) = both(ask(store, claim));
            claimed.extend(entries.iter().map(|notification| notification.id));
            if !more {
                return claimed;
            }
        }
    });
    let mut all = claimed.concat();
    all.sort_unstable();
    assert_eq!(all, (0..60).map(id).collect::<Vec<_>>());
}

fn a_lease_is_one_holders(one: &dyn Store, other: &dyn Store) {
    for n in 0..20 {
        let taken = at_once([one, other], |holder, store| {
            let (name, holder) = (n.to_string().into(), holder.to_string().into());
            ask(store, TakeLease { name, holder, now: T, until: T.plus(10), state: None }).is_ok()
        });
        assert_eq!(taken.iter().filter(|taken| **taken).count(), 1, "lease {n}");
    }
}

fn an_idempotency_key_goes_once(one: &dyn Store, other: &dyn Store) {
    let reserve = |store: &dyn Store, name: &str, body: u8, now: UnixMs| {
        let body_hash = [body; 32];
        let idempotency_key = name.into();
        let key = KeyId(5);
        ask(store, Reserve { key, idempotency_key, body_hash, kept_bytes_max: u64::MAX, now })
    };
    for n in 0..20 {
        let name = format!("order-{n}");
        let mut answers = at_once([one, other], |_, store| reserve(store, &name, 1, T));
        answers.sort_by_key(|answer| *answer == Reservation::InProgress);
        assert_eq!(answers, [Reservation::Go { since: T }, Reservation::InProgress], "{name}");
    }
    let (idempotency_key, response) = ("order-1".into(), "{}".to_owned().into());
    done(one, Remember { key: KeyId(5), idempotency_key, response });
    let replay = Reservation::Replay { response: "{}".into() };
    assert_eq!(reserve(other, "order-1", 1, T.plus(1)), replay);
    assert_eq!(reserve(other, "order-1", 2, T.plus(1)), Reservation::Mismatch);
}

fn a_bound_is_one_for_both(one: &dyn Store, other: &dyn Store) {
    const MAX: u32 = 10;
    let domain = domain(one);
    account(one, domain, "alice");
    let topics: Vec<_> = (0..30).map(|n| topic(one, domain, &format!("t{n}"))).collect();
    let followed = at_once([one, other], |number, store| {
        let own = topics.iter().skip(number).step_by(2);
        let follow =
            |topic: &TopicId| Subscribe { topic: *topic, domain, local: "alice".into(), max: MAX, now: T };
        let waiting: Vec<_> = own.map(|topic| asked(store, follow(topic))).collect();
        let answers = waiting.iter().map(waited);
        answers.filter(|answer| matches!(answer, SubscribeAnswer::Subscribed { new: true, .. })).count()
    });
    assert_eq!(followed.iter().sum::<usize>(), MAX as usize);
    for store in [one, other] {
        assert_eq!(login(store, domain, "alice").subscriptions.len(), MAX as usize);
    }
}

fn revisions_are_given_once_and_seen_in_order(one: &dyn Store, other: &dyn Store) {
    const EACH: u64 = 50;
    let domain = domain(one);
    let news = topic(one, domain, "news");
    let before = publish(other, news, domain, "first", 1000).revision;
    let given = at_once([one, other], |number, store| {
        let mut last = before;
        for n in 0..EACH {
            // What this one has published, the other store knows.
            let item = publish(store, news, domain, &format!("{number}-{n}"), 1000);
            assert!(item.revision > last, "{:?} comes after {last:?}", item.revision);
            last = item.revision;
            let newest = newest(if number == 0 { other } else { one }, news);
            assert!(newest >= last, "{newest:?} is what there was before {last:?}");
        }
        last
    });
    let last = given.into_iter().max().expect("two");
    assert_eq!(last.0, before.0 + 2 * EACH, "each change takes the next revision");
    assert_eq!([one, other].map(|store| newest(store, news)), [last; 2]);
    assert_eq!(item_ids(one, news), item_ids(other, news));
}

/// The revision of the newest item.
fn newest(store: &dyn Store, topic: TopicId) -> Revision {
    let items = answer!(ask(store, Items::newest(topic, 1)), Some(items) => items);
    items[0].revision
}

fn a_generation_is_raised_for_both(one: &dyn Store, other: &dyn Store) {
    let domain = domain(one);
    account(one, domain, "alice");
    let news = topic(one, domain, "news");
    let mut last = login(other, domain, "alice").generation;
    let mut is_higher = |store: &dyn Store, what: &str| {
        let now = login(store, domain, "alice").generation;
        assert!(now > last, "{what}: {now:?} after {last:?}");
        last = now;
    };
    subscribe(one, news, domain, "alice");
    is_higher(other, "it follows a topic");
    done(other, SetCredentials { domain, local: "alice".into(), credentials: keys(9) });
    is_higher(one, "its keys are others");
    assert!(ask(one, RevokeTokens { domain, local: "alice".into(), agent: None }).is_some());
    is_higher(other, "its tokens are taken back");
    done(other, Unsubscribe { topic: news, domain, local: "alice".into() });
    is_higher(one, "it follows nothing");
    let before = last;
    at_once([one, other], |number, store| {
        for n in 0..20 {
            done(
                store,
                SetCredentials { domain, local: "alice".into(), credentials: keys(number as u8 * 20 + n) },
            );
        }
    });
    let after = [one, other].map(|store| login(store, domain, "alice").generation);
    assert_eq!(after[0], after[1]);
    assert!(after[0].0 >= before.0 + 40, "each change takes a generation of its own: {before:?}, {after:?}");
}

fn both_sides_of_a_subscription_change_together(one: &dyn Store, other: &dyn Store) {
    let domain = domain(one);
    let accounts: Vec<String> = (0..10).map(|n| format!("u{n}")).collect();
    for name in &accounts {
        account(one, domain, name);
    }
    // Each pair from both ends at once: their records are locked in one order, whoever begins.
    at_once([one, other], |number, store| {
        for pair in accounts.chunks(2) {
            super::rosters::subscribe(store, domain, &pair[number], &pair[1 - number]);
        }
    });
    for pair in accounts.chunks(2) {
        for (own, contact) in [(0, 1), (1, 0)] {
            let contact = jid(&format!("{}@example.org", pair[contact]));
            let [here, there] = [one, other].map(|store| super::rosters::record(store, domain, &pair[own]));
            assert_eq!(here, there, "both stores say the same of {}", pair[own]);
            let found = here.roster.contacts.iter().find(|entry| entry.jid == contact);
            assert!(found.is_some_and(|found| found.standing.to && found.standing.from), "{found:?}");
        }
    }
}
