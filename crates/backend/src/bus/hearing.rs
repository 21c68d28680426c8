//! What a node hears: the numbers of each sender on each subject are looked at, so that nothing is heard twice and nothing is lost unseen.

use super::Outbox;
use super::envelope::{self, Envelope, Sender};
use super::holds::{Due as HoldDue, Holds};
use super::left::Left;
use carillon_core::model::Epoch;
use carillon_core::ports::bus::{BusFigures, Hears, Traffic};
use carillon_core::ports::{Heard, Subject};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

/// A sender that was silent for so many ticks is forgotten. If it is heard again, a gap is told.
const SILENT_TICKS_MAX: u32 = 2400;

/// What a node hears.
pub(crate) struct Hearing {
    own: Epoch,
    hears: Hears,
    /// What asks for records again, and has those that others ask for.
    outbox: Arc<Outbox>,
    state: Mutex<HearingState>,
}

#[derive(Default)]
struct HearingState {
    follows: BTreeSet<Subject>,
    /// The number of the next record.
    next: HashMap<(Epoch, Subject), u64>,
    senders: HashMap<Epoch, KnownNode>,
    /// Last numbers that beats told and that were not reached. Their records may be on the way on another subject's path.
    due: HashMap<(Epoch, Subject), Due>,
    holds: Holds,
    /// What was heard of each sender, and how often it was told that something was lost.
    heard: HashMap<Epoch, Traffic>,
    gaps: HashMap<(Epoch, Subject), u64>,
    unreadable: u64,
    is_away: bool,
    /// Records are not heard for now: they count as missing.
    rests: bool,
    /// It has just begun in the place of another process, and has yet to ask for what it did not hear meanwhile.
    has_begun: bool,
    is_closed: bool,
}

struct KnownNode {
    run: u64,
    silent_ticks: u32,
}

struct Due {
    last: u64,
    /// Whether a tick has passed since.
    waited: bool,
}

impl Hearing {
    pub(crate) fn new(own: Epoch, hears: Hears, outbox: Arc<Outbox>) -> Hearing {
        Hearing {
            own,
            hears,
            outbox,
            state: Mutex::new(HearingState { is_away: true, ..HearingState::default() }),
        }
    }

    /// Takes an envelope that came on this subject. What it tells is told while it is looked at, so that the order holds. Whether there is something to
    /// be sent.
    pub(crate) fn take(&self, subject: Subject, bytes: &[u8]) -> bool {
        let read = envelope::read(bytes);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_closed {
            return false;
        }
        match read {
            Ok(Envelope::Records { from, number, records }) => {
                let is_for = from.epoch != self.own && state.follows.contains(&subject) && !state.rests;
                is_for && self.came(&mut state, from, subject, number, bytes, &records)
            }
            Ok(Envelope::Beat { from, count, store, last }) => {
                (self.hears)(Heard::Beat { from: from.epoch, count, store });
                if from.epoch != self.own {
                    self.beat(&mut state, from, last);
                }
                false
            }
            Ok(Envelope::Want { run, subject, first, last }) => {
                self.outbox.wanted(run, subject, first, last);
                true
            }
            // Whoever rests asks again, and is told again.
            Ok(Envelope::Gone { .. }) if state.rests => false,
            Ok(Envelope::Gone { from, number }) => {
                self.meet(&mut state, from);
                let key = (from.epoch, subject);
                let is_missed = state.next.get(&key).is_some_and(|next| *next < number);
                if is_missed {
                    self.gap(&mut state, key, number);
                }
                is_missed && self.go_on(&mut state, key)
            }
            Err(e) => {
                state.unreadable += 1;
                if state.unreadable.is_power_of_two() {
                    tracing::warn!(error = %e, count = state.unreadable, "what came over the bus cannot be read");
                }
                false
            }
        }
    }

    /// Takes records. Those that come before others are held until these have come. Whether something is to be asked for.
    fn came(
        &self,
        state: &mut HearingState,
        from: Sender,
        subject: Subject,
        number: u64,
        envelope: &[u8],
        records: &[&[u8]],
    ) -> bool {
        self.meet(state, from);
        let key = (from.epoch, subject);
        let is_known = state.next.contains_key(&key);
        let next = *state.next.entry(key).or_insert(1);
        if number > next && is_known {
            if state.holds.keep(key, number, envelope) {
                return self.ask(state, key);
            }
            self.give_up(state, key);
        }
        self.hear(state, key, number, records);
        self.go_on(state, key)
    }

    /// Records are heard, but for those that were heard before. What is missing before them is lost.
    fn hear(&self, state: &mut HearingState, key: (Epoch, Subject), number: u64, records: &[&[u8]]) {
        let (from, subject) = key;
        if number > *state.next.entry(key).or_insert(1) {
            self.gap(state, key, number);
        }
        let next = state.next.entry(key).or_insert(1);
        let known = next.saturating_sub(number);
        let heard = state.heard.entry(from).or_default();
        for record in records.iter().skip(usize::try_from(known).unwrap_or(usize::MAX)) {
            heard.count(record.len());
            (self.hears)(Heard::Record { from, subject, record: record.to_vec() });
        }
        *next = (*next).max(number.saturating_add(records.len() as u64));
    }

    /// Tells that what comes before a number is lost.
    fn gap(&self, state: &mut HearingState, key: (Epoch, Subject), number: u64) {
        *state.gaps.entry(key).or_default() += 1;
        (self.hears)(Heard::Gap { from: key.0, subject: key.1 });
        state.next.insert(key, number);
    }

    /// Hears what is held and comes next, and asks for what is missing then. Whether it did.
    fn go_on(&self, state: &mut HearingState, key: (Epoch, Subject)) -> bool {
        loop {
            let next = state.next.get(&key).copied().unwrap_or(1);
            let Some(bytes) = state.holds.take(key, next) else { break };
            if let Ok(Envelope::Records { number, records, .. }) = envelope::read(&bytes) {
                self.hear(state, key, number, &records);
            }
        }
        self.ask(state, key)
    }

    /// Asks for what is missing, unless that was asked for. Whether it did.
    fn ask(&self, state: &mut HearingState, key: (Epoch, Subject)) -> bool {
        let next = state.next.get(&key).copied().unwrap_or(1);
        let Some(last) = state.holds.ask(key, next) else { return false };
        let Some(known) = state.senders.get(&key.0) else { return false };
        self.outbox.want(Sender { epoch: key.0, run: known.run }, key.1, next, last);
        true
    }

    /// What is missing is lost: what is held is heard without it.
    fn give_up(&self, state: &mut HearingState, key: (Epoch, Subject)) {
        let hold = state.holds.remove(key);
        for bytes in hold.envelopes.values() {
            if let Ok(Envelope::Records { number, records, .. }) = envelope::read(bytes) {
                self.hear(state, key, number, &records);
            }
        }
        if state.next.get(&key).is_some_and(|next| *next <= hold.until) {
            self.gap(state, key, hold.until + 1);
        }
    }

    fn beat(&self, state: &mut HearingState, from: Sender, last: Vec<(Subject, u64)>) {
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
    fn meet(&self, state: &mut HearingState, from: Sender) {
        let known = state.senders.entry(from.epoch).or_insert(KnownNode { run: from.run, silent_ticks: 0 });
        known.silent_ticks = 0;
        if known.run == from.run {
            return;
        }
        known.run = from.run;
        state.due.retain(|(epoch, _), _| *epoch != from.epoch);
        state.holds.retain(|epoch, _| epoch != from.epoch);
        let HearingState { next, gaps, .. } = state;
        next.retain(|(epoch, subject), _| {
            if *epoch == from.epoch {
                *gaps.entry((*epoch, *subject)).or_default() += 1;
                (self.hears)(Heard::Gap { from: *epoch, subject: *subject });
            }
            *epoch != from.epoch
        });
    }

    /// A part of the time between two beats has passed: what a beat told before it is here by now, or is missing. Whoever is being told something for
    /// so long is not waited for: beats of this node go on. Also whether the engine can be reached, as [`Hearing::reached`]. Whether something is to be
    /// sent.
    pub(crate) fn tick(&self, is_reached: bool) -> bool {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(e)) => e.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        self.reach(&mut state, is_reached);
        if state.is_closed {
            return false;
        }
        let mut asks = is_reached && !state.rests && self.look_for_missing(&mut state);
        if is_reached && std::mem::take(&mut state.has_begun) {
            // Beats would tell it within a second.
            for ((epoch, subject), next) in &state.next {
                if let Some(known) = state.senders.get(epoch) {
                    self.outbox.want(Sender { epoch: *epoch, run: known.run }, *subject, *next, u64::MAX);
                }
            }
            asks = true;
        }
        let HearingState { next, senders, heard, gaps, .. } = &mut *state;
        senders.retain(|_, known| {
            known.silent_ticks += 1;
            known.silent_ticks <= SILENT_TICKS_MAX
        });
        next.retain(|(epoch, _), _| senders.contains_key(epoch));
        gaps.retain(|(epoch, _), _| senders.contains_key(epoch));
        heard.retain(|epoch, _| senders.contains_key(epoch));
        asks
    }

    /// Asks for what is missing, and gives up what was asked for in vain. Whether something is to be sent.
    fn look_for_missing(&self, state: &mut HearingState) -> bool {
        let mut asks = false;
        for (key, due) in state.holds.tick() {
            match due {
                HoldDue::Again => asks |= self.ask(state, key),
                HoldDue::Over => self.give_up(state, key),
            }
        }
        let HearingState { next, due, .. } = &mut *state;
        let mut missing = Vec::new();
        due.retain(|key, due| {
            if next.get(key).is_some_and(|next| *next > due.last) {
                return false;
            }
            if due.waited {
                missing.push((*key, due.last));
            }
            !std::mem::replace(&mut due.waited, true)
        });
        for (key, last) in missing {
            // Of who was not heard before nobody missed anything but what came before.
            if state.next.contains_key(&key) {
                state.holds.miss(key, last);
                asks |= self.ask(state, key);
            } else {
                self.gap(state, key, last + 1);
            }
        }
        asks
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
        state.holds.retain(|_, subject| subjects.contains(&subject));
        state.follows = subjects;
    }

    /// From when this has returned no record is heard, or they are heard again. What comes meanwhile is missing, and asked for later.
    pub(crate) fn rest(&self, rests: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.rests = rests;
        // What was held is asked for again, too.
        state.holds.retain(|_, _| false);
    }

    /// Goes on where the process before stopped to hear: what came since is missing, and asked for.
    pub(super) fn begin_with(&self, left: &Left) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.senders =
            left.runs.iter().map(|(epoch, run)| (*epoch, KnownNode { run: *run, silent_ticks: 0 })).collect();
        state.next = left.next.iter().map(|(epoch, subject, next)| ((*epoch, *subject), *next)).collect();
        state.has_begun = true;
    }

    /// Says how far it has heard.
    pub(super) fn leave(&self, left: &mut Left) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        left.runs = state.senders.iter().map(|(epoch, known)| (*epoch, known.run)).collect();
        left.next = state.next.iter().map(|((epoch, subject), next)| (*epoch, *subject, *next)).collect();
    }

    /// The engine can be reached, or it cannot.
    pub(crate) fn reached(&self, is_reached: bool) {
        self.reach(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner), is_reached);
    }

    fn reach(&self, state: &mut HearingState, is_reached: bool) {
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
    use crate::bus::Options;

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
        let outbox = Outbox::new(Epoch(1), &Options::default());
        let hearing = Hearing::new(Epoch(1), hears, Arc::new(outbox));
        hearing.follow(BTreeSet::from([ALL]));
        hearing.reached(true);
        said(&heard);
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

    fn ticks(hearing: &Hearing, count: u32, is_reached: bool) {
        for _ in 0..count {
            hearing.tick(is_reached);
        }
    }

    /// What was asked for since the last call.
    fn asked(hearing: &Hearing) -> Vec<(Subject, u64, u64)> {
        let taken = hearing.outbox.take(usize::MAX);
        let asked = taken.iter().map(|(to, envelope)| match envelope::read(envelope) {
            Ok(Envelope::Want { run, subject, first, last }) => {
                assert_eq!((*to, run), (Subject::Node(FROM.epoch), FROM.run));
                (subject, first, last)
            }
            other => panic!("{other:?}"),
        });
        asked.collect()
    }

    fn said(heard: &Mutex<Vec<String>>) -> Vec<String> {
        std::mem::take(&mut heard.lock().expect("nobody panics with it"))
    }

    #[test]
    fn each_record_is_heard_once_and_in_order() {
        let (hearing, heard) = hearing();
        hearing.take(ALL, &records(FROM, 1, &["a", "b"]));
        hearing.take(ALL, &records(FROM, 2, &["b", "c"]));
        assert_eq!(said(&heard), ["a", "b", "c"]);
        assert!(hearing.take(ALL, &records(FROM, 6, &["f"])), "it asks for what is missing");
        assert!(!hearing.take(ALL, &records(FROM, 7, &["g"])));
        assert_eq!(asked(&hearing), [(ALL, 4, 5)]);
        assert!(!hearing.take(ALL, &records(FROM, 4, &["d", "e"])));
        assert_eq!(said(&heard), ["d", "e", "f", "g"]);
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
        hearing.tick(true);
        hearing.tick(true);
        assert_eq!(said(&heard), ["a", "beat 1"]);
        // It may be on its way.
        hearing.take(ALL, &beat(2));
        hearing.tick(true);
        hearing.take(ALL, &records(FROM, 2, &["b"]));
        hearing.tick(true);
        assert_eq!(said(&heard), ["beat 2", "b"]);
        hearing.take(ALL, &beat(4));
        assert!(!hearing.tick(true));
        assert!(hearing.tick(true), "it asks for them");
        assert!(!hearing.tick(true));
        assert_eq!(asked(&hearing), [(ALL, 3, 4)]);
        hearing.take(ALL, &records(FROM, 3, &["c"]));
        assert_eq!(asked(&hearing), []);
        hearing.take(ALL, &records(FROM, 4, &["d"]));
        assert_eq!(said(&heard), ["beat 4", "c", "d"]);
        assert_eq!((0..99).filter(|_| hearing.tick(true)).count(), 0, "nothing is missing");
    }

    #[test]
    fn what_is_asked_for_in_vain_is_lost() {
        let (hearing, heard) = hearing();
        let partition = Subject::Partition(1);
        hearing.follow(BTreeSet::from([ALL, partition]));
        hearing.take(ALL, &records(FROM, 1, &["a"]));
        hearing.take(ALL, &records(FROM, 3, &["c"]));
        hearing.take(ALL, &records(FROM, 5, &["e"]));
        assert_eq!(asked(&hearing), [(ALL, 2, 2)], "the first that is missing");
        ticks(&hearing, 99, false);
        assert_eq!(said(&heard), ["a", "Away"]);
        assert_eq!(asked(&hearing), [], "nobody can answer");
        ticks(&hearing, 99, true);
        assert_eq!(asked(&hearing), [(ALL, 2, 2); 3], "more than once");
        assert_eq!(said(&heard), ["Back", "gap", "c", "gap", "e"]);
        // The sender has it no more, and says so.
        hearing.take(ALL, &records(FROM, 8, &["h"]));
        hearing.take(ALL, &envelope::gone(FROM, 7));
        assert_eq!(asked(&hearing), [(ALL, 6, 7)]);
        hearing.take(ALL, &records(FROM, 7, &["g"]));
        hearing.take(ALL, &envelope::gone(FROM, 3));
        assert_eq!(said(&heard), ["gap", "g", "h"]);
        hearing.take(partition, &envelope::gone(FROM, 7));
        assert_eq!(said(&heard), [""; 0], "nothing was missing there");
        // Another run has none of it.
        hearing.take(ALL, &records(FROM, 10, &["j"]));
        hearing.take(ALL, &records(Sender { run: 6, ..FROM }, 1, &["A"]));
        assert_eq!(said(&heard), ["gap", "A"]);
        assert_eq!(hearing.state.lock().expect("nobody panics with it").holds.bytes(), 0);
    }

    #[test]
    fn no_more_is_held_than_there_is_room_for() {
        let (hearing, heard) = hearing();
        hearing.take(ALL, &records(FROM, 1, &["a"]));
        let long = "x".repeat(1 << 20);
        for number in 3..30 {
            hearing.take(ALL, &records(FROM, number, &[&long]));
        }
        let heard = said(&heard);
        assert_eq!(heard.iter().filter(|said| *said == "gap").count(), 1);
        assert_eq!(heard.len(), 29, "all the others are heard");
        assert_eq!(hearing.state.lock().expect("nobody panics with it").holds.bytes(), 0);
    }

    #[test]
    fn who_follows_later_is_told_that_something_was_before() {
        let (hearing, heard) = hearing();
        let one = Subject::Partition(1);
        hearing.follow(BTreeSet::from([ALL, one]));
        hearing.take(ALL, &beat(0));
        hearing.tick(true);
        hearing.tick(true);
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
        ticks(&hearing, SILENT_TICKS_MAX + 1, true);
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
        assert_eq!(said(&heard), ["Away", "Back", "Away"]);
        hearing.close();
        hearing.reached(true);
        hearing.take(ALL, &records(FROM, 1, &["a"]));
        hearing.take(ALL, &beat(1));
        assert_eq!(said(&heard), [""; 0]);
    }
}
