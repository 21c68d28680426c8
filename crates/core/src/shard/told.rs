//! Publications that are done once: those of which the shards were told. One that is asked for again is answered again and told to
//! nobody.
//!
//! The store knows whether it was done, also after a restart; whether followers were told only this process knows. What is not here any
//! more is told again: a follower may then be given an item twice, and misses none.

use crate::model::{OperationId, Set};
use std::collections::VecDeque;

/// Publications of which the shards were told, as many of the newest as have room.
#[derive(Debug, Default)]
pub struct Told {
    ids: Set<OperationId>,
    order: VecDeque<OperationId>,
}

/// How many are remembered: about 200 KiB.
const TOLD_MAX: usize = 4096;

impl Told {
    /// Notes that the shards are told of a publication. False if they were before.
    pub fn note(&mut self, operation: OperationId) -> bool {
        if !self.ids.insert(operation) {
            return false;
        }
        if self.order.len() == TOLD_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        self.order.push_back(operation);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_remembered() {
        let mut told = Told::default();
        let max = TOLD_MAX as u128;
        for n in 0..=max {
            assert!(told.note(OperationId(n)));
            assert!(!told.note(OperationId(n)));
        }
        assert!(!told.note(OperationId(1)), "it is among the newest");
        assert!(told.note(OperationId(0)), "it was forgotten");
        assert_eq!((told.ids.len(), told.order.len()), (TOLD_MAX, TOLD_MAX));
    }
}
