//! How much a client may send: two token buckets. A client that exceeds one is read more slowly. A light connection has buckets of its own; the
//! sessions of an account share its ([`Allowances`](crate::shard::Allowances)), and each knows only whether it is throttled.

use crate::form::{Form, Malformed, Reader, Writer};
use crate::model::Mono;
use crate::settings::Rates;

/// The least number of bytes that an element counts as, because handling it costs something however short it is.
const ELEMENT_BYTES_MIN: u32 = 256;

/// What a client has sent beyond its rates so far. 16 bytes: each session has one.
#[derive(Clone, Debug)]
pub struct Allowance {
    /// When the two were last brought up to date: milliseconds, modulo 2^32.
    at: u32,
    /// Thousandths of stanzas.
    stanzas: u32,
    bytes: u32,
    throttled: bool,
}

// The instant is modulo 2^32, so that it is written as what has passed since.
impl Form for Allowance {
    fn write(&self, out: &mut Writer) {
        let Allowance { at, stanzas, bytes, throttled } = self;
        (out.now_ms() as u32).wrapping_sub(*at).write(out);
        stanzas.write(out);
        bytes.write(out);
        throttled.write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Allowance, Malformed> {
        let clock = input.clock();
        let passed = u64::from(u32::read(input)?).saturating_add(clock.elapsed_ms);
        let at = (clock.now_ms as u32).wrapping_sub(u32::try_from(passed).unwrap_or(u32::MAX));
        Ok(Allowance {
            at,
            stanzas: u32::read(input)?,
            bytes: u32::read(input)?,
            throttled: bool::read(input)?,
        })
    }
}

/// What came from a client.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Whether it had to be answered or handed on: a stanza, or an element that asks for something.
    pub counts: bool,
    /// Its length.
    pub bytes: usize,
}

impl Allowance {
    /// The allowance of a client that has sent nothing.
    pub fn new(now: Mono) -> Allowance {
        Allowance { at: now.0 as u32, stanzas: 0, bytes: 0, throttled: false }
    }

    /// Debits what came. If the client has just become too fast, returns the milliseconds that it must wait; it is throttled
    /// until [`Allowance::lift`].
    pub fn debit(&mut self, now: Mono, received: Received, rates: &Rates) -> Option<u64> {
        let wait = self.spend(now, received, rates);
        self.throttle(wait)
    }

    /// Debits what came; the milliseconds after which the burst is no longer exceeded.
    pub fn spend(&mut self, now: Mono, received: Received, rates: &Rates) -> u64 {
        let length = u32::try_from(received.bytes).unwrap_or(u32::MAX).max(ELEMENT_BYTES_MIN);
        self.pay(now, rates, received.counts.into(), length)
    }

    /// Debits bytes that were given to a client; the milliseconds after which the burst is no longer exceeded.
    pub fn give(&mut self, now: Mono, bytes: usize, rates: &Rates) -> u64 {
        self.pay(now, rates, 0, u32::try_from(bytes).unwrap_or(u32::MAX))
    }

    fn pay(&mut self, now: Mono, rates: &Rates, count: u32, length: u32) -> u64 {
        let elapsed_ms = u64::from((now.0 as u32).wrapping_sub(self.at));
        self.at = now.0 as u32;
        let stanzas = Bucket { per_second: rates.stanzas_per_second, burst: rates.stanzas_burst, unit: 1000 };
        let bytes = Bucket { per_second: rates.bytes_per_second, burst: rates.bytes_burst, unit: 1 };
        let wait = stanzas.debit(&mut self.stanzas, elapsed_ms, count);
        wait.max(bytes.debit(&mut self.bytes, elapsed_ms, length))
    }

    /// Throttles the client if it has to wait and does not yet: the milliseconds that it must wait.
    pub fn throttle(&mut self, wait_ms: u64) -> Option<u64> {
        if wait_ms == 0 || self.throttled {
            return None;
        }
        self.throttled = true;
        Some(wait_ms)
    }

    /// Whether anything that was sent is not paid for.
    pub fn owes(&mut self, now: Mono, rates: &Rates) -> bool {
        self.pay(now, rates, 0, 0);
        (self.stanzas, self.bytes) != (0, 0)
    }

    /// Owes at least what this one does.
    pub fn owe(&mut self, other: &Allowance) {
        self.stanzas = self.stanzas.max(other.stanzas);
        self.bytes = self.bytes.max(other.bytes);
    }

    /// Takes over what the client's account owes.
    pub fn set_owed(&mut self, of_account: &Allowance) {
        *self = Allowance { throttled: self.throttled, ..of_account.clone() };
    }

    /// Whether input must wait because the client is too fast.
    pub fn is_throttled(&self) -> bool {
        self.throttled
    }

    /// Ends the wait. Returns whether there was one.
    pub fn lift(&mut self) -> bool {
        std::mem::take(&mut self.throttled)
    }
}

/// One of the two buckets.
struct Bucket {
    /// 0 for no bound.
    per_second: u32,
    burst: u32,
    unit: u32,
}

impl Bucket {
    /// Credits the time that passed and debits what came. Returns the milliseconds after which the burst is no longer
    /// exceeded.
    fn debit(&self, retries: &mut u32, elapsed_ms: u64, count: u32) -> u64 {
        if self.per_second == 0 {
            *retries = 0;
            return 0;
        }
        let (per_second, unit) = (u64::from(self.per_second), u64::from(self.unit));
        let paid = elapsed_ms.saturating_mul(per_second * unit) / 1000;
        let sum = u64::from(*retries).saturating_sub(paid) + u64::from(count) * unit;
        *retries = u32::try_from(sum).unwrap_or(u32::MAX);
        let beyond = sum.saturating_sub(u64::from(self.burst) * unit);
        (beyond * 1000).div_ceil(per_second * unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Rates =
        Rates { stanzas_per_second: 10, stanzas_burst: 5, bytes_per_second: 10_000, bytes_burst: 20_000 };

    fn stanza(bytes: usize) -> Received {
        Received { counts: true, bytes }
    }

    /// How many of them may be sent at once at this time, and how long the next must wait then.
    fn at_once(allowance: &mut Allowance, now: Mono, received: Received) -> (usize, u64) {
        (0..100_000).find_map(|n| Some((n, allowance.debit(now, received, &RATES)?))).expect("it has an end")
    }

    #[test]
    fn a_burst_is_taken_and_then_as_many_as_the_rate_says() {
        let mut allowance = Allowance::new(Mono(0));
        assert_eq!(at_once(&mut allowance, Mono(0), stanza(100)), (5, 100));
        assert!(allowance.is_throttled());
        // One wait at a time.
        assert_eq!(allowance.debit(Mono(0), stanza(100), &RATES), None);
        assert!(allowance.lift() && !allowance.lift());
        // What came meanwhile is owed, too: seven came, 300 ms pay for three of them, and so there is room for one.
        assert_eq!(at_once(&mut allowance, Mono(300), stanza(100)), (1, 100));
        // After a long silence it is the burst again, not more.
        allowance.lift();
        assert_eq!(at_once(&mut allowance, Mono(1_000_000), stanza(100)), (5, 100));
    }

    #[test]
    fn bytes_are_paid_for_as_well() {
        let mut allowance = Allowance::new(Mono(0));
        assert_eq!(allowance.debit(Mono(0), stanza(20_000), &RATES), None);
        // However long one is, the wait is what its bytes cost.
        assert_eq!(allowance.debit(Mono(0), stanza(100_000), &RATES), Some(10_000));
    }

    #[test]
    fn what_needs_no_answer_costs_its_bytes_alone() {
        let mut allowance = Allowance::new(Mono(0));
        let small = Received { counts: false, bytes: 30 };
        assert_eq!(
            at_once(&mut allowance, Mono(0), small),
            (20_000 / 256, 20_224 * 1000 / 10_000 - 2000 + 1)
        );
    }

    #[test]
    fn no_rate_means_no_bound() {
        let rates = Rates { stanzas_per_second: 0, bytes_per_second: 0, ..RATES };
        let mut allowance = Allowance::new(Mono(0));
        assert!((0..10_000).all(|_| allowance.debit(Mono(0), stanza(1 << 20), &rates).is_none()));
    }

    #[test]
    fn it_is_small_and_outlives_its_clock() {
        assert_eq!(size_of::<Allowance>(), 16);
        let before = u64::from(u32::MAX) - 100;
        let mut allowance = Allowance::new(Mono(before));
        assert_eq!(at_once(&mut allowance, Mono(before), stanza(1)).0, 5);
        allowance.lift();
        assert_eq!(at_once(&mut allowance, Mono(before + 300), stanza(1)).0, 2);
    }
}
