//! The form in which messages are stored.

use crate::model::OfflineMessage;
use bytes::Bytes;
use carillon_wire::Framing;
use carillon_wire::ns;
use carillon_wire::stanza::{Context, Stanza, Unit, read as read_unit};
use carillon_wire::xml::{Element, Limits};

/// Whether a message is to be stored: it has a body or the hint `store`, and no hint against it (XEP-0334).
pub(super) fn is_worth_keeping(stanza: &Stanza) -> bool {
    let hint = |name| stanza.payload.find(name, ns::HINTS).is_some();
    let body = stanza.payload.find("body", ns::CLIENT).is_some();
    (body || hint("store")) && !hint("no-store") && !hint("no-permanent-store")
}

/// The bytes to store.
pub(super) fn write(stanza: &Stanza) -> Bytes {
    let mut out = Vec::new();
    stanza.write(&mut out, Framing::Tcp);
    out.into()
}

/// A stored message as it came.
pub(super) fn read_plain(message: &OfflineMessage) -> Option<Stanza> {
    let context = Context::new(Framing::Tcp, Limits::trusted());
    match read_unit(&message.stanza, &context) {
        Ok(Unit::Stanza(stanza)) => Some(stanza),
        _ => None,
    }
}

/// A stored message as it is delivered, with its stamp (XEP-0203).
pub(super) fn read(message: &OfflineMessage, domain: &str) -> Option<Stanza> {
    let mut stanza = read_plain(message)?;
    stanza.payload.push_element(&delay(domain, message.received));
    Some(stanza)
}

/// The stamp of a delayed delivery.
pub(super) fn delay(from: &str, at: crate::model::UnixMs) -> Element {
    Element::new("delay", ns::DELAY).with_attr("from", from).with_attr("stamp", at.to_xmpp())
}
