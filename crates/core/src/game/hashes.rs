//! What clients computed as the state after a tick: those whose hash is not that of most are named.

use std::collections::BTreeMap;

/// The hashes of ticks that not all seats have said yet.
#[derive(Debug, Default)]
pub(super) struct Hashes {
    open: BTreeMap<u32, Vec<(u8, u32)>>,
    /// Ticks up to this one are settled.
    settled: u32,
    /// What most said of the last tick of which most said the same.
    majority: Option<(u32, u32)>,
}

/// Not all said the same of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Desync {
    pub(super) tick: u32,
    /// The seats that differ from the majority; all if there is none.
    pub(super) minority: u64,
    /// The hash of the majority; 0 if there is none.
    pub(super) hash: u32,
}

/// Ticks that may be open: a client that says nothing does not make them more.
const OPEN_MAX: usize = 16;

impl Hashes {
    /// Notes what a seat says. Returns the desync that is certain now: all of the `awaited` seats have said theirs, or too many
    /// ticks are open.
    pub(super) fn say(&mut self, seat: u8, tick: u32, hash: u32, awaited: u64) -> Option<Desync> {
        if tick <= self.settled {
            return None;
        }
        let said = self.open.entry(tick).or_default();
        // The first word counts: nobody says something else once the others have spoken.
        if said.iter().all(|(other, _)| *other != seat) {
            said.push((seat, hash));
        }
        let is_complete = said.iter().fold(awaited, |left, (seat, _)| left & !(1 << seat)) == 0;
        let settled = match is_complete {
            true => self.open.remove(&tick).map(|said| (tick, said)),
            false if self.open.len() > OPEN_MAX => self.open.pop_first(),
            false => None,
        };
        let (tick, said) = settled?;
        self.settled = self.settled.max(tick);
        if let Some(hash) = majority(&said) {
            self.majority = Some((tick, hash));
        }
        self.open.retain(|open, _| *open > tick);
        compare(tick, &said)
    }

    /// What more than half of so many clients say of a tick, if they do.
    pub(super) fn agreed(&self, tick: u32, clients: usize) -> Option<u32> {
        if let Some((_, hash)) = self.majority.filter(|(settled, _)| *settled == tick) {
            return Some(hash);
        }
        let said = self.open.get(&tick)?;
        majority(said).filter(|hash| votes(said, *hash) * 2 > clients)
    }
}

fn votes(said: &[(u8, u32)], hash: u32) -> usize {
    said.iter().filter(|(_, other)| *other == hash).count()
}

/// The hash that more than half say.
fn majority(said: &[(u8, u32)]) -> Option<u32> {
    said.iter().map(|(_, hash)| *hash).find(|hash| votes(said, *hash) * 2 > said.len())
}

fn compare(tick: u32, said: &[(u8, u32)]) -> Option<Desync> {
    let (_, first) = said.first()?;
    if votes(said, *first) == said.len() {
        return None;
    }
    let majority = majority(said);
    let differs = said.iter().filter(|(_, hash)| Some(*hash) != majority);
    let minority = differs.fold(0, |mask, (seat, _)| mask | 1 << seat);
    Some(Desync { tick, minority, hash: majority.unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use super::{Desync, Hashes, OPEN_MAX};

    #[test]
    fn the_minority_is_named_when_all_have_spoken() {
        let mut hashes = Hashes::default();
        assert_eq!(hashes.say(0, 30, 5, 0b111), None);
        assert_eq!(hashes.say(1, 30, 6, 0b111), None);
        // Its second word does not count.
        assert_eq!(hashes.say(1, 30, 5, 0b111), None);
        assert_eq!(hashes.say(2, 30, 5, 0b111), Some(Desync { tick: 30, minority: 0b010, hash: 5 }));
        // It is settled.
        assert_eq!(hashes.say(1, 30, 9, 0b111), None);
        for seat in 0..3 {
            assert_eq!(hashes.say(seat, 60, 7, 0b111), None);
        }
    }

    #[test]
    fn what_most_say_is_known_before_all_have_spoken_and_after() {
        let mut hashes = Hashes::default();
        hashes.say(0, 30, 5, 0b111);
        assert_eq!(hashes.agreed(30, 3), None);
        hashes.say(1, 30, 5, 0b111);
        assert_eq!((hashes.agreed(30, 3), hashes.agreed(30, 4), hashes.agreed(31, 1)), (Some(5), None, None));
        hashes.say(2, 30, 6, 0b111);
        assert_eq!(hashes.agreed(30, 3), Some(5));
    }

    #[test]
    fn without_a_majority_all_are_named() {
        let mut hashes = Hashes::default();
        hashes.say(0, 30, 5, 0b11);
        assert_eq!(hashes.say(1, 30, 6, 0b11), Some(Desync { tick: 30, minority: 0b11, hash: 0 }));
    }

    #[test]
    fn who_says_nothing_makes_nothing_grow_and_hides_nothing() {
        let mut hashes = Hashes::default();
        let mut found = Vec::new();
        for tick in 1..=1000 {
            found.extend(hashes.say(0, tick, 0, 0b111));
            found.extend(hashes.say(1, tick, u32::from(tick == 500), 0b111));
            assert!(hashes.open.len() <= OPEN_MAX + 1);
        }
        assert_eq!(found, [Desync { tick: 500, minority: 0b11, hash: 0 }]);
    }
}
