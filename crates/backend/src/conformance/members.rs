//! What all [`Members`] must pass.

use super::ground::{T, ask};
use super::keys;
use carillon_core::model::{Epoch, Policy};
use carillon_core::ports::store::Question;
use carillon_core::ports::store::domains::{Domains, PutDomain};
use carillon_core::ports::store::idempotency::{Reservation, Reserve};
use carillon_core::ports::store::keys::CreateKeyAnswer;
use carillon_core::ports::store::leases::TakeLease;
use carillon_core::ports::{Fault, Members, Membership, Store, Unavailable};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// A cell of nodes.
pub trait Cell {
    /// A process of this name starts.
    fn start(&self, name: &str, address: &str, roles: &str) -> Node;
}

/// A process: who it is, and what it writes with, if the store is there.
pub struct Node {
    /// Who it is.
    pub members: Arc<dyn Members>,
    /// What it writes with.
    pub store: Option<Arc<dyn Store>>,
}

/// One thing that all members must do.
#[derive(Clone, Copy)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// Runs it in a cell without nodes, and panics when it does not do what it must.
    pub run: fn(&dyn Cell),
}

macro_rules! cases {
    ($($case:ident),+ $(,)?) => { &[$(Case { name: concat!("members::", stringify!($case)), run: $case }),+] };
}

/// Every case.
pub const CASES: &[Case] = cases![
    are_listed_as_they_said,
    epochs_are_given_once,
    who_starts_buries_who_was_before,
    a_buried_epoch_never_commits,
    what_the_buried_had_begun_another_may_do,
    the_buried_bury_nobody,
    of_two_that_bury_each_other_one_lives,
    whose_process_is_gone_has_no_connection,
];

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

impl Node {
    fn epoch(&self) -> Epoch {
        self.members.epoch()
    }

    fn list(&self) -> Membership {
        let (sender, answer) = channel();
        self.members.list(Box::new(move |answer| {
            let _ = sender.send(answer);
        }));
        answer.recv_timeout(PATIENCE).expect("it is answered").expect("the store is there")
    }

    fn bury(&self, other: &Node) -> Result<bool, Unavailable> {
        let (sender, answer) = channel();
        self.members.bury(
            other.epoch(),
            Box::new(move |answer| {
                let _ = sender.send(answer);
            }),
        );
        answer.recv_timeout(PATIENCE).expect("it is answered")
    }

    fn put(&self, name: &str) -> Result<(), Fault> {
        let Some(store) = &self.store else { return Ok(()) };
        let (sender, answer) = channel();
        let put = PutDomain { name: name.into(), policy: Policy::default() };
        store.ask(
            put.into(),
            PutDomain::reply(move |answer| {
                let _ = sender.send(answer.map(drop));
            }),
        );
        answer.recv_timeout(PATIENCE).expect("it is answered")
    }
}

fn start(cell: &dyn Cell, name: &str) -> Node {
    cell.start(name, "", "")
}

fn are_listed_as_they_said(cell: &dyn Cell) {
    let a = cell.start("a", "10.0.0.1:5269", "edge api");
    let b = cell.start("b", "", "ingress");
    // Who has asked has a connection.
    b.list();
    let found = a.list();
    assert_eq!(found, b.list());
    let said: Vec<_> =
        found.members.iter().map(|it| (it.epoch, &*it.name, &*it.address, &*it.roles, it.is_dead)).collect();
    assert_eq!(
        said,
        [(a.epoch(), "a", "10.0.0.1:5269", "edge api", false), (b.epoch(), "b", "", "ingress", false)]
    );
    assert_eq!((found.newest, found.living()), (b.epoch(), vec![a.epoch(), b.epoch()]));
    assert_eq!(a.bury(&b), Ok(true));
    let found = a.list();
    assert_eq!((found.newest, found.living()), (b.epoch(), vec![a.epoch()]));
    assert!(found.members.iter().any(|it| it.epoch == b.epoch() && it.is_dead));
}

fn whose_process_is_gone_has_no_connection(cell: &dyn Cell) {
    let (a, b) = (start(cell, "a"), start(cell, "b"));
    b.list();
    let connected = || a.list().members.into_iter().filter(|it| it.is_connected).map(|it| it.epoch);
    assert_eq!(connected().collect::<Vec<_>>(), [a.epoch(), b.epoch()]);
    let gone = b.epoch();
    if let Some(store) = &b.store {
        store.close();
    }
    drop(b);
    let began = Instant::now();
    while connected().any(|epoch| epoch == gone) {
        assert!(began.elapsed() < PATIENCE, "its connections are closed");
        std::thread::yield_now();
    }
    assert_eq!(a.list().living(), [a.epoch(), gone], "nobody has buried it");
}

fn epochs_are_given_once(cell: &dyn Cell) {
    let mut last = Epoch(0);
    for round in 0..4 {
        for name in ["a", "b", "c"] {
            let node = start(cell, name);
            assert!(node.epoch() > last, "{name} in round {round}");
            last = node.epoch();
        }
    }
    let node = start(cell, "d");
    assert_eq!(node.list().newest, node.epoch());
    assert_eq!(node.list().members.len(), 4);
}

fn who_starts_buries_who_was_before(cell: &dyn Cell) {
    let (old, other) = (start(cell, "a"), start(cell, "b"));
    assert_eq!(old.put("old.example"), Ok(()));
    let new = start(cell, "a");
    assert_eq!(other.list().living(), [other.epoch(), new.epoch()]);
    assert!(old.store.is_none() || old.put("late.example").is_err());
    assert_eq!(old.bury(&other), Ok(false));
    assert_eq!(other.bury(&old), Ok(false), "there is no such member any more");
    assert_eq!(new.put("new.example"), Ok(()));
}

fn a_buried_epoch_never_commits(cell: &dyn Cell) {
    let (a, b) = (start(cell, "a"), start(cell, "b"));
    let (Some(of_a), Some(of_b)) = (&a.store, &b.store) else { return };
    assert_eq!(b.put("before.example"), Ok(()));
    // Many writes are on their way when it is buried: each is there or not as it was answered, and none comes later.
    let (sender, answers) = channel();
    for n in 0..500 {
        let sender = sender.clone();
        let name = format!("lease {n}");
        let take =
            TakeLease { name: name.into(), holder: "b".into(), now: T, until: T.plus(1000), state: None };
        of_b.ask(
            take.into(),
            TakeLease::reply(move |answer| {
                let _ = sender.send((n, answer.is_ok()));
            }),
        );
    }
    assert_eq!(a.bury(&b), Ok(true));
    let after: Vec<bool> = (0..500).map(|n| is_held(&**of_a, n)).collect();
    for _ in 0..500 {
        let (n, is_done) = answers.recv_timeout(PATIENCE).expect("it is answered");
        assert_eq!(is_done, after[n], "lease {n}");
    }
    assert!(b.put("after.example").is_err());
    assert!((0..500).all(|n| is_held(&**of_a, n) == after[n]), "nothing comes later");
    let names: Vec<_> = ask(&**of_a, Domains).into_iter().map(|domain| domain.name).collect();
    assert_eq!(names, [Arc::<str>::from("before.example")]);
    assert_eq!(a.bury(&b), Ok(false), "it is dead");
    assert_eq!(a.put("others.example"), Ok(()));
    let again = start(cell, "b");
    assert_eq!(again.put("again.example"), Ok(()));
    assert!(b.put("after.example").is_err());
    assert_eq!(a.list().living(), [a.epoch(), again.epoch()]);
}

fn what_the_buried_had_begun_another_may_do(cell: &dyn Cell) {
    let [a, b, c] = ["a", "b", "c"].map(|name| start(cell, name));
    let (Some(of_a), Some(of_b), Some(of_c)) = (&a.store, &b.store, &c.store) else { return };
    let CreateKeyAnswer::Created(key) = ask(&**of_a, keys::create(1, None)) else { panic!("it is made") };
    let reserve = |store: &dyn Store| {
        let (idempotency_key, kept_bytes_max) = ("order-1".into(), u64::MAX);
        ask(store, Reserve { key: key.id, idempotency_key, body_hash: [1; 32], kept_bytes_max, now: T })
    };
    assert_eq!(reserve(&**of_b), Reservation::Go { since: T });
    assert_eq!(reserve(&**of_a), Reservation::InProgress);
    assert_eq!(a.bury(&b), Ok(true));
    assert_eq!(reserve(&**of_a), Reservation::Go { since: T });
    assert_eq!(reserve(&**of_c), Reservation::InProgress, "now it is this node's");
    let again = start(cell, "a");
    assert_eq!(reserve(again.store.as_deref().expect("it has one")), Reservation::Go { since: T });
}

fn is_held(store: &dyn Store, n: usize) -> bool {
    use carillon_core::ports::store::leases::Lease;
    ask(store, Lease { name: format!("lease {n}").into(), now: T }).is_some()
}

fn the_buried_bury_nobody(cell: &dyn Cell) {
    let [a, b, c] = ["a", "b", "c"].map(|name| start(cell, name));
    assert_eq!(a.bury(&b), Ok(true));
    assert_eq!((b.bury(&a), b.bury(&c), b.bury(&b)), (Ok(false), Ok(false), Ok(false)));
    assert_eq!(c.list().living(), [a.epoch(), c.epoch()]);
    // A node may leave by burying itself.
    assert_eq!(c.bury(&c), Ok(true));
    assert_eq!(a.list().living(), [a.epoch()]);
    assert!(c.store.is_none() || c.put("late.example").is_err());
}

fn of_two_that_bury_each_other_one_lives(cell: &dyn Cell) {
    for _ in 0..20 {
        let [a, b] = ["a", "b"].map(|name| start(cell, name));
        std::thread::scope(|scope| {
            // One may end the connection of the other while it buries.
            for (one, other) in [(&a, &b), (&b, &a)] {
                scope.spawn(|| one.bury(other));
            }
        });
        let watches = start(cell, "c");
        let living = watches.list().living();
        let living: Vec<_> = living.into_iter().filter(|epoch| *epoch != watches.epoch()).collect();
        assert!(living == [a.epoch()] || living == [b.epoch()], "{living:?}");
    }
}
