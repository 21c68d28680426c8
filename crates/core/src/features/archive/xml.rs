//! Queries of archives and their results (XEP-0313, XEP-0441).

use crate::error::StanzaError;
use crate::model::{
    ArchiveDefault, ArchiveEnds, ArchiveFilter, ArchiveId, ArchivePreferences, ArchiveStart, ArchivedMessage,
    UnixMs,
};
use crate::session::rsm::{Page, number};
use bytes::Bytes;
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::{Condition, Kind, MessageType, Payload, Stanza};
use carillon_wire::xml::Element;
use carillon_wire::xml::writer::Writer;
use carillon_wire::{Framing, ns};

/// Whether a message is for archives: it has something to read, or says what became of something.
pub(super) fn is_kept(stanza: &Stanza) -> bool {
    if !matches!(stanza.kind, Kind::Message(MessageType::Chat | MessageType::Normal)) {
        return false;
    }
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
pub(super) fn has_contents(stanza: &Stanza) -> bool {
    let has = |name, ns| stanza.payload.find(name, ns).is_some();
    (has("body", ns::CLIENT) || has("encrypted", ns::OMEMO) || has("encrypted", ns::OMEMO_OLD))
        && !has("replace", ns::CORRECTION)
        && !has("retract", ns::RETRACT)
        && !has("reactions", ns::REACTIONS)
}

/// The message that the sender has seen (XEP-0333).
pub(super) fn displayed(stanza: &Stanza) -> Option<Box<str>> {
    let marker = |name| stanza.payload.find(name, ns::CHAT_MARKERS);
    let marker = marker("displayed").or_else(|| marker("acknowledged"))?;
    marker.element().attr("id").map(Box::from)
}

/// The bytes to keep.
pub(super) fn write(stanza: &Stanza) -> Bytes {
    let mut out = Vec::new();
    stanza.write(&mut out, Framing::Tcp);
    out.into()
}

/// What a client asks for.
#[derive(Debug)]
pub(super) struct Query {
    id: Option<Box<str>>,
    pub(super) filter: ArchiveFilter,
    /// These messages and no others.
    pub(super) ids: Vec<ArchiveId>,
    pub(super) start: ArchiveStart,
    pub(super) page: Page,
    pub(super) is_flipped: bool,
}

impl Query {
    pub(super) fn of(query: &Element) -> Result<Query, StanzaError> {
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
        Ok(Query { id, filter, ids, start: page.start()?, page, is_flipped })
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
            // There is no group chat in these archives.
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
pub(super) fn form() -> Element {
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
pub(super) fn result(account: &BareJid, to: &Jid, query: &Query, message: &ArchivedMessage) -> Stanza {
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
pub(super) struct Fin {
    /// Its first message and its last, or where the next page goes on.
    pub(super) ends: (Option<ArchiveId>, Option<ArchiveId>),
    /// How many there are, if the page is all of them.
    pub(super) count: Option<usize>,
    /// Whether more follow.
    pub(super) more: bool,
}

impl Fin {
    /// As an element.
    pub(super) fn element(&self) -> Element {
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
pub(super) fn metadata(ends: Option<ArchiveEnds>) -> Element {
    let metadata = Element::new("metadata", ns::MAM);
    let Some(ArchiveEnds { first, last }) = ends else { return metadata };
    let end = |name: &'static str, (id, time): (ArchiveId, UnixMs)| {
        Element::new(name, ns::MAM).with_attr("id", id.to_string()).with_attr("timestamp", time.to_xmpp())
    };
    metadata.with_child(end("start", first)).with_child(end("end", last))
}

const DEFAULTS: [(&str, ArchiveDefault); 3] = [
    ("always", ArchiveDefault::Always),
    ("never", ArchiveDefault::Never),
    ("roster", ArchiveDefault::Roster),
];

/// What an account wants in its archive.
pub(super) fn preferences(preferences: &ArchivePreferences) -> Element {
    let default = DEFAULTS.iter().find(|(_, default)| *default == preferences.default);
    let rules = |name: &'static str, jids: &[Jid]| {
        jids.iter().fold(Element::new(name, ns::MAM), |rules, jid| {
            rules.with_child(Element::new("jid", ns::MAM).with_text(jid.as_str()))
        })
    };
    Element::new("prefs", ns::MAM)
        .with_attr("default", default.map_or("always", |(name, _)| name))
        .with_child(rules("always", &preferences.always))
        .with_child(rules("never", &preferences.never))
}

/// What an account says that it wants.
pub(super) fn read_preferences(prefs: &Element) -> Result<ArchivePreferences, StanzaError> {
    let default = DEFAULTS.iter().find(|(name, _)| prefs.attr("default") == Some(name));
    let (_, default) = default.ok_or_else(|| bad_request("default is always, never or roster"))?;
    let rules = |name| {
        let jids = prefs.child(name, ns::MAM).map(Element::children).into_iter().flatten();
        let jids = jids.filter(|child| child.is("jid", ns::MAM)).map(|child| Jid::new(child.text().trim()));
        let mut jids =
            jids.collect::<Result<Vec<Jid>, _>>().map_err(|_| StanzaError::new(Condition::JidMalformed))?;
        jids.sort();
        jids.dedup();
        Ok::<_, StanzaError>(jids)
    };
    Ok(ArchivePreferences { default: *default, always: rules("always")?, never: rules("never")? })
}
