//! Reading an archive.

use super::{failed, has_archive, xml};
use crate::error::StanzaError;
use crate::model::{ArchiveStart, ArchivedMessage};
use crate::ports::store::archive::{ArchivePage, ArchivePageAnswer, ArchivedMessages, ReadArchiveEnds};
use crate::ports::{Fault, Page};
use crate::session::hook::{IqAnswer, Request};
use crate::session::{BoundSession, Cx, Wait};
use crate::shard::Track;
use carillon_wire::stanza::Condition;

/// Messages of a page, and how many it has where the client does not say.
const PAGE_MAX: u16 = 250;
const PAGE: u16 = 50;

/// Bytes of a page: what a client that reads slowly has waiting.
const PAGE_BYTES: usize = 128 * 1024;

/// A client asks for a page. Its next request waits until it has that one.
pub(super) fn ask(
    session: &mut BoundSession,
    request: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    has_archive(session, cx)?;
    let query = xml::Query::of(request.payload)?;
    let (domain, local) = (session.domain, session.bare.local().unwrap_or_default().into());
    if !query.ids.is_empty() {
        if query.ids.len() > usize::from(PAGE_MAX) {
            let text = "too many messages at once";
            return Err(StanzaError::new(Condition::PolicyViolation).with_text(text));
        }
        let question = ArchivedMessages { domain, local, ids: query.ids.clone() };
        return Ok(IqAnswer::Wait(Wait::ask(question, move |session, _, answer, cx| {
            given(session, &query, answer, cx)
        })));
    }
    let page = Page { entries: query.page.max(PAGE, PAGE_MAX), bytes: PAGE_BYTES };
    let question = ArchivePage { domain, local, filter: query.filter.clone(), start: query.start, page };
    Ok(IqAnswer::Wait(Wait::ask(question, move |session, _, answer, cx| given(session, &query, answer, cx))))
}

/// The page is there: its messages, and then how it ends.
fn given(
    session: &mut BoundSession,
    query: &xml::Query,
    answer: Result<ArchivePageAnswer, Fault>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    let (messages, more, reached) = match answer.map_err(|_| failed())? {
        ArchivePageAnswer::Page { messages, more, reached } => (messages, more, reached),
        ArchivePageAnswer::NotFound => {
            let text = "a message that the query names is not in the archive";
            return Err(StanzaError::new(Condition::ItemNotFound).with_text(text));
        }
        ArchivePageAnswer::NoAccount => return Err(StanzaError::new(Condition::ItemNotFound)),
    };
    let send = |session: &mut BoundSession, message: &ArchivedMessage, cx: &mut Cx<'_>| {
        session.send(&xml::result(&session.bare, &session.jid, query, message), &Track::Nothing, cx);
    };
    if query.is_flipped {
        messages.iter().rev().for_each(|message| send(session, message, cx));
    } else {
        messages.iter().for_each(|message| send(session, message, cx));
    }
    let is_counted = !more && matches!(query.start, ArchiveStart::First | ArchiveStart::Last);
    let (first, last) = (messages.first().map(|m| m.id), messages.last().map(|m| m.id));
    // Who asks for the next page names the end of this one.
    let ends = match query.start.is_backward() {
        true => (reached.or(first), last.or(reached)),
        false => (first.or(reached), reached.or(last)),
    };
    let fin = xml::Fin { ends, count: is_counted.then_some(messages.len()), more };
    Ok(IqAnswer::Payload(fin.element()))
}

/// A client asks from when to when its archive goes.
pub(super) fn metadata(
    session: &mut BoundSession,
    _: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    has_archive(session, cx)?;
    let question =
        ReadArchiveEnds { domain: session.domain, local: session.bare.local().unwrap_or_default().into() };
    let wait = Wait::ask(question, |_, _, answer, _| {
        Ok(IqAnswer::Payload(xml::metadata(answer.map_err(|_| failed())?)))
    });
    Ok(IqAnswer::Wait(wait))
}
