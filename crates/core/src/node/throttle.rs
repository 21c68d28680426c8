//! Failed logins, counted by address and by account in windows of fixed length. Every shard hears of every failure
//! ([`super::Letter::LoginFailed`]), so that each can refuse without asking anyone.

use crate::model::{Map, Mono};
use crate::settings::Limits;
use carillon_wire::jid::BareJid;
use std::net::IpAddr;

/// Failed logins of the present window.
#[derive(Debug, Default)]
pub struct Throttle {
    addresses: Map<IpAddr, u32>,
    accounts: Map<BareJid, u32>,
    window_ends: Mono,
}

/// Why a login is refused before it is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Too many failures from this address.
    Address,
    /// Too many failures to this account.
    Account,
}

impl Throttle {
    /// How many addresses, and how many accounts, are told apart: past that, the window starts anew. An attacker with more
    /// addresses than this has more tries anyway.
    const ENTRIES_MAX: usize = 100_000;

    /// Counts a failure.
    pub fn failed(&mut self, address: IpAddr, account: &BareJid, now: Mono, limits: &Limits) {
        self.roll(now, limits);
        *self.addresses.entry(block(address)).or_default() += 1;
        *self.accounts.entry(account.clone()).or_default() += 1;
    }

    /// Whether a login may be tried.
    pub fn check(
        &mut self,
        address: IpAddr,
        account: &str,
        now: Mono,
        limits: &Limits,
    ) -> Result<(), Refusal> {
        self.roll(now, limits);
        if self.addresses.get(&block(address)).is_some_and(|&n| n >= limits.auth_failures_per_address) {
            return Err(Refusal::Address);
        }
        if self.accounts.get(account).is_some_and(|&n| n >= limits.auth_failures_per_account) {
            return Err(Refusal::Account);
        }
        Ok(())
    }

    fn roll(&mut self, now: Mono, limits: &Limits) {
        let full = self.addresses.len().max(self.accounts.len()) >= Throttle::ENTRIES_MAX;
        if now >= self.window_ends || full {
            self.addresses = Map::default();
            self.accounts = Map::default();
            self.window_ends = now.plus(limits.auth_window_ms);
        }
    }
}

/// An IPv6 client commands a /64, so that is what is counted.
fn block(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & !u128::from(u64::MAX)).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_after_too_many_and_forgives_with_time() {
        let limits =
            Limits { auth_failures_per_address: 3, auth_failures_per_account: 2, ..Limits::default() };
        let (mut throttle, address) = (Throttle::default(), "2001:db8::1".parse().expect("an address"));
        let alice = BareJid::new("alice@localhost").expect("a JID");
        let bob = BareJid::new("bob@localhost").expect("a JID");
        throttle.failed(address, &alice, Mono(0), &limits);
        assert_eq!(throttle.check(address, "alice@localhost", Mono(0), &limits), Ok(()));
        throttle.failed(address, &alice, Mono(1), &limits);
        assert_eq!(throttle.check(address, "alice@localhost", Mono(1), &limits), Err(Refusal::Account));
        assert_eq!(throttle.check(address, "bob@localhost", Mono(1), &limits), Ok(()));
        throttle.failed(address, &bob, Mono(2), &limits);
        let neighbour = "2001:db8::ffff".parse().expect("an address");
        assert_eq!(throttle.check(neighbour, "carol@localhost", Mono(2), &limits), Err(Refusal::Address));
        let later = Mono(limits.auth_window_ms);
        assert_eq!(throttle.check(address, "alice@localhost", later, &limits), Ok(()));
    }
}
