//! Names and keys that end up in XML attributes.

use std::ops::RangeInclusive;

/// Whether a text has so many bytes, and none of the characters that XML has no place for (XML 1.0 §2.2) or that
/// would break a line of a log.
pub(crate) fn fits(text: &str, bytes: RangeInclusive<usize>) -> bool {
    bytes.contains(&text.len())
        && !text.chars().any(|c| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}'))
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn counts_bytes_and_refuses_what_xml_cannot_hold() {
        assert!(fits("naïve", 1..=6) && !fits("naïve", 1..=5));
        assert!(fits("", 0..=1) && !fits("", 1..=1));
        assert!(["a\nb", "a\0", "\u{ffff}", "\u{85}"].iter().all(|text| !fits(text, 0..=9)));
    }
}
