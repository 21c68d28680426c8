//! What every [`Bus`] must pass, with what may befall its engine.

use crate::BusOptions;
use carillon_core::model::Epoch;
use carillon_core::ports::bus::{Hears, RECORD_BYTES_MAX, Traffic};
use carillon_core::ports::{Bus, Heard, Subject};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An engine that nodes of a cell are on, each by a way of its own.
pub trait Engine {
    /// The bus of a node.
    fn join(&self, own: Epoch, options: BusOptions, hears: Hears) -> Arc<dyn Bus>;

    /// From now on this is so on the way between a node and the engine.
    fn fault(&self, of: Epoch, fault: Fault);

    /// The engine ends, and starts again.
    fn restart(&self);
}

/// What befalls the way between a node and an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// Connections end, and none can be made.
    Cut,
    /// Connections stay, and nothing comes through.
    Stalled,
}

/// One thing that every bus must do.
#[derive(Clone, Copy)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// Runs it on an engine that nobody uses, and panics when the bus does not do what it must.
    pub run: fn(&dyn Engine),
}

macro_rules! cases {
    ($($case:ident),+ $(,)?) => { &[$(Case { name: concat!("bus::", stringify!($case)), run: $case }),+] };
}

/// Every case.
pub const CASES: &[Case] = cases![
    records_come_in_order_and_once,
    records_of_many_threads_come_once,
    nobody_hears_its_own_records,
    what_is_lost_comes_again,
    what_is_lost_for_good_is_told,
    a_lost_last_record_comes_again,
    a_lost_last_record_is_told,
    what_is_stalled_comes,
    a_restart_of_the_engine_is_survived,
    who_follows_later_is_told_that_something_was_before,
    who_leaves_hears_nothing,
    what_waits_is_bounded,
    long_records_come_and_longer_ones_are_told,
    beats_count_and_tell_of_the_store,
    what_is_carried_is_counted,
    who_rests_hears_it_later,
    another_process_goes_on,
    who_is_closed_hears_nothing,
];

const ONE: Subject = Subject::Partition(1);
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A node, and what it heard.
struct Node {
    epoch: Epoch,
    bus: Arc<dyn Bus>,
    heard: Arc<Ears>,
}

#[derive(Default)]
struct Ears {
    heard: Mutex<VecDeque<Heard>>,
    wakes: Condvar,
}

impl Ears {
    fn queue(&self) -> MutexGuard<'_, VecDeque<Heard>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Options for tests: beats are quick.
fn quick() -> BusOptions {
    BusOptions { beat_every: Duration::from_millis(40), ..BusOptions::default() }
}

impl Node {
    fn join(engine: &dyn Engine, epoch: u64, options: BusOptions) -> Node {
        let (epoch, heard) = (Epoch(epoch), Arc::<Ears>::default());
        let ears = heard.clone();
        let hears: Hears = Arc::new(move |heard| {
            ears.queue().push_back(heard);
            ears.wakes.notify_all();
        });
        Node { epoch, bus: engine.join(epoch, options, hears), heard }
    }

    /// The next thing that it hears for which `wanted` gives something.
    fn hear<T>(&self, what: &str, mut wanted: impl FnMut(Heard) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        let mut heard = self.heard.queue();
        loop {
            while let Some(next) = heard.pop_front() {
                if let Some(found) = wanted(next) {
                    return found;
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{} does not hear {what}", self.epoch);
            heard = self.heard.wakes.wait_timeout(heard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for a beat of a node. What else is heard meanwhile is left: a beat may also have told a gap.
    fn hear_beat(&self, of: &Node) {
        let until = Instant::now() + PATIENCE;
        let is_it = |heard: &Heard| matches!(heard, Heard::Beat { from, .. } if *from == of.epoch);
        let mut heard = self.heard.queue();
        loop {
            if let Some(at) = heard.iter().position(is_it) {
                heard.remove(at);
                return;
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{} does not hear a beat", self.epoch);
            heard = self.heard.wakes.wait_timeout(heard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The next record or gap from this node on this subject: its number, or none.
    fn next(&self, of: &Node, on: Subject) -> Option<u64> {
        self.hear("a record or a gap", |heard| match heard {
            Heard::Record { from, subject, record } if from == of.epoch && subject == on => {
                Some(Some(number(&record)))
            }
            Heard::Gap { from, subject } if from == of.epoch && subject == on => Some(None),
            _ => None,
        })
    }

    /// Hears until the record of this number: each once and in order, and a gap wherever some are missing. How many came.
    fn hear_until(&self, of: &Node, on: Subject, from: u64, last: u64) -> usize {
        let (mut expected, mut told, mut count) = (from, false, 0);
        loop {
            match self.next(of, on) {
                None => told = true,
                Some(number) => {
                    assert!(number >= expected, "{number} came after {expected} was due");
                    assert!(
                        number == expected || told,
                        "{expected} to {number} are missing and nobody was told"
                    );
                    (expected, told, count) = (number + 1, false, count + 1);
                }
            }
            if expected > last {
                return count;
            }
        }
    }

    fn post(&self, to: Subject, number: u64) {
        self.bus.post(to, record(number));
    }
}

fn record(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn number(record: &[u8]) -> u64 {
    u64::from_be_bytes(*record.first_chunk().expect("records of tests begin with their number"))
}

/// Two nodes that hear each other.
fn two(engine: &dyn Engine) -> [Node; 2] {
    two_with(engine, &quick())
}

fn two_with(engine: &dyn Engine, options: &BusOptions) -> [Node; 2] {
    let nodes = [1, 2].map(|epoch| Node::join(engine, epoch, options.clone()));
    nodes[0].hear_beat(&nodes[1]);
    nodes[1].hear_beat(&nodes[0]);
    nodes
}

/// Has `b` follow a partition, and waits until it hears what `a` posts there. The number of the next record.
fn follow(a: &Node, b: &Node, on: Subject) -> u64 {
    b.bus.follow(on);
    let mut next = 0;
    loop {
        a.post(on, next);
        a.post(Subject::All, next);
        let is_there = b.hear("a record", |heard| match heard {
            Heard::Record { from, subject, record } if from == a.epoch && number(&record) == next => {
                Some(subject == on)
            }
            _ => None,
        });
        next += 1;
        if is_there {
            return next;
        }
    }
}

fn records_come_in_order_and_once(engine: &dyn Engine) {
    let [a, b] = two(engine);
    let first = follow(&a, &b, ONE);
    let to = [Subject::Node(b.epoch), ONE, Subject::All];
    let last = first + 20_000;
    for number in first..=last {
        to.iter().for_each(|to| a.post(*to, number));
    }
    let mut expected = to.map(|to| (to, first));
    let (mut told, mut heard) = ([false; 3], 0u64);
    while expected.iter().any(|(_, next)| *next <= last) {
        b.hear("records", |it| {
            let (Heard::Record { subject, .. } | Heard::Gap { subject, .. }) = &it else { return None };
            let place = to.iter().position(|to| to == subject)?;
            match &it {
                // What `follow` left on the way to all.
                Heard::Record { record, .. } if number(record) < first => {}
                Heard::Record { record, .. } => {
                    let (number, next) = (number(record), expected[place].1);
                    assert!(
                        number == next || number > next && told[place],
                        "{subject:?} {number} after {next}"
                    );
                    (expected[place].1, told[place]) = (number + 1, false);
                    heard += 1;
                }
                _ => told[place] = true,
            }
            Some(())
        });
    }
    assert!(heard > 3 * 20_000 / 2, "most come: {heard}");
}

fn records_of_many_threads_come_once(engine: &dyn Engine) {
    let [a, b] = two(engine);
    let to = Subject::Node(b.epoch);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let a = &a;
            scope.spawn(move || (0..500).for_each(|n| a.post(to, thread << 32 | n)));
        }
    });
    let mut next = [0u64; 4];
    while next != [500; 4] {
        let number = b.next(&a, to).expect("nothing is lost");
        let thread = (number >> 32) as usize;
        assert_eq!(number & 0xffff_ffff, next[thread], "each thread's come in its order");
        next[thread] += 1;
    }
}

fn nobody_hears_its_own_records(engine: &dyn Engine) {
    let [a, b] = two(engine);
    a.post(Subject::All, 1);
    a.post(Subject::Node(a.epoch), 2);
    a.hear_beat(&a);
    b.post(Subject::All, 3);
    a.hear("the record of another", |heard| match heard {
        Heard::Record { from, record, .. } => {
            assert_eq!((from, number(&record)), (b.epoch, 3));
            Some(())
        }
        Heard::Gap { from, .. } => panic!("a gap of {from}"),
        _ => None,
    });
}

fn what_is_lost_comes_again(engine: &dyn Engine) {
    assert_eq!(lose(engine, &quick()), 199);
}

fn what_is_lost_for_good_is_told(engine: &dyn Engine) {
    // Of the records that are lost the last few are kept.
    let count = lose(engine, &BusOptions { kept_bytes_max: 500, ..quick() });
    assert!((100..199).contains(&count), "{count} came");
}

/// Loses what comes between, and hears the rest. How many came.
fn lose(engine: &dyn Engine, options: &BusOptions) -> usize {
    let [a, b] = two_with(engine, options);
    let to = Subject::Node(b.epoch);
    a.post(to, 0);
    assert_eq!(b.next(&a, to), Some(0));
    engine.fault(b.epoch, Fault::Cut);
    b.hear("that the bus is away", |heard| (heard == Heard::Away).then_some(()));
    (1..100).for_each(|number| a.post(to, number));
    // The engine has had it: what is for the other comes behind it.
    a.hear_beat(&a);
    a.hear_beat(&a);
    engine.fault(b.epoch, Fault::None);
    b.hear("that the bus is back", |heard| (heard == Heard::Back).then_some(()));
    b.hear_beat(&b);
    (100..200).for_each(|number| a.post(to, number));
    b.hear_until(&a, to, 1, 199)
}

fn a_lost_last_record_comes_again(engine: &dyn Engine) {
    assert_eq!(lose_the_last(engine, &quick()), Some(1));
}

fn a_lost_last_record_is_told(engine: &dyn Engine) {
    assert_eq!(lose_the_last(engine, &BusOptions { kept_bytes_max: 0, ..quick() }), None);
}

/// Loses what nothing comes behind. What is heard of it.
fn lose_the_last(engine: &dyn Engine, options: &BusOptions) -> Option<u64> {
    let [a, b] = two_with(engine, options);
    // There is one before it: of who was never heard nothing is asked for.
    a.post(Subject::All, 0);
    assert_eq!(b.next(&a, Subject::All), Some(0));
    engine.fault(b.epoch, Fault::Cut);
    b.hear("that the bus is away", |heard| (heard == Heard::Away).then_some(()));
    a.post(Subject::All, 1);
    a.hear_beat(&a);
    a.hear_beat(&a);
    engine.fault(b.epoch, Fault::None);
    b.next(&a, Subject::All)
}

fn what_is_stalled_comes(engine: &dyn Engine) {
    // What is missing is given up after four beats: longer than a thread of a busy machine waits for its turn.
    let patient = BusOptions { beat_every: Duration::from_millis(250), ..quick() };
    let [a, b] = two_with(engine, &patient);
    let to = Subject::Node(b.epoch);
    // Of somebody that it has heard it knows what is missing; of others it may first hear what comes behind that, and is told a gap.
    a.post(to, 0);
    assert_eq!(b.next(&a, to), Some(0));
    engine.fault(b.epoch, Fault::Stalled);
    (1..100).for_each(|number| a.post(to, number));
    a.hear_beat(&a);
    // Whoever hears nothing of itself knows that something is wrong, even before the engine counts as away.
    engine.fault(b.epoch, Fault::None);
    (100..200).for_each(|number| a.post(to, number));
    assert_eq!(b.hear_until(&a, to, 1, 199), 199);
    b.post(Subject::Node(a.epoch), 7);
    assert_eq!(a.hear_until(&b, Subject::Node(a.epoch), 7, 7), 1);
}

fn a_restart_of_the_engine_is_survived(engine: &dyn Engine) {
    let [a, b] = two(engine);
    let mut next = follow(&a, &b, ONE);
    for _ in 0..3 {
        let first = next;
        for _ in 0..50 {
            a.post(ONE, next);
            next += 1;
        }
        engine.restart();
        // Until one comes through.
        loop {
            a.post(ONE, next);
            next += 1;
            a.hear_beat(&a);
            let has_come = b.heard.queue().iter().any(|heard| {
                matches!(heard, Heard::Record { subject, record, .. } if *subject == ONE && number(record) >= first + 50)
            });
            if has_come {
                break;
            }
        }
        assert_eq!(b.hear_until(&a, ONE, first, next - 1) as u64, next - first, "nothing is lost");
    }
}

fn who_follows_later_is_told_that_something_was_before(engine: &dyn Engine) {
    let [a, b] = two(engine);
    (0..3).for_each(|number| a.post(ONE, number));
    a.post(Subject::All, 0);
    assert_eq!(b.next(&a, Subject::All), Some(0));
    b.bus.follow(ONE);
    assert_eq!(b.next(&a, ONE), None, "by a beat");
    b.bus.leave(ONE);
    follow(&a, &b, ONE);
}

fn who_leaves_hears_nothing(engine: &dyn Engine) {
    let [a, b] = two(engine);
    let mut number = follow(&a, &b, ONE);
    b.bus.leave(ONE);
    // From some record on nothing is heard there, while others are.
    let mut silent = 0;
    while silent < 20 {
        a.post(ONE, number);
        a.post(Subject::Node(b.epoch), number);
        let mut is_silent = true;
        b.hear("a record", |heard| match heard {
            Heard::Record { subject, record, .. } if self::number(&record) == number => {
                is_silent &= subject != ONE;
                (subject != ONE).then_some(())
            }
            _ => None,
        });
        silent = if is_silent { silent + 1 } else { 0 };
        number += 1;
    }
}

fn what_waits_is_bounded(engine: &dyn Engine) {
    let [a, b] = two_with(engine, &BusOptions { waiting_bytes_max: 100_000, ..quick() });
    let to = Subject::Node(b.epoch);
    engine.fault(a.epoch, Fault::Cut);
    a.hear("that the bus is away", |heard| (heard == Heard::Away).then_some(()));
    for n in 0..1000u64 {
        a.bus.post(to, [record(n), vec![0; 1000]].concat());
    }
    engine.fault(a.epoch, Fault::None);
    a.hear("that the bus is back", |heard| (heard == Heard::Back).then_some(()));
    a.hear_beat(&a);
    a.post(to, 1000);
    let count = b.hear_until(&a, to, 0, 1000);
    assert!(count <= 101, "{count} of 1000 were kept");
}

fn long_records_come_and_longer_ones_are_told(engine: &dyn Engine) {
    let [a, b] = two(engine);
    let to = Subject::Node(b.epoch);
    let long = |number: u64, length: usize| [record(number), vec![7; length - 8]].concat();
    a.bus.post(to, long(0, RECORD_BYTES_MAX));
    a.bus.post(to, long(1, RECORD_BYTES_MAX + 1));
    a.post(to, 2);
    b.hear("the long record", |heard| match heard {
        Heard::Record { record, .. } => {
            assert!(record == long(0, RECORD_BYTES_MAX));
            Some(())
        }
        _ => None,
    });
    assert_eq!(b.next(&a, to), None);
    assert_eq!(b.next(&a, to), Some(2));
}

fn beats_count_and_tell_of_the_store(engine: &dyn Engine) {
    let [a, b] = two(engine);
    let beat = || {
        b.hear("a beat", |heard| match heard {
            Heard::Beat { from, count, store } if from == a.epoch => Some((count, store)),
            _ => None,
        })
    };
    let (mut last, works) = beat();
    assert!(works);
    a.bus.tell_store(false);
    loop {
        let (count, works) = beat();
        assert!(count > last);
        last = count;
        if !works {
            break;
        }
    }
    a.bus.tell_store(true);
    while !beat().1 {}
}

fn what_is_carried_is_counted(engine: &dyn Engine) {
    let [a, b] = two(engine);
    let to = Subject::Node(b.epoch);
    (0..100).for_each(|number| a.post(to, number));
    a.bus.post(to, vec![0; RECORD_BYTES_MAX + 1]);
    b.hear_until(&a, to, 0, 99);
    let posted = a.bus.figures();
    assert_eq!(posted.posted.get(&to), Some(&Traffic { records: 100, bytes: 800 }));
    assert_eq!((posted.dropped, posted.is_connected), (1, true));
    assert_eq!(b.next(&a, to), None, "the one that was too long");
    let heard = b.bus.figures();
    assert_eq!(heard.heard.get(&a.epoch), Some(&Traffic { records: 100, bytes: 800 }));
    assert_eq!(heard.gaps.get(&(a.epoch, to)), Some(&1));
    assert_eq!(heard.posted.get(&to), None);
    engine.fault(b.epoch, Fault::Cut);
    b.hear("that the bus is away", |heard| (heard == Heard::Away).then_some(()));
    b.post(Subject::Node(a.epoch), 1);
    let cut = b.bus.figures();
    assert!(!cut.is_connected && cut.waiting_bytes > 0, "{cut:?}");
}

fn who_rests_hears_it_later(engine: &dyn Engine) {
    let [a, b] = two(engine);
    let to = Subject::Node(b.epoch);
    a.post(to, 0);
    assert_eq!(b.next(&a, to), Some(0));
    b.bus.rest(true);
    b.heard.queue().clear();
    (1..=100).for_each(|number| a.post(to, number));
    (0..5).for_each(|_| b.hear_beat(&a));
    let is_record = |heard: &Heard| !matches!(heard, Heard::Beat { .. });
    assert!(!b.heard.queue().iter().any(is_record), "nothing but beats is heard");
    b.bus.rest(false);
    assert_eq!(b.hear_until(&a, to, 1, 100), 100, "what was missed is sent again");
}

/// Both send while one of them goes on in another process.
fn another_process_goes_on(engine: &dyn Engine) {
    let [a, b] = two(engine);
    let (to_a, to_b) = (Subject::Node(a.epoch), Subject::Node(b.epoch));
    a.post(to_b, 0);
    b.post(to_a, 0);
    assert_eq!((b.next(&a, to_b), a.next(&b, to_a)), (Some(0), Some(0)));
    b.bus.rest(true);
    // What it posts last need not have left when it stops.
    (1..=50).for_each(|number| {
        b.post(to_a, number);
        a.post(to_b, number);
    });
    let left = b.bus.hand_over();
    drop(b);
    (51..=100).for_each(|number| a.post(to_b, number));
    let after = Node::join(engine, 2, BusOptions { left: Some(left.into()), ..quick() });
    (51..=100).for_each(|number| after.post(to_a, number));
    (101..=150).for_each(|number| a.post(to_b, number));
    assert_eq!(a.hear_until(&after, to_a, 1, 100), 100, "its numbers go on");
    assert_eq!(after.hear_until(&a, to_b, 1, 150), 150, "it hears what it did not hear before");
}

fn who_is_closed_hears_nothing(engine: &dyn Engine) {
    let [a, b] = two(engine);
    b.bus.close();
    b.heard.queue().clear();
    b.post(Subject::All, 1);
    a.post(Subject::All, 2);
    (0..5).for_each(|_| a.hear_beat(&a));
    assert!(b.heard.queue().is_empty());
}
