//! Notifications on the wire (docs/book/protocol.md).

use crate::model::{Notification, Priority};
use crate::session::BoundSession;
use bytes::Bytes;
use carillon_wire::ns;
use carillon_wire::stanza::{MessageType, Payload as Xml, Stanza};
use carillon_wire::xml::writer::Writer;

/// The message for one session. `receipt`: whether a receipt is asked for, because nothing else acknowledges it.
pub(super) fn message(notification: &Notification, session: &BoundSession, receipt: bool) -> Stanza {
    let mut stanza = Stanza::message(MessageType::Headline)
        .with_to(session.jid.clone())
        .with_from(session.bare.service("push"))
        .with_id(notification.id.to_string());
    stanza.payload = Xml::from_raw(payload(notification, receipt));
    stanza
}

/// The id of a receipt (XEP-0184).
pub(super) fn receipt(stanza: &Stanza) -> Option<String> {
    let received = stanza.payload.find("received", ns::RECEIPTS)?;
    received.element().attr("id").map(str::to_owned)
}

fn payload(notification: &Notification, receipt: bool) -> Bytes {
    let mut out = Vec::with_capacity(256 + notification.payload.bytes());
    let mut writer = Writer::new(&mut out);
    writer.start_in("notification", ns::NOTIFICATION);
    writer.attr("priority", word(notification.priority)).attr("sent", &notification.accepted.to_xmpp());
    if let Some(expires) = notification.expires {
        writer.attr("expires", &expires.to_xmpp());
    }
    writer.attr_opt("collapse-key", notification.collapse_key.as_deref()).close_empty();
    notification.payload.write(&mut out);
    if receipt {
        Writer::new(&mut out).empty("request", ns::RECEIPTS);
    }
    out.into()
}

fn word(priority: Priority) -> &'static str {
    match priority {
        Priority::High => "high",
        Priority::Normal => "normal",
        Priority::Low => "low",
    }
}
