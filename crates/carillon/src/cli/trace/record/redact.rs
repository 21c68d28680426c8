//! Elements of a conversation: without what people wrote, in the domain of the tests, and with patterns for what differs each time.

use carillon_wire::ns;
use carillon_wire::xml::{Element, Node};

/// The domain of conversations.
pub(super) const DOMAIN: &str = "localhost";

/// Elements whose text is a word of the protocol.
const PROTOCOL: &[&str] =
    &["show", "priority", "value", "max", "index", "count", "before", "after", "resource", "jid"];
/// Elements whose text the server makes anew each time.
const FRESH: &[&str] = &["first", "last", "utc", "version", "os", "seconds"];
/// Attributes that the server makes anew each time, by the elements that have them.
const FRESH_ATTRIBUTES: &[(&str, &str)] = &[
    ("stanza-id", "id"),
    ("delay", "stamp"),
    ("enabled", "id"),
    ("enabled", "location"),
    ("query", "ver"),
    ("result", "id"),
    ("last", "seconds"),
    ("item", "id"),
    ("c", "ver"),
];

/// Which way an element went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From a client: it is sent as it is.
    In,
    /// To a client: what came is compared with it.
    Out,
}

/// How text of the conversation is made of that of the node.
pub(super) struct Redaction<'a> {
    /// The domain of the account.
    pub(super) domain: &'a str,
    /// Addresses with a resource that cannot be the name of a client, and what stands for them.
    pub(super) addresses: &'a [(String, String)],
}

impl Redaction<'_> {
    /// The element for the conversation.
    pub(super) fn element(&self, element: &Element, way: Way) -> Element {
        let mut made = Element::new(element.name(), element.ns());
        for attribute in element.attrs().filter(|a| a.ns().is_none_or(|of| of == ns::XML)) {
            let is_fresh = FRESH_ATTRIBUTES.contains(&(element.name(), attribute.name()));
            let value = match way {
                Way::Out if is_fresh || attribute.value().contains('{') => "{any}".to_owned(),
                _ => self.address(attribute.value()),
            };
            made.set_attr(attribute.name(), value);
        }
        for node in element.nodes() {
            match node {
                Node::Element(child) => made.push(self.element(child, way)),
                Node::Text(text) => made.push_text(self.text(element.name(), text, way)),
            }
        }
        made
    }

    fn text(&self, name: &str, text: &str, way: Way) -> String {
        if PROTOCOL.contains(&name) {
            return self.address(text);
        }
        if text.trim().is_empty() {
            return " ".repeat(text.len());
        }
        match way {
            Way::Out if FRESH.contains(&name) => "{any}".to_owned(),
            // Of the same size in bytes, so that what depends on sizes happens again.
            _ => "x".repeat(text.len()),
        }
    }

    /// An address in the domain of conversations; other text as it is.
    pub(super) fn address(&self, text: &str) -> String {
        if let Some((_, name)) = self.addresses.iter().find(|(jid, _)| jid == text) {
            return name.clone();
        }
        let (bare, resource) = text.split_once('/').map_or((text, None), |(bare, of)| (bare, Some(of)));
        let (local, host) = bare.split_once('@').map_or((None, bare), |(local, host)| (Some(local), host));
        let Some(host) = (match host.strip_suffix(self.domain) {
            Some(service) if service.is_empty() || service.ends_with('.') => {
                Some(format!("{service}{DOMAIN}"))
            }
            _ => None,
        }) else {
            return text.to_owned();
        };
        let local = local.map_or_else(String::new, |local| format!("{local}@"));
        let resource = resource.map_or_else(String::new, |resource| format!("/{resource}"));
        format!("{local}{host}{resource}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(xml: &str, way: Way) -> String {
        let addresses = [("a@x.example/My phone".to_owned(), "a@localhost/r1".to_owned())];
        let redaction = Redaction { domain: "x.example", addresses: &addresses };
        let element = Element::parse(xml.as_bytes(), ns::CLIENT).expect("XML");
        redaction.element(&element, way).to_string_in(ns::CLIENT)
    }

    #[test]
    fn what_people_wrote_is_replaced_by_as_much() {
        let message = "<message to='a@x.example/My phone' xml:lang='en'><body>grüß\nGott</body><show>away</show></message>";
        assert_eq!(
            redacted(message, Way::In),
            "<message to='a@localhost/r1' xml:lang='en'><body>xxxxxxxxxxx</body><show>away</show></message>"
        );
    }

    #[test]
    fn what_is_made_anew_matches_anything() {
        let message = "<message from='b@x.example'><stanza-id xmlns='urn:xmpp:sid:0' id='17' by='a@x.example'/>\
                       <delay xmlns='urn:xmpp:delay' from='x.example' stamp='2026'/></message>";
        assert_eq!(
            redacted(message, Way::Out),
            "<message from='b@localhost'><stanza-id xmlns='urn:xmpp:sid:0' id='{any}' by='a@localhost'/>\
             <delay xmlns='urn:xmpp:delay' from='localhost' stamp='{any}'/></message>"
        );
    }

    #[test]
    fn only_the_domain_of_the_account_is_another() {
        let redaction = Redaction { domain: "x.example", addresses: &[] };
        let of = |text| redaction.address(text);
        assert_eq!(of("rooms.x.example"), "rooms.localhost");
        assert_eq!(of("t@pubsub.x.example/r"), "t@pubsub.localhost/r");
        assert_eq!(
            (of("ax.example"), of("chat"), of("b@y.example")),
            ("ax.example".into(), "chat".into(), "b@y.example".into())
        );
    }
}
