//! The pager between a store, a client and a socket that a random program drives.

use super::*;
use crate::form;
use crate::form::testing::{attempt, proves};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// How the store is told what the session was given.
#[derive(Clone, Copy, Debug)]
enum Reads {
    /// By the last one given; what a session takes at once is not stored (offline messages).
    After,
    /// By all that are in flight; everything is stored first (notifications).
    Except,
}

#[derive(Clone, Debug)]
enum Step {
    /// Something for the session comes, of so many bytes.
    Arrives(usize),
    /// The store reads a page of at most this many entries.
    Reads(usize),
    /// The page that was read comes. More may have arrived since.
    Answers,
    /// The store cannot answer.
    Fails,
    /// The pause after a failure is over.
    Wakes,
    /// The client takes it from now on, or no longer.
    Toggles,
    /// The socket took what was written.
    Flushes,
    /// The client acknowledges so many, at most.
    Acknowledges(usize),
    /// The session goes on in another process, to which the answer to a question does not come.
    Moves,
}

/// A page that was asked for.
enum Question {
    After(u64),
    Except(Vec<u64>),
}

/// The entries of a page with their sizes, and whether there are more.
type Page = (Vec<(u64, usize)>, bool);

struct World {
    reads: Reads,
    stored: BTreeMap<u64, usize>,
    arrived: u64,
    /// The pager, and the last entry that it gave: there only while there is something to know.
    progress: Option<Box<(Pager<u64>, u64)>>,
    takes: bool,
    awaits_flush: bool,
    questions: Vec<Question>,
    page: Option<Page>,
    wakes: bool,
    failures: u32,
    given: Vec<u64>,
    /// Bytes that the session was sent.
    sent: u32,
}

impl World {
    fn new(reads: Reads) -> World {
        World {
            reads,
            stored: BTreeMap::new(),
            arrived: 0,
            progress: None,
            takes: true,
            awaits_flush: false,
            questions: Vec::new(),
            page: None,
            wakes: false,
            failures: 0,
            given: Vec::new(),
            sent: 0,
        }
    }

    fn pager(&mut self) -> &mut Pager<u64> {
        &mut self.progress.get_or_insert_default().0
    }

    fn is_behind(&self) -> bool {
        self.progress.as_ref().is_some_and(|progress| progress.0.is_behind())
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Arrives(bytes) => self.arrives(bytes),
            Step::Reads(entries) => self.reads(entries),
            Step::Answers => self.answers(),
            Step::Fails => self.fails(),
            Step::Wakes => {
                if std::mem::take(&mut self.wakes) {
                    self.go_on();
                }
            }
            Step::Toggles => {
                self.takes = !self.takes;
                self.go_on();
            }
            Step::Flushes => {
                if std::mem::take(&mut self.awaits_flush) {
                    self.go_on();
                }
            }
            Step::Acknowledges(most) => {
                let Some(progress) = &mut self.progress else { return };
                let done: Vec<u64> = progress.0.in_flight().copied().take(most).collect();
                for number in done {
                    assert_eq!(progress.0.acknowledged(|entry| *entry == number), Some(number));
                    self.stored.remove(&number);
                }
            }
            Step::Moves => {
                let bytes = form::encode(&self.progress, 0);
                self.progress = form::decode(&bytes, form::Clock::default()).unwrap();
                self.sent = 0;
                self.questions.clear();
                self.page = None;
                self.go_on();
            }
        }
        self.check();
    }

    fn arrives(&mut self, bytes: usize) {
        self.arrived += 1;
        let (number, at_once) = (self.arrived, self.takes && !self.is_behind());
        match self.reads {
            Reads::After if at_once => return self.given.push(number),
            Reads::After | Reads::Except => self.stored.insert(number, bytes),
        };
        if at_once {
            self.give(number, bytes);
        } else {
            self.pager().look_again();
            self.go_on();
        }
    }

    fn give(&mut self, number: u64, bytes: usize) {
        self.sent += bytes as u32;
        let sent = self.sent;
        self.pager().gave(number, sent);
        self.progress.as_mut().expect("a pager that gave something").1 = number;
        self.given.push(number);
    }

    /// What `session::backlog::go_on` does.
    fn go_on(&mut self) {
        if self.awaits_flush {
            return;
        }
        let takes = self.takes;
        let Some(progress) = &mut self.progress else { return };
        if progress.0.next(takes) == Next::Ask {
            self.questions.push(match self.reads {
                Reads::After => Question::After(progress.1),
                Reads::Except => Question::Except(progress.0.in_flight().copied().collect()),
            });
        }
    }

    fn reads(&mut self, entries: usize) {
        let Some(question) = self.questions.pop() else { return };
        let is_wanted = |number: &u64| match &question {
            Question::After(last) => number > last,
            Question::Except(except) => !except.contains(number),
        };
        let stored = self.stored.iter().map(|(number, bytes)| (*number, *bytes));
        let mut left: Vec<(u64, usize)> = stored.filter(|(number, _)| is_wanted(number)).collect();
        let more = left.len() > entries;
        left.truncate(entries);
        self.page = Some((left, more));
    }

    /// What `session::backlog` does when a page came.
    fn answers(&mut self) {
        let Some((page, more)) = self.page.take() else { return };
        self.failures = 0;
        let takes = self.takes;
        self.pager().came(more || !takes);
        if !takes {
            return self.go_on();
        }
        let (mut buffered, turn) = (1000, PageTurn::begin(1000));
        for (number, bytes) in page {
            if turn.is_over(buffered) {
                self.pager().look_again();
                break;
            }
            assert!(buffered - 1000 < TURN_BYTES_MAX, "the entry that passes the bound is the last");
            buffered += bytes;
            self.give(number, bytes);
        }
        self.awaits_flush = true;
    }

    fn fails(&mut self) {
        if self.questions.pop().is_some() || self.page.take().is_some() {
            let pause = self.pager().failed();
            assert_eq!(pause, 1000 << self.failures.min(6));
            self.failures += 1;
            self.wakes = true;
        }
    }

    fn check(&mut self) {
        let asked = self.questions.len() + usize::from(self.page.is_some());
        assert!(asked <= 1, "one question at a time");
        assert!(self.given.is_sorted_by(|a, b| a < b), "in order, each once: {:?}", self.given);
        let last = self.given.last().copied().unwrap_or_default();
        assert!(
            self.is_behind() || self.stored.keys().all(|number| *number <= last),
            "something is forgotten"
        );
        if self.progress.as_ref().is_some_and(|progress| progress.0.is_idle()) {
            self.progress = None;
        }
    }

    /// The client takes everything, and all goes well.
    fn settle(&mut self) {
        if !self.takes {
            self.step(&Step::Toggles);
        }
        let most = 10 * (self.arrived + 1);
        for _ in 0..most {
            for step in
                [Step::Wakes, Step::Reads(100), Step::Answers, Step::Flushes, Step::Acknowledges(usize::MAX)]
            {
                self.step(&step);
            }
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1usize..20_000).prop_map(Step::Arrives),
        4 => (1usize..8).prop_map(Step::Reads),
        4 => Just(Step::Answers),
        1 => Just(Step::Fails),
        2 => Just(Step::Wakes),
        2 => Just(Step::Toggles),
        4 => Just(Step::Flushes),
        2 => (0usize..5).prop_map(Step::Acknowledges),
        1 => Just(Step::Moves),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    /// Whatever comes, fails and is taken back: entries are given in their order, each once, by turns of bounded size, with one
    /// question at a time; in the end all of them, and then nothing is kept.
    #[test]
    fn nothing_that_waits_is_forgotten_overtaken_or_given_twice(
        reads in prop_oneof![Just(Reads::After), Just(Reads::Except)],
        steps in steps(),
    ) {
        let mut world = World::new(reads);
        for step in &steps {
            world.step(step);
        }
        world.settle();
        prop_assert_eq!(&world.given, &(1..=world.arrived).collect::<Vec<_>>());
        prop_assert!(world.stored.is_empty() && world.questions.is_empty());
        prop_assert!(world.progress.is_none(), "an idle session keeps none");
    }

    /// What is said to have arrived is what has a whole TLS record more behind it than has not arrived, or everything. Behind it is
    /// whatever the session was sent, of other kinds, too. What it was given after the count is not known to have arrived.
    #[test]
    fn what_has_arrived_is_what_enough_was_sent_after(
        sizes in prop::collection::vec((1u32..40_000, any::<bool>()), 1..20),
        began: u32,
        unacked in 0u64..200_000,
        counted in any::<prop::sample::Index>(),
    ) {
        let (mut pager, mut sent) = (Pager::default(), began);
        let (counted, mut sent_then) = (counted.index(sizes.len() + 1), began);
        for (number, (bytes, is_of_it)) in sizes.iter().enumerate() {
            sent = sent.wrapping_add(*bytes);
            if number < counted {
                sent_then = sent;
            }
            if *is_of_it {
                pager.gave(number, sent);
            }
        }
        let expected = (0..counted).filter(|number| sizes[*number].1).filter(|number| {
            let behind: u32 = sizes[number + 1..counted].iter().map(|(bytes, _)| bytes).sum();
            unacked == 0 || u64::from(behind) >= unacked + (1 << 14)
        });
        let arrived: Vec<usize> = pager.arrived(unacked, sent_then).copied().collect();
        prop_assert_eq!(arrived, expected.collect::<Vec<_>>());
    }
}

#[test]
fn a_pager_is_idle_when_it_has_nothing_to_know() {
    let mut pager = Pager::default();
    assert!(pager.is_idle() && pager.begin_timer() && !pager.begin_timer(), "one timer at a time");
    assert!(!pager.is_idle(), "the timer looks for it");
    pager.timer_fired();
    pager.gave(1, 10);
    assert!(!pager.is_idle() && !pager.is_behind());
    assert_eq!(pager.acknowledged(|entry| *entry == 2), None);
    assert_eq!(pager.acknowledged(|entry| *entry == 1), Some(1));
    assert!(pager.is_idle());
    pager.look_again();
    assert!(!pager.is_idle() && pager.is_behind());
}

#[test]
fn a_pager_is_small() {
    assert!(size_of::<Pager<u64>>() <= 48, "{} bytes", size_of::<Pager<u64>>());
}

#[test]
fn its_form() {
    let mut pager = Pager::default();
    proves("Pager, idle", &pager);
    pager.gave(700u64, 100);
    pager.gave(14_000, 2100);
    (0..3).for_each(|_| _ = pager.failed());
    pager.begin_timer();
    pager.elsewhere();
    proves("Pager", &pager);
    // A page that was asked for does not come to another process.
    assert_eq!(pager.next(true), Next::Ask);
    let mut read: Pager<u64> = attempt(&form::encode(&pager, 0)).unwrap();
    assert_eq!(read.next(true), Next::Ask);
}

#[test]
fn counts_that_do_not_fit_each_other_are_refused() {
    let read = |failures: u8, given: u64, ends: [u64; 2]| {
        let flight = Flight::made(given, ends.map(|end| (1u64, end)));
        let pager = Pager { place: Place::CaughtUp, failures, timer_runs: false, flight };
        attempt::<Pager<u64>>(&form::encode(&pager, 0)).is_ok()
    };
    assert!(read(DOUBLINGS_MAX, 9, [3, 9]));
    assert!(!read(DOUBLINGS_MAX + 1, 9, [3, 9]), "the pause would be too long");
    assert!(!read(0, 8, [3, 9]), "more is in flight than was given");
    assert!(!read(0, 9, [9, 3]), "they are in order");
}
