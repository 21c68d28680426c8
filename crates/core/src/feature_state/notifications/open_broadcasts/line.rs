//! Sessions that wait for their turn.

use crate::model::{SessionId, Set};
use std::collections::VecDeque;

/// Sessions in the order in which they came, each of them once, however often its client makes it come.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// Also some that have left.
    order: VecDeque<SessionId>,
    waiting: Set<SessionId>,
}

impl Line {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn push(&mut self, session: SessionId) {
        if self.waiting.insert(session) {
            self.order.push_back(session);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<SessionId> {
        while let Some(next) = self.order.pop_front() {
            if self.waiting.remove(&next) {
                return Some(next);
            }
        }
        None
    }

    /// A session does not wait any more.
    pub(crate) fn remove(&mut self, session: SessionId) {
        if self.waiting.remove(&session) && self.order.len() > 2 * self.waiting.len() + SPARE {
            self.order.retain(|one| self.waiting.contains(one));
        }
    }

    /// Gives back what a burst made it grow to.
    pub(crate) fn tidy(&mut self) {
        self.order.shrink_to(2 * self.order.len() + SPARE);
        self.waiting.shrink_to(2 * self.waiting.len() + SPARE);
    }
}

const SPARE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn session(slot: u32) -> SessionId {
        SessionId { slot, generation: 1 }
    }

    fn drained(line: &mut Line) -> Vec<u32> {
        std::iter::from_fn(|| line.pop()).map(|session| session.slot).collect()
    }

    #[test]
    fn each_waits_once() {
        let mut line = Line::default();
        for slot in [3, 1, 3, 2, 1] {
            line.push(session(slot));
        }
        line.remove(session(1));
        assert_eq!(drained(&mut line), [3, 2]);
        line.push(session(1));
        line.remove(session(1));
        line.push(session(1));
        assert_eq!(drained(&mut line), [1], "one that left and came back");
        assert!(line.is_empty());
    }

    #[test]
    fn takes_no_more_than_those_who_wait() {
        let mut line = Line::default();
        line.push(session(0));
        for slot in 1..10_000 {
            line.push(session(slot));
            line.remove(session(slot));
        }
        assert!(line.order.len() <= 2 + SPARE, "{}", line.order.len());
        assert_eq!(drained(&mut line), [0]);
    }
}
