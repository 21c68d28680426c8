//! The flight recorder of a shard: what it was given last, always on, for when it hangs or dies.
//!
//! Other threads read it while it is written, also when the shard does not answer: it is words of memory, and an entry that is overwritten while it is
//! read is left out.

use carillon_core::Input;
use carillon_core::model::Mono;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Entries that are kept.
pub const FLIGHT_ENTRIES: usize = 4096;

/// The last things that a shard was given. An entry is 16 bytes.
pub(crate) struct FlightRecorder {
    /// How many were begun, and how many are whole.
    begun: AtomicU64,
    count: AtomicU64,
    entries: Box<[[AtomicU64; 2]]>,
}

/// What a shard was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlightEntry {
    /// When, in milliseconds since the node was started.
    pub at: Mono,
    /// What.
    pub kind: &'static str,
    /// The number of the connection; 0 where it is about none.
    pub connection: u32,
    /// Its size in bytes; of a turn, how long it took, in milliseconds.
    pub size: u32,
}

/// The kinds of entries by their numbers.
const KINDS: [&str; 20] = [
    "none",
    "opened",
    "opened-light",
    "secured",
    "bytes",
    "closed",
    "flushed",
    "unacked",
    "overflowed",
    "arrived",
    "carried",
    "message",
    "domains",
    "directory",
    "answer",
    "derived",
    "tick",
    "drain",
    "control",
    "slow-turn",
];

impl Default for FlightRecorder {
    fn default() -> FlightRecorder {
        let entries = std::iter::repeat_with(Default::default).take(FLIGHT_ENTRIES).collect();
        FlightRecorder { begun: AtomicU64::new(0), count: AtomicU64::new(0), entries }
    }
}

impl FlightRecorder {
    /// Notes an input of the core.
    #[inline]
    pub(crate) fn input(&self, now: Mono, input: &Input<'_>) {
        let (kind, connection, size) = match input {
            Input::Opened(opened) => (1, opened.conn.slot, 0),
            Input::OpenedLight { conn } | Input::OpenedPlayer { conn, .. } => (2, conn.slot, 0),
            Input::Secured { conn, .. } => (3, conn.slot, 0),
            Input::Bytes { conn, bytes }
            | Input::PlayerBytes { conn, bytes }
            | Input::PlayerDatagram { conn, bytes } => (4, conn.slot, bytes.len() as u32),
            Input::Closed { conn, .. } => (5, conn.slot, 0),
            Input::Flushed { conn } => (6, conn.slot, 0),
            Input::Unacked { conn, bytes, .. } => (7, conn.slot, *bytes as u32),
            Input::Overflowed { conn, .. } => (8, conn.slot, 0),
            Input::Arrived { conn, .. } | Input::ArrivedPlayer { conn, .. } => (9, conn.slot, 0),
            Input::Carried { conn, .. } => (10, conn.slot, 0),
            Input::Message(_) => (11, 0, 0),
            Input::Domains(_) => (12, 0, 0),
            Input::Directory(_) => (13, 0, 0),
            Input::Answer { .. } => (14, 0, 0),
            Input::Derived { .. } => (15, 0, 0),
            Input::Tick => (16, 0, 0),
            Input::Drain | Input::DrainSlice(_) | Input::StopDraining => (17, 0, 0),
            Input::RecordsLost => (18, 0, 0),
        };
        self.note(now, kind, connection, size);
    }

    /// Notes that the node told the shard something.
    pub(crate) fn control(&self, now: Mono) {
        self.note(now, 18, 0, 0);
    }

    /// Notes a turn that took long.
    pub(crate) fn slow_turn(&self, now: Mono, ms: u64) {
        self.note(now, 19, 0, ms as u32);
    }

    /// Only the shard writes.
    #[inline]
    fn note(&self, now: Mono, kind: u64, connection: u32, size: u32) {
        let count = self.count.load(Ordering::Relaxed);
        let [first, second] = &self.entries[count as usize % FLIGHT_ENTRIES];
        // Who reads the entry that is overwritten sees that it is.
        self.begun.store(count + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        first.store(now.0 << 8 | kind, Ordering::Relaxed);
        second.store(u64::from(connection) << 32 | u64::from(size), Ordering::Relaxed);
        self.count.store(count + 1, Ordering::Release);
    }

    /// The last entries, at most `max`, oldest first.
    pub(crate) fn last(&self, max: usize) -> Vec<FlightEntry> {
        let end = self.count.load(Ordering::Acquire);
        let begin = end.saturating_sub(max.min(FLIGHT_ENTRIES) as u64);
        let words: Vec<(u64, [u64; 2])> = (begin..end)
            .map(|number| {
                let entry = &self.entries[number as usize % FLIGHT_ENTRIES];
                (number, [entry[0].load(Ordering::Relaxed), entry[1].load(Ordering::Relaxed)])
            })
            .collect();
        fence(Ordering::Acquire);
        let overwritten = self.begun.load(Ordering::Relaxed).saturating_sub(FLIGHT_ENTRIES as u64);
        let whole = words.into_iter().filter(|(number, _)| *number >= overwritten);
        whole.map(|(_, words)| FlightEntry::of(words)).collect()
    }
}

impl FlightEntry {
    fn of([first, second]: [u64; 2]) -> FlightEntry {
        let kind = KINDS.get((first & 0xff) as usize).copied().unwrap_or("none");
        FlightEntry { at: Mono(first >> 8), kind, connection: (second >> 32) as u32, size: second as u32 }
    }
}

impl std::fmt::Display for FlightEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let FlightEntry { at, kind, connection, size } = self;
        write!(f, "{}:{kind}:{connection}:{size}", at.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_core::model::ConnId;

    fn bytes(recorder: &FlightRecorder, at: u64, len: usize) {
        let input = Input::Bytes { conn: ConnId { slot: 7, generation: 1 }, bytes: &vec![0; len] };
        recorder.input(Mono(at), &input);
    }

    #[test]
    fn the_last_entries_are_kept() {
        let recorder = FlightRecorder::default();
        assert_eq!(recorder.last(10), []);
        bytes(&recorder, 5, 3);
        recorder.slow_turn(Mono(6), 40);
        let expected = [
            FlightEntry { at: Mono(5), kind: "bytes", connection: 7, size: 3 },
            FlightEntry { at: Mono(6), kind: "slow-turn", connection: 0, size: 40 },
        ];
        assert_eq!(recorder.last(10), expected);
        assert_eq!(recorder.last(1), expected[1..]);
        assert_eq!(expected[0].to_string(), "5:bytes:7:3");
    }

    #[test]
    fn it_is_bounded_and_an_entry_is_16_bytes() {
        let recorder = FlightRecorder::default();
        (0..10_000).for_each(|at| bytes(&recorder, at, 1));
        let last = recorder.last(usize::MAX);
        assert_eq!(size_of_val(&*recorder.entries), 16 * FLIGHT_ENTRIES);
        assert_eq!(last.len(), FLIGHT_ENTRIES);
        assert_eq!(last.last().map(|entry| entry.at), Some(Mono(9999)));
    }

    /// A shard writes while another thread reads: what is read is whole, and in order.
    #[test]
    fn it_is_read_while_it_is_written() {
        let recorder = std::sync::Arc::new(FlightRecorder::default());
        let written = std::sync::Arc::clone(&recorder);
        // The size says again when it was.
        let shard =
            std::thread::spawn(move || (0..200_000u64).for_each(|at| written.slow_turn(Mono(at), at)));
        let mut reads = 0;
        while !shard.is_finished() || reads == 0 {
            let last = recorder.last(usize::MAX);
            assert!(last.iter().all(|entry| entry.at.0 == u64::from(entry.size)), "half an entry");
            assert!(last.is_sorted_by_key(|entry| entry.at.0));
            reads += 1;
        }
        shard.join().expect("it writes");
    }
}
