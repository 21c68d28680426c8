//! What the profiles of SASL print alike, but for the namespace.

use crate::sasl::{self, Failure, SaslProfile};
use carillon_wire::ns;
use carillon_wire::xml::Element;

impl SaslProfile {
    /// Its namespace.
    pub fn ns(&self) -> &'static str {
        match self {
            SaslProfile::Classic => ns::SASL,
            SaslProfile::Sasl2(_) => ns::SASL2,
        }
    }

    /// A challenge.
    pub fn challenge(&self, data: &str) -> Element {
        Element::new("challenge", self.ns()).with_text(sasl::encode(data.as_bytes()))
    }

    /// A failure, with this text or what is said of it otherwise. Its condition is of RFC 6120 in either.
    pub fn failure(&self, failure: Failure, text: Option<&str>) -> Element {
        let element = Element::new("failure", self.ns()).with_child(Element::new(failure.as_str(), ns::SASL));
        match text.or(failure.text()) {
            Some(text) => element
                .with_child(Element::new("text", self.ns()).with_attr("xml:lang", "en").with_text(text)),
            None => element,
        }
    }
}
