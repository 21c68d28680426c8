//! What was noted in a turn.

use super::Entry;

/// What was noted in a turn, until the server takes it.
#[derive(Debug, Default)]
pub struct Tape {
    entries: Vec<Entry>,
    bytes: usize,
    /// How much did not fit, by tap.
    missed: Vec<(u64, u64)>,
}

/// What a turn may note, in bytes.
const TURN_BYTES_MAX: usize = 1 << 20;

impl Tape {
    /// Whether nothing was noted.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.missed.is_empty()
    }

    /// Adds an entry if there is room for it. Whether there was.
    pub(super) fn push(&mut self, entry: Entry) -> bool {
        let bytes = self.bytes + entry.memory_bytes();
        if bytes > TURN_BYTES_MAX {
            return false;
        }
        self.bytes = bytes;
        self.entries.push(entry);
        true
    }

    /// Counts an entry that a tap does not get.
    pub(super) fn miss(&mut self, tap: u64) {
        match self.missed.iter_mut().find(|(of, _)| *of == tap) {
            Some((_, count)) => *count += 1,
            None => self.missed.push((tap, 1)),
        }
    }

    /// Takes what was noted: the entries in their order, and how many others there were of each tap.
    pub fn take(&mut self) -> (Vec<Entry>, Vec<(u64, u64)>) {
        self.bytes = 0;
        (std::mem::take(&mut self.entries), std::mem::take(&mut self.missed))
    }
}
