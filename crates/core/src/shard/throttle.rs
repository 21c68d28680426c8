//! Failed logins, counted in windows of fixed length.
//!
//! Three counts, each with its bound: per address, per account and address, and per account. An address from which an account
//! was logged in to lately is exempt from the last, so that nobody can lock out an account's own users. Logins are tried at
//! their account's home ([`super::home`]), which alone counts what concerns the account. Every shard hears of failures and
//! registrations per address ([`super::ShardMessage::LoginFailed`]), so that each can refuse without asking another.
//!
//! What other shards count at the same moment is heard a little later. So that an address that tries everywhere at once has no more
//! than its bound, a shard lets it fail only its part of what is left in the time that such news takes; and before an account is
//! created, when its keys have been derived meanwhile, it is asked once more whether there are too many.

use crate::model::{Map, Mono, Set};
use crate::settings::Limits;
use carillon_wire::jid::BareJid;
use smallvec::SmallVec;
use std::hash::{BuildHasher, Hash};
use std::net::IpAddr;

/// Failed logins, and registrations, of the present window.
#[derive(Debug, Default)]
pub struct Throttle {
    addresses: Map<IpAddr, FromAddress>,
    registrations: Map<IpAddr, u32>,
    accounts: Map<BareJid, Failures>,
    familiar: Familiar,
    window_ends: Mono,
}

/// Failures of an address.
#[derive(Clone, Copy, Debug, Default)]
struct FromAddress {
    /// On all shards, as far as this one has heard.
    total: u32,
    /// Of these, on this shard since `since`: others may not have heard of them, nor this shard of theirs.
    here: u32,
    since: Mono,
}

/// Failures to log in to an account.
#[derive(Debug, Default)]
struct Failures {
    total: u32,
    /// Per address: those counted last, at most [`Failures::ADDRESSES_MAX`].
    by: SmallVec<[(IpAddr, u32); 2]>,
}

/// Hashes of pairs of an account and an address that logged in to it lately, in two generations.
#[derive(Debug, Default)]
struct Familiar {
    young: Set<u64>,
    old: Set<u64>,
}

/// Why a login is refused before it is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttled {
    /// Too many failures from this address.
    Address,
    /// Too many failures from this address to this account.
    AccountAndAddress,
    /// Too many failures to this account.
    Account,
}

impl Throttle {
    /// How many addresses, and how many accounts, are counted singly. Past that, those with the fewest failures are
    /// forgotten, so that an attacker cannot displace a high count by causing many low ones.
    const ENTRIES_MAX: usize = 100_000;

    /// Counts a failure of an address on this shard.
    pub fn failed_from(&mut self, address: IpAddr, now: Mono, limits: &Limits) {
        let failures = self.failures_of(address, now, limits);
        if now.since(failures.since) >= NEWS_MS {
            (failures.here, failures.since) = (0, now);
        }
        failures.here = failures.here.saturating_add(1);
        failures.total = failures.total.saturating_add(1);
    }

    /// Counts a failure of an address on another shard.
    pub fn failed_elsewhere(&mut self, address: IpAddr, now: Mono, limits: &Limits) {
        let failures = self.failures_of(address, now, limits);
        failures.total = failures.total.saturating_add(1);
    }

    fn failures_of(&mut self, address: IpAddr, now: Mono, limits: &Limits) -> &mut FromAddress {
        self.roll(now, limits);
        make_room(&mut self.addresses, |failures| failures.total);
        self.addresses.entry(block(address)).or_default()
    }

    /// Counts a failure to log in to an account that is at home here.
    pub fn failed_to(&mut self, address: IpAddr, account: &BareJid, now: Mono, limits: &Limits) {
        self.roll(now, limits);
        make_room(&mut self.accounts, |failures| failures.total);
        self.accounts.entry(account.clone()).or_default().add(block(address));
    }

    /// Takes back a failure that turned out not to be one.
    pub fn forgive(&mut self, address: IpAddr, account: &BareJid) {
        if let Some(failures) = self.accounts.get_mut(account.as_str()) {
            failures.take(block(address));
            if failures.total == 0 {
                self.accounts.remove(account.as_str());
            }
        }
    }

    /// A login to an account that is at home here succeeded.
    pub fn succeeded(&mut self, address: IpAddr, account: &BareJid) {
        self.familiar.note(block(address), account);
    }

    /// Whether logins from an address are admitted on this shard, one of so many.
    pub fn admits_from(
        &mut self,
        address: IpAddr,
        now: Mono,
        limits: &Limits,
        shards: u16,
    ) -> Result<(), Throttled> {
        self.roll(now, limits);
        let failures = self.addresses.get(&block(address)).copied().unwrap_or_default();
        let is_over = failures.are_over(limits.auth_failures_per_address, now, shards);
        if is_over { Err(Throttled::Address) } else { Ok(()) }
    }

    /// Whether a password of an account that is at home here may be tried from an address.
    pub fn admits_to(
        &mut self,
        address: IpAddr,
        account: &BareJid,
        now: Mono,
        limits: &Limits,
        shards: u16,
    ) -> Result<(), Throttled> {
        self.admits_from(address, now, limits, shards)?;
        let Some(failures) = self.accounts.get(account.as_str()) else { return Ok(()) };
        let address = block(address);
        if is_over(failures.of(address), limits.auth_failures_per_account_and_address) {
            return Err(Throttled::AccountAndAddress);
        }
        let is_over = is_over(failures.total, limits.auth_failures_per_account);
        if is_over && !self.familiar.knows(address, account) { Err(Throttled::Account) } else { Ok(()) }
    }

    /// Counts a registration from an address.
    pub fn registered_from(&mut self, address: IpAddr, now: Mono, limits: &Limits) {
        self.roll(now, limits);
        make_room(&mut self.registrations, |n| *n);
        let count = self.registrations.entry(block(address)).or_default();
        *count = count.saturating_add(1);
    }

    /// Whether an account may be registered from an address.
    pub fn admits_registration(&mut self, address: IpAddr, now: Mono, limits: &Limits) -> bool {
        self.roll(now, limits);
        let count = self.registrations.get(&block(address)).copied().unwrap_or_default();
        !is_over(count, limits.registrations_per_address)
    }

    /// Whether more accounts than may be are being registered from an address, the caller's among them: other shards may have
    /// begun to register some at the same time.
    pub fn has_too_many_registrations(&mut self, address: IpAddr, now: Mono, limits: &Limits) -> bool {
        self.roll(now, limits);
        let count = self.registrations.get(&block(address)).copied().unwrap_or_default();
        limits.registrations_per_address > 0 && count > limits.registrations_per_address
    }

    fn roll(&mut self, now: Mono, limits: &Limits) {
        if now >= self.window_ends {
            self.addresses = Map::default();
            self.registrations = Map::default();
            self.accounts = Map::default();
            self.window_ends = now.plus(limits.auth_window_ms);
        }
    }
}

impl FromAddress {
    /// Whether they have reached their bound; 0 is no bound.
    fn are_over(self, bound: u32, now: Mono, shards: u16) -> bool {
        let recent = if now.since(self.since) < NEWS_MS { self.here } else { 0 };
        let left = bound.saturating_sub(self.total.saturating_sub(recent));
        // Each shard may have one, or the last ones could be had by nobody.
        let part = (left / u32::from(shards.max(1))).max(1).min(left);
        bound > 0 && recent >= part
    }
}

impl Failures {
    /// Addresses that are counted singly for one account.
    const ADDRESSES_MAX: usize = 256;

    fn add(&mut self, address: IpAddr) {
        self.total = self.total.saturating_add(1);
        if let Some((_, n)) = self.by.iter_mut().find(|(known, _)| *known == address) {
            *n = n.saturating_add(1);
            return;
        }
        if self.by.len() >= Failures::ADDRESSES_MAX
            && let Some((least, _)) = self.by.iter().enumerate().min_by_key(|(_, (_, count))| *count)
        {
            self.by.swap_remove(least);
        }
        self.by.push((address, 1));
    }

    fn take(&mut self, address: IpAddr) {
        let found = self.by.iter_mut().enumerate().find(|(_, (known, _))| *known == address);
        if let Some((at, (_, count))) = found {
            self.total = self.total.saturating_sub(1);
            *count -= 1;
            if *count == 0 {
                self.by.swap_remove(at);
            }
        }
    }

    fn of(&self, address: IpAddr) -> u32 {
        self.by.iter().find(|(known, _)| *known == address).map_or(0, |(_, n)| *n)
    }
}

impl Familiar {
    /// Pairs per generation.
    const PAIRS_MAX: usize = 50_000;

    fn note(&mut self, address: IpAddr, account: &BareJid) {
        if self.young.len() >= Familiar::PAIRS_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        let pair = hash(&self.young, address, account);
        self.young.insert(pair);
    }

    fn knows(&self, address: IpAddr, account: &BareJid) -> bool {
        [&self.young, &self.old].iter().any(|pairs| pairs.contains(&hash(pairs, address, account)))
    }
}

/// In this time, milliseconds, a shard has heard what another counted: a turn of both takes a few of them.
const NEWS_MS: u64 = 100;

/// Whether a count has reached its bound; 0 is no bound.
fn is_over(count: u32, bound: u32) -> bool {
    bound > 0 && count >= bound
}

fn hash(pairs: &Set<u64>, address: IpAddr, account: &BareJid) -> u64 {
    pairs.hasher().hash_one((address, account.as_str()))
}

/// Makes room in a full table: the half of its entries with the fewest failures is removed.
fn make_room<K: Hash + Eq, V>(table: &mut Map<K, V>, failures: impl Fn(&V) -> u32) {
    if table.len() < Throttle::ENTRIES_MAX {
        return;
    }
    let mut counts: Vec<u32> = table.values().map(&failures).collect();
    let middle = counts.len() / 2;
    let (_, median, _) = counts.select_nth_unstable(middle);
    let median = *median;
    let mut excess = table.len() - middle;
    table.retain(|_, entry| {
        let goes = excess > 0 && failures(entry) <= median;
        excess -= usize::from(goes);
        !goes
    });
}

/// What is counted as one address: of IPv6 the /64, because a client has a whole one.
fn block(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & !u128::from(u64::MAX)).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits {
            auth_failures_per_address: 4,
            auth_failures_per_account_and_address: 2,
            auth_failures_per_account: 5,
            registrations_per_address: 2,
            ..Limits::default()
        }
    }

    fn address(n: u32) -> IpAddr {
        IpAddr::V4((0x0a00_0000 | n).into())
    }

    fn jid(local: &str) -> BareJid {
        BareJid::from_parts(Some(local), "localhost").expect("a JID")
    }

    fn fail(throttle: &mut Throttle, address: IpAddr, account: &BareJid, now: Mono) {
        throttle.failed_from(address, now, &limits());
        throttle.failed_to(address, account, now, &limits());
    }

    #[test]
    fn refuses_after_too_many_and_forgives_with_time() {
        let (limits, mut throttle) = (limits(), Throttle::default());
        let here = "2001:db8::1".parse().expect("an address");
        let (alice, bob, now) = (jid("alice"), jid("bob"), Mono(0));
        fail(&mut throttle, here, &alice, now);
        assert_eq!(throttle.admits_to(here, &alice, now, &limits, 1), Ok(()));
        fail(&mut throttle, here, &alice, now);
        let refused = throttle.admits_to(here, &alice, now, &limits, 1);
        assert_eq!(refused, Err(Throttled::AccountAndAddress));
        assert_eq!(
            throttle.admits_to(address(1), &alice, now, &limits, 1),
            Ok(()),
            "others are not locked out"
        );
        assert_eq!(throttle.admits_to(here, &bob, now, &limits, 1), Ok(()));
        (0..2).for_each(|_| fail(&mut throttle, here, &bob, now));
        let neighbour = "2001:db8::ffff".parse().expect("an address");
        assert_eq!(throttle.admits_from(neighbour, now, &limits, 1), Err(Throttled::Address));
        let later = Mono(limits.auth_window_ms);
        assert_eq!(throttle.admits_to(here, &alice, later, &limits, 1), Ok(()));
    }

    #[test]
    fn an_address_that_logged_in_lately_is_spared() {
        let (limits, mut throttle, alice, now) = (limits(), Throttle::default(), jid("alice"), Mono(0));
        throttle.succeeded(address(99), &alice);
        (0..5).for_each(|n| fail(&mut throttle, address(n), &alice, now));
        assert_eq!(throttle.admits_to(address(50), &alice, now, &limits, 1), Err(Throttled::Account));
        assert_eq!(throttle.admits_to(address(99), &alice, now, &limits, 1), Ok(()));
        (0..2).for_each(|_| fail(&mut throttle, address(99), &alice, now));
        let refused = throttle.admits_to(address(99), &alice, now, &limits, 1);
        assert_eq!(refused, Err(Throttled::AccountAndAddress), "but it guesses no more than others");
    }

    #[test]
    fn a_bound_of_zero_is_none() {
        let limits = Limits {
            auth_failures_per_address: 0,
            auth_failures_per_account_and_address: 0,
            auth_failures_per_account: 0,
            registrations_per_address: 0,
            ..Limits::default()
        };
        let (mut throttle, alice, now) = (Throttle::default(), jid("alice"), Mono(0));
        (0..200).for_each(|_| fail(&mut throttle, address(1), &alice, now));
        (0..200).for_each(|_| throttle.registered_from(address(1), now, &limits));
        assert_eq!(throttle.admits_to(address(1), &alice, now, &limits, 1), Ok(()));
        assert!(throttle.admits_registration(address(1), now, &limits));
    }

    #[test]
    fn what_was_counted_at_the_start_is_given_back() {
        let (limits, mut throttle, alice, now) = (limits(), Throttle::default(), jid("alice"), Mono(0));
        (0..2).for_each(|_| throttle.failed_to(address(1), &alice, now, &limits));
        assert!(throttle.admits_to(address(1), &alice, now, &limits, 1).is_err());
        (0..2).for_each(|_| throttle.forgive(address(1), &alice));
        assert!(throttle.accounts.is_empty(), "nothing is left of it");
        throttle.forgive(address(1), &alice);
        assert_eq!(throttle.admits_to(address(1), &alice, now, &limits, 1), Ok(()));
    }

    #[test]
    fn a_flood_of_addresses_does_not_wash_out_those_that_failed_often() {
        let (limits, mut throttle, now) = (limits(), Throttle::default(), Mono(0));
        (0..4).for_each(|_| throttle.failed_from(address(0), now, &limits));
        for n in 1..=3 * Throttle::ENTRIES_MAX as u32 {
            throttle.failed_from(address(n), now, &limits);
            assert!(throttle.addresses.len() <= Throttle::ENTRIES_MAX);
        }
        assert_eq!(throttle.admits_from(address(0), now, &limits, 1), Err(Throttled::Address));
    }

    #[test]
    fn an_address_that_tries_on_all_shards_at_once_has_no_more_than_its_bound() {
        let shards = 4;
        for bound in [1, 3, 8, 50] {
            let limits = Limits { auth_failures_per_address: bound, ..limits() };
            let mut all: Vec<Throttle> = (0..shards).map(|_| Throttle::default()).collect();
            let (here, mut failed) = (address(1), 0);
            // What is counted in one turn is heard by the others in the next.
            for now in (0..100).map(|turn| Mono(NEWS_MS * turn)) {
                let mut news = Vec::new();
                for (shard, throttle) in all.iter_mut().enumerate() {
                    while throttle.admits_from(here, now, &limits, shards).is_ok() {
                        throttle.failed_from(here, now, &limits);
                        news.push(shard);
                    }
                }
                failed += news.len() as u32;
                for by in news {
                    let others = all.iter_mut().enumerate().filter(|(shard, _)| *shard != by);
                    others.for_each(|(_, throttle)| throttle.failed_elsewhere(here, now, &limits));
                }
            }
            assert!((bound..bound + u32::from(shards)).contains(&failed), "{failed} of {bound}");
        }
    }

    #[test]
    fn registrations_are_counted_apart() {
        let (limits, mut throttle, now) = (limits(), Throttle::default(), Mono(0));
        (0..2).for_each(|_| throttle.registered_from(address(1), now, &limits));
        assert!(!throttle.admits_registration(address(1), now, &limits));
        assert!(!throttle.has_too_many_registrations(address(1), now, &limits), "two may be");
        throttle.registered_from(address(1), now, &limits);
        assert!(throttle.has_too_many_registrations(address(1), now, &limits));
        assert!(throttle.admits_registration(address(2), now, &limits));
        assert_eq!(throttle.admits_from(address(1), now, &limits, 1), Ok(()));
        assert!(throttle.admits_registration(address(1), Mono(limits.auth_window_ms), &limits));
    }
}
