//! The inbox in the words of XEP-0430.

use super::bad_request;
use crate::error::StanzaError;
use crate::model::{ArchiveStart, InboxEntry, InboxFilter};
use crate::ports::store::inbox::InboxPage;
use crate::session::rsm::{self, Page};
use crate::session::{BoundSession, Cx};
use carillon_wire::ns;
use carillon_wire::stanza::{MessageType, Payload, Stanza};
use carillon_wire::xml::Element;
use carillon_wire::xml::writer::Writer;

/// What a client asks for.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) id: Option<Box<str>>,
    pub(super) filter: InboxFilter,
    pub(super) is_oldest_first: bool,
    pub(super) start: ArchiveStart,
    pub(super) page: Page,
    /// Whether the newest messages are wanted.
    has_messages: bool,
}

impl Query {
    pub(super) fn of(inbox: &Element, id: Option<&str>) -> Result<Query, StanzaError> {
        let flag = |name, usual| match inbox.attr(name) {
            None => Ok(usual),
            Some(text) => boolean(text).ok_or_else(|| bad_request("an attribute is true or false")),
        };
        let filter = InboxFilter { is_unread: flag("unread-only", false)?, ..InboxFilter::default() };
        let page = Page::of(inbox)?;
        let id = inbox.attr("queryid").or(id).map(Box::from);
        Ok(Query {
            id,
            filter,
            is_oldest_first: false,
            start: page.start()?,
            page,
            has_messages: flag("messages", true)?,
        })
    }

    pub(super) fn new(id: Option<Box<str>>, filter: InboxFilter, page: Page) -> Result<Query, StanzaError> {
        Ok(Query { id, filter, is_oldest_first: false, start: page.start()?, page, has_messages: true })
    }

    /// The part of the list that a page is.
    pub(super) fn set(&self, page: &InboxPage) -> Element {
        let id = |entry: Option<&InboxEntry>| entry.map(|entry| entry.place().to_string());
        rsm::set(
            id(page.entries.first()).as_deref(),
            id(page.entries.last()).as_deref(),
            Some(page.totals.conversations),
        )
    }
}

pub(super) fn boolean(text: &str) -> Option<bool> {
    match text.trim() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// A conversation.
pub(super) fn entry(session: &BoundSession, query: &Query, entry: &InboxEntry, _: &Cx<'_>) -> Stanza {
    let mut payload = Vec::with_capacity(entry.message.stanza.len() + 400);
    let mut writer = Writer::new(&mut payload);
    let id = entry.conversation.last.to_string();
    writer.start_in("entry", ns::INBOX).attr("unread", &entry.conversation.unread().to_string());
    writer.attr("jid", entry.peer.as_str()).attr("id", &id).close_empty();
    if query.has_messages {
        writer.start_in("result", ns::MAM).attr_opt("queryid", query.id.as_deref());
        writer.attr("id", &id).close_start();
        entry.message.write_forwarded(&mut writer);
        writer.end("result");
    }
    message(session, payload)
}

/// A message from the account to this session.
pub(super) fn message(session: &BoundSession, payload: Vec<u8>) -> Stanza {
    let mut message = Stanza::message(MessageType::Normal).with_from(session.bare.to_bare());
    message.to = Some(session.jid.clone());
    message.payload = Payload::from_raw(payload.into());
    message
}

/// The end of a page, with what there is in all.
pub(super) fn fin(query: &Query, page: &InboxPage) -> Element {
    let totals = &page.totals;
    Element::new("fin", ns::INBOX)
        .with_attr("total", totals.conversations.to_string())
        .with_attr("unread", totals.unread_conversations.to_string())
        .with_attr("all-unread", totals.unread.to_string())
        .with_child(query.set(page))
}
