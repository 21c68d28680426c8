//! The waiting tickets of a queue, and which of them make a match.
//!
//! Tickets that want the same alike are in one bucket, in the order of their ratings. A match is a run of neighbours in it; of the runs
//! that a ticket may be in, the narrowest is the one that it can be matched by first, and its window says when. So each ticket has a
//! time at which it is matched if nothing comes or goes. Whoever comes or goes changes that of the neighbours in reach only, and nothing
//! is searched: what is due is at the front of one ordered set, the ticket that has waited longest first.
//!
//! A party is one ticket of several seats. Where there may be parties a match need not be a run of neighbours: who does not fit is passed
//! over, and what fits is looked for among so many neighbours (`parties`).

mod parties;

use crate::model::{Map, Mono, RatingWindow};
use parties::Fit;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

/// A ticket of a pool: its number in the order of arrival.
pub(super) type Number = u64;

/// The waiting tickets of a queue.
#[derive(Debug)]
pub(super) struct Pool {
    size: usize,
    window: RatingWindow,
    /// There may be parties.
    has_parties: bool,
    /// The tickets that want the same alike, each with its seats.
    buckets: Map<Box<str>, BTreeMap<Rank, u8>>,
    waiting: Map<Number, WaitingTicket>,
    /// When each ticket is matched if nothing comes or goes.
    due: BTreeSet<(Mono, Number)>,
}

/// A place in the order of ratings.
type Rank = (i64, Number);

#[derive(Debug)]
struct WaitingTicket {
    bucket: Box<str>,
    rating: i64,
    since: Mono,
    due: Option<Mono>,
}

/// Tickets that make a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// In the order of arrival.
    pub(super) tickets: Vec<Number>,
    /// How far their ratings are apart.
    pub(super) apart: u64,
}

impl Pool {
    /// For matches of so many seats.
    pub(super) fn new(size: usize, window: RatingWindow, has_parties: bool) -> Pool {
        Pool {
            size: size.max(2),
            window,
            has_parties,
            buckets: Map::default(),
            waiting: Map::default(),
            due: BTreeSet::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a ticket of so many seats that has waited since then.
    pub(super) fn add(&mut self, number: Number, bucket: &str, rating: i64, since: Mono, seats: u8) {
        let waiting = WaitingTicket { bucket: bucket.into(), rating, since, due: None };
        self.waiting.insert(number, waiting);
        self.buckets.entry(bucket.into()).or_default().insert((rating, number), seats);
        self.changed(bucket, (rating, number));
    }

    /// Takes a ticket out. Whether it was there.
    pub(super) fn remove(&mut self, number: Number) -> bool {
        let Some(WaitingTicket { bucket, rating, due, .. }) = self.waiting.remove(&number) else {
            return false;
        };
        if let Some(at) = due {
            self.due.remove(&(at, number));
        }
        if let Some(ranks) = self.buckets.get_mut(&bucket) {
            ranks.remove(&(rating, number));
            if ranks.is_empty() {
                self.buckets.remove(&bucket);
            }
        }
        self.changed(&bucket, (rating, number));
        true
    }

    /// When the next match can be made.
    pub(super) fn next_due(&self) -> Option<Mono> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Takes out the tickets of a match that can be made now.
    pub(super) fn take(&mut self, now: Mono) -> Option<Group> {
        let &(_, number) = self.due.first().filter(|(at, _)| *at <= now)?;
        let WaitingTicket { bucket, rating, .. } = self.waiting.get(&number)?;
        let (apart, ranks) = self.narrowest(bucket, (*rating, number))?;
        let mut tickets: Vec<Number> = ranks.into_iter().map(|(_, number)| number).collect();
        tickets.sort_unstable();
        for number in &tickets {
            self.remove(*number);
        }
        Some(Group { tickets, apart })
    }

    /// Something came or went at this rank: its neighbours in reach may have a narrower run now, or none.
    fn changed(&mut self, bucket: &str, rank: Rank) {
        for (near, _) in self.near(bucket, rank) {
            let Some(waiting) = self.waiting.get(&near.1) else { continue };
            let since = waiting.since;
            let due = self
                .narrowest(bucket, near)
                .and_then(|(apart, _)| self.window.accepts_after_ms(apart))
                .map(|ms| since.plus(ms));
            let Some(waiting) = self.waiting.get_mut(&near.1) else { continue };
            if waiting.due != due {
                if let Some(before) = std::mem::replace(&mut waiting.due, due) {
                    self.due.remove(&(before, near.1));
                }
                if let Some(at) = due {
                    self.due.insert((at, near.1));
                }
            }
        }
    }

    /// The ranks that can be in one match with this one, and itself if it is there, with their seats.
    fn near(&self, bucket: &str, rank: Rank) -> Vec<(Rank, u8)> {
        let Some(ranks) = self.buckets.get(bucket) else { return Vec::new() };
        let reach = if self.has_parties { parties::reach(self.size) } else { self.size - 1 };
        let own = |(rank, seats): (&Rank, &u8)| (*rank, *seats);
        let mut near: Vec<(Rank, u8)> = ranks.range(..rank).rev().take(reach).map(own).collect();
        near.reverse();
        near.extend(ranks.get_key_value(&rank).map(own));
        near.extend(ranks.range((Excluded(rank), Unbounded)).take(reach).map(own));
        near
    }

    /// The narrowest match that this rank may be in: a run of neighbours, where there are no parties; of those that are equally narrow the
    /// first, which is the one with the older tickets where ratings are the same.
    fn narrowest(&self, bucket: &str, rank: Rank) -> Option<(u64, Vec<Rank>)> {
        let near = self.near(bucket, rank);
        if self.has_parties {
            let own = near.iter().position(|(other, _)| *other == rank)?;
            return Fit { near: &near, own, size: self.size }.narrowest();
        }
        let apart = |run: &[(Rank, u8)]| match run {
            [((low, _), _), .., ((high, _), _)] => high.abs_diff(*low),
            _ => 0,
        };
        let run = near.windows(self.size).min_by_key(|run| apart(run))?;
        Some((apart(run), run.iter().map(|(rank, _)| *rank).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const WINDOW: RatingWindow = RatingWindow { initial: 10, per_second: 10, max: 100 };

    fn at(ms: u64) -> Mono {
        Mono(ms)
    }

    #[test]
    fn a_match_is_made_as_soon_as_there_are_enough() {
        let mut pool = Pool::new(3, RatingWindow::ANY, false);
        pool.add(1, "", 0, at(0), 1);
        pool.add(2, "", 500, at(1), 1);
        assert_eq!((pool.take(at(1)), pool.next_due()), (None, None));
        pool.add(3, "", -70, at(2), 1);
        assert_eq!(pool.take(at(2)), Some(Group { tickets: vec![1, 2, 3], apart: 570 }));
        assert_eq!((pool.len(), pool.take(at(2))), (0, None));
    }

    #[test]
    fn the_oldest_go_first_where_all_are_alike() {
        let mut pool = Pool::new(2, RatingWindow::ANY, false);
        // Of three in a row nobody waits for whom the others passed over.
        for number in 1..=5 {
            pool.add(number, "", 7, at(number), 1);
            if let Some(group) = pool.take(at(number)) {
                assert_eq!(group.tickets, [number - 1, number]);
            }
        }
        assert_eq!(pool.len(), 1);
    }

    #[test]
    fn a_window_widens_until_somebody_is_in_it() {
        let mut pool = Pool::new(2, WINDOW, false);
        pool.add(1, "", 0, at(0), 1);
        pool.add(2, "", 50, at(1000), 1);
        // 40 beyond the window: the older one accepts that after four seconds.
        assert_eq!(pool.next_due(), Some(at(4000)));
        assert_eq!(pool.take(at(3999)), None);
        pool.add(3, "", 45, at(3999), 1);
        assert_eq!(pool.take(at(3999)), Some(Group { tickets: vec![2, 3], apart: 5 }));
        assert_eq!(pool.next_due(), None);
        // Beyond the largest window nobody is ever in it.
        pool.add(4, "", 101, at(4000), 1);
        assert_eq!(pool.next_due(), None);
    }

    #[test]
    fn who_goes_is_not_matched() {
        let mut pool = Pool::new(2, WINDOW, false);
        pool.add(1, "", 0, at(0), 1);
        pool.add(2, "", 50, at(0), 1);
        assert!(pool.remove(2) && !pool.remove(2));
        assert_eq!((pool.next_due(), pool.take(at(100_000))), (None, None));
    }

    #[test]
    fn what_has_to_be_alike_keeps_apart() {
        let mut pool = Pool::new(2, RatingWindow::ANY, false);
        pool.add(1, "map=a", 0, at(0), 1);
        pool.add(2, "map=b", 0, at(0), 1);
        assert_eq!(pool.take(at(0)), None);
        pool.add(3, "map=b", 0, at(0), 1);
        assert_eq!(pool.take(at(0)).unwrap().tickets, [2, 3]);
        assert!(pool.remove(1) && pool.buckets.is_empty());
    }

    #[test]
    fn parties_stay_together_and_fill_a_match() {
        let mut pool = Pool::new(4, RatingWindow::ANY, true);
        pool.add(1, "", 0, at(0), 3);
        pool.add(2, "", 1, at(0), 2);
        // Three and two are too many; who comes alone makes the three complete.
        assert_eq!(pool.take(at(0)), None);
        pool.add(3, "", 5, at(0), 1);
        assert_eq!(pool.take(at(0)), Some(Group { tickets: vec![1, 3], apart: 5 }));
        // Who does not fit between two is passed over.
        pool.add(4, "", 2, at(0), 3);
        pool.add(5, "", 3, at(0), 2);
        assert_eq!(pool.take(at(0)), Some(Group { tickets: vec![2, 5], apart: 2 }));
        // A party that fills a match waits for nobody.
        pool.add(6, "", 0, at(0), 4);
        assert_eq!(pool.take(at(0)), Some(Group { tickets: vec![6], apart: 0 }));
        assert!(pool.remove(4) && pool.buckets.is_empty());
    }

    /// Against a search of all sets, with random arrivals and departures.
    #[test]
    fn what_is_due_with_parties_is_what_a_search_finds() {
        for seed in 0..30 {
            let mut random = Random::new([seed; 32]);
            let size = 2 + (random.number() % 4) as usize;
            let mut pool = Pool::new(size, WINDOW, true);
            let mut present: Vec<(u64, i64, Mono, u8)> = Vec::new();
            for number in 0..150 {
                let now = at(number * 300);
                if random.number().is_multiple_of(4) && !present.is_empty() || present.len() > 8 {
                    let gone = present.swap_remove((random.number() % present.len() as u64) as usize);
                    assert!(pool.remove(gone.0));
                } else {
                    let rating = (random.number() % 200) as i64;
                    let seats = 1 + (random.number() % size as u64) as u8;
                    pool.add(number, "", rating, now, seats);
                    present.push((number, rating, now, seats));
                }
                while let Some(group) = pool.take(now) {
                    let is_in = |it: &&(u64, i64, Mono, u8)| group.tickets.contains(&it.0);
                    let taken: Vec<_> = present.iter().filter(is_in).copied().collect();
                    present.retain(|it| !group.tickets.contains(&it.0));
                    assert_eq!(taken.len(), group.tickets.len());
                    assert_eq!(taken.iter().map(|it| usize::from(it.3)).sum::<usize>(), size);
                    assert_eq!(group.apart, span(taken.iter()));
                }
                assert!(!can_be_matched(&present, size, now), "seed {seed}: a match was missed at {now:?}");
            }
        }
    }

    fn span<'a>(set: impl Iterator<Item = &'a (u64, i64, Mono, u8)>) -> u64 {
        let ratings: Vec<i64> = set.map(|it| it.1).collect();
        ratings.iter().max().unwrap().abs_diff(*ratings.iter().min().unwrap())
    }

    fn can_be_matched(present: &[(u64, i64, Mono, u8)], size: usize, now: Mono) -> bool {
        (1_u32..1 << present.len()).any(|set| {
            let members =
                || present.iter().enumerate().filter(|(at, _)| set & 1 << at != 0).map(|(_, it)| it);
            let accepts = || WINDOW.accepts_after_ms(span(members()));
            members().map(|it| usize::from(it.3)).sum::<usize>() == size
                && members().any(|it| accepts().is_some_and(|ms| it.2.plus(ms) <= now))
        })
    }

    /// Against a search of all runs, with random arrivals and departures.
    #[test]
    fn what_is_due_is_what_a_search_finds_and_no_ticket_is_in_two_matches() {
        for seed in 0..20 {
            let mut random = Random::new([seed; 32]);
            let size = 2 + (random.number() % 4) as usize;
            let mut pool = Pool::new(size, WINDOW, false);
            let mut present: Vec<(u64, i64, Mono)> = Vec::new();
            let mut matched = BTreeSet::new();
            for number in 0..300 {
                let now = at(number * 100);
                match random.number() % 5 {
                    0 if !present.is_empty() => {
                        let gone = present.swap_remove((random.number() % present.len() as u64) as usize);
                        assert!(pool.remove(gone.0));
                    }
                    _ => {
                        let rating = (random.number() % 400) as i64 - 200;
                        pool.add(number, "", rating, now, 1);
                        present.push((number, rating, now));
                    }
                }
                while let Some(group) = pool.take(now) {
                    assert_eq!(group.tickets.len(), size);
                    for ticket in &group.tickets {
                        assert!(matched.insert(*ticket), "{ticket} is in two matches");
                        present.retain(|(other, ..)| other != ticket);
                    }
                }
                let mut sorted: Vec<_> =
                    present.iter().map(|(n, rating, since)| (*rating, *n, *since)).collect();
                sorted.sort_unstable();
                let accepted = |run: &[(i64, u64, Mono)]| {
                    let apart = run[size - 1].0.abs_diff(run[0].0);
                    let accepts =
                        |since: &Mono| WINDOW.accepts_after_ms(apart).is_some_and(|ms| since.plus(ms) <= now);
                    run.iter().any(|(.., since)| accepts(since))
                };
                assert!(!sorted.windows(size).any(accepted), "seed {seed}: a match was missed at {now:?}");
                assert_eq!(pool.len(), present.len());
            }
            assert!(!matched.is_empty());
        }
    }
}
