//! The two ways SASL is wrapped in XML: classic (RFC 6120 §6.4) and SASL2 (XEP-0388).

use super::Failure;
use super::fast::Wanted;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use carillon_wire::ns;
use carillon_wire::xml::Element;

/// How the exchange is wrapped, with what the client sent besides.
#[derive(Debug)]
pub enum Wrap {
    /// `<auth/>`, `<challenge/>`, `<response/>`, `<success/>`.
    Classic,
    /// `<authenticate/>` and what it asked for inline.
    Sasl2(Inline),
}

/// What a SASL2 client asks to be done with its login (XEP-0386).
#[derive(Debug, Default)]
pub struct Inline {
    /// `<bind/>`: bind a resource at once, and enable these.
    pub bind: Option<Element>,
    /// What it says of tokens (XEP-0484).
    pub tokens: Wanted,
}

/// The namespace of the SASL condition elements, in both profiles.
const CONDITIONS: &str = ns::SASL;

impl Wrap {
    /// Its namespace.
    pub fn ns(&self) -> &'static str {
        match self {
            Wrap::Classic => ns::SASL,
            Wrap::Sasl2(_) => ns::SASL2,
        }
    }

    /// A challenge.
    pub fn challenge(&self, data: &str) -> Element {
        Element::new("challenge", self.ns()).with_text(encode(data.as_bytes()))
    }

    /// A failure.
    pub fn failure(&self, failure: Failure) -> Element {
        let condition = Element::new(failure.as_str(), CONDITIONS);
        let element = Element::new("failure", self.ns()).with_child(condition);
        match failure.text() {
            Some(text) => element
                .with_child(Element::new("text", self.ns()).with_attr("xml:lang", "en").with_text(text)),
            None => element,
        }
    }
}

/// What the client sent in an `<auth/>`, `<response/>` or `<initial-response/>`: none when nothing, as opposed to `=`,
/// which is the empty string (RFC 6120 §6.4.2).
pub fn decode(element: &Element) -> Result<Option<String>, Failure> {
    let text = |bytes| String::from_utf8(bytes).map_err(|_| Failure::MalformedRequest);
    decode_bytes(element)?.map(text).transpose()
}

/// The data of a mechanism whose messages are not text.
pub fn decode_bytes(element: &Element) -> Result<Option<Vec<u8>>, Failure> {
    match element.text().trim() {
        "" => Ok(None),
        "=" => Ok(Some(Vec::new())),
        text => BASE64.decode(text).map(Some).map_err(|_| Failure::IncorrectEncoding),
    }
}

/// Encodes a message; `=` stands for the empty one.
pub fn encode(data: &[u8]) -> String {
    if data.is_empty() { "=".to_owned() } else { BASE64.encode(data) }
}
