//! Which bytes and characters XML admits (XML 1.0 §2.2, §2.3).

use super::error::Error;

/// Whether a byte is white space in XML.
pub const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// `text` without XML white space at both ends.
pub(crate) fn trim(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|b| !is_space(*b)).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(|b| !is_space(*b)).map_or(start, |last| last + 1);
    bytes.get(start..end).unwrap_or_default()
}

/// Whether XML 1.0 admits the character.
pub(crate) const fn is_legal(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// Checks that `bytes` are UTF-8 and only characters that XML admits.
pub(crate) fn check_legal(bytes: &[u8]) -> Result<&str, Error> {
    let text = std::str::from_utf8(bytes).map_err(|_| Error::InvalidUtf8)?;
    check_characters(bytes)?;
    Ok(text)
}

/// As [`check_legal`] for bytes whose last character may be incomplete: returns the length that was checked.
pub(crate) fn legal_utf8_prefix(bytes: &[u8]) -> Result<usize, Error> {
    let (valid, broken) = match std::str::from_utf8(bytes) {
        Ok(_) => (bytes.len(), false),
        Err(error) => (error.valid_up_to(), error.error_len().is_some()),
    };
    // The first error is reported, so that the result does not depend on where the bytes were cut.
    check_characters(bytes.get(..valid).unwrap_or(bytes))?;
    if broken { Err(Error::InvalidUtf8) } else { Ok(valid) }
}

/// Checks valid UTF-8 for control characters and the noncharacters U+FFFE and U+FFFF.
fn check_characters(bytes: &[u8]) -> Result<(), Error> {
    // Written so that it compiles to vector instructions: no early exit.
    let controls = bytes.iter().fold(false, |found, &b| found | (b < b' ' && !is_space(b)));
    if controls {
        return Err(Error::IllegalCharacter);
    }
    for at in memchr::memchr_iter(0xEF, bytes) {
        if matches!(bytes.get(at + 1..at + 3), Some([0xBF, 0xBE | 0xBF])) {
            return Err(Error::IllegalCharacter);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytewise_check_agrees_with_the_definition() {
        for c in (0..=0x10FFFF).filter_map(char::from_u32) {
            let text = format!("a{c}b");
            assert_eq!(check_legal(text.as_bytes()).is_ok(), is_legal(c), "{c:?}");
        }
    }

    #[test]
    fn a_cut_character_is_left_for_later() {
        assert_eq!(legal_utf8_prefix("aé".as_bytes()), Ok(3));
        assert_eq!(legal_utf8_prefix(b"a\xC3"), Ok(1));
        assert_eq!(legal_utf8_prefix(b"a\xF0\x9F\x98"), Ok(1));
        assert_eq!(legal_utf8_prefix(b"a\xC3("), Err(Error::InvalidUtf8));
        assert_eq!(legal_utf8_prefix(b"\xC0\x80"), Err(Error::InvalidUtf8));
        assert_eq!(legal_utf8_prefix(b"\xED\xA0\x80"), Err(Error::InvalidUtf8));
        assert_eq!(legal_utf8_prefix(b"a\x01"), Err(Error::IllegalCharacter));
        assert_eq!(legal_utf8_prefix(b"a\x01\xFF"), Err(Error::IllegalCharacter));
        assert_eq!(legal_utf8_prefix(b"a\xFF\x01"), Err(Error::InvalidUtf8));
    }

    #[test]
    fn trims_only_xml_white_space() {
        assert_eq!(trim(b" \t\r\n<a/>\n"), b"<a/>");
        assert_eq!(trim(b" \n"), b"");
        assert_eq!(trim(b"\x0C<a/>"), b"\x0C<a/>");
    }
}
