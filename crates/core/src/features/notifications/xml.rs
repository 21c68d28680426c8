//! Notifications on the wire (docs/book/protocol.md).

use crate::model::{Notification, NotificationId, Payload, Priority, PushRequest, UnixMs};
use crate::session::BoundSession;
use bytes::Bytes;
use carillon_wire::ns;
use carillon_wire::stanza::{IqType, MessageType, Payload as Xml, Stanza};
use carillon_wire::xml::writer::Writer;

/// What a notification carries, whoever it is for.
pub(super) struct Content<'a> {
    pub(super) priority: Priority,
    /// When it was accepted.
    pub(super) sent: UnixMs,
    pub(super) expires: Option<UnixMs>,
    pub(super) collapse_key: Option<&'a str>,
    pub(super) payload: &'a Payload,
}

impl<'a> Content<'a> {
    /// That of a notification.
    pub(super) fn of(notification: &'a Notification) -> Content<'a> {
        Content {
            priority: notification.priority,
            sent: notification.accepted,
            expires: notification.expires,
            collapse_key: notification.collapse_key.as_deref(),
            payload: &notification.payload,
        }
    }
}

/// The message for one session.
pub(super) fn message(id: NotificationId, payload: Bytes, session: &BoundSession) -> Stanza {
    let mut stanza = Stanza::message(MessageType::Headline)
        .with_to(session.jid.clone())
        .with_from(session.bare.service("push"))
        .with_id(id.to_string());
    stanza.payload = Xml::from_raw(payload);
    stanza
}

/// The request to the client of this session.
pub(super) fn request(id: NotificationId, request: &PushRequest, session: &BoundSession) -> Stanza {
    let mut stanza = Stanza::iq(IqType::Set)
        .with_to(session.jid.clone())
        .with_from(session.bare.service("push"))
        .with_id(request.id(id));
    stanza.payload = Xml::from_raw(request.element.clone());
    stanza
}

/// The id of a receipt (XEP-0184).
pub(super) fn receipt(stanza: &Stanza) -> Option<String> {
    let received = stanza.payload.find("received", ns::RECEIPTS)?;
    received.element().attr("id").map(str::to_owned)
}

/// What the message carries. `receipt`: whether a receipt is asked for, because nothing else acknowledges it.
pub(super) fn payload(content: &Content<'_>, receipt: bool) -> Bytes {
    let mut out = Vec::with_capacity(256 + content.payload.bytes());
    let mut writer = Writer::new(&mut out);
    writer.start_in("notification", ns::NOTIFICATION);
    writer.attr("priority", word(content.priority)).attr("sent", &content.sent.to_xmpp());
    if let Some(expires) = content.expires {
        writer.attr("expires", &expires.to_xmpp());
    }
    writer.attr_opt("collapse-key", content.collapse_key).close_empty();
    content.payload.write(&mut out);
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
