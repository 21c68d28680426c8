//! The XML declaration, `<?xml version='1.0' encoding='UTF-8'?>` (XML 1.0 §2.8).

use super::chars::{check_legal, is_space};
use super::error::{Error, Restriction};
use super::limits::Limits;
use super::tag::{RawAttribute, Tag};

/// Removes an XML declaration from the front, if there is one, and checks it.
///
/// # Errors
/// [`Error::UnsupportedEncoding`] for any encoding but UTF-8, [`Error::Declaration`] if it is malformed,
/// [`Error::Restricted`] if it is another processing instruction.
pub(crate) fn split_declaration(bytes: &[u8]) -> Result<&[u8], Error> {
    let Some(rest) = bytes.strip_prefix(b"<?") else {
        return Ok(bytes);
    };
    let end = memchr::memmem::find(rest, b"?>").ok_or(Error::Incomplete)?;
    let (content, after) = rest.split_at_checked(end).ok_or(Error::Incomplete)?;
    let content = check_legal(content)?;
    if !(content.starts_with("xml") && content.as_bytes().get(3).is_none_or(|b| is_space(*b))) {
        return Err(Error::Restricted(Restriction::ProcessingInstruction));
    }
    check_content(content)?;
    after.strip_prefix(b"?>").ok_or(Error::Incomplete)
}

/// `xml` and its three pseudo-attributes, which must come in this order.
fn check_content(content: &str) -> Result<(), Error> {
    // The declaration has the syntax of a start tag.
    let mut tag = Tag::default();
    tag.read(content, &Limits { attributes: 3, namespaces: 0, ..Limits::default() })
        .map_err(|_| Error::Declaration)?;
    let mut attributes = tag.attributes.iter().peekable();
    let mut take = |name| attributes.next_if(|a| a.name == name).map(RawAttribute::value);

    let version = take("version").ok_or(Error::Declaration)?;
    let minor = version.strip_prefix("1.").ok_or(Error::Declaration)?;
    if minor.is_empty() || !minor.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Error::Declaration);
    }
    if take("encoding").is_some_and(|encoding| !encoding.eq_ignore_ascii_case("utf-8")) {
        return Err(Error::UnsupportedEncoding);
    }
    if take("standalone").is_some_and(|standalone| standalone != "yes" && standalone != "no") {
        return Err(Error::Declaration);
    }
    if attributes.next().is_some() { Err(Error::Declaration) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_a_declaration_off() {
        for declaration in [
            "<?xml version='1.0'?>",
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
            "<?xml version='1.0' encoding='utf-8' standalone='yes' ?>",
            "<?xml\nversion = '1.1'?>",
            "",
        ] {
            let text = format!("{declaration}<a/>");
            assert_eq!(split_declaration(text.as_bytes()), Ok(&b"<a/>"[..]), "{declaration}");
        }
    }

    #[test]
    fn refuses_others() {
        use Error::{Declaration, Incomplete, UnsupportedEncoding};
        for (text, error) in [
            ("<?xml version='1.0' encoding='ISO-8859-1'?>", UnsupportedEncoding),
            ("<?xml version='1.0' encoding='UTF-16'?>", UnsupportedEncoding),
            ("<?xml?>", Declaration),
            ("<?xml ?>", Declaration),
            ("<?xml encoding='UTF-8'?>", Declaration),
            ("<?xml version='2.0'?>", Declaration),
            ("<?xml version='1.'?>", Declaration),
            ("<?xml version='1.0' standalone='maybe'?>", Declaration),
            ("<?xml standalone='yes' version='1.0'?>", Declaration),
            ("<?xml version='1.0' version='1.0'?>", Declaration),
            ("<?xml version='1.0' other='1'?>", Declaration),
            ("<?xml version='1.0'", Incomplete),
            ("<?php echo ?>", Error::Restricted(Restriction::ProcessingInstruction)),
            ("<?xml-stylesheet href='x'?>", Error::Restricted(Restriction::ProcessingInstruction)),
        ] {
            assert_eq!(split_declaration(text.as_bytes()), Err(error), "{text}");
        }
    }
}
