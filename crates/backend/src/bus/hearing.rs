//! What a node hears: the numbers of each sender on each subject are looked at, so that nothing is heard twice and nothing is lost unseen.

use super::envelope::{self, Envelope, Sender};
use carillon_core::model::Epoch;
use carillon_core::ports::bus::{BusFigures, Hears, Traffic};
use carillon_core::ports::{Heard, Subject};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Mutex, PoisonError, TryLockError};

/// A sender that was silent for so many ticks is forgotten. If it is heard again, a gap is told.
const SILENT_TICKS_MAX: u32 = 2400;

/// What a node hears.
pub(crate) struct Hearing {
    own: Epoch,
    hears: Hears,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    follows: BTreeSet<Subject>,
    /// The number of the next record.
    next: HashMap<(Epoch, Subject), u64>,
    senders: HashMap<Epoch, Known>,
    /// Last numbers that beats told and that were not reached. Their records may be on the way on another subject's path.
    due: HashMap<(Epoch, Subject), Due>,
    /// What was heard of each sender, and how often it was told that something was lost.
    heard: HashMap<Epoch, Traffic>,
    gaps: HashMap<(Epoch, Subject), u64>,
    unreadable: u64,
    is_away: bool,
    is_closed: bool,
}

struct Known {
    run: u64,
    silent_ticks: u32,
}

struct Due {
    last: u64,
    /// Whether a tick has passed since.
    waited: bool,
}

impl Hearing {
    pub(crate) fn new(own: Epoch, hears: Hears) -> Hearing {
        Hearing { own, hears, state: Mutex::new(State { is_away: true, ..State::default() }) }
    }

    /// Takes an envelope that came on this subject. What it tells is told while it is looked at, so that the order holds.
    pub(crate) fn take(&self, subject: Subject, bytes: &[u8]) {
        let read = envelope::read(bytes);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_closed {
            return;
        }
        match read {
            Ok(Envelope::Records { from, number, records }) => {
                if from.epoch != self.own && state.follows.contains(&subject) {
                    self.records(&mut state, from, subject, number, &records);
                }
            }
            Ok(Envelope::Beat { from, count, store, last }) => {
                (self.hears)(Heard::Beat { from: from.epoch, count, store });
                if from.epoch != self.own {
                    self.beat(&mut state, from, last);
                }
            }
            Err(e) => {
                state.unreadable += 1;
                if state.unreadable.is_power_of_two() {
                    tracing::warn!(error = %e, count = state.unreadable, "what came over the bus cannot be read");
                }
            }
        }
    }

    fn records(&self, state: &mut State, from: Sender, subject: Subject, number: u64, records: &[&[u8]]) {
        self.meet(state, from);
        let next = state.next.entry((from.epoch, subject)).or_insert(1);
        if number > *next {
            *state.gaps.entry((from.epoch, subject)).or_default() += 1;
            (self.hears)(Heard::Gap { from: from.epoch, subject });
        }
        let known = next.saturating_sub(number);
        let heard = state.heard.entry(from.epoch).or_default();
        for record in records.iter().skip(usize::try_from(known).unwrap_or(usize::MAX)) {
            heard.count(record.len());
            (self.hears)(Heard::Record { from: from.epoch, subject, record: record.to_vec() });
        }
        *next = (*next).max(number.saturating_add(records.len() as u64));
    }

    fn beat(&self, state: &mut State, from: Sender, last: Vec<(Subject, u64)>) {
        self.meet(state, from);
        for (subject, last) in last {
            let key = (from.epoch, subject);
            let reached = state.next.get(&key).map_or(0, |next| next - 1);
            if last > reached && state.follows.contains(&subject) {
                state.due.entry(key).or_insert(Due { last, waited: false });
            }
        }
    }

    /// Notes that a sender lives. Another run of it numbers from the beginning.
    fn meet(&self, state: &mut State, from: Sender) {
        let known = state.senders.entry(from.epoch).or_insert(Known { run: from.run, silent_ticks: 0 });
        known.silent_ticks = 0;
        if known.run == from.run {
            return;
        }
        known.run = from.run;
        state.due.retain(|(epoch, _), _| *epoch != from.epoch);
        let State { next, gaps, .. } = state;
        next.retain(|(epoch, subject), _| {
            if *epoch == from.epoch {
                *gaps.entry((*epoch, *subject)).or_default() += 1;
                (self.hears)(Heard::Gap { from: *epoch, subject: *subject });
            }
            *epoch != from.epoch
        });
    }

    /// A part of the time between two beats has passed: what a beat told before it is lost by now, or here. Whoever is being told something for
    /// so long is not waited for: beats of this node go on. Also whether the engine can be reached, as [`Hearing::reached`].
    pub(crate) fn tick(&self, is_reached: bool) {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(e)) => e.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        self.reach(&mut state, is_reached);
        let State { next, senders, due, heard, gaps, is_closed, .. } = &mut *state;
        if *is_closed {
            return;
        }
        due.retain(|key, due| {
            let next = next.entry(*key).or_insert(1);
            if *next > due.last {
                return false;
            }
            if due.waited {
                *gaps.entry(*key).or_default() += 1;
                (self.hears)(Heard::Gap { from: key.0, subject: key.1 });
                *next = due.last + 1;
            }
            !std::mem::replace(&mut due.waited, true)
        });
        senders.retain(|_, known| {
            known.silent_ticks += 1;
            known.silent_ticks <= SILENT_TICKS_MAX
        });
        next.retain(|(epoch, _), _| senders.contains_key(epoch));
        gaps.retain(|(epoch, _), _| senders.contains_key(epoch));
        heard.retain(|epoch, _| senders.contains_key(epoch));
    }

    /// Adds what was heard, and whether the engine can be reached.
    pub(crate) fn add_to(&self, figures: &mut BusFigures) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        figures.is_connected = !state.is_away && !state.is_closed;
        figures.heard = state.heard.iter().map(|(epoch, traffic)| (*epoch, *traffic)).collect();
        figures.gaps = state.gaps.iter().map(|(of, count)| (*of, *count)).collect();
    }

    /// From now on what comes on these subjects is heard, and nothing else. What is new is heard from its next record on, after a gap if there was
    /// one before.
    pub(crate) fn follow(&self, subjects: BTreeSet<Subject>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.next.retain(|(_, subject), _| subjects.contains(subject));
        state.due.retain(|(_, subject), _| subjects.contains(subject));
        state.follows = subjects;
    }

    /// The engine can be reached, or it cannot.
    pub(crate) fn reached(&self, is_reached: bool) {
        self.reach(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner), is_reached);
    }

    fn reach(&self, state: &mut State, is_reached: bool) {
        if state.is_away == is_reached && !state.is_closed {
            state.is_away = !is_reached;
            (self.hears)(if is_reached { Heard::Back } else { Heard::Away });
        }
    }

    /// Nothing is heard once this has returned.
    pub(crate) fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
    }
}

impl fmt::Debug for Hearing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hearing").field("own", &self.own).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const ALL: Subject = Subject::All;
    const FROM: Sender = Sender { epoch: Epoch(2), run: 5 };

    fn hearing() -> (Hearing, Arc<Mutex<Vec<String>>>) {
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let notes = heard.clone();
        let hears: Hears = Arc::new(move |heard| {
            let said = match heard {
                Heard::Record { record, .. } => String::from_utf8(record).expect("it is text"),
                Heard::Gap { .. } => "gap".to_owned(),
                Heard::Beat { count, .. } => format!("beat {count}"),
                other => format!("{other:?}"),
            };
            notes.lock().expect("nobody panics with it").push(said);
        });
        let hearing = Hearing::new(Epoch(1), hears);
        hearing.follow(BTreeSet::from([ALL]));
        (hearing, heard)
    }

    fn records(from: Sender, number: u64, texts: &[&str]) -> Vec<u8> {
        let mut bytes = envelope::begin(from, number);
        texts.iter().for_each(|text| envelope::append(&mut bytes, text.as_bytes()));
        bytes
    }

    fn beat(last: u64) -> Vec<u8> {
        envelope::beat(FROM, last, true, &[(ALL, last), (Subject::Partition(1), 9)])
    }

    fn said(heard: &Mutex<Vec<String>>) -> Vec<String> {
        std::mem::take(&mut heard.lock().expect("nobody panics with it"))
    }

    #[test]
    fn each_record_is_heard_once_and_what_is_missing_is_told() {
        let (hearing, heard) = hearing();
        hearing.take(ALL, &records(FROM, 1, &["a", "b"]));
        hearing.take(ALL, &records(FROM, 2, &["b", "c"]));
        assert_eq!(said(&heard), ["a", "b", "c"]);
        hearing.take(ALL, &records(FROM, 5, &["e"]));
        hearing.take(ALL, &records(FROM, 4, &["d"]));
        assert_eq!(said(&heard), ["gap", "e"]);
        hearing.take(Subject::Partition(1), &records(FROM, 1, &["not followed"]));
        hearing.take(ALL, &records(Sender { epoch: Epoch(1), run: 1 }, 1, &["own"]));
        hearing.take(ALL, b"garbage");
        assert_eq!(said(&heard), [""; 0]);
    }

    #[test]
    fn a_beat_tells_what_was_lost_behind_everything() {
        let (hearing, heard) = hearing();
        hearing.take(ALL, &records(FROM, 1, &["a"]));
        hearing.take(ALL, &beat(1));
        hearing.tick(false);
        hearing.tick(false);
        assert_eq!(said(&heard), ["a", "beat 1"]);
        // It may be on its way.
        hearing.take(ALL, &beat(2));
        hearing.tick(false);
        hearing.take(ALL, &records(FROM, 2, &["b"]));
        hearing.tick(false);
        assert_eq!(said(&heard), ["beat 2", "b"]);
        hearing.take(ALL, &beat(3));
        hearing.tick(false);
        hearing.tick(false);
        hearing.tick(false);
        hearing.take(ALL, &records(FROM, 3, &["late"]));
        hearing.take(ALL, &records(FROM, 4, &["d"]));
        assert_eq!(said(&heard), ["beat 3", "gap", "d"]);
    }

    #[test]
    fn who_follows_later_is_told_that_something_was_before() {
        let (hearing, heard) = hearing();
        let one = Subject::Partition(1);
        hearing.follow(BTreeSet::from([ALL, one]));
        hearing.take(ALL, &beat(0));
        hearing.tick(false);
        hearing.tick(false);
        assert_eq!(said(&heard), ["beat 0", "gap"]);
        hearing.take(one, &records(FROM, 10, &["x"]));
        hearing.follow(BTreeSet::from([ALL]));
        hearing.follow(BTreeSet::from([ALL, one]));
        hearing.take(one, &records(FROM, 12, &["y"]));
        assert_eq!(said(&heard), ["x", "gap", "y"]);
    }

    #[test]
    fn another_run_of_a_sender_numbers_from_the_beginning() {
        let (hearing, heard) = hearing();
        hearing.take(ALL, &records(FROM, 1, &["a", "b"]));
        hearing.take(ALL, &records(Sender { run: 6, ..FROM }, 1, &["c"]));
        assert_eq!(said(&heard), ["a", "b", "gap", "c"]);
    }

    #[test]
    fn who_was_silent_for_long_is_forgotten() {
        let (hearing, heard) = hearing();
        hearing.take(ALL, &records(FROM, 1, &["a"]));
        (0..=SILENT_TICKS_MAX).for_each(|_| hearing.tick(false));
        assert!(hearing.state.lock().expect("nobody panics with it").next.is_empty());
        hearing.take(ALL, &records(FROM, 2, &["b"]));
        assert_eq!(said(&heard), ["a", "gap", "b"]);
    }

    #[test]
    fn changes_of_the_engine_are_told_once_and_nothing_is_after_the_end() {
        let (hearing, heard) = hearing();
        hearing.reached(false);
        hearing.reached(true);
        hearing.reached(true);
        hearing.reached(false);
        assert_eq!(said(&heard), ["Back", "Away"]);
        hearing.close();
        hearing.reached(true);
        hearing.take(ALL, &records(FROM, 1, &["a"]));
        hearing.take(ALL, &beat(1));
        assert_eq!(said(&heard), [""; 0]);
    }
}
