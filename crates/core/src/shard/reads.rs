//! Pages that are being read from the store, and what ended since they were asked for: a page may hold it still, and it is not given again.

use crate::model::{NotificationId, Set};
use std::collections::{BTreeSet, VecDeque};
use std::hash::Hash;

/// The reads under way, and what ended meanwhile.
#[derive(Debug, Default)]
pub struct Reads {
    /// The number of the next read.
    next: u64,
    under_way: BTreeSet<u64>,
    notifications: Ended<NotificationId>,
    messages: Ended<u64>,
}

/// What ended while something was read.
#[derive(Debug)]
struct Ended<T> {
    all: Set<T>,
    /// In their order, each with the number of the first read that cannot hold it.
    order: VecDeque<(u64, T)>,
}

impl Reads {
    /// A page is asked for.
    pub(crate) fn begin(&mut self) -> u64 {
        let read = self.next;
        self.next += 1;
        self.under_way.insert(read);
        read
    }

    /// It was dealt with.
    pub(crate) fn end(&mut self, read: u64) {
        self.under_way.remove(&read);
        let oldest = self.under_way.first().copied().unwrap_or(u64::MAX);
        self.notifications.forget(oldest);
        self.messages.forget(oldest);
    }

    /// A notification has ended, and that is committed.
    pub(crate) fn note_ended(&mut self, id: NotificationId) {
        if !self.under_way.is_empty() {
            self.notifications.note(self.next, id);
        }
    }

    /// Messages were deleted, and that is committed.
    pub(crate) fn note_deleted(&mut self, seqs: &[u64]) {
        if !self.under_way.is_empty() {
            seqs.iter().for_each(|seq| self.messages.note(self.next, *seq));
        }
    }

    /// Whether a notification of a page has ended since the page was asked for.
    pub(crate) fn has_ended(&self, id: NotificationId) -> bool {
        self.notifications.all.contains(&id)
    }

    /// Whether a message of a page was deleted since the page was asked for.
    pub(crate) fn is_deleted(&self, seq: u64) -> bool {
        self.messages.all.contains(&seq)
    }
}

impl<T> Default for Ended<T> {
    fn default() -> Ended<T> {
        Ended { all: Set::default(), order: VecDeque::new() }
    }
}

impl<T: Copy + Eq + Hash> Ended<T> {
    fn note(&mut self, next: u64, one: T) {
        if self.all.insert(one) {
            self.order.push_back((next, one));
        }
    }

    /// Forgets what no read from `oldest` on can hold.
    fn forget(&mut self, oldest: u64) {
        while let Some((_, one)) = self.order.pop_front_if(|(next, _)| *next <= oldest) {
            self.all.remove(&one);
        }
        if self.order.is_empty() && self.order.capacity() > 64 {
            *self = Ended::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_is_known_to_the_reads_that_began_before() {
        let mut reads = Reads::default();
        let id = |n: u64| NotificationId(u128::from(n));
        reads.note_ended(id(0));
        assert!(!reads.has_ended(id(0)), "nothing is being read");
        let first = reads.begin();
        reads.note_ended(id(1));
        let second = reads.begin();
        reads.note_ended(id(2));
        reads.note_deleted(&[7]);
        assert!(reads.has_ended(id(1)) && reads.has_ended(id(2)) && reads.is_deleted(7));
        reads.end(first);
        assert!(!reads.has_ended(id(1)), "the second read was asked for after its end");
        assert!(reads.has_ended(id(2)) && reads.is_deleted(7));
        reads.end(second);
        assert!(!reads.has_ended(id(2)) && !reads.is_deleted(7));
        assert!(reads.notifications.all.is_empty() && reads.notifications.order.is_empty());
    }

    #[test]
    fn memory_is_given_back_while_reads_come_and_go() {
        let mut reads = Reads::default();
        let mut open = VecDeque::from([reads.begin()]);
        for n in 0..100_000 {
            reads.note_deleted(&[n]);
            open.push_back(reads.begin());
            if open.len() > 10 {
                reads.end(open.pop_front().expect("there are ten"));
            }
            assert!(reads.messages.order.len() <= 11);
        }
    }
}
