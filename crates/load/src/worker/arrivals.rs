//! Which numbered messages of one sender a recipient has received: every one once, and in order, or not.

use std::ops::Range;

use super::recorder::{Count, Recorder};

/// The numbers that have arrived. Memory grows with the gaps between them, not with their count.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    /// Ranges that do not touch, ascending.
    ranges: Vec<Range<u32>>,
}

/// What an arrival is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// New, and later than all before it.
    InOrder,
    /// New, but a later one was there before.
    OutOfOrder,
    /// The number was there before.
    Duplicate,
}

impl Arrivals {
    /// Whether a number arrives for the first time. Counts it if it does not, or if it is late behind another.
    pub(super) fn count(&mut self, number: u32, recorder: &Recorder) -> bool {
        match self.note(number) {
            Arrival::InOrder => true,
            Arrival::OutOfOrder => {
                recorder.count(Count::OutOfOrder);
                true
            }
            Arrival::Duplicate => {
                recorder.count(Count::Duplicates);
                false
            }
        }
    }

    /// Notes that a number has arrived.
    pub(super) fn note(&mut self, number: u32) -> Arrival {
        let at = self.ranges.partition_point(|range| range.end <= number);
        let behind = at.checked_sub(1).filter(|behind| self.ranges[*behind].end == number);
        match (behind, self.ranges.get(at)) {
            (_, Some(range)) if range.start <= number => return Arrival::Duplicate,
            (Some(behind), Some(range)) if range.start == number + 1 => {
                self.ranges[behind].end = range.end;
                self.ranges.remove(at);
                return Arrival::OutOfOrder;
            }
            (None, Some(range)) if range.start == number + 1 => self.ranges[at].start = number,
            (Some(behind), _) => self.ranges[behind].end = number + 1,
            (None, _) => self.ranges.insert(at, number..number + 1),
        }
        match self.ranges.last() {
            Some(last) if last.end == number + 1 => Arrival::InOrder,
            _ => Arrival::OutOfOrder,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn gaps_are_filled_late() {
        let mut arrivals = Arrivals::default();
        let noted = [0, 1, 4, 2, 3, 3, 5, 0].map(|number| arrivals.note(number));
        use Arrival::{Duplicate, InOrder, OutOfOrder};
        assert_eq!(noted, [InOrder, InOrder, InOrder, OutOfOrder, OutOfOrder, Duplicate, InOrder, Duplicate]);
        assert_eq!(arrivals.ranges.len(), 1);
    }

    proptest! {
        #[test]
        fn it_is_a_set_that_knows_its_largest(numbers in prop::collection::vec(0u32..40, 0..100)) {
            let (mut arrivals, mut set) = (Arrivals::default(), BTreeSet::new());
            for number in numbers {
                let expected = match set.last() {
                    _ if set.contains(&number) => Arrival::Duplicate,
                    Some(last) if *last > number => Arrival::OutOfOrder,
                    _ => Arrival::InOrder,
                };
                set.insert(number);
                prop_assert_eq!(arrivals.note(number), expected);
            }
            prop_assert!(arrivals.ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
            prop_assert_eq!(arrivals.ranges.iter().map(Range::len).sum::<usize>(), set.len());
        }
    }
}
