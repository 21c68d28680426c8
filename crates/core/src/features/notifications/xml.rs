//! Notifications on the wire (docs/book/protocol.md).

use crate::model::{Notification, Payload, Priority};
use crate::session::BoundSession;
use bytes::Bytes;
use carillon_wire::ns;
use carillon_wire::stanza::{MessageType, Payload as Xml, Stanza};
use carillon_wire::xml::writer::escape_attr;

/// The message for one session. `receipt`: whether a receipt is asked for, because nothing else acknowledges it.
pub fn message(notification: &Notification, session: &BoundSession, receipt: bool) -> Stanza {
    let mut stanza = Stanza::message(MessageType::Headline)
        .with_to(session.jid.clone())
        .with_from(session.bare.service("push"))
        .with_id(notification.id.to_string());
    stanza.payload = Xml::from_raw(payload(notification, receipt));
    stanza
}

/// The id of a receipt (XEP-0184).
pub fn receipt(stanza: &Stanza) -> Option<String> {
    let received = stanza.payload.find("received", ns::RECEIPTS)?;
    received.element().attr("id").map(str::to_owned)
}

fn payload(notification: &Notification, receipt: bool) -> Bytes {
    let carried = match &notification.payload {
        Payload::Json(json) => json.len(),
        Payload::Xml(xml) => xml.len(),
    };
    let mut out = Vec::with_capacity(256 + carried);
    out.extend_from_slice(b"<notification xmlns='urn:carillon:notification:0'");
    attribute(&mut out, "priority", word(notification.priority));
    attribute(&mut out, "sent", &notification.accepted.to_xmpp());
    if let Some(expires) = notification.expires {
        attribute(&mut out, "expires", &expires.to_xmpp());
    }
    if let Some(key) = &notification.collapse_key {
        attribute(&mut out, "collapse-key", key);
    }
    out.extend_from_slice(b"/>");
    notification.payload.write(&mut out);
    if receipt {
        out.extend_from_slice(b"<request xmlns='urn:xmpp:receipts'/>");
    }
    out.into()
}

fn attribute(out: &mut Vec<u8>, name: &str, value: &str) {
    out.push(b' ');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"='");
    escape_attr(out, value);
    out.push(b'\'');
}

fn word(priority: Priority) -> &'static str {
    match priority {
        Priority::High => "high",
        Priority::Normal => "normal",
        Priority::Low => "low",
    }
}
