//! Waiting until everything that is under way now was answered by the store, whoever asked it.

use crate::model::Ticket;
use std::collections::VecDeque;

/// What waits until the questions that are open now are answered, in the order in which it began to wait.
#[derive(Debug)]
pub(crate) struct Barriers<T> {
    waiting: VecDeque<Barrier<T>>,
}

#[derive(Debug)]
struct Barrier<T> {
    /// The last question that is waited for.
    last: Ticket,
    /// How many of those up to it are open.
    open: usize,
    then: Vec<T>,
}

impl<T> Default for Barriers<T> {
    fn default() -> Barriers<T> {
        Barriers { waiting: VecDeque::new() }
    }
}

impl<T> Barriers<T> {
    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// `then` waits until the open questions are answered, of which there are so many, the last of them this one.
    pub(crate) fn add(&mut self, last: Ticket, open: usize, then: T) {
        match self.waiting.back_mut() {
            Some(newest) if newest.last == last => newest.then.push(then),
            _ => self.waiting.push_back(Barrier { last, open, then: vec![then] }),
        }
    }

    /// A question was answered.
    pub(crate) fn answered(&mut self, ticket: Ticket) {
        for barrier in self.waiting.iter_mut().filter(|barrier| ticket <= barrier.last) {
            barrier.open = barrier.open.saturating_sub(1);
        }
    }

    /// What waits no longer.
    pub(crate) fn next(&mut self) -> Option<Vec<T>> {
        self.waiting.pop_front_if(|barrier| barrier.open == 0).map(|barrier| barrier.then)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_waits_for_what_was_open_when_it_began() {
        let mut barriers = Barriers::default();
        barriers.add(Ticket(2), 2, "a");
        barriers.add(Ticket(2), 2, "b");
        barriers.add(Ticket(3), 3, "c");
        barriers.answered(Ticket(2));
        barriers.answered(Ticket(3));
        assert_eq!(barriers.next(), None);
        barriers.answered(Ticket(1));
        assert_eq!((barriers.next(), barriers.next()), (Some(vec!["a", "b"]), Some(vec!["c"])));
        assert!(barriers.is_empty());
        barriers.add(Ticket(3), 0, "d");
        assert_eq!(barriers.next(), Some(vec!["d"]));
    }
}
