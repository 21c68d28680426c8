//! Times in the JSON format: `2026-11-20T09:30:00.125Z`, always of this length.

use carillon_core::model::UnixMs;

/// The text of the last time that was formatted.
pub(super) struct Stamp {
    at: UnixMs,
    text: String,
}

impl Default for Stamp {
    fn default() -> Stamp {
        let at = UnixMs::default();
        Stamp { at, text: at.to_xmpp() }
    }
}

impl Stamp {
    /// Formats a time.
    pub(super) fn of(&mut self, at: UnixMs) -> &str {
        if at != self.at {
            self.at = at;
            self.text = at.to_xmpp();
        }
        &self.text
    }
}

/// Parses a time.
pub(super) fn parse(text: &[u8]) -> Option<UnixMs> {
    let (year, rest) = text.split_at_checked(4)?;
    let [b'-', m1, m2, b'-', d1, d2, b'T', h1, h2, b':', n1, n2, b':', s1, s2, b'.', ms @ .., b'Z'] = rest
    else {
        return None;
    };
    let two = |a: &u8, b: &u8| super::digits(&[*a, *b]);
    let days = days(super::digits(year)?, two(m1, m2)?, two(d1, d2)?)?;
    let seconds = days * 86_400 + two(h1, h2)? * 3600 + two(n1, n2)? * 60 + two(s1, s2)?;
    (ms.len() == 3).then_some(UnixMs(seconds * 1000 + super::digits(ms)?))
}

/// Days from 1970-01-01 to a date not before it (Howard Hinnant's `days_from_civil`).
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let y = if month <= 2 { year - 1 } else { year };
    let (era, yoe) = (y / 400, y % 400);
    let doy = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    (era * 146_097 + doe).checked_sub(719_468)
}
