//! What waits to be sent: numbered, gathered by subject, bounded in bytes.

use super::Options;
use super::envelope::{self, Sender};
use super::kept::Kept;
use super::left::{Left, LeftEnvelope};
use bytes::Bytes;
use carillon_core::model::Epoch;
use carillon_core::ports::Subject;
use carillon_core::ports::bus::{BusFigures, RECORD_BYTES_MAX, Traffic};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::mem;
use std::sync::{Mutex, PoisonError};

/// An envelope gets no further record once it has so many bytes. A longer record travels alone.
const ENVELOPE_BYTES: usize = 64 << 10;
/// While so much is being sent again, nothing more is.
const AGAIN_BYTES_MAX: usize = 1 << 20;
/// A node that was sent nothing for so many beats is forgotten.
const IDLE_BEATS_MAX: u32 = 3600;

/// What waits to be sent.
#[derive(Debug)]
pub(crate) struct Outbox {
    own: Epoch,
    bytes_max: usize,
    state: Mutex<OutboxState>,
}

#[derive(Debug)]
struct OutboxState {
    /// Who sends.
    from: Sender,
    subjects: HashMap<Subject, Sent>,
    /// Envelopes that are full, in their order.
    full: VecDeque<Full>,
    /// Subjects with an envelope that is not, in the order in which it was begun.
    begun: VecDeque<Subject>,
    /// Of all that waits.
    bytes: usize,
    /// What goes before all that waits: questions for what was not heard, and answers to those of others.
    again: VecDeque<(Subject, Bytes)>,
    kept: Kept,
    /// Numbers of subjects that were forgotten are not above this one.
    floor: u64,
    beats: u64,
    store: bool,
    lost: u64,
    /// What the node wants to hear besides what is for all.
    follows: BTreeSet<Subject>,
    /// Whether that was changed since it was looked at.
    is_changed: bool,
    is_closed: bool,
}

/// An envelope that is full, and the numbers of its first and last record.
#[derive(Debug)]
struct Full {
    subject: Subject,
    envelope: Vec<u8>,
    first: u64,
    last: u64,
}

/// What was posted to one subject.
#[derive(Debug, Default)]
struct Sent {
    /// The number of the last record that was posted, and of the last that has left.
    posted: u64,
    left: u64,
    /// The envelope that the next record goes to, if there is one: its last record is the last that was posted.
    envelope: Vec<u8>,
    /// The number of its first record.
    first: u64,
    /// Envelopes that are full and wait.
    full: u32,
    idle_beats: u32,
    /// What there was room for.
    traffic: Traffic,
}

impl Outbox {
    /// For a node that follows what is for itself.
    pub(crate) fn new(own: Epoch, options: &Options) -> Outbox {
        let run = RandomState::new().hash_one(own);
        let state = OutboxState {
            from: Sender { epoch: own, run },
            subjects: HashMap::new(),
            full: VecDeque::new(),
            begun: VecDeque::new(),
            bytes: 0,
            again: VecDeque::new(),
            kept: Kept::new(options.kept_bytes_max),
            floor: 0,
            beats: 0,
            store: true,
            lost: 0,
            follows: BTreeSet::from([Subject::All, Subject::Node(own)]),
            is_changed: true,
            is_closed: false,
        };
        Outbox { own, bytes_max: options.waiting_bytes_max, state: Mutex::new(state) }
    }

    /// Takes a record. It has its number from now on, even if there is no room for it.
    pub(crate) fn post(&self, to: Subject, record: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let OutboxState { from, subjects, full, begun, bytes, floor, lost, is_closed, .. } = &mut *state;
        let sent =
            subjects.entry(to).or_insert_with(|| Sent { posted: *floor, left: *floor, ..Sent::default() });
        let is_full = |envelope: &Vec<u8>| envelope.len() + record.len() > ENVELOPE_BYTES;
        let fits = record.len() <= RECORD_BYTES_MAX && *bytes + record.len() <= self.bytes_max && !*is_closed;
        if !sent.envelope.is_empty() && (!fits || is_full(&sent.envelope)) {
            // Numbers of one envelope have no gap.
            let (envelope, first, last) = (mem::take(&mut sent.envelope), sent.first, sent.posted);
            full.push_back(Full { subject: to, envelope, first, last });
            sent.full += 1;
            begun.retain(|subject| *subject != to);
        }
        sent.posted += 1;
        sent.idle_beats = 0;
        if !fits {
            *lost += 1;
            if lost.is_power_of_two() {
                tracing::warn!(
                    lost,
                    waiting_bytes = bytes,
                    "records for other nodes are lost: too much waits for the bus"
                );
            }
            return;
        }
        if sent.envelope.is_empty() {
            sent.envelope = envelope::begin(*from, sent.posted);
            sent.first = sent.posted;
            *bytes += sent.envelope.len();
            begun.push_back(to);
        }
        sent.traffic.count(record.len());
        let before = sent.envelope.len();
        envelope::append(&mut sent.envelope, record);
        *bytes += sent.envelope.len() - before;
    }

    /// Takes envelopes out, in their order, until they have so many bytes.
    pub(crate) fn take(&self, bytes: usize) -> Vec<(Subject, Bytes)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let OutboxState { subjects, full, begun, bytes: waiting, again, kept, beats, .. } = &mut *state;
        let (mut taken, mut left) = (Vec::new(), bytes);
        while left > 0 {
            if let Some((subject, envelope)) = again.pop_front() {
                left = left.saturating_sub(envelope.len());
                taken.push((subject, envelope));
                continue;
            }
            let next = full.pop_front().or_else(|| {
                let subject = begun.pop_front()?;
                let sent = subjects.get_mut(&subject)?;
                // It is counted as one that is full, until it has left.
                sent.full += 1;
                let (first, last) = (sent.first, sent.posted);
                Some(Full { subject, envelope: mem::take(&mut sent.envelope), first, last })
            });
            let Some(Full { subject, envelope, first, last }) = next else { break };
            if let Some(sent) = subjects.get_mut(&subject) {
                sent.full -= 1;
                sent.left = last;
            }
            *waiting = waiting.saturating_sub(envelope.len());
            left = left.saturating_sub(envelope.len());
            let envelope = Bytes::from(envelope);
            kept.add(subject, (first, last), *beats, &envelope);
            taken.push((subject, envelope));
        }
        taken
    }

    /// Asks a sender for records to a subject that were not heard.
    pub(super) fn want(&self, of: Sender, subject: Subject, first: u64, last: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let want = envelope::want(state.from, of.run, subject, first, last);
        if !state.is_closed {
            state.again.push_back((Subject::Node(of.epoch), want.into()));
        }
    }

    /// Somebody did not hear what this run of the bus sent: it is sent again, as far as it is kept. Whoever has heard it knows that by its numbers.
    /// Who does not know what was sent asks for all from a number on.
    pub(super) fn wanted(&self, run: u64, subject: Subject, first: u64, last: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let OutboxState { from, subjects, again, kept, is_closed, .. } = &mut *state;
        let left = subjects.get(&subject).map_or(0, |sent| sent.left);
        let last = if last == u64::MAX { left } else { last };
        // Who asked asks again.
        let is_busy = again.iter().map(|(_, envelope)| envelope.len()).sum::<usize>() > AGAIN_BYTES_MAX;
        if run != from.run || *is_closed || is_busy || last < first {
            return;
        }
        let found: Vec<(u64, Bytes)> =
            kept.of(subject, first, last).map(|(number, envelope)| (number, envelope.clone())).collect();
        let begins = found.first().map_or(last.saturating_add(1), |(number, _)| *number);
        if begins > first {
            again.push_back((subject, envelope::gone(*from, begins).into()));
        }
        again.extend(found.into_iter().map(|(_, envelope)| (subject, envelope)));
    }

    /// The next beat: what has left, or was lost with nothing before it that waits.
    pub(crate) fn beat(&self) -> Vec<u8> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let OutboxState { from, subjects, floor, beats, store, kept, .. } = &mut *state;
        kept.age(*beats);
        subjects.retain(|subject, sent| {
            sent.idle_beats += 1;
            let is_forgotten = sent.idle_beats > IDLE_BEATS_MAX && matches!(subject, Subject::Node(_));
            let is_kept = !is_forgotten || sent.waits();
            if !is_kept {
                *floor = (*floor).max(sent.posted);
            }
            is_kept
        });
        let last: Vec<_> = subjects
            .iter()
            .map(|(subject, sent)| (*subject, if sent.waits() { sent.left } else { sent.posted }))
            .filter(|(_, last)| *last > 0)
            .collect();
        let beat = envelope::beat(*from, *beats, *store, &last);
        *beats += 1;
        beat
    }

    /// What the next beats say of the store.
    pub(crate) fn tell_store(&self, works: bool) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).store = works;
    }

    /// From now on the node wants to hear what is posted there, or it does not.
    pub(crate) fn follow(&self, subject: Subject, wants: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_changed = if wants { state.follows.insert(subject) } else { state.follows.remove(&subject) };
        state.is_changed |= is_changed;
    }

    /// What the node wants to hear, if that was changed since the last call.
    pub(crate) fn changed_follows(&self) -> Option<BTreeSet<Subject>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        mem::take(&mut state.is_changed).then(|| state.follows.clone())
    }

    /// Whether the node wants to hear what is posted there.
    pub(crate) fn is_for(&self, subject: Subject) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).follows.contains(&subject)
    }

    /// What was posted, and what waits.
    pub(crate) fn figures(&self) -> BusFigures {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        BusFigures {
            waiting_bytes: state.bytes as u64,
            dropped: state.lost,
            posted: state.subjects.iter().map(|(subject, sent)| (*subject, sent.traffic)).collect(),
            ..BusFigures::default()
        }
    }

    /// Goes on with the numbers of the process before, and with what others may ask it for.
    pub(super) fn begin_with(&self, left: Left) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.from = Sender { epoch: self.own, run: left.run };
        (state.beats, state.floor) = (left.beats, left.floor);
        let posted = left.posted.into_iter();
        state.subjects =
            posted.map(|(to, last)| (to, Sent { posted: last, left: last, ..Sent::default() })).collect();
        for LeftEnvelope { subject, first, last, beat, envelope } in left.kept {
            state.kept.add(subject, (first, last), beat, &envelope);
        }
    }

    /// What the next process goes on with. What waits counts as sent: whoever does not hear it asks for it.
    pub(super) fn leave(&self) -> Left {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let OutboxState { from, subjects, full, begun, kept, floor, beats, .. } = &mut *state;
        let mut envelopes = kept.all();
        let waits =
            full.iter().map(|Full { subject, envelope, first, last }| (*subject, *first, *last, envelope));
        let begun = begun.iter().filter_map(|subject| {
            let sent = subjects.get(subject)?;
            Some((*subject, sent.first, sent.posted, &sent.envelope))
        });
        envelopes.extend(waits.chain(begun).map(|(subject, first, last, envelope)| LeftEnvelope {
            subject,
            first,
            last,
            beat: *beats,
            envelope: Bytes::copy_from_slice(envelope),
        }));
        let posted = subjects.iter().map(|(subject, sent)| (*subject, sent.posted)).collect();
        Left { run: from.run, beats: *beats, floor: *floor, posted, kept: envelopes, ..Left::default() }
    }

    /// Takes nothing from now on.
    pub(crate) fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
    }
}

impl Sent {
    fn waits(&self) -> bool {
        self.full > 0 || !self.envelope.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::envelope::{Envelope, read};
    use super::*;

    const TO: Subject = Subject::Node(Epoch(2));

    fn outbox(waiting_bytes_max: usize) -> Outbox {
        Outbox::new(Epoch(1), &Options { waiting_bytes_max, kept_bytes_max: 150_000, ..Options::default() })
    }

    fn sender(outbox: &Outbox) -> Sender {
        outbox.state.lock().expect("nobody panics with it").from
    }

    fn numbers(taken: &[(Subject, Bytes)]) -> Vec<(Subject, u64, usize)> {
        let each = taken.iter().map(|(subject, envelope)| match read(envelope) {
            Ok(Envelope::Records { number, records, .. }) => (*subject, number, records.len()),
            other => panic!("{other:?}"),
        });
        each.collect()
    }

    fn last(outbox: &Outbox) -> Vec<(Subject, u64)> {
        match read(&outbox.beat()) {
            Ok(Envelope::Beat { mut last, .. }) => {
                last.sort_unstable();
                last
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn records_of_a_turn_travel_together_by_subject() {
        let outbox = outbox(1 << 20);
        for n in 0..3 {
            outbox.post(TO, &[n]);
            outbox.post(Subject::All, &[n]);
        }
        assert_eq!(last(&outbox), [], "nothing has left");
        assert_eq!(numbers(&outbox.take(usize::MAX)), [(TO, 1, 3), (Subject::All, 1, 3)]);
        outbox.post(TO, b"x");
        assert_eq!(last(&outbox), [(TO, 3), (Subject::All, 3)]);
        assert_eq!(numbers(&outbox.take(usize::MAX)), [(TO, 4, 1)]);
        assert_eq!(outbox.take(usize::MAX), []);
    }

    #[test]
    fn envelopes_are_bounded_and_keep_their_order() {
        let outbox = outbox(1 << 20);
        for length in [ENVELOPE_BYTES / 2, ENVELOPE_BYTES / 2, 2 * ENVELOPE_BYTES, 1] {
            outbox.post(TO, &vec![0; length]);
        }
        let first = outbox.take(1);
        assert_eq!(numbers(&first), [(TO, 1, 1)], "one, however few bytes are asked for");
        assert_eq!(last(&outbox), [(TO, 1)]);
        assert_eq!(numbers(&outbox.take(usize::MAX)), [(TO, 2, 1), (TO, 3, 1), (TO, 4, 1)]);
    }

    #[test]
    fn what_has_no_room_takes_its_number() {
        let outbox = outbox(100);
        for length in [40, 50, 5, RECORD_BYTES_MAX + 1, 1] {
            outbox.post(TO, &vec![0; length]);
        }
        assert_eq!(numbers(&outbox.take(usize::MAX)), [(TO, 1, 1), (TO, 3, 1), (TO, 5, 1)]);
        outbox.post(TO, &[0; 101]);
        assert_eq!(last(&outbox), [(TO, 6)], "a beat tells what was lost with nothing behind it");
        outbox.close();
        outbox.post(TO, b"x");
        assert_eq!(outbox.take(usize::MAX), []);
    }

    #[test]
    fn nodes_that_are_sent_nothing_are_forgotten_and_no_number_is_used_twice() {
        let outbox = outbox(100);
        outbox.post(TO, b"x");
        outbox.post(Subject::All, b"x");
        outbox.take(usize::MAX);
        (0..IDLE_BEATS_MAX).for_each(|_| drop(outbox.beat()));
        assert_eq!(last(&outbox), [(Subject::All, 1)]);
        outbox.post(TO, b"x");
        assert_eq!(numbers(&outbox.take(usize::MAX)), [(TO, 2, 1)]);
    }

    #[test]
    fn what_was_not_heard_is_sent_again_as_far_as_it_is_kept() {
        let outbox = outbox(1 << 20);
        let run = sender(&outbox).run;
        for n in 0..4_u8 {
            // Each travels alone: the first two are not kept any more.
            outbox.post(TO, &vec![n; ENVELOPE_BYTES + 1]);
        }
        outbox.post(Subject::All, b"for all");
        outbox.take(usize::MAX);
        outbox.wanted(run, TO, 3, 9);
        assert_eq!(numbers(&outbox.take(usize::MAX)), [(TO, 3, 1), (TO, 4, 1)]);
        outbox.wanted(run, TO, 2, 3);
        let taken = outbox.take(usize::MAX);
        assert_eq!(read(&taken[0].1), Ok(Envelope::Gone { from: sender(&outbox), number: 3 }));
        assert_eq!(numbers(&taken[1..]), [(TO, 3, 1)]);
        outbox.wanted(run, Subject::All, 7, 9);
        let taken = outbox.take(usize::MAX);
        assert_eq!(read(&taken[0].1), Ok(Envelope::Gone { from: sender(&outbox), number: 10 }));
        outbox.wanted(run + 1, TO, 3, 9);
        assert_eq!(outbox.take(usize::MAX), [], "what another run has sent");
        (0..100).for_each(|_| drop(outbox.beat()));
        outbox.wanted(run, TO, 4, 4);
        let taken = outbox.take(usize::MAX);
        assert_eq!(
            read(&taken[0].1),
            Ok(Envelope::Gone { from: sender(&outbox), number: 5 }),
            "it was long ago"
        );
    }
}
