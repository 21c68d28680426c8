//! The profiles of SASL (RFC 4422 §4) that a client can log in by.

use crate::form::{Form, Malformed, Reader, Writer};
use carillon_wire::ns;
use carillon_wire::stanza::Payload;
use carillon_wire::xml::Element;

/// The profile that a client logs in by: how the messages of a mechanism are framed.
#[derive(Debug)]
pub enum SaslProfile {
    /// RFC 6120 §6: `<auth/>`, `<challenge/>`, `<response/>`, `<success/>`, a new stream.
    Classic,
    /// XEP-0388: `<authenticate/>` and what it asks for inline.
    Sasl2(Inline),
}

crate::form! { enum SaslProfile { 0 = Classic, 1 = Sasl2(inline) } }

impl SaslProfile {
    /// What a client of SASL2 asks for inline.
    pub fn inline(&self) -> Option<&Inline> {
        match self {
            SaslProfile::Classic => None,
            SaslProfile::Sasl2(inline) => Some(inline),
        }
    }
}

/// What a SASL2 client asks to be done with its login: its `<authenticate/>`, without what proves who it is.
#[derive(Debug)]
pub struct Inline(Element);

impl Form for Inline {
    fn write(&self, out: &mut Writer) {
        Payload::from_element(&self.0).write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Inline, Malformed> {
        let at = input.position();
        let payload = Payload::read(input)?;
        let authenticate = payload.find("authenticate", ns::SASL2).map(|child| child.element());
        authenticate.map(Inline).ok_or(Malformed { at, what: "an element is not the one of a login" })
    }
}

impl Default for Inline {
    fn default() -> Inline {
        Inline(Element::new("authenticate", ns::SASL2))
    }
}

impl Inline {
    /// Splits an `<authenticate/>` into what it asks for and its `<initial-response/>`.
    pub fn of(mut authenticate: Element) -> (Inline, Option<Element>) {
        let initial = authenticate.take_child("initial-response", ns::SASL2);
        (Inline(authenticate), initial)
    }

    /// The mechanism that it names.
    pub fn mechanism(&self) -> Option<&str> {
        self.0.attr("mechanism")
    }

    /// `<bind/>`: bind a resource at once, and enable these (XEP-0386).
    pub fn bind(&self) -> Option<&Element> {
        self.0.child("bind", ns::BIND2)
    }

    /// Which of the account's clients it says it is.
    pub fn agent(&self) -> Option<&str> {
        self.0.child("user-agent", ns::SASL2)?.attr("id").filter(|id| !id.is_empty())
    }

    /// The child with this name.
    pub fn child(&self, name: &str, ns: &str) -> Option<&Element> {
        self.0.child(name, ns)
    }

    /// All children.
    pub fn children(&self) -> impl Iterator<Item = &Element> {
        self.0.children()
    }

    /// Adds something, as if the client had asked for it.
    pub fn push(&mut self, element: Element) {
        self.0.push(element);
    }
}
