//! Copies on the wire (XEP-0280 §7, XEP-0297).

use bytes::Bytes;
use carillon_wire::Framing;
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::ns;
use carillon_wire::stanza::{Kind, MessageType, Payload, Stanza};
use carillon_wire::xml::writer::Writer;

/// Marks the copy of a sent message on its way to the account's sessions, so that it is told apart from a message and does
/// not go back to its sender. It never leaves the server, and a client cannot forge it: only a copy made here comes from the
/// account's bare JID.
const MARK: &str = "urn:carillon:sent:0";

/// Whether a message is copied: a chat message, or a normal one with a body, unless it is marked private.
pub(super) fn is_copied(stanza: &Stanza) -> bool {
    let kind = match stanza.kind {
        Kind::Message(MessageType::Chat) => true,
        Kind::Message(MessageType::Normal) => stanza.payload.find("body", ns::CLIENT).is_some(),
        _ => false,
    };
    let marked = stanza.payload.find("private", ns::CARBONS).is_some()
        || stanza.payload.find("no-copy", ns::HINTS).is_some()
        || stanza.payload.find("sent", ns::CARBONS).is_some()
        || stanza.payload.find("received", ns::CARBONS).is_some();
    kind && !marked
}

/// The copy of a message. `to`: the session it is for, or none for the account; `sender`: the session that sent it.
pub(super) fn wrap(
    direction: &str,
    inner: &Stanza,
    account: &BareJid,
    to: Option<&Jid>,
    sender: Option<&Jid>,
) -> Stanza {
    let mut payload = Vec::new();
    Writer::new(&mut payload)
        .start_in(direction, ns::CARBONS)
        .close_start()
        .start_in("forwarded", ns::FORWARD)
        .close_start();
    // The default namespace is another in here: the message declares its own, as on WebSocket.
    inner.write(&mut payload, Framing::WebSocket);
    let mut writer = Writer::new(&mut payload);
    writer.end("forwarded").end(direction);
    if let Some(sender) = sender {
        writer.start_in("from", MARK).attr("jid", sender.as_str()).close_empty();
    }
    let kind = match inner.kind {
        Kind::Message(kind) => kind,
        _ => MessageType::Chat,
    };
    let mut copy = Stanza::message(kind).with_from(account.clone());
    copy.to = Some(to.cloned().unwrap_or_else(|| account.to_jid()));
    copy.payload = Payload::from_raw(Bytes::from(payload));
    copy
}

/// The session that sent the original, if this is a marked copy.
pub(super) fn sender_of_copy(stanza: &Stanza) -> Option<String> {
    let from_account =
        stanza.from.as_ref().is_some_and(|from| from.is_bare() && stanza.to.as_ref() == Some(from));
    let mark = stanza.payload.find("from", MARK).filter(|_| from_account)?;
    mark.element().attr("jid").map(str::to_owned)
}

/// Removes the mark.
pub(super) fn unmark(stanza: &mut Stanza) {
    stanza.payload.remove("from", MARK);
}
