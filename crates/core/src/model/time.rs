//! Time as an argument: the core is told what time it is and never asks.

/// Milliseconds since the Unix epoch, UTC: for stamps and expiries.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct UnixMs(pub u64);

impl UnixMs {
    /// The instant `ms` milliseconds later.
    pub fn plus(self, ms: u64) -> UnixMs {
        UnixMs(self.0.saturating_add(ms))
    }

    /// XEP-0082 DateTime with milliseconds, e.g. `2026-11-20T09:30:00.125Z`.
    pub fn to_xmpp(self) -> String {
        let (days, ms) = ((self.0 / 86_400_000) as i64, self.0 % 86_400_000);
        let (year, month, day) = civil(days);
        let (h, m, s, milli) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000);
        if year > 9999 {
            return format!("{year}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{milli:03}Z");
        }
        // Digit by digit: a notification has several of them, and formatting costs ten times as much.
        let mut text = *b"0000-00-00T00:00:00.000Z";
        put(&mut text[0..4], year as u64);
        put(&mut text[5..7], month as u64);
        put(&mut text[8..10], day as u64);
        put(&mut text[11..13], h);
        put(&mut text[14..16], m);
        put(&mut text[17..19], s);
        put(&mut text[20..23], milli);
        str::from_utf8(&text).expect("digits are ASCII").to_owned()
    }
}

fn put(digits: &mut [u8], mut number: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Milliseconds on a clock that never goes back: for timers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(pub u64);

impl Mono {
    /// The instant `ms` milliseconds later.
    pub fn plus(self, ms: u64) -> Mono {
        Mono(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to here; 0 when it is not earlier.
    pub fn since(self, earlier: Mono) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A point in the order of changes of accounts' right to log in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// The next point.
    pub(crate) fn next(self) -> Moment {
        Moment(self.0 + 1)
    }
}

/// The moment at which an input is handled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Now {
    /// For timers.
    pub mono: Mono,
    /// For stamps.
    pub unix: UnixMs,
}

/// Days since 1970-01-01 as a civil date (Howard Hinnant's `civil_from_days`).
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::UnixMs;

    #[test]
    fn prints_xmpp_times() {
        assert_eq!(UnixMs(0).to_xmpp(), "1970-01-01T00:00:00.000Z");
        assert_eq!(UnixMs(951_782_400_000).to_xmpp(), "2000-02-29T00:00:00.000Z");
        assert_eq!(UnixMs(1_795_167_000_125).to_xmpp(), "2026-11-20T09:30:00.125Z");
        assert_eq!(UnixMs(253_402_300_799_999).to_xmpp(), "9999-12-31T23:59:59.999Z");
        assert_eq!(UnixMs(253_402_300_800_000).to_xmpp(), "10000-01-01T00:00:00.000Z");
    }
}
