//! Reading an archive.

use super::has_archive;
use crate::error::StanzaError;
use crate::error::store_unavailable;
use crate::model::ArchivedMessage;
use crate::ports::Fault;
use crate::ports::store::archive::{ArchivePage, ArchivePageAnswer, ArchivedMessages, ReadArchiveEnds};
use crate::session::hook::{IqAnswer, Request};
use crate::session::mam::{self, Fin, Query};
use crate::session::{BoundSession, Cx, Wait};
use crate::shard::Track;
use carillon_wire::stanza::Condition;

/// A client asks for a page. Its next request waits until it has that one.
pub(super) fn ask(
    session: &mut BoundSession,
    request: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    has_archive(session, cx)?;
    let query = Query::of(request.payload)?;
    let (domain, local) = (session.domain, session.bare.local().into());
    if !query.ids.is_empty() {
        let question = ArchivedMessages { domain, local, ids: query.ids.clone() };
        return Ok(IqAnswer::Wait(Wait::ask(question, move |session, _, answer, cx| {
            given(session, &query, answer, cx)
        })));
    }
    let (filter, start, page) = (query.filter.clone(), query.start, query.bounds());
    let question = ArchivePage { domain, local, filter, start, page };
    Ok(IqAnswer::Wait(Wait::ask(question, move |session, _, answer, cx| given(session, &query, answer, cx))))
}

/// The page is there: its messages, and then how it ends.
fn given(
    session: &mut BoundSession,
    query: &Query,
    answer: Result<ArchivePageAnswer, Fault>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    let (messages, more, reached) = match answer.map_err(|_| store_unavailable())? {
        ArchivePageAnswer::Page { messages, more, reached } => (messages, more, reached),
        ArchivePageAnswer::NotFound => {
            let text = "a message that the query names is not in the archive";
            return Err(StanzaError::new(Condition::ItemNotFound).with_text(text));
        }
        ArchivePageAnswer::NoAccount => return Err(StanzaError::new(Condition::ItemNotFound)),
    };
    let send = |session: &mut BoundSession, message: &ArchivedMessage, cx: &mut Cx<'_>| {
        session.send(&mam::result(&session.bare, &session.jid, query, message), &Track::Nothing, cx);
    };
    if query.is_flipped {
        messages.iter().rev().for_each(|message| send(session, message, cx));
    } else {
        messages.iter().for_each(|message| send(session, message, cx));
    }
    let fin = Fin::of(query, &messages, more, reached);
    Ok(IqAnswer::Payload(fin.element()))
}

/// A client asks from when to when its archive goes.
pub(super) fn metadata(
    session: &mut BoundSession,
    _: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    has_archive(session, cx)?;
    let question = ReadArchiveEnds { domain: session.domain, local: session.bare.local().into() };
    let wait = Wait::ask(question, |_, _, answer, _| {
        Ok(IqAnswer::Payload(mam::metadata(answer.map_err(|_| store_unavailable())?)))
    });
    Ok(IqAnswer::Wait(wait))
}
