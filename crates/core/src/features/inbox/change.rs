//! What a client changes of a conversation.

use super::xml::boolean;
use super::{bad_request, form, has_archive};
use crate::command::PendingIq;
use crate::error::StanzaError;
use crate::error::store_unavailable;
use crate::model::{ArchiveStart, ConversationChange, InboxEntry, InboxFilter, UnixMs};
use crate::ports::store::inbox::{BIN_PART, ChangeConversation, Emptied, EmptyBin, InboxPage, ReadInbox};
use crate::ports::{Fault, Page};
use crate::session::hook::{IqAnswer, Request};
use crate::session::{BoundSession, Cx, Wait};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, MessageType, Payload, Stanza};
use carillon_wire::xml::Element;
use carillon_wire::xml::writer::Writer;

/// The conversation that a request names.
fn named(payload: &Element) -> Result<Option<BareJid>, StanzaError> {
    let jid = payload.attr("jid").map(|jid| Jid::new(jid).map(|jid| jid.bare()));
    jid.transpose().map_err(|_| StanzaError::new(Condition::JidMalformed))
}

/// How a conversation stands; or, without one, what it has.
pub(super) fn get(
    session: &mut BoundSession,
    request: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    has_archive(session, cx)?;
    let Some(with) = named(request.payload)? else { return Ok(IqAnswer::Payload(form::properties_form())) };
    let is_complete = request.payload.attr("complete").and_then(boolean).unwrap_or_default();
    let question = ReadInbox {
        domain: session.domain,
        local: session.bare.local().into(),
        filter: InboxFilter { with: Some(with), ..InboxFilter::default() },
        is_oldest_first: false,
        start: ArchiveStart::First,
        page: Page { entries: 1, bytes: 0 },
    };
    let pending = request.pending(session);
    Ok(IqAnswer::Wait(Wait::ask(question, move |_, _, answer: Result<_, Fault>, cx| {
        let page: Option<InboxPage> = answer.map_err(|_| store_unavailable())?;
        let entry = page.and_then(|page| page.entries.into_iter().next());
        let entry = entry.ok_or(StanzaError::new(Condition::ItemNotFound))?;
        cx.reply(pending.reply(Ok(shown(&entry, is_complete, cx))));
        Ok(IqAnswer::Later)
    })))
}

fn shown(entry: &InboxEntry, is_complete: bool, cx: &Cx<'_>) -> Payload {
    let mut payload = Vec::new();
    let mut writer = Writer::new(&mut payload);
    writer.start_in("query", ns::INBOX_MIM_CONVERSATION).close_start();
    if is_complete {
        entry.message.write_forwarded(&mut writer);
    }
    form::write_properties(&mut writer, &entry.conversation, cx.now.unix, ns::INBOX_MIM_CONVERSATION);
    writer.end("query");
    Payload::from_raw(payload.into())
}

/// Changes properties.
pub(super) fn set(
    session: &mut BoundSession,
    request: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    let with = named(request.payload)?.ok_or_else(|| bad_request("jid of the conversation is missing"))?;
    let change = read(request.payload, cx.now.unix)?;
    if change == ConversationChange::default() {
        return Err(bad_request("no property of the conversation is named"));
    }
    store(session, request, with, change, true, cx)
}

/// Everything in a conversation is read.
pub(super) fn reset(
    session: &mut BoundSession,
    request: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    let with = named(request.payload)?.ok_or_else(|| bad_request("jid of the conversation is missing"))?;
    let change = ConversationChange { is_read: Some(true), ..ConversationChange::default() };
    store(session, request, with, change, false, cx)
}

fn read(query: &Element, now: UnixMs) -> Result<ConversationChange, StanzaError> {
    let mut change = ConversationChange::default();
    for property in query.children() {
        let value = property.text();
        let flag = || boolean(&value).ok_or_else(|| bad_request("a property is true or false"));
        match property.name() {
            "box" => change.folder = Some(form::folder(value.trim())?),
            "archive" => change.folder = Some(form::archived(flag()?)),
            "read" => change.is_read = Some(flag()?),
            "mute" => {
                let seconds: u32 =
                    value.trim().parse().map_err(|_| bad_request("mute is a number of seconds"))?;
                let until = if seconds == 0 { UnixMs(0) } else { now.plus(u64::from(seconds) * 1000) };
                change.muted = Some(until);
            }
            _ => return Err(bad_request("a conversation has no such property")),
        }
    }
    Ok(change)
}

/// Has the store make a change, which goes on when the session ends. `is_told`: the account's sessions hear of it.
fn store(
    session: &mut BoundSession,
    request: &Request<'_>,
    with: BareJid,
    change: ConversationChange,
    is_told: bool,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    has_archive(session, cx)?;
    let (domain, local) = (session.domain, session.bare.local().into());
    let question = ChangeConversation { domain, local, with: with.clone(), change };
    let (pending, account) = (request.pending(session), session.bare.to_bare());
    cx.ask(question, move |answer, _, cx| {
        let answer = match answer {
            Ok(Ok(conversation)) => {
                let ns = ns::INBOX_MIM_CONVERSATION;
                let named = |name| Element::new(name, ns).with_attr("jid", with.as_str());
                let with_properties = |element| {
                    form::properties(&conversation, cx.now.unix, ns)
                        .into_iter()
                        .fold(element, Element::with_child)
                };
                let payload = Payload::from_element(&with_properties(named("query")));
                let x = is_told.then(|| with_properties(named("x")));
                if let Some(x) = x {
                    let told = Stanza::message(MessageType::Headline).with_from(account.clone());
                    cx.route(told.with_to(account.clone()).with_payload(x));
                }
                Ok(if is_told { payload } else { Payload::empty() })
            }
            Ok(Err(_)) => Err(StanzaError::new(Condition::ItemNotFound)),
            Err(_) => Err(store_unavailable()),
        };
        cx.reply(pending.reply(answer));
    });
    Ok(IqAnswer::Later)
}

/// Takes out of the list what was thrown away.
pub(super) fn empty_bin(
    session: &mut BoundSession,
    request: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    has_archive(session, cx)?;
    let ask = EmptyBin { domain: session.domain, local: session.bare.local().into(), max: BIN_PART };
    empty_part(ask, 0, request.pending(session), cx);
    Ok(IqAnswer::Later)
}

/// Empties it part after part; so many conversations were in it before.
fn empty_part(ask: EmptyBin, before: u32, pending: PendingIq, cx: &mut Cx<'_>) {
    cx.ask(ask.clone(), move |answer, _, cx| {
        let answer = match answer {
            Ok(Ok(Emptied { conversations, more: true })) => {
                return empty_part(ask, before.saturating_add(conversations), pending, cx);
            }
            Ok(Ok(Emptied { conversations, more: false })) => {
                let count = before.saturating_add(conversations);
                let num = Element::new("num", ns::INBOX_MIM).with_text(count.to_string());
                Ok(Payload::from_element(&Element::new("empty-bin", ns::INBOX_MIM).with_child(num)))
            }
            Ok(Err(_)) => Err(StanzaError::new(Condition::ItemNotFound)),
            Err(_) => Err(store_unavailable()),
        };
        cx.reply(pending.reply(answer));
    });
}
