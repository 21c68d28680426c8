//! The accounts whose clients cost a shard most, counted in bounded memory: Space-Saving (Metwally, Agrawal, El Abbadi 2005) in sets.
//!
//! An account belongs to one of eight sets, by its number; each set counts eight accounts, and one that is not among them takes the place of the one that
//! costs least, and its cost, too. So an account that costs more than an eighth of its set is among the eight, and nothing is allocated or searched for longer than a
//! set. What an account is said to have sent is what it sent since it took its place: no more than it did.

use crate::model::{AccountId, Mono};

/// Accounts in a set, and sets.
const WAYS: usize = 8;
/// For how long counts are gathered before they begin anew; those of the time before are kept as long.
const WINDOW_MS: u64 = 60_000;
/// What a stanza costs beside its bytes, in bytes.
const STANZA_COST: u64 = 512;
/// Nanoseconds that cost as much as a byte.
const NS_PER_BYTE: u64 = 4;

/// The accounts that cost a shard most.
#[derive(Debug, Default)]
pub struct Heavy {
    now: Box<Window>,
    before: Box<Window>,
    began: Mono,
    /// When the window before this one began, if there was one.
    before_began: Option<Mono>,
}

/// What an account's clients sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeavyCount {
    /// Elements.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time that a shard spent on them, in nanoseconds, as far as it was measured.
    pub cpu_ns: u64,
}

#[derive(Debug, Default)]
struct Window([Set; WAYS]);

/// The accounts of a set. What is compared lies together.
#[derive(Debug, Default)]
struct Set {
    accounts: [AccountId; WAYS],
    costs: [u64; WAYS],
    counts: [HeavyCount; WAYS],
}

impl Heavy {
    /// A client of an account sent an element.
    #[inline]
    pub fn sent(&mut self, account: AccountId, bytes: usize) {
        let bytes = bytes as u64;
        self.now.add(account, STANZA_COST + bytes, HeavyCount { messages: 1, bytes, cpu_ns: 0 });
    }

    /// So many nanoseconds were spent on what a client of an account sent.
    pub fn spent(&mut self, account: AccountId, cpu_ns: u64) {
        self.now.add(account, cpu_ns / NS_PER_BYTE, HeavyCount { cpu_ns, ..HeavyCount::default() });
    }

    /// Begins a new window when it is time.
    pub fn roll(&mut self, now: Mono) {
        if now.since(self.began) >= WINDOW_MS {
            self.before = std::mem::take(&mut self.now);
            self.before_began = Some(std::mem::replace(&mut self.began, now));
        }
    }

    /// The accounts that cost most in this window and in the one before, in no order, and for how many milliseconds they were counted.
    pub fn accounts(&self, now: Mono) -> (Vec<(AccountId, HeavyCount)>, u64) {
        let mut all: Vec<(AccountId, HeavyCount)> = self.now.all().chain(self.before.all()).collect();
        all.sort_unstable_by_key(|(account, _)| account.0);
        all.dedup_by(|(next, more), (account, count)| {
            let is_same = next == account;
            if is_same {
                count.add(*more);
            }
            is_same
        });
        (all, now.since(self.before_began.unwrap_or(self.began)))
    }
}

impl Window {
    #[inline]
    fn add(&mut self, account: AccountId, cost: u64, count: HeavyCount) {
        // Numbers are given one after the other: the lowest digits spread them.
        let set = (account.0 % WAYS as u64) as usize;
        if let Some(set) = self.0.get_mut(set) {
            set.add(account, cost, count);
        }
    }

    fn all(&self) -> impl Iterator<Item = (AccountId, HeavyCount)> {
        let counted = self.0.iter().flat_map(|set| set.accounts.iter().zip(&set.counts));
        counted
            .filter(|(_, count)| **count != HeavyCount::default())
            .map(|(account, count)| (*account, *count))
    }
}

impl Set {
    fn add(&mut self, account: AccountId, cost: u64, count: HeavyCount) {
        // All are compared, without a branch for each: which of them it is cannot be predicted.
        let compared = self.accounts.iter().enumerate();
        let found = compared.fold(0u32, |found, (at, of)| found | u32::from(*of == account) << at);
        let at = match found {
            0 => self.replace(account),
            found => found.trailing_zeros() as usize,
        };
        if let (Some(costs), Some(counts)) = (self.costs.get_mut(at), self.counts.get_mut(at)) {
            *costs += cost;
            counts.add(count);
        }
    }

    /// An account takes the place of the one that costs least, and its cost.
    fn replace(&mut self, account: AccountId) -> usize {
        // The place is packed into the lowest three bits of its cost, where it changes nothing, so that the minimum of eight numbers says both.
        let placed = self.costs.iter().zip(0u64..).map(|(cost, at)| cost & !7 | at);
        let at = (placed.fold(u64::MAX, u64::min) & 7) as usize;
        if let (Some(of), Some(count)) = (self.accounts.get_mut(at), self.counts.get_mut(at)) {
            (*of, *count) = (account, HeavyCount::default());
        }
        at
    }
}

impl HeavyCount {
    fn add(&mut self, other: HeavyCount) {
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.cpu_ns += other.cpu_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(heavy: &Heavy, account: u64) -> Option<HeavyCount> {
        let (all, _) = heavy.accounts(Mono(0));
        all.iter().find(|(of, _)| of.0 == account).map(|(_, count)| *count)
    }

    #[test]
    fn few_accounts_are_counted_exactly() {
        let mut heavy = Heavy::default();
        for account in 1..=64 {
            (0..account).for_each(|_| heavy.sent(AccountId(account), 100));
        }
        for account in 1..=64 {
            let count = HeavyCount { messages: account, bytes: 100 * account, cpu_ns: 0 };
            assert_eq!(counted(&heavy, account), Some(count));
        }
    }

    /// One account sends a tenth of everything, another little of which each is large, among 100,000 others.
    #[test]
    fn who_costs_much_is_found_among_many_and_never_overstated() {
        let mut heavy = Heavy::default();
        for n in 0..200_000u64 {
            heavy.sent(AccountId(1000 + n * 7919 % 100_000), 200);
            if n % 10 == 0 {
                heavy.sent(AccountId(5), 200);
            }
            if n % 1000 == 0 {
                heavy.sent(AccountId(6), 100_000);
            }
        }
        let (often, large) = (counted(&heavy, 5).expect("found"), counted(&heavy, 6).expect("found"));
        assert!((19_000..=20_000).contains(&often.messages), "{often:?}");
        assert!((19_000_000..=20_000_000).contains(&large.bytes), "{large:?}");
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let mut heavy = Heavy::default();
        heavy.sent(AccountId(1), 1);
        heavy.spent(AccountId(1), 5000);
        heavy.roll(Mono(WINDOW_MS));
        heavy.sent(AccountId(1), 1);
        let count = HeavyCount { messages: 2, bytes: 2, cpu_ns: 5000 };
        assert_eq!(heavy.accounts(Mono(WINDOW_MS + 10)), (vec![(AccountId(1), count)], WINDOW_MS + 10));
        heavy.roll(Mono(2 * WINDOW_MS - 1));
        heavy.roll(Mono(2 * WINDOW_MS));
        heavy.roll(Mono(3 * WINDOW_MS));
        assert_eq!(heavy.accounts(Mono(3 * WINDOW_MS)), (vec![], WINDOW_MS));
    }
}
