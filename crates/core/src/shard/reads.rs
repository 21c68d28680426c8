//! Questions whose answers may hold what has ended since they were asked: a notification, a message. An answer may hold it still, and it is
//! not given then.

use crate::model::Set;
use std::collections::VecDeque;
use std::hash::Hash;

/// The questions under way, and what ended meanwhile.
#[derive(Debug)]
pub struct Reads<T> {
    /// The number of the oldest question under way, or else of the next.
    oldest: u64,
    /// From the oldest on: whether it is answered.
    answered: VecDeque<bool>,
    ended: Set<T>,
    /// What ended in its order, each with the number of the first question whose answer cannot hold it.
    order: VecDeque<(u64, T)>,
}

impl<T> Default for Reads<T> {
    fn default() -> Reads<T> {
        Reads { oldest: 0, answered: VecDeque::new(), ended: Set::default(), order: VecDeque::new() }
    }
}

impl<T: Copy + Eq + Hash> Reads<T> {
    /// Something is asked; its number.
    pub fn begin(&mut self) -> u64 {
        self.answered.push_back(false);
        self.next() - 1
    }

    /// Its answer was dealt with.
    pub fn end(&mut self, number: u64) {
        let place = number.checked_sub(self.oldest).and_then(|place| usize::try_from(place).ok());
        if let Some(answered) = place.and_then(|place| self.answered.get_mut(place)) {
            *answered = true;
        }
        while self.answered.pop_front_if(|answered| *answered).is_some() {
            self.oldest += 1;
        }
        self.forget();
    }

    /// One has ended, and that is committed.
    pub fn note_ended(&mut self, one: T) {
        if !self.answered.is_empty() && self.ended.insert(one) {
            self.order.push_back((self.next(), one));
        }
    }

    /// Whether one of an answer has ended since that was asked for.
    pub fn has_ended(&self, one: T) -> bool {
        self.ended.contains(&one)
    }

    fn next(&self) -> u64 {
        self.oldest + self.answered.len() as u64
    }

    /// Forgets what no answer under way can hold.
    fn forget(&mut self) {
        let oldest = self.oldest;
        while let Some((_, one)) = self.order.pop_front_if(|(next, _)| *next <= oldest) {
            self.ended.remove(&one);
        }
        if self.order.is_empty() && self.order.capacity() > 64 {
            (self.ended, self.order) = (Set::default(), VecDeque::new());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_is_known_to_the_questions_that_were_asked_before() {
        let mut reads = Reads::default();
        reads.note_ended(0);
        assert!(!reads.has_ended(0), "nothing is under way");
        let first = reads.begin();
        reads.note_ended(1);
        let second = reads.begin();
        reads.note_ended(2);
        assert!(reads.has_ended(1) && reads.has_ended(2));
        reads.end(first);
        assert!(!reads.has_ended(1), "the second was asked after its end");
        assert!(reads.has_ended(2));
        reads.end(second);
        assert!(!reads.has_ended(2));
        assert!(reads.ended.is_empty() && reads.order.is_empty());
    }

    #[test]
    fn memory_is_given_back_while_reads_come_and_go() {
        let mut reads = Reads::default();
        let mut open = VecDeque::from([reads.begin()]);
        for n in 0..100_000 {
            reads.note_ended(n);
            open.push_back(reads.begin());
            if open.len() > 10 {
                reads.end(open.pop_front().expect("there are ten"));
            }
            assert!(reads.order.len() <= 11);
        }
    }
}
