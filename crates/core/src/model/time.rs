//! Time as an argument: the core is told what time it is and never asks.

use crate::form::{Form, Malformed, Reader, Writer};
use std::borrow::Cow;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Milliseconds since the Unix epoch, UTC: for stamps and expiries.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct UnixMs(pub u64);

crate::form! { struct UnixMs(ms) }

impl UnixMs {
    /// The instant `ms` milliseconds later.
    pub fn plus(self, ms: u64) -> UnixMs {
        UnixMs(self.0.saturating_add(ms))
    }

    /// XEP-0082 DateTime with milliseconds, e.g. `2026-11-20T09:30:00.125Z`. What is after the year 9999 is its last moment.
    pub fn to_xmpp(self) -> String {
        let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0.min(LAST_MS)) * 1_000_000);
        let at = at.expect("it is before the year 10,000");
        let ((year, month, day), (h, m, s, milli)) = (at.to_calendar_date(), at.to_hms_milli());
        // Digit by digit: a notification has several of them, and formatting costs ten times as much.
        let mut text = *b"0000-00-00T00:00:00.000Z";
        put(&mut text[0..4], u32::from(year.unsigned_abs() as u16));
        put(&mut text[5..7], u8::from(month).into());
        put(&mut text[8..10], day.into());
        put(&mut text[11..13], h.into());
        put(&mut text[14..16], m.into());
        put(&mut text[17..19], s.into());
        put(&mut text[20..23], milli.into());
        str::from_utf8(&text).expect("digits are ASCII").to_owned()
    }

    /// Reads an RFC 3339 `date-time` (§5.6), of which XEP-0082 is a profile; none if it is something else or before 1970. Digits
    /// past the millisecond are dropped; a leap second counts as the next minute's first.
    pub fn from_rfc3339(text: &str) -> Option<UnixMs> {
        if !matches!(text.as_bytes().get(10)?, b'T' | b't' | b' ') {
            return None;
        }
        let (minutes, rest) = text.split_at_checked(17)?;
        let (text, leap_ms) = match rest.split_at_checked(2)? {
            ("60", rest) => (Cow::from([minutes, "59", rest].concat()), 1000),
            _ => (Cow::from(text), 0),
        };
        let at = OffsetDateTime::parse(&text, &Rfc3339).ok()?;
        let ms = at.unix_timestamp_nanos().div_euclid(1_000_000) + leap_ms;
        u64::try_from(ms).ok().map(UnixMs)
    }
}

/// The last millisecond of the year 9999.
const LAST_MS: u64 = 253_402_300_799_999;

fn put(digits: &mut [u8], mut number: u32) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Milliseconds on a clock that never goes back: for timers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(pub u64);

// How far it is from now: a deadline goes on running on the clock of another process.
impl Form for Mono {
    fn write(&self, out: &mut Writer) {
        out.instant(self.0);
    }

    fn read(input: &mut Reader<'_>) -> Result<Mono, Malformed> {
        input.instant().map(Mono)
    }
}

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

#[cfg(test)]
mod tests {
    use super::UnixMs;

    #[test]
    fn prints_xmpp_times() {
        assert_eq!(UnixMs(0).to_xmpp(), "1970-01-01T00:00:00.000Z");
        assert_eq!(UnixMs(951_782_400_000).to_xmpp(), "2000-02-29T00:00:00.000Z");
        assert_eq!(UnixMs(1_795_167_000_125).to_xmpp(), "2026-11-20T09:30:00.125Z");
        assert_eq!(UnixMs(253_402_300_799_999).to_xmpp(), "9999-12-31T23:59:59.999Z");
        assert_eq!(UnixMs(253_402_300_800_000).to_xmpp(), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn reads_what_it_prints() {
        for ms in
            [0, 951_782_400_000, 951_868_799_999, 1_795_167_000_125, 4_102_444_799_999, 253_402_300_799_999]
        {
            assert_eq!(UnixMs::from_rfc3339(&UnixMs(ms).to_xmpp()), Some(UnixMs(ms)));
        }
    }

    #[test]
    fn reads_offsets_and_fractions() {
        let nine_thirty = UnixMs::from_rfc3339("2026-11-20T09:30:00Z");
        assert!(nine_thirty.is_some());
        assert_eq!(UnixMs::from_rfc3339("2026-11-20T18:30:00+09:00"), nine_thirty);
        assert_eq!(UnixMs::from_rfc3339("2026-11-20t04:30:00.000-05:00"), nine_thirty);
        assert_eq!(UnixMs::from_rfc3339("2026-11-20T09:30:00.1Z"), nine_thirty.map(|t| t.plus(100)));
        assert_eq!(UnixMs::from_rfc3339("2026-11-20T09:30:00.123987Z"), nine_thirty.map(|t| t.plus(123)));
        assert_eq!(UnixMs::from_rfc3339("2026-11-20T09:29:60Z"), nine_thirty);
    }

    #[test]
    fn refuses_what_is_no_time() {
        for text in [
            "",
            "2026-11-20",
            "2026-11-20T09:30:00",
            "2026-13-20T09:30:00Z",
            "2026-02-29T09:30:00Z",
            "2026-11-20T24:00:00Z",
            "2026-11-20T09:30:00.Z",
            "2026-11-20T09:30:00+9:00",
            "1969-12-31T23:59:59Z",
            "2026-11-20T09:30:00ZZ",
            "2026-11-20T09:60:00Z",
            "2026-11-2OT09:30:00Z",
            "２026-11-20T09:30:00Z",
            "2026-11-20X09:30:00Z",
            "2026-11-20é09:30:00Z",
            "2026-11-20T09:30:6éZ",
        ] {
            assert_eq!(UnixMs::from_rfc3339(text), None, "{text}");
        }
    }
}
