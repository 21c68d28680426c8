//! Questions whose answers may hold notifications or messages, and what ended since they were asked: an answer may hold it still, and it is
//! not given then.

use crate::model::{NotificationId, Set};
use std::collections::VecDeque;
use std::hash::Hash;

/// The questions under way, and what ended meanwhile.
#[derive(Debug, Default)]
pub struct Reads {
    /// The number of the oldest question under way, or else of the next.
    oldest: u64,
    /// From the oldest on: whether it is answered.
    answered: VecDeque<bool>,
    notifications: Ended<NotificationId>,
    messages: Ended<u64>,
}

/// What ended while something was asked for.
#[derive(Debug)]
struct Ended<T> {
    all: Set<T>,
    /// In their order, each with the number of the first question whose answer cannot hold it.
    order: VecDeque<(u64, T)>,
}

impl Reads {
    /// Something is asked; its number.
    pub(crate) fn begin(&mut self) -> u64 {
        self.answered.push_back(false);
        self.next() - 1
    }

    /// Its answer was dealt with.
    pub(crate) fn end(&mut self, number: u64) {
        let place = number.checked_sub(self.oldest).and_then(|place| usize::try_from(place).ok());
        if let Some(answered) = place.and_then(|place| self.answered.get_mut(place)) {
            *answered = true;
        }
        while self.answered.pop_front_if(|answered| *answered).is_some() {
            self.oldest += 1;
        }
        self.notifications.forget(self.oldest);
        self.messages.forget(self.oldest);
    }

    fn next(&self) -> u64 {
        self.oldest + self.answered.len() as u64
    }

    /// A notification has ended, and that is committed.
    pub(crate) fn note_ended(&mut self, id: NotificationId) {
        if !self.answered.is_empty() {
            self.notifications.note(self.next(), id);
        }
    }

    /// Messages were deleted, and that is committed.
    pub(crate) fn note_deleted(&mut self, seqs: &[u64]) {
        if !self.answered.is_empty() {
            let next = self.next();
            seqs.iter().for_each(|seq| self.messages.note(next, *seq));
        }
    }

    /// Whether a notification of an answer has ended since that was asked for.
    pub(crate) fn has_ended(&self, id: NotificationId) -> bool {
        self.notifications.all.contains(&id)
    }

    /// Whether a message of an answer was deleted since that was asked for.
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

    /// Forgets what no answer from `oldest` on can hold.
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
    fn what_ended_is_known_to_the_questions_that_were_asked_before() {
        let mut reads = Reads::default();
        let id = |n: u64| NotificationId(u128::from(n));
        reads.note_ended(id(0));
        assert!(!reads.has_ended(id(0)), "nothing is under way");
        let first = reads.begin();
        reads.note_ended(id(1));
        let second = reads.begin();
        reads.note_ended(id(2));
        reads.note_deleted(&[7]);
        assert!(reads.has_ended(id(1)) && reads.has_ended(id(2)) && reads.is_deleted(7));
        reads.end(first);
        assert!(!reads.has_ended(id(1)), "the second was asked after its end");
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
