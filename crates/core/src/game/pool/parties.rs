//! Which tickets of several sizes make a match together: the set with the narrowest ratings whose seats are as many as a match has.

use super::Rank;

/// Of the neighbours of a ticket, so many on each side are looked at.
pub(super) fn reach(size: usize) -> usize {
    (4 * size).min(64)
}

/// A ticket among its neighbours, in the order of ratings, each with its seats.
#[derive(Debug)]
pub(super) struct Fit<'a> {
    pub(super) near: &'a [(Rank, u8)],
    /// Where the ticket is.
    pub(super) own: usize,
    pub(super) size: usize,
}

/// Numbers of seats that can be had together: a bit for each. A match has 64 at most.
type Sums = u128;

fn with(sums: Sums, seats: u8) -> Sums {
    sums | sums << (seats & 0x7f)
}

impl Fit<'_> {
    fn seats(&self, at: usize) -> u8 {
        self.near.get(at).map_or(0, |(_, seats)| *seats)
    }

    fn apart(&self, low: usize, high: usize) -> u64 {
        match (self.near.get(low), self.near.get(high)) {
            (Some(((low, _), _)), Some(((high, _), _))) => high.abs_diff(*low),
            _ => u64::MAX,
        }
    }

    /// The narrowest set with the ticket in it; of those that are equally narrow, the first that is found.
    pub(super) fn narrowest(&self) -> Option<(u64, Vec<Rank>)> {
        let mut best: Option<(u64, usize, usize)> = None;
        // What the ticket and those from `low` up to it can have together.
        let mut left: Sums = 1 << (self.seats(self.own) & 0x7f);
        for low in (0..=self.own).rev() {
            if low < self.own {
                left = with(left, self.seats(low));
            }
            let mut sums = left;
            for high in self.own..self.near.len() {
                if high > self.own {
                    sums = with(sums, self.seats(high));
                }
                let apart = self.apart(low, high);
                if best.is_some_and(|(least, ..)| apart >= least) {
                    break;
                }
                if sums >> self.size & 1 != 0 {
                    best = Some((apart, low, high));
                    break;
                }
            }
        }
        let (_, low, high) = best?;
        let set = self.set(low, high);
        let apart = match &set[..] {
            [(low, _), .., (high, _)] => high.abs_diff(*low),
            _ => 0,
        };
        Some((apart, set))
    }

    /// The set from `low` to `high`, of those that have waited longest where there is a choice.
    fn set(&self, low: usize, high: usize) -> Vec<Rank> {
        let mut others: Vec<&(Rank, u8)> =
            (low..=high).filter(|at| *at != self.own).filter_map(|at| self.near.get(at)).collect();
        others.sort_unstable_by_key(|((_, number), _)| *number);
        // What can be had of those behind each.
        let mut behind: Vec<Sums> = Vec::with_capacity(others.len());
        let mut sums: Sums = 1;
        for (_, seats) in others.iter().rev() {
            behind.push(sums);
            sums = with(sums, *seats);
        }
        let mut wanted = self.size.saturating_sub(self.seats(self.own).into());
        let mut set: Vec<Rank> = self.near.get(self.own).map(|(rank, _)| *rank).into_iter().collect();
        for ((rank, seats), behind) in others.into_iter().zip(behind.into_iter().rev()) {
            if let Some(left) = wanted.checked_sub((*seats).into())
                && behind >> left & 1 != 0
            {
                wanted = left;
                set.push(*rank);
            }
        }
        set.sort_unstable();
        set
    }
}
