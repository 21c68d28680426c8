//! Texts that end up in XML, in paths and before operators.

use crate::problem::{Code, Problem};
use std::ops::RangeInclusive;

/// Bytes as operators write them: in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a text has so many bytes, and none of the characters that XML has no place for (XML 1.0 §2.2) or that
/// would break a line of a log.
pub(crate) fn fits(text: &str, bytes: RangeInclusive<usize>) -> bool {
    bytes.contains(&text.len())
        && !text.chars().any(|c| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}'))
}

/// Refuses a text with a character that XML has no place for, not even escaped (XML 1.0 §2.2): no stanza can carry it. `member` is the
/// member of the body that has it.
pub(crate) fn sendable(text: &str, member: &str) -> Result<(), Problem> {
    let is_none_of_xml = |c: &char| match c {
        '\t' | '\n' | '\r' => false,
        c => c.is_ascii_control() && *c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}'),
    };
    let Some(c) = text.chars().find(is_none_of_xml) else { return Ok(()) };
    let detail =
        format!("`{member}` has the character U+{:04X}, which no XMPP stanza can carry", u32::from(c));
    Err(Problem::new(Code::InvalidValue, detail).at(format!("/{member}")))
}

/// A text as a part of a path.
pub(crate) fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{fits, sendable};

    #[test]
    fn names_the_character_that_cannot_be_sent() {
        assert_eq!(sendable("a\tb\r\n\u{7f}\u{85}☕", "body"), Ok(()));
        for (text, name) in [("a\0b", "U+0000"), ("\u{1b}", "U+001B"), ("\u{ffff}", "U+FFFF")] {
            let problem = sendable(text, "body").unwrap_err();
            let detail = format!("`body` has the character {name}, which no XMPP stanza can carry");
            assert_eq!((problem.detail(), problem.pointer()), (&*detail, Some("/body")));
        }
    }

    #[test]
    fn counts_bytes_and_refuses_what_xml_cannot_hold() {
        assert!(fits("naïve", 1..=6) && !fits("naïve", 1..=5));
        assert!(fits("", 0..=1) && !fits("", 1..=1));
        assert!(["a\nb", "a\0", "\u{ffff}", "\u{85}"].iter().all(|text| !fits(text, 0..=9)));
    }
}
