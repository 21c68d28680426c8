//! The inbox in the words of MongooseIM.

use super::xml::{self, Query, boolean};
use super::{FOLDERS, bad_request};
use crate::error::StanzaError;
use crate::model::{Conversation, Folder, InboxEntry, InboxFilter, UnixMs};
use crate::ports::store::inbox::InboxPage;
use crate::session::rsm::Page;
use crate::session::{BoundSession, Cx};
use carillon_wire::ns;
use carillon_wire::stanza::Stanza;
use carillon_wire::xml::Element;
use carillon_wire::xml::writer::Writer;

/// What a client asks for.
pub(super) fn query(inbox: &Element, id: Option<&str>) -> Result<Query, StanzaError> {
    let id = inbox.attr("queryid").or(id).map(Box::from);
    let mut query = Query::new(id, InboxFilter::default(), Page::of(inbox)?)?;
    let Some(form) = inbox.child("x", ns::DATA_FORMS) else { return Ok(query) };
    for field in form.children().filter(|child| child.is("field", ns::DATA_FORMS)) {
        let value = field.child("value", ns::DATA_FORMS).map(Element::text).unwrap_or_default();
        let value = value.trim();
        let time = || UnixMs::from_rfc3339(value).ok_or_else(|| bad_request("a time is not one of XEP-0082"));
        let flag = || boolean(value).ok_or_else(|| bad_request("a field is true or false"));
        match field.attr("var") {
            Some("FORM_TYPE") if value == ns::INBOX_MIM => {}
            Some("start") => query.filter.start = Some(time()?),
            Some("end") => query.filter.end = Some(time()?),
            Some("order") => {
                query.is_oldest_first = match value {
                    "asc" => true,
                    "desc" => false,
                    _ => return Err(bad_request("order is asc or desc")),
                }
            }
            Some("hidden_read") => query.filter.is_unread = flag()?,
            Some("box") if value == "all" => query.filter.folder = None,
            Some("box") => query.filter.folder = Some(folder(value)?),
            // As older clients ask.
            Some("archive") => query.filter.folder = Some(archived(flag()?)),
            _ => return Err(bad_request("a field of the form is not known here")),
        }
    }
    Ok(query)
}

pub(super) fn folder(name: &str) -> Result<Folder, StanzaError> {
    let found = FOLDERS.iter().find(|(other, _)| *other == name).map(|(_, folder)| *folder);
    found.ok_or_else(|| bad_request("a box is inbox, archive or bin"))
}

pub(super) fn archived(is_archived: bool) -> Folder {
    if is_archived { Folder::Archive } else { Folder::Inbox }
}

/// The fields that a query may have.
pub(super) fn form() -> Element {
    let text = |name: &'static str| field(name, "text-single", "");
    let order = [("Ascending by timestamp", "asc"), ("Descending by timestamp", "desc")];
    let order = order.into_iter().fold(field("order", "list-single", "desc"), option);
    let form = [text("start"), text("end"), order, field("hidden_read", "boolean", "false"), boxes()];
    Element::new("query", ns::INBOX_MIM).with_child(form_of(form))
}

/// The properties that a conversation has.
pub(super) fn properties_form() -> Element {
    let flag = |name| field(name, "boolean", "false");
    let form = [flag("archive"), flag("read"), field("mute", "text-single", "0"), boxes()];
    Element::new("query", ns::INBOX_MIM_CONVERSATION).with_child(form_of(form))
}

fn form_of(fields: impl IntoIterator<Item = Element>) -> Element {
    let form = Element::new("x", ns::DATA_FORMS).with_attr("type", "form");
    let form = form.with_child(field("FORM_TYPE", "hidden", ns::INBOX_MIM));
    fields.into_iter().fold(form, Element::with_child)
}

fn boxes() -> Element {
    let boxes = field("box", "list-single", "all");
    FOLDERS.iter().map(|(name, _)| (*name, *name)).fold(option(boxes, ("all", "all")), option)
}

fn field(name: &'static str, kind: &'static str, value: &'static str) -> Element {
    let field = Element::new("field", ns::DATA_FORMS).with_attr("var", name).with_attr("type", kind);
    if value.is_empty() { field } else { field.with_child(text("value", ns::DATA_FORMS, value)) }
}

fn option(field: Element, (label, value): (&'static str, &'static str)) -> Element {
    let option = Element::new("option", ns::DATA_FORMS).with_attr("label", label);
    field.with_child(option.with_child(text("value", ns::DATA_FORMS, value)))
}

fn text(name: &'static str, ns: &'static str, text: impl Into<String>) -> Element {
    Element::new(name, ns).with_text(text.into())
}

/// How a conversation stands, as the children of an element.
pub(super) fn properties(conversation: &Conversation, now: UnixMs, ns: &'static str) -> [Element; 4] {
    let folder = conversation.folder();
    let name = FOLDERS.iter().find(|(_, other)| *other == folder).map_or("bin", |(name, _)| name);
    let mute = if conversation.muted > now { conversation.muted.to_xmpp() } else { "0".into() };
    [
        text("box", ns, name),
        text("archive", ns, (folder == Folder::Archive).to_string()),
        text("mute", ns, mute),
        text("read", ns, (conversation.unread() == 0).to_string()),
    ]
}

/// The same, written.
pub(super) fn write_properties(
    writer: &mut Writer<'_>,
    conversation: &Conversation,
    now: UnixMs,
    ns: &'static str,
) {
    for property in properties(conversation, now, ns) {
        writer.start(property.name()).close_start().text(&property.text()).end(property.name());
    }
}

/// A conversation.
pub(super) fn entry(session: &BoundSession, query: &Query, entry: &InboxEntry, cx: &Cx<'_>) -> Stanza {
    let mut payload = Vec::with_capacity(entry.message.stanza.len() + 500);
    let mut writer = Writer::new(&mut payload);
    writer.start_in("result", ns::INBOX_MIM).attr("unread", &entry.conversation.unread().to_string());
    writer.attr_opt("queryid", query.id.as_deref()).close_start();
    entry.message.write_forwarded(&mut writer);
    write_properties(&mut writer, &entry.conversation, cx.now.unix, ns::INBOX_MIM);
    writer.end("result");
    xml::message(session, payload)
}

/// The end of a page, with what there is in all.
pub(super) fn fin(query: &Query, page: &InboxPage) -> Element {
    let totals = &page.totals;
    let count = |name, count: u64| text(name, ns::INBOX_MIM, count.to_string());
    let fin = Element::new("fin", ns::INBOX_MIM)
        .with_child(count("count", totals.conversations.into()))
        .with_child(count("unread-messages", totals.unread))
        .with_child(count("active-conversations", totals.unread_conversations.into()));
    if query.page.is_asked() { fin.with_child(query.set(page)) } else { fin }
}
