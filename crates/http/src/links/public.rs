//! People without a key, where they may make links: so many per minute and address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Who made links lately.
#[derive(Default)]
pub(super) struct Senders(Mutex<Minute>);

/// What was done in a minute.
#[derive(Default)]
struct Minute {
    began: Option<Instant>,
    made: HashMap<IpAddr, u32>,
}

/// Addresses that are remembered: when there are more in a minute, none of the others may make links in it.
const ADDRESSES_MAX: usize = 10_000;
const MINUTE: Duration = Duration::from_secs(60);

impl Senders {
    /// Whether one more link may be made from this address; else in how many seconds.
    pub(super) fn allow(&self, address: IpAddr, per_minute: u32, now: Instant) -> Result<(), u32> {
        let mut minute = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let began = *minute.began.get_or_insert(now);
        let passed = now.duration_since(began);
        if passed >= MINUTE {
            *minute = Minute { began: Some(now), made: HashMap::new() };
        }
        let wait = MINUTE.saturating_sub(passed).as_secs().max(1) as u32;
        let is_full = minute.made.len() >= ADDRESSES_MAX;
        let network = network(address);
        match minute.made.get_mut(&network) {
            Some(made) if *made >= per_minute => return Err(wait),
            Some(made) => *made += 1,
            None if is_full || per_minute == 0 => return Err(wait),
            None => drop(minute.made.insert(network, 1)),
        }
        Ok(())
    }
}

/// Whom an address counts for: one network of IPv6 is one customer's.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_makes_so_many_per_minute() {
        let (senders, now) = (Senders::default(), Instant::now());
        let allow = |text: &str, at| senders.allow(text.parse().expect("an address"), 2, at);
        assert!(allow("192.0.2.1", now).is_ok() && allow("::ffff:192.0.2.1", now).is_ok());
        assert_eq!(allow("192.0.2.1", now + Duration::from_secs(20)), Err(40));
        assert!(allow("192.0.2.2", now).is_ok());
        assert!(allow("2001:db8::1", now).is_ok() && allow("2001:db8::2", now).is_ok());
        assert!(allow("2001:db8::3", now).is_err(), "one network is one sender");
        assert!(allow("192.0.2.1", now + MINUTE).is_ok());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (senders, now) = (Senders::default(), Instant::now());
        for n in 0..ADDRESSES_MAX as u32 {
            assert!(senders.allow(IpAddr::from((0x0b00_0000 + n).to_be_bytes()), 2, now).is_ok());
        }
        assert!(senders.allow(IpAddr::from([12, 0, 0, 1]), 2, now).is_err());
        assert!(senders.allow(IpAddr::from([11, 0, 0, 1]), 2, now).is_ok());
    }
}
