//! What came too early: records before it are missing, and asked for again.

use carillon_core::model::Epoch;
use carillon_core::ports::Subject;
use std::collections::{BTreeMap, HashMap};

/// Bytes of all that is held. Past it nothing is waited for.
const HELD_BYTES_MAX: usize = 16 << 20;
/// What is missing is asked for again after so many ticks, and given up after so many.
const AGAIN_TICKS: u32 = 4;
const WAIT_TICKS: u32 = 16;

/// By sender and subject: what waits for records before it.
#[derive(Debug, Default)]
pub(super) struct Holds {
    holds: HashMap<(Epoch, Subject), Hold>,
    bytes: usize,
}

/// What waits for missing records of one sender to one subject.
#[derive(Debug, Default)]
pub(super) struct Hold {
    /// Envelopes by the number of their first record.
    pub(super) envelopes: BTreeMap<u64, Vec<u8>>,
    /// The last number that is known to be missing.
    pub(super) until: u64,
    /// The last number that was asked for, and whether it is to be asked for again.
    asked: u64,
    is_due: bool,
    ticks: u32,
}

/// What is to be done for a hold.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// It is asked again.
    Again,
    /// It is given up.
    Over,
}

impl Holds {
    /// Keeps an envelope whose first record has this number. Whether there is room for it.
    pub(super) fn keep(&mut self, key: (Epoch, Subject), number: u64, envelope: &[u8]) -> bool {
        if self.bytes + envelope.len() > HELD_BYTES_MAX {
            return false;
        }
        let hold = self.holds.entry(key).or_default();
        hold.until = hold.until.max(number - 1);
        if let Some(before) = hold.envelopes.insert(number, envelope.to_vec()) {
            self.bytes -= before.len();
        }
        self.bytes += envelope.len();
        true
    }

    /// Records up to this number are known to be missing.
    pub(super) fn miss(&mut self, key: (Epoch, Subject), until: u64) {
        let hold = self.holds.entry(key).or_default();
        hold.until = hold.until.max(until);
    }

    /// Takes out the first envelope, if it begins no later than with this number.
    pub(super) fn take(&mut self, key: (Epoch, Subject), next: u64) -> Option<Vec<u8>> {
        let first = self.holds.get_mut(&key)?.envelopes.first_entry()?;
        let envelope = (*first.key() <= next).then(|| first.remove())?;
        self.bytes -= envelope.len();
        Some(envelope)
    }

    /// The last number to ask for when this is the next one; none if that was asked for, or if nothing is missing. A hold without a missing record is removed.
    pub(super) fn ask(&mut self, key: (Epoch, Subject), next: u64) -> Option<u64> {
        let hold = self.holds.get_mut(&key)?;
        let last = hold.envelopes.first_key_value().map_or(hold.until, |(first, _)| first - 1);
        if next > last {
            self.holds.remove(&key);
            return None;
        }
        if next > hold.asked {
            (hold.asked, hold.ticks) = (last, 0);
        } else if !std::mem::take(&mut hold.is_due) {
            return None;
        }
        Some(last)
    }

    /// Time passes.
    pub(super) fn tick(&mut self) -> Vec<((Epoch, Subject), Due)> {
        let mut due = Vec::new();
        for (key, hold) in &mut self.holds {
            hold.ticks += 1;
            if hold.ticks >= WAIT_TICKS {
                due.push((*key, Due::Over));
            } else if hold.ticks.is_multiple_of(AGAIN_TICKS) {
                hold.is_due = true;
                due.push((*key, Due::Again));
            }
        }
        due
    }

    /// Gives up what is held.
    pub(super) fn remove(&mut self, key: (Epoch, Subject)) -> Hold {
        let hold = self.holds.remove(&key).unwrap_or_default();
        self.bytes -= hold.envelopes.values().map(Vec::len).sum::<usize>();
        hold
    }

    /// Forgets what is held but for these.
    pub(super) fn retain(&mut self, is_kept: impl Fn(Epoch, Subject) -> bool) {
        let gone: Vec<_> =
            self.holds.keys().filter(|(epoch, subject)| !is_kept(*epoch, *subject)).copied().collect();
        gone.into_iter().for_each(|key| drop(self.remove(key)));
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
