//! Queues by their size, so that a large one is found without looking at the others. A queue that is small is in no list.

use crate::model::{Map, Set};
use std::hash::Hash;

/// The names of queues, by size.
#[derive(Debug)]
pub struct BySize<K> {
    /// Queues of at least `CLASS_BYTES_MIN << n` bytes, and less than twice as many.
    classes: [Set<K>; CLASSES],
    /// Queues that are about to end, with at least so many bytes.
    ending: Map<K, usize>,
    ending_bytes: usize,
}

/// Queues of fewer bytes are not listed.
const CLASS_BYTES_MIN: usize = 1024;
const CLASSES: usize = 24;

impl<K> Default for BySize<K> {
    fn default() -> BySize<K> {
        BySize { classes: std::array::from_fn(|_| Set::default()), ending: Map::default(), ending_bytes: 0 }
    }
}

impl<K: Copy + Eq + Hash> BySize<K> {
    /// A queue went from one size to another, in bytes; one of 0 is gone.
    pub fn resize(&mut self, queue: K, before: usize, after: usize) {
        if after == 0
            && let Some(bytes) = self.ending.remove(&queue)
        {
            self.ending_bytes -= bytes;
        }
        let (from, to) = (class(before), class(after));
        if from == to {
            return;
        }
        if let Some(queues) = from.and_then(|class| self.classes.get_mut(class)) {
            queues.remove(&queue);
            if queues.is_empty() && queues.capacity() > KEPT {
                *queues = Set::default();
            }
        }
        if let Some(queues) = to.and_then(|class| self.classes.get_mut(class))
            && !self.ending.contains_key(&queue)
        {
            queues.insert(queue);
        }
    }

    /// A queue that has to end so that all of them, which have `bytes`, have at most `bytes_max`: the larger ones first. It
    /// is not named twice.
    pub fn too_large(&mut self, bytes: usize, bytes_max: usize) -> Option<K> {
        if bytes.saturating_sub(self.ending_bytes) <= bytes_max {
            return None;
        }
        let listed = |(class, queues): (usize, &Set<K>)| Some((class, *queues.iter().next()?));
        let (class, queue) = self.classes.iter().enumerate().rev().find_map(listed)?;
        self.classes.get_mut(class).map(|queues| queues.remove(&queue));
        let bytes = CLASS_BYTES_MIN << class;
        self.ending.insert(queue, bytes);
        self.ending_bytes += bytes;
        Some(queue)
    }

    /// One of the queues that were named and are not gone.
    pub fn ending(&self) -> Option<K> {
        self.ending.keys().next().copied()
    }
}

/// The list of queues of this size.
fn class(bytes: usize) -> Option<usize> {
    let class = (bytes / CLASS_BYTES_MIN).checked_ilog2()? as usize;
    Some(class.min(CLASSES - 1))
}

/// Capacity that an empty list keeps.
const KEPT: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compared with a plain list of sizes: who is named is among the largest, by a factor of two, and all are named that have to end.
        #[test]
        fn the_largest_end_first(steps in prop::collection::vec((0u32..20, 0usize..1 << 20), 1..200), bytes_max in 0usize..4 << 20) {
            let (mut by_size, mut sizes) = (BySize::default(), Map::<u32, usize>::default());
            let sum = |sizes: &Map<u32, usize>| sizes.values().sum::<usize>();
            for (queue, bytes) in steps {
                let before = sizes.insert(queue, bytes).unwrap_or(0);
                by_size.resize(queue, before, bytes);
                let mut named = Vec::new();
                while let Some(ends) = by_size.too_large(sum(&sizes), bytes_max) {
                    named.push(ends);
                }
                prop_assert_eq!(by_size.ending().is_some(), !named.is_empty());
                for queue in named {
                    let bytes = sizes.remove(&queue).expect("it is there, and named once");
                    prop_assert!(sizes.values().all(|other| *other < bytes * 2 || *other < CLASS_BYTES_MIN));
                    by_size.resize(queue, bytes, 0);
                }
                prop_assert!(sum(&sizes) <= bytes_max || sizes.values().all(|bytes| *bytes < CLASS_BYTES_MIN));
            }
            for (queue, bytes) in sizes {
                by_size.resize(queue, bytes, 0);
            }
            prop_assert_eq!((by_size.ending_bytes, by_size.ending.len()), (0, 0));
            prop_assert!(by_size.classes.iter().all(Set::is_empty));
        }
    }
}
