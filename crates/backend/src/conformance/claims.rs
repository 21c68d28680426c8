//! What all [`Claims`] must pass, with what may befall their engine.

pub use super::bus::Fault;
use carillon_core::model::Epoch;
use carillon_core::ports::claims::{ACCOUNT_BYTES_MAX, Reached, Reaches};
use carillon_core::ports::{Claimed, Claims, Policy, Unavailable};
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// An engine that nodes of a cell claim accounts in, each by a way of its own.
pub trait Engine {
    /// The claims of a node.
    fn open(&self, own: Epoch, reaches: Reaches) -> Arc<dyn Claims>;

    /// From now on this is so on the way between a node and the engine.
    fn fault(&self, of: Epoch, fault: Fault);

    /// The engine fails, and another one takes its place that knows nothing.
    fn lose(&self);
}

/// One thing that all claims must do.
#[derive(Clone, Copy)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// Runs it on an engine that has no claims, and panics when it does not do what it must.
    pub run: fn(&dyn Engine),
}

macro_rules! cases {
    ($($case:ident),+ $(,)?) => { &[$(Case { name: concat!("claims::", stringify!($case)), run: $case }),+] };
}

/// Every case.
pub const CASES: &[Case] = cases![
    are_fresh_and_then_ones_own,
    of_a_single_session_replace_each_other,
    of_many_sessions_stay_with_the_first,
    of_the_dead_count_for_nothing,
    are_located_and_forgotten,
    of_many_at_once_one_is_first,
    of_many_accounts_are_each_answered,
    are_for_any_name,
    are_answered_while_the_engine_is_away,
    that_are_stalled_are_answered,
    that_wait_are_bounded,
    that_are_lost_are_told,
    that_are_closed_answer,
];

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);
const ALICE: &str = "alice@example.org";

/// A node, and what it was told of the engine.
struct Node {
    epoch: Epoch,
    claims: Arc<dyn Claims>,
    reached: Receiver<Reached>,
}

type Waiting<T> = Receiver<Result<T, Unavailable>>;

impl Node {
    fn open(engine: &dyn Engine, epoch: u64) -> Node {
        let (sender, reached) = channel();
        let sender = Mutex::new(sender);
        let reaches: Reaches = Arc::new(move |reached| {
            let _ = sender.lock().expect("nobody panics with it").send(reached);
        });
        let node = Node { epoch: Epoch(epoch), claims: engine.open(Epoch(epoch), reaches), reached };
        assert_eq!(node.told(), Reached::Back { lost: false });
        node
    }

    fn told(&self) -> Reached {
        self.reached.recv_timeout(PATIENCE).expect("the node is told")
    }

    fn sees(&self, living: &[u64], newest: u64) {
        self.claims.view(living.iter().copied().map(Epoch).collect(), Epoch(newest));
    }

    fn claims(&self, account: &str, policy: Policy) -> Waiting<Claimed> {
        let (sender, waiting) = channel();
        self.claims.claim(
            account.into(),
            policy,
            Box::new(move |answer| {
                let _ = sender.send(answer);
            }),
        );
        waiting
    }

    fn claim(&self, account: &str, policy: Policy) -> Result<Claimed, Unavailable> {
        answer(&self.claims(account, policy))
    }

    fn locate(&self, account: &str) -> Result<Option<Epoch>, Unavailable> {
        let (sender, waiting) = channel();
        self.claims.locate(
            account.into(),
            Box::new(move |answer| {
                let _ = sender.send(answer);
            }),
        );
        answer(&waiting)
    }

    /// Claims until it is its own: a replacement may be told twice.
    fn is_home(&self, account: &str, before: Option<Epoch>) {
        match self.claim(account, Policy::Single) {
            Ok(Claimed::Replaced(again)) if Some(again) == before => {
                assert_eq!(self.claim(account, Policy::Single), Ok(Claimed::Mine));
            }
            claimed => assert_eq!(claimed, Ok(Claimed::Mine)),
        }
    }
}

fn answer<T>(waiting: &Waiting<T>) -> Result<T, Unavailable> {
    let answer = waiting.recv_timeout(PATIENCE).expect("a question is answered");
    assert!(waiting.try_recv().is_err(), "a question is answered once");
    answer
}

/// Three nodes that see each other live.
fn three(engine: &dyn Engine) -> [Node; 3] {
    let nodes = [1, 2, 3].map(|epoch| Node::open(engine, epoch));
    nodes.iter().for_each(|node| node.sees(&[1, 2, 3], 3));
    nodes
}

fn are_fresh_and_then_ones_own(engine: &dyn Engine) {
    let [a, b, _] = three(engine);
    for policy in [Policy::Single, Policy::Multi] {
        let account = format!("{policy:?}@example.org");
        assert_eq!(b.locate(&account), Ok(None));
        assert_eq!(a.claim(&account, policy), Ok(Claimed::Fresh));
        assert_eq!(a.claim(&account, policy), Ok(Claimed::Mine));
        assert_eq!(b.locate(&account), Ok(Some(a.epoch)));
        assert_eq!(a.locate(&account), Ok(Some(a.epoch)));
    }
}

fn of_a_single_session_replace_each_other(engine: &dyn Engine) {
    let [a, b, c] = three(engine);
    assert_eq!(a.claim(ALICE, Policy::Single), Ok(Claimed::Fresh));
    assert_eq!(b.claim(ALICE, Policy::Single), Ok(Claimed::Replaced(a.epoch)));
    b.is_home(ALICE, Some(a.epoch));
    assert_eq!(c.claim(ALICE, Policy::Single), Ok(Claimed::Replaced(b.epoch)));
    assert_eq!(a.claim(ALICE, Policy::Single), Ok(Claimed::Replaced(c.epoch)));
    assert_eq!(b.locate(ALICE), Ok(Some(a.epoch)));
    assert_eq!(b.claim(ALICE, Policy::Multi), Ok(Claimed::Seat(a.epoch)), "the domain has changed its mind");
    a.is_home(ALICE, Some(c.epoch));
}

fn of_many_sessions_stay_with_the_first(engine: &dyn Engine) {
    let [a, b, c] = three(engine);
    assert_eq!(a.claim(ALICE, Policy::Multi), Ok(Claimed::Fresh));
    assert_eq!(b.claim(ALICE, Policy::Multi), Ok(Claimed::Seat(a.epoch)));
    assert_eq!(c.claim(ALICE, Policy::Multi), Ok(Claimed::Seat(a.epoch)));
    assert_eq!(a.claim(ALICE, Policy::Multi), Ok(Claimed::Mine));
    a.claims.forget(ALICE.into(), a.epoch);
    assert_eq!(a.locate(ALICE), Ok(None), "what one node asks keeps its order");
    assert_eq!(b.claim(ALICE, Policy::Multi), Ok(Claimed::Fresh));
    assert_eq!(a.claim(ALICE, Policy::Multi), Ok(Claimed::Seat(b.epoch)));
}

fn of_the_dead_count_for_nothing(engine: &dyn Engine) {
    let [a, b, c] = three(engine);
    for policy in [Policy::Single, Policy::Multi] {
        let account = format!("{policy:?}@example.org");
        [&a, &b, &c].into_iter().for_each(|node| node.sees(&[1, 2, 3], 3));
        assert_eq!(c.claim(&account, policy), Ok(Claimed::Fresh));
        // Whoever is above the newest that a node knows of lives.
        b.sees(&[1, 2], 2);
        assert_eq!(b.locate(&account), Ok(Some(c.epoch)));
        b.sees(&[1, 2], 3);
        assert_eq!(b.locate(&account), Ok(None));
        assert_eq!(b.claim(&account, policy), Ok(Claimed::Fresh));
        // A node lives to itself, whatever it is told.
        b.sees(&[], 100);
        assert_eq!(b.locate(&account), Ok(Some(b.epoch)));
        assert_eq!(b.claim(&account, policy), Ok(Claimed::Mine));
        // Epochs are not taken for parts of each other.
        a.sees(&[1, 22, 12], 100);
        assert_eq!(a.claim(&account, policy), Ok(Claimed::Fresh));
    }
}

fn are_located_and_forgotten(engine: &dyn Engine) {
    let [a, b, c] = three(engine);
    assert_eq!(a.claim(ALICE, Policy::Single), Ok(Claimed::Fresh));
    b.claims.forget(ALICE.into(), b.epoch);
    assert_eq!(b.locate(ALICE), Ok(Some(a.epoch)), "it is another's");
    assert_eq!(c.claim(ALICE, Policy::Single), Ok(Claimed::Replaced(a.epoch)));
    b.claims.forget(ALICE.into(), a.epoch);
    assert_eq!(b.locate(ALICE), Ok(Some(c.epoch)), "it was replaced");
    b.claims.forget(ALICE.into(), c.epoch);
    assert_eq!(b.locate(ALICE), Ok(None));
    b.claims.forget(ALICE.into(), c.epoch);
    assert_eq!(a.claim(ALICE, Policy::Single), Ok(Claimed::Fresh));
}

fn of_many_at_once_one_is_first(engine: &dyn Engine) {
    let nodes = three(engine);
    for round in 0..50 {
        let account = format!("u{round}@example.org");
        let policy = if round % 2 == 0 { Policy::Single } else { Policy::Multi };
        let waiting: Vec<_> = nodes.iter().map(|node| (node.epoch, node.claims(&account, policy))).collect();
        let claimed: Vec<_> = waiting
            .iter()
            .map(|(epoch, waiting)| (*epoch, answer(waiting).expect("the engine is there")))
            .collect();
        let fresh: Vec<Epoch> = claimed
            .iter()
            .filter(|(_, claimed)| *claimed == Claimed::Fresh)
            .map(|(epoch, _)| *epoch)
            .collect();
        assert_eq!(fresh.len(), 1, "{claimed:?}");
        let home = nodes[0].locate(&account).expect("the engine is there").expect("somebody has it");
        let others = claimed.iter().filter(|(epoch, _)| *epoch != fresh[0]);
        if policy == Policy::Multi {
            assert!(others.clone().all(|(_, claimed)| *claimed == Claimed::Seat(fresh[0])), "{claimed:?}");
            assert_eq!(home, fresh[0]);
            continue;
        }
        // Each but the last was replaced by one.
        let replaced = others.map(|(_, claimed)| match claimed {
            Claimed::Replaced(before) => *before,
            other => panic!("{other:?}"),
        });
        let replaced: BTreeSet<Epoch> = replaced.collect();
        assert!(replaced.len() == 2 && !replaced.contains(&home), "{claimed:?} {home}");
    }
}

fn of_many_accounts_are_each_answered(engine: &dyn Engine) {
    let [a, b, _] = three(engine);
    let account = |n: usize| format!("u{n}@example.org");
    let waiting: Vec<_> = (0..5000).map(|n| a.claims(&account(n), Policy::Single)).collect();
    assert!(waiting.iter().all(|waiting| answer(waiting) == Ok(Claimed::Fresh)));
    let waiting: Vec<_> = (2500..7500).map(|n| b.claims(&account(n), Policy::Multi)).collect();
    for (n, waiting) in waiting.iter().enumerate() {
        let expected = if n < 2500 { Claimed::Seat(a.epoch) } else { Claimed::Fresh };
        assert_eq!(answer(waiting), Ok(expected), "{n}");
    }
}

fn are_for_any_name(engine: &dyn Engine) {
    let [a, b, _] = three(engine);
    let long = format!("{}@example.org", "x".repeat(ACCOUNT_BYTES_MAX - 12));
    let names =
        ["ärger@münchen.example", "a{b}c@d", "}{", "a\nb\r\n@c", "a\0b", " ", "*", "𝒳@例え.jp", &long];
    for name in names {
        assert_eq!(a.claim(name, Policy::Single), Ok(Claimed::Fresh), "{name:?}");
        assert_eq!(b.locate(name), Ok(Some(a.epoch)), "{name:?}");
    }
    assert_eq!(a.claim(&format!("{long}x"), Policy::Single), Err(Unavailable));
}

/// Asks without a pause until a claim is answered as it should be.
fn comes_back(node: &Node) {
    let mut tries = 0;
    while node.claim("back@example.org", Policy::Single).is_err() {
        tries += 1;
        assert!(tries < 1_000_000, "it does not come back");
        std::thread::yield_now();
    }
}

fn are_answered_while_the_engine_is_away(engine: &dyn Engine) {
    let [a, b, _] = three(engine);
    assert_eq!(a.claim(ALICE, Policy::Single), Ok(Claimed::Fresh));
    engine.fault(a.epoch, Fault::Cut);
    assert_eq!(a.told(), Reached::Away);
    let waiting: Vec<_> = (0..100).map(|n| a.claims(&format!("u{n}@x"), Policy::Single)).collect();
    assert!(waiting.iter().all(|waiting| answer(waiting) == Err(Unavailable)));
    assert_eq!(a.locate(ALICE), Err(Unavailable));
    assert_eq!(b.locate(ALICE), Ok(Some(a.epoch)), "others go on");
    engine.fault(a.epoch, Fault::None);
    comes_back(&a);
    assert_eq!(a.told(), Reached::Back { lost: false });
    a.is_home(ALICE, None);
}

fn that_are_stalled_are_answered(engine: &dyn Engine) {
    let [a, _, _] = three(engine);
    engine.fault(a.epoch, Fault::Stalled);
    let waiting: Vec<_> = (0..100).map(|n| a.claims(&format!("u{n}@x"), Policy::Single)).collect();
    assert!(waiting.iter().all(|waiting| answer(waiting) == Err(Unavailable)));
    assert_eq!(a.told(), Reached::Away);
    engine.fault(a.epoch, Fault::None);
    comes_back(&a);
    assert_eq!(a.told(), Reached::Back { lost: false });
}

fn that_wait_are_bounded(engine: &dyn Engine) {
    let [a, _, _] = three(engine);
    engine.fault(a.epoch, Fault::Stalled);
    let name = |n: usize| format!("{n}{}", "x".repeat(2000));
    let waiting: Vec<_> = (0..20_000).map(|n| a.claims(&name(n), Policy::Single)).collect();
    // The last of them found no room, so they were answered while the first wait.
    let (last, others) = waiting.split_last().expect("there are some");
    assert_eq!(last.try_recv(), Ok(Err(Unavailable)));
    engine.fault(a.epoch, Fault::None);
    let refused = others.iter().filter(|waiting| answer(waiting).is_err()).count();
    assert!(refused > 5000, "{refused}");
    comes_back(&a);
}

fn that_are_lost_are_told(engine: &dyn Engine) {
    let [a, b, c] = three(engine);
    assert_eq!(a.claim(ALICE, Policy::Single), Ok(Claimed::Fresh));
    engine.lose();
    for node in [&a, &b, &c] {
        let is_lost = |reached| match reached {
            Reached::Away => None,
            Reached::Back { lost } => Some(lost),
        };
        assert_eq!(std::iter::repeat_with(|| node.told()).find_map(is_lost), Some(true));
    }
    assert_eq!(b.locate(ALICE), Ok(None));
    assert_eq!(a.claim(ALICE, Policy::Single), Ok(Claimed::Fresh), "it is claimed again");
    assert_eq!(b.locate(ALICE), Ok(Some(a.epoch)));
}

fn that_are_closed_answer(engine: &dyn Engine) {
    let [a, _, _] = three(engine);
    let waiting: Vec<_> = (0..1000).map(|n| a.claims(&format!("u{n}@x"), Policy::Single)).collect();
    a.claims.close();
    // Each is answered, one way or the other.
    let done = waiting.iter().filter(|waiting| answer(waiting).is_ok()).count();
    assert!(done <= 1000);
    assert_eq!(a.claim(ALICE, Policy::Single), Err(Unavailable));
    assert_eq!(a.locate(ALICE), Err(Unavailable));
}
