//! What a shard knows of the offline messages of its accounts while the store is asked about them.

use crate::feature_state::Shared;
use crate::model::{Map, Set};
use crate::shard::Reads;

/// Offline messages about which the store is being asked.
#[derive(Debug, Default)]
pub struct Pending {
    /// Accounts for which messages are being stored.
    pub(crate) storing: Storing,
    /// Questions whose answers may hold what was deleted meanwhile.
    pub(crate) reads: Reads<u64>,
    /// Numbers of messages whose deletion is not committed.
    deleting: Set<u64>,
    /// Accounts for whose parked sessions messages are being kept, and how many.
    keeping: Map<Box<str>, u32>,
}

impl Pending {
    /// The store is asked to delete messages.
    pub(crate) fn begin_deleting(&mut self, seqs: &[u64]) {
        self.deleting.extend(seqs);
    }

    /// The deletion was written, or given up.
    pub(crate) fn stop_deleting(&mut self, seqs: &[u64]) {
        for seq in seqs {
            self.deleting.remove(seq);
        }
    }

    /// Messages were deleted, and that is committed.
    pub(crate) fn deleted(&mut self, seqs: &[u64]) {
        self.stop_deleting(seqs);
        seqs.iter().for_each(|seq| self.reads.note_ended(*seq));
    }

    /// Whether this one is being deleted.
    pub(crate) fn is_deleting(&self, seq: u64) -> bool {
        self.deleting.contains(&seq)
    }

    /// Whether a message of an answer is not to be given any more: it is being deleted, or was since that was asked for.
    pub(crate) fn is_gone(&self, seq: u64) -> bool {
        self.is_deleting(seq) || self.reads.has_ended(seq)
    }

    /// The store is asked to keep a message that parked sessions of an account were given.
    pub(crate) fn begin_keeping(&mut self, account: &str) {
        *self.keeping.entry(account.into()).or_default() += 1;
    }

    /// It has done so, or it was given up.
    pub(crate) fn stop_keeping(&mut self, account: &str) {
        if let Some(count) = self.keeping.get_mut(account) {
            *count -= 1;
            if *count == 0 {
                self.keeping.remove(account);
            }
        }
    }

    /// Whether the store may have a message that a session of this account was given otherwise, and it is not known under which number.
    pub(crate) fn is_keeping(&self, account: &str) -> bool {
        !self.keeping.is_empty() && self.keeping.contains_key(account)
    }
}

impl Shared for Pending {
    fn tidy(&mut self) {
        if self.keeping.capacity() > 4 * self.keeping.len() + 64 {
            self.keeping.shrink_to_fit();
        }
        if self.deleting.capacity() > 4 * self.deleting.len() + 64 {
            self.deleting.shrink_to_fit();
        }
    }
}

/// Accounts for which messages are being stored, and how many of each. A newer message must wait behind them: if it were given to a session
/// that has become available meanwhile, it would overtake them.
#[derive(Debug, Default)]
pub(crate) struct Storing(Map<Box<str>, u32>);

impl Storing {
    /// The store is asked to keep a message for an account.
    pub(crate) fn begin(&mut self, account: &str) {
        match self.0.get_mut(account) {
            Some(count) => *count += 1,
            None => drop(self.0.insert(account.into(), 1)),
        }
    }

    /// It answered.
    pub(crate) fn end(&mut self, account: &str) {
        if let Some(count) = self.0.get_mut(account) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(account);
            }
            // What a burst made it grow to is given back.
            if self.0.is_empty() && self.0.capacity() > 64 {
                self.0 = Map::default();
            }
        }
    }

    /// Whether an answer is awaited.
    pub(crate) fn is_under_way(&self, account: &str) -> bool {
        !self.0.is_empty() && self.0.contains_key(account)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_with_the_last_answer() {
        let mut storing = Storing::default();
        storing.begin("a@d");
        storing.begin("a@d");
        storing.end("a@d");
        assert!(storing.is_under_way("a@d") && !storing.is_under_way("b@d"));
        storing.end("a@d");
        assert!(!storing.is_under_way("a@d") && storing.0.is_empty());
    }
}
