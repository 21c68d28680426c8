//! Our reader and rxml accept the same, refuse the same, and see the same in what they accept.
//!
//! Where both rightly differ:
//! - Limits are ours; what is generated here stays within rxml's.
//! - A character reference longer than 16 bytes is refused by us. Only leading zeros make one so long.
//! - An element `message`, `presence` or `iq` in a wrong namespace is well-formed and yet a stream error.
//! - rxml overlooks that one element declares the default namespace twice.
//! - rxml lets a prefix stand for the namespace of `xmlns` itself.
//! - An empty CDATA section beside the root is nothing for rxml, while we refuse any.
//! - rxml refuses `standalone='no'` in an XML declaration, of which XMPP says nothing; not generated here.

use carillon_wire::Framing;
use carillon_wire::ns;
use carillon_wire::stanza::{Context, Unit, read};
use carillon_wire::xml::{Element, Error, Limits};
use proptest::prelude::*;

use crate::oracle::{Tree, alone, inside_stream};
use crate::{cases, generate};

fn compare(bytes: &[u8]) -> Result<(), TestCaseError> {
    let unit = read(bytes, &Context::new(Framing::Tcp, Limits::default()));
    let inside_stream = inside_stream(trim(bytes));
    match (&unit, &inside_stream) {
        (Ok(Unit::Nonza(element)), Some(tree)) => prop_assert_eq!(&Tree::of(element), tree),
        (Ok(Unit::Stanza(_) | Unit::Refused { .. }), Some(_)) | (Err(_), None) => {}
        (Err(error), Some(_)) if rightly_refused(*error, bytes) => {}
        _ => {
            return Err(TestCaseError::fail(format!(
                "{:?}: {unit:?}, but rxml {inside_stream:?}",
                String::from_utf8_lossy(bytes)
            )));
        }
    }
    let element = Element::parse(bytes, "");
    let alone = alone(trim(bytes));
    match (&element, &alone) {
        (Ok(element), Some(tree)) => prop_assert_eq!(&Tree::of(element), tree),
        (Err(_), None) => {}
        (Err(error), Some(_)) if rightly_refused(*error, bytes) => {}
        // A document may have what an element may not.
        (Err(Error::Restricted(_)), Some(_)) if trim(bytes).starts_with(b"<?xml") => {}
        _ => {
            return Err(TestCaseError::fail(format!(
                "{:?}: {element:?}, but rxml {alone:?}",
                String::from_utf8_lossy(bytes)
            )));
        }
    }
    Ok(())
}

/// Whether we refuse for one of the reasons above what rxml accepts.
fn rightly_refused(error: Error, bytes: &[u8]) -> bool {
    match error {
        Error::TooLarge
        | Error::TooDeep
        | Error::TooManyAttributes
        | Error::TooManyNamespaces
        | Error::NamespaceTooLong
        | Error::InvalidNamespace
        | Error::UnsupportedStanza => true,
        Error::NamespaceDeclaration => contains(bytes, ns::XMLNS),
        Error::DuplicateAttribute => declares_default_twice(bytes),
        Error::NotOneElement => contains(bytes, "<![CDATA[]]>"),
        _ => false,
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    String::from_utf8_lossy(bytes).contains(text)
}

/// Whether a tag has `xmlns` twice.
fn declares_default_twice(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    text.split('<').any(|tag| tag.split("xmlns").skip(1).filter(|rest| !rest.starts_with(':')).count() > 1)
}

fn trim(bytes: &[u8]) -> &[u8] {
    let space = |b: &u8| b" \t\r\n".contains(b);
    let Some(start) = bytes.iter().position(|b| !space(b)) else { return b"" };
    let end = bytes.iter().rposition(|b| !space(b)).unwrap();
    &bytes[start..=end]
}

proptest! {
    #![proptest_config(cases(4000))]

    #[test]
    fn on_elements(text in generate::element()) {
        compare(text.as_bytes())?;
    }

    #[test]
    fn on_stanzas(text in generate::stanza()) {
        compare(text.as_bytes())?;
    }

    #[test]
    fn on_what_is_broken(bytes in generate::broken()) {
        compare(&bytes)?;
    }

    #[test]
    fn on_bytes(bytes in proptest::collection::vec(proptest::sample::select(b"<>/a='&;:x \xC3\xA9![]-?".as_slice()), 0..24)) {
        compare(&bytes)?;
    }
}

/// Every character, as a name's first, as a name's second and as text.
#[test]
fn on_every_character() {
    let step = |c: &u32| {
        *c < 0x3100 || c.is_multiple_of(97) || (0xD7F0..0xE010).contains(c) || *c > 0xF8F0 && *c < 0x10010
    };
    for c in (0..=0x10FFFF).filter(step).filter_map(char::from_u32) {
        for text in [format!("<{c}/>"), format!("<a{c}/>"), format!("<a>{c}</a>"), format!("<a b='{c}'/>")] {
            compare(text.as_bytes()).unwrap();
        }
    }
}
