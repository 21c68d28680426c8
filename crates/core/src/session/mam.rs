//! Queries of archives and their results (XEP-0313): those of accounts and of rooms.

use super::rsm::{Page, number};
use crate::error::StanzaError;
use crate::model::{ArchiveEnds, ArchiveFilter, ArchiveId, ArchiveStart, ArchivedMessage, UnixMs};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, MessageType, Payload, Stanza};
use carillon_wire::xml::Element;
use carillon_wire::xml::writer::Writer;

/// Messages of a page, and how many it has where the client does not say.
const PAGE_MAX: u16 = 250;
const PAGE: u16 = 50;

/// Bytes of a page: what a client that reads slowly has waiting.
const PAGE_BYTES: usize = 128 * 1024;

/// Whether a message has something to read, or says what became of something, and may be kept (XEP-0334).
pub(crate) fn is_kept(stanza: &Stanza) -> bool {
    let has = |name, ns| stanza.payload.find(name, ns).is_some();
    if has("no-store", ns::HINTS) || has("no-permanent-store", ns::HINTS) {
        return false;
    }
    has("body", ns::CLIENT)
        || has("store", ns::HINTS)
        || ["received", "displayed", "acknowledged"].iter().any(|name| has(name, ns::CHAT_MARKERS))
        || has("received", ns::RECEIPTS)
        || has("retract", ns::RETRACT)
        || has("reactions", ns::REACTIONS)
        || has("encrypted", ns::OMEMO)
        || has("encrypted", ns::OMEMO_OLD)
}

/// Whether a message is one to be read, and not about another one.
pub(crate) fn has_contents(stanza: &Stanza) -> bool {
    let has = |name, ns| stanza.payload.find(name, ns).is_some();
    (has("body", ns::CLIENT) || has("encrypted", ns::OMEMO) || has("encrypted", ns::OMEMO_OLD))
        && !has("replace", ns::CORRECTION)
        && !has("retract", ns::RETRACT)
        && !has("reactions", ns::REACTIONS)
}

/// The message that the sender has seen (XEP-0333).
pub(crate) fn displayed(stanza: &Stanza) -> Option<Box<str>> {
    let marker = |name| stanza.payload.find(name, ns::CHAT_MARKERS);
    let marker = marker("displayed").or_else(|| marker("acknowledged"))?;
    marker.element().attr("id").map(Box::from)
}

/// What a client asks for.
#[derive(Debug)]
pub(crate) struct Query {
    id: Option<Box<str>>,
    pub(crate) filter: ArchiveFilter,
    /// These messages and no others.
    pub(crate) ids: Vec<ArchiveId>,
    pub(crate) start: ArchiveStart,
    page: Page,
    pub(crate) is_flipped: bool,
}

impl Query {
    pub(crate) fn of(query: &Element) -> Result<Query, StanzaError> {
        if query.attr("node").is_some_and(|node| !node.is_empty()) {
            return Err(StanzaError::new(Condition::ItemNotFound).with_text("there are no nodes here"));
        }
        let (filter, ids) = match query.child("x", ns::DATA_FORMS) {
            Some(form) => fields(form)?,
            None => (ArchiveFilter::default(), Vec::new()),
        };
        let page = Page::of(query)?;
        let id = query.attr("queryid").map(Box::from);
        let is_flipped = query.child("flip-page", ns::MAM).is_some();
        if ids.len() > usize::from(PAGE_MAX) {
            let text = "too many messages at once";
            return Err(StanzaError::new(Condition::PolicyViolation).with_text(text));
        }
        Ok(Query { id, filter, ids, start: page.start()?, page, is_flipped })
    }

    /// The bounds of the page.
    pub(crate) fn bounds(&self) -> crate::ports::Page {
        crate::ports::Page { entries: self.page.max(PAGE, PAGE_MAX), bytes: PAGE_BYTES }
    }
}

/// The fields of a form.
fn fields(form: &Element) -> Result<(ArchiveFilter, Vec<ArchiveId>), StanzaError> {
    let (mut filter, mut ids) = (ArchiveFilter::default(), Vec::new());
    for field in form.children().filter(|child| child.is("field", ns::DATA_FORMS)) {
        let values = || field.children().filter(|child| child.is("value", ns::DATA_FORMS)).map(Element::text);
        let value = values().next().unwrap_or_default();
        let time =
            || UnixMs::from_rfc3339(&value).ok_or_else(|| bad_request("a time is not one of XEP-0082"));
        match field.attr("var") {
            Some("FORM_TYPE") if value == ns::MAM => {}
            Some("FORM_TYPE") => return Err(bad_request("the form is not of type urn:xmpp:mam:2")),
            Some("with") => {
                let jid = Jid::new(&value).map_err(|_| StanzaError::new(Condition::JidMalformed))?;
                filter.with = Some(jid);
            }
            Some("start") => filter.start = Some(time()?),
            Some("end") => filter.end = Some(time()?),
            Some("after-id") => filter.after = Some(number(&value)?),
            Some("before-id") => filter.before = Some(number(&value)?),
            Some("ids") => ids = values().map(|value| number(&value)).collect::<Result<_, _>>()?,
            // There is nothing else in the archive of a room, and none in that of an account.
            Some("include-groupchat") => {}
            _ => {
                let error = StanzaError::new(Condition::FeatureNotImplemented);
                return Err(error.with_text("a field of the query is not known here"));
            }
        }
    }
    Ok((filter, ids))
}

fn bad_request(text: &'static str) -> StanzaError {
    StanzaError::new(Condition::BadRequest).with_text(text)
}

/// The fields that a query may have.
pub(crate) fn form() -> Element {
    let field = |name: &'static str, kind: &'static str| {
        Element::new("field", ns::DATA_FORMS).with_attr("var", name).with_attr("type", kind)
    };
    let value = Element::new("value", ns::DATA_FORMS).with_text(ns::MAM);
    let any = Element::new("validate", ns::DATA_VALIDATION)
        .with_attr("datatype", "xs:string")
        .with_child(Element::new("open", ns::DATA_VALIDATION));
    let form = Element::new("x", ns::DATA_FORMS)
        .with_attr("type", "form")
        .with_child(field("FORM_TYPE", "hidden").with_child(value))
        .with_child(field("with", "jid-single"))
        .with_child(field("start", "text-single"))
        .with_child(field("end", "text-single"))
        .with_child(field("before-id", "text-single"))
        .with_child(field("after-id", "text-single"))
        .with_child(field("ids", "list-multi").with_child(any));
    Element::new("query", ns::MAM).with_child(form)
}

/// A message of a page.
pub(crate) fn result(account: &BareJid, to: &Jid, query: &Query, message: &ArchivedMessage) -> Stanza {
    let mut payload = Vec::with_capacity(message.stanza.len() + 400);
    let mut writer = Writer::new(&mut payload);
    writer.start_in("result", ns::MAM);
    if let Some(id) = &query.id {
        writer.attr("queryid", id);
    }
    writer.attr("id", &message.id.to_string()).close_start();
    message.write_forwarded(&mut writer);
    writer.end("result");
    let mut result = Stanza::message(MessageType::Normal).with_from(account.clone());
    result.to = Some(to.clone());
    result.payload = Payload::from_raw(payload.into());
    result
}

/// How a page ends.
#[derive(Debug)]
pub(crate) struct Fin {
    /// Its first message and its last, or where the next page goes on.
    ends: (Option<ArchiveId>, Option<ArchiveId>),
    /// How many there are, if the page is all of them.
    count: Option<usize>,
    /// Whether more follow.
    more: bool,
}

impl Fin {
    /// That of a page of these messages. `reached`: where to go on if the page ended because so many messages were looked at.
    pub(crate) fn of(
        query: &Query,
        messages: &[ArchivedMessage],
        more: bool,
        reached: Option<ArchiveId>,
    ) -> Fin {
        let is_counted = !more && matches!(query.start, ArchiveStart::First | ArchiveStart::Last);
        let (first, last) = (messages.first().map(|m| m.id), messages.last().map(|m| m.id));
        // Who asks for the next page names the end of this one.
        let ends = match query.start.is_backward() {
            true => (reached.or(first), last.or(reached)),
            false => (first.or(reached), reached.or(last)),
        };
        Fin { ends, count: is_counted.then_some(messages.len()), more }
    }

    /// As an element.
    pub(crate) fn element(&self) -> Element {
        let mut set = Element::new("set", ns::RSM);
        let text = |name: &'static str, text: String| Element::new(name, ns::RSM).with_text(text);
        if let (Some(first), Some(last)) = self.ends {
            let first = text("first", first.to_string());
            set.push(if self.count.is_some() { first.with_attr("index", "0") } else { first });
            set.push(text("last", last.to_string()));
        }
        if let Some(count) = self.count {
            set.push(text("count", count.to_string()));
        }
        let fin = Element::new("fin", ns::MAM);
        let fin = if self.more { fin } else { fin.with_attr("complete", "true") };
        fin.with_child(set)
    }
}

/// The ends of an archive (XEP-0313 §5).
pub(crate) fn metadata(ends: Option<ArchiveEnds>) -> Element {
    let metadata = Element::new("metadata", ns::MAM);
    let Some(ArchiveEnds { first, last }) = ends else { return metadata };
    let end = |name: &'static str, (id, time): (ArchiveId, UnixMs)| {
        Element::new(name, ns::MAM).with_attr("id", id.to_string()).with_attr("timestamp", time.to_xmpp())
    };
    metadata.with_child(end("start", first)).with_child(end("end", last))
}
