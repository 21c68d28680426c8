//! Times on the wire: RFC 3339 in UTC with milliseconds going out, any RFC 3339 time coming in.

use carillon_core::model::UnixMs;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::time::{SystemTime, UNIX_EPOCH};

/// A point in time as it stands in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, utoipa::ToSchema)]
#[schema(value_type = String, format = DateTime, example = "2026-11-20T09:30:00.125Z")]
pub(crate) struct Time(pub(crate) UnixMs);

/// The time now.
pub(crate) fn now() -> UnixMs {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMs(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_xmpp())
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        parse(&text).map(Time).ok_or_else(|| {
            de::Error::custom("not an RFC 3339 time since 1970 such as `2026-11-20T09:30:00.125Z`")
        })
    }
}

/// Reads an RFC 3339 `date-time` (§5.6) not before 1970. Digits past the millisecond are dropped; a leap second counts
/// as the next minute's first.
pub fn parse(text: &str) -> Option<UnixMs> {
    let b = text.as_bytes();
    if b.len() < 20 || !text.is_ascii() || b[4] != b'-' || b[7] != b'-' || b[13] != b':' || b[16] != b':' {
        return None;
    }
    if !matches!(b[10], b'T' | b't' | b' ') {
        return None;
    }
    let (year, month, day) = (digits(&b[0..4])?, digits(&b[5..7])?, digits(&b[8..10])?);
    let (hour, minute, second) = (digits(&b[11..13])?, digits(&b[14..16])?, digits(&b[17..19])?);
    if !(1..=12).contains(&month) || day < 1 || day > month_days(year, month) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (milli, zone) = fraction(&b[19..])?;
    let seconds = days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    let ms = (seconds - offset_seconds(zone)?) * 1000 + milli;
    u64::try_from(ms).ok().map(UnixMs)
}

fn digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0, |n, c| c.is_ascii_digit().then(|| n * 10 + i64::from(c - b'0')))
}

/// The milliseconds of a fraction, if there is one, and what follows it.
fn fraction(rest: &[u8]) -> Option<(i64, &[u8])> {
    let Some(tail) = rest.strip_prefix(b".") else { return Some((0, rest)) };
    let len = tail.iter().take_while(|c| c.is_ascii_digit()).count();
    let milli = tail[..len].iter().chain(b"000").take(3).fold(0, |n, c| n * 10 + i64::from(c - b'0'));
    (len > 0).then_some((milli, &tail[len..]))
}

fn offset_seconds(zone: &[u8]) -> Option<i64> {
    match zone {
        b"Z" | b"z" => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?);
            let seconds = hours * 3600 + minutes * 60;
            (hours < 24 && minutes < 60).then_some(if *sign == b'-' { -seconds } else { seconds })
        }
        _ => None,
    }
}

fn month_days(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a civil date (Howard Hinnant's `days_from_civil`).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let yoe = y.rem_euclid(400);
    let doy = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_prints() {
        for ms in [0, 951_782_400_000, 1_795_167_000_125, 4_102_444_799_999] {
            assert_eq!(parse(&UnixMs(ms).to_xmpp()), Some(UnixMs(ms)));
        }
    }

    #[test]
    fn reads_offsets_and_fractions() {
        let nine_thirty = parse("2026-11-20T09:30:00Z");
        assert!(nine_thirty.is_some());
        assert_eq!(parse("2026-11-20T18:30:00+09:00"), nine_thirty);
        assert_eq!(parse("2026-11-20t04:30:00.000-05:00"), nine_thirty);
        assert_eq!(parse("2026-11-20T09:30:00.1Z"), nine_thirty.map(|t| t.plus(100)));
        assert_eq!(parse("2026-11-20T09:30:00.123987Z"), nine_thirty.map(|t| t.plus(123)));
        assert_eq!(parse("2026-11-20T09:29:60Z"), nine_thirty);
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
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
