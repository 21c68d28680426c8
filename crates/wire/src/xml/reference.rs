//! References (XML 1.0 §4.1): the five predefined entities and characters by number.

use std::borrow::Cow;

use super::chars::{is_legal, is_space};
use super::error::{Error, Restriction};

/// The longest text between `&` and `;`. The longest useful one is `#x10FFFF`; a longer one has leading zeros.
pub(crate) const REFERENCE_BYTES_MAX: usize = 16;

/// The character that `&name;` stands for.
///
/// # Errors
/// [`Restriction::Entity`] for any other entity, [`Error::IllegalCharacter`] for a number that is no XML character,
/// [`Error::Reference`] for what is no reference at all.
pub(crate) fn resolve_reference(name: &str) -> Result<char, Error> {
    match name {
        "amp" => return Ok('&'),
        "lt" => return Ok('<'),
        "gt" => return Ok('>'),
        "apos" => return Ok('\''),
        "quot" => return Ok('"'),
        _ => {}
    }
    let Some(number) = name.strip_prefix('#') else {
        let named = name.bytes().all(|b| b.is_ascii_alphanumeric() || b >= 0x80 || b"_-.:".contains(&b));
        let begun = name.bytes().next().is_some_and(|b| !b.is_ascii_digit() && b != b'-' && b != b'.');
        return Err(if named && begun { Error::Restricted(Restriction::Entity) } else { Error::Reference });
    };
    let (digits, radix) = match number.strip_prefix('x') {
        Some(digits) => (digits, 16),
        None => (number, 10),
    };
    // `from_str_radix` alone would accept a sign.
    if name.len() > REFERENCE_BYTES_MAX
        || digits.is_empty()
        || !digits.bytes().all(|b| (b as char).is_digit(radix))
    {
        return Err(Error::Reference);
    }
    let code = u32::from_str_radix(digits, radix).map_err(|_| Error::IllegalCharacter)?;
    char::from_u32(code).filter(|c| is_legal(*c)).ok_or(Error::IllegalCharacter)
}

/// Checks the references in `raw`, which holds no `<`.
pub(super) fn check_references(raw: &str) -> Result<(), Error> {
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'&', rest.as_bytes()) {
        let behind = rest.get(at + 1..).unwrap_or_default();
        let (name, after) = behind.split_once(';').ok_or(Error::Reference)?;
        resolve_reference(name)?;
        rest = after;
    }
    Ok(())
}

/// The value of an attribute whose references have been checked: references resolved, white space normalised
/// (XML 1.0 §2.11, §3.3.3).
pub(super) fn attribute_value(raw: &str) -> Cow<'_, str> {
    if !raw.bytes().any(|b| matches!(b, b'&' | b'\t' | b'\n' | b'\r')) {
        return Cow::Borrowed(raw);
    }
    let mut value = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.bytes().position(|b| b == b'&' || is_space(b)) {
        let (plain, marked) = rest.split_at_checked(at).unwrap_or((rest, ""));
        value.push_str(plain);
        rest = if marked.as_bytes().first() == Some(&b'&') {
            let reference = marked.get(1..).unwrap_or_default();
            let (name, after) = reference.split_once(';').unwrap_or((reference, ""));
            value.extend(resolve_reference(name));
            after
        } else {
            value.push(' ');
            behind_line_end(marked)
        };
    }
    value.push_str(rest);
    Cow::Owned(value)
}

/// Appends character data with its line ends normalised (XML 1.0 §2.11).
pub(super) fn push_normalised(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\r', rest.as_bytes()) {
        let (plain, marked) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(plain);
        out.push('\n');
        rest = behind_line_end(marked);
    }
    out.push_str(rest);
}

/// What follows the white space character or the CR LF at the front.
fn behind_line_end(text: &str) -> &str {
    text.strip_prefix("\r\n").or_else(|| text.get(1..)).unwrap_or_default()
}

/// Appends text whose references have been checked: references resolved, line ends normalised.
pub(super) fn push_resolved(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        push_normalised(out, before);
        let (name, after) = after.split_once(';').unwrap_or((after, ""));
        out.extend(resolve_reference(name));
        rest = after;
    }
    push_normalised(out, rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_five_and_numbers() {
        for (name, c) in [("amp", '&'), ("lt", '<'), ("gt", '>'), ("apos", '\''), ("quot", '"'), ("#9", '\t')]
        {
            assert_eq!(resolve_reference(name), Ok(c));
        }
        assert_eq!(resolve_reference("#x1F600"), Ok('😀'));
        assert_eq!(resolve_reference("#x1f600"), Ok('😀'));
        assert_eq!(resolve_reference("#0000065"), Ok('A'));
    }

    #[test]
    fn others_are_restricted_malformed_or_illegal() {
        for name in ["nbsp", "foo", "AMP", "x1", "é"] {
            assert_eq!(resolve_reference(name), Err(Error::Restricted(Restriction::Entity)), "{name}");
        }
        for name in [
            "",
            " amp",
            "amp ",
            "#",
            "#x",
            "#X41",
            "#+65",
            "#-1",
            "#6 5",
            "1",
            "-a",
            "a<b",
            "#00000000000000065",
        ] {
            assert_eq!(resolve_reference(name), Err(Error::Reference), "{name}");
        }
        for name in ["#0", "#x1", "#xB", "#xD800", "#xFFFE", "#xFFFF", "#x110000", "#xFFFFFFFFF"] {
            assert_eq!(resolve_reference(name), Err(Error::IllegalCharacter), "{name}");
        }
    }

    #[test]
    fn values_are_normalised() {
        assert!(matches!(attribute_value("plain value"), Cow::Borrowed(_)));
        assert_eq!(attribute_value("a&amp;b\r\nc\td&#10;e\n\nf"), "a&b c d\ne  f");
        assert_eq!(attribute_value("&lt;&#x3e;"), "<>");
        let mut text = String::new();
        push_normalised(&mut text, "a\r\nb\rc\n\r\rd");
        assert_eq!(text, "a\nb\nc\n\n\nd");
    }
}
