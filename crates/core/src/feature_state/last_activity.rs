//! When accounts became unavailable, until the store has it.

use crate::feature_state::Shared;
use crate::model::{DomainId, Map, Mono, Now, UnixMs};
use crate::ports::store::activity::Available;
use carillon_wire::jid::AccountJid;

/// When accounts became unavailable, as far as the store does not have it.
#[derive(Debug, Default)]
pub struct Logouts {
    /// Those that the store is to be given.
    noted: Map<AccountJid, (DomainId, UnixMs)>,
    /// Those that it is being given.
    asked: Map<AccountJid, (DomainId, UnixMs)>,
    /// When it is given the next ones, if there are any.
    due: Option<Mono>,
}

/// For so long they are gathered.
const GATHERED_MS: u64 = 60_000;

/// As many are given to the store at once without waiting longer.
const TOGETHER: usize = 1000;

/// As many are remembered while the store takes none: about 1 MiB. Those that come then are forgotten.
const NOTED_MAX: usize = 8 * 1024;

impl Logouts {
    /// An account's session became unavailable now.
    pub(crate) fn note(&mut self, account: &AccountJid, domain: DomainId, now: Now, is_urgent: bool) {
        if let Some(noted) = self.noted.get_mut(account.as_str()) {
            *noted = (domain, now.unix);
        } else if self.noted.len() < NOTED_MAX {
            self.noted.insert(account.clone(), (domain, now.unix));
        }
        let wait_ms = if is_urgent || self.noted.len() >= TOGETHER { 0 } else { GATHERED_MS };
        let due = now.mono.plus(wait_ms);
        self.due = Some(self.due.map_or(due, |before| before.min(due)));
    }

    /// When an account became unavailable, if the store may not have it yet.
    pub(crate) fn find(&self, account: &str) -> Option<UnixMs> {
        self.noted.get(account).or_else(|| self.asked.get(account)).map(|(_, at)| *at)
    }

    /// Takes those that the store is to be given now; none while it is being given others.
    pub(crate) fn take_due(&mut self, now: Mono) -> Vec<Available> {
        if self.due.is_none_or(|due| due > now) || !self.asked.is_empty() {
            return Vec::new();
        }
        self.due = None;
        self.asked = std::mem::take(&mut self.noted);
        let available = |(account, (domain, at)): (&AccountJid, &(DomainId, UnixMs))| Available {
            domain: *domain,
            local: account.local().into(),
            at: *at,
        };
        self.asked.iter().map(available).collect()
    }

    /// The store was given them: whether it has them.
    pub(crate) fn kept(&mut self, is_kept: bool, now: Mono) {
        let asked = std::mem::take(&mut self.asked);
        if is_kept {
            return;
        }
        for (account, logout) in asked {
            // What was noted since is newer.
            self.noted.entry(account).or_insert(logout);
        }
        self.due = Some(now.plus(GATHERED_MS));
    }
}

impl Shared for Logouts {
    fn due(&self) -> Option<Mono> {
        // While the store is being asked it is not asked again.
        self.due.filter(|_| self.asked.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jid(n: usize) -> AccountJid {
        AccountJid::from_parts(&format!("a{n}"), "localhost").expect("an address")
    }

    fn at(ms: u64) -> Now {
        Now { mono: Mono(ms), unix: UnixMs(1_000_000 + ms) }
    }

    fn note(logouts: &mut Logouts, n: usize, ms: u64) {
        logouts.note(&jid(n), DomainId(1), at(ms), false);
    }

    #[test]
    fn they_are_given_to_the_store_together() {
        let mut logouts = Logouts::default();
        assert_eq!(logouts.due(), None);
        (0..10).for_each(|n| note(&mut logouts, n, n as u64));
        note(&mut logouts, 3, 500);
        assert_eq!(logouts.due(), Some(Mono(GATHERED_MS)));
        assert!(logouts.take_due(Mono(GATHERED_MS - 1)).is_empty());
        let taken = logouts.take_due(Mono(GATHERED_MS));
        assert_eq!(taken.len(), 10);
        assert_eq!(logouts.find("a3@localhost"), Some(UnixMs(1_000_500)), "until the store has it");
        note(&mut logouts, 4, 70_000);
        assert_eq!((logouts.due(), logouts.take_due(Mono(u64::MAX)).len()), (None, 0));
        logouts.kept(true, Mono(70_001));
        assert_eq!(logouts.find("a3@localhost"), None);
        assert_eq!(logouts.due(), Some(Mono(70_000 + GATHERED_MS)));
    }

    #[test]
    fn what_the_store_does_not_take_is_given_to_it_again_unless_it_is_old() {
        let mut logouts = Logouts::default();
        (0..2).for_each(|n| note(&mut logouts, n, 1));
        assert_eq!(logouts.take_due(Mono(100_000)).len(), 2);
        note(&mut logouts, 1, 100_001);
        logouts.kept(false, Mono(100_002));
        assert_eq!(logouts.find("a0@localhost"), Some(UnixMs(1_000_001)));
        assert_eq!(logouts.find("a1@localhost"), Some(UnixMs(1_100_001)));
        assert_eq!(logouts.take_due(Mono(100_002 + GATHERED_MS)).len(), 2);
    }

    #[test]
    fn many_are_not_gathered_longer_and_their_number_is_bounded() {
        let mut logouts = Logouts::default();
        (0..TOGETHER).for_each(|n| note(&mut logouts, n, 5));
        assert_eq!(logouts.due(), Some(Mono(5)));
        (0..2 * NOTED_MAX).for_each(|n| note(&mut logouts, n, 6));
        assert_eq!(logouts.take_due(Mono(6)).len(), NOTED_MAX);
        logouts.note(&jid(0), DomainId(1), at(7), true);
        logouts.kept(true, Mono(7));
        assert_eq!(logouts.due(), Some(Mono(7)), "a node that drains does not wait");
    }
}
