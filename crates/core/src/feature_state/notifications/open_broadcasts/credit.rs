//! How many deliveries of a broadcast a shard may make by now.

use crate::model::Mono;

/// The deliveries that a rate has allowed, and that were not made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Credit {
    /// In parts of a delivery: a rate of all shards together earns it in thousandths of a second.
    earned: u64,
    /// Up to when.
    at: Option<Mono>,
}

/// A rate, and among how many it is divided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// Deliveries per second of all together.
    pub(crate) rate: u32,
    /// How many they are.
    pub(crate) parts: u32,
}

impl Share {
    /// What one delivery costs.
    fn cost(self) -> u64 {
        1000 * u64::from(self.parts.max(1))
    }

    /// More is not saved up: what was not given while nobody was there is not made up for by a burst.
    fn most(self) -> u64 {
        self.cost().max(u64::from(self.rate) * SAVED_MS)
    }
}

impl Credit {
    /// How many deliveries may be made now.
    pub(crate) fn deliveries(&mut self, share: Share, now: Mono) -> usize {
        let earned = match self.at {
            Some(at) => self.earned + now.since(at) * u64::from(share.rate),
            None => share.cost(),
        };
        (self.earned, self.at) = (earned.min(share.most()), Some(now));
        usize::try_from(self.earned / share.cost()).unwrap_or(usize::MAX)
    }

    /// So many were made.
    pub(crate) fn spend(&mut self, deliveries: usize, share: Share) {
        self.earned = self.earned.saturating_sub(share.cost().saturating_mul(deliveries as u64));
    }

    /// In how many milliseconds the next may be made.
    pub(crate) fn wait_ms(&self, share: Share) -> u64 {
        let lacks = share.cost().saturating_sub(self.earned);
        lacks.div_ceil(u64::from(share.rate.max(1))).max(1)
    }
}

/// What a rate allows within so many milliseconds may be given at once.
const SAVED_MS: u64 = 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_kept_and_not_saved_up() {
        let share = Share { rate: 100, parts: 2 };
        let mut credit = Credit::default();
        let mut made = 0;
        for ms in 0..10_000 {
            let now = credit.deliveries(share, Mono(ms));
            credit.spend(now, share);
            made += now;
        }
        assert!((499..=501).contains(&made), "{made} in ten seconds, of which the half is this one's");
        assert_eq!(credit.deliveries(share, Mono(3_600_000)), 2, "an hour without deliveries is no burst");
    }

    #[test]
    fn it_says_when_the_next_is_due() {
        let share = Share { rate: 1, parts: 3 };
        let mut credit = Credit::default();
        assert_eq!(credit.deliveries(share, Mono(5)), 1, "the first is made at once");
        credit.spend(1, share);
        assert_eq!(credit.wait_ms(share), 3000);
        assert_eq!(credit.deliveries(share, Mono(3004)), 0);
        assert_eq!(credit.deliveries(share, Mono(3005)), 1);
    }
}
