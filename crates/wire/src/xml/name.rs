//! Qualified names (XML Namespaces §4, XML 1.0 §2.3 fifth edition).

use super::error::Error;

/// Checks that `text` is a qualified name; gives the length of its prefix, if it has one.
pub(super) fn check_qualified(text: &str) -> Result<Option<u16>, Error> {
    match memchr::memchr(b':', text.as_bytes()) {
        None => check_simple(text).map(|()| None),
        Some(at) => {
            let (prefix, rest) = text.split_at_checked(at).ok_or(Error::Name)?;
            check_simple(prefix)?;
            check_simple(rest.get(1..).unwrap_or_default())?;
            u16::try_from(at).map(Some).map_err(|_| Error::Name)
        }
    }
}

/// Checks that `text` is a name without colon.
fn check_simple(text: &str) -> Result<(), Error> {
    // Nearly all names are of this kind.
    if text.bytes().all(|b| b.is_ascii_lowercase()) && !text.is_empty() {
        return Ok(());
    }
    let mut chars = text.chars();
    let valid = chars.next().is_some_and(is_start) && chars.all(is_continue);
    if valid { Ok(()) } else { Err(Error::Name) }
}

/// Whether a qualified name may be written as it is: for names that come from code.
pub(super) fn is_qualified(text: &str) -> bool {
    check_qualified(text).is_ok()
}

fn is_start(c: char) -> bool {
    matches!(c,
        'a'..='z' | 'A'..='Z' | '_'
        | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}' | '\u{370}'..='\u{37D}'
        | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}' | '\u{2070}'..='\u{218F}' | '\u{2C00}'..='\u{2FEF}'
        | '\u{3001}'..='\u{D7FF}' | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}'
        | '\u{10000}'..='\u{EFFFF}')
}

fn is_continue(c: char) -> bool {
    is_start(c)
        || matches!(c, '-' | '.' | '0'..='9' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_names() {
        for name in ["a", "_a", "a-b.c1", "é", "a\u{B7}", "\u{10000}"] {
            assert_eq!(check_qualified(name), Ok(None), "{name}");
        }
        assert_eq!(check_qualified("stream:stream"), Ok(Some(6)));
    }

    #[test]
    fn refuses_others() {
        for name in [
            "", "1a", "-a", ".a", "a b", ":a", "a:", "a::b", "a:b:c", "a:1", "a/", "a\u{D7}", "\u{B7}a", "a=",
        ] {
            assert_eq!(check_qualified(name), Err(Error::Name), "{name}");
        }
    }
}
