//! What an account wants in its archive (XEP-0441).

use super::{has_archive, xml};
use crate::error::StanzaError;
use crate::error::store_unavailable;
use crate::ports::store::archive::{ReadArchivePreferences, SetArchivePreferences};
use crate::session::hook::{IqAnswer, Request};
use crate::session::{BoundSession, Cx, Wait};
use carillon_wire::stanza::{Condition, Payload};

pub(super) fn get(
    session: &mut BoundSession,
    _: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    has_archive(session, cx)?;
    let question = ReadArchivePreferences { domain: session.domain, local: session.bare.local().into() };
    let wait = Wait::ask(question, |_, _, answer, _| {
        let preferences = answer.map_err(|_| store_unavailable())?.unwrap_or_default();
        Ok(IqAnswer::Payload(xml::preferences(&preferences)))
    });
    Ok(IqAnswer::Wait(wait))
}

pub(super) fn set(
    session: &mut BoundSession,
    request: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    has_archive(session, cx)?;
    let preferences = xml::read_preferences(request.payload)?;
    let bounds = cx.shard.settings.limits.block_list;
    let rules = preferences.always.len() + preferences.never.len();
    if rules > bounds.addresses as usize || preferences.bytes() as u64 > bounds.bytes {
        return Err(StanzaError::new(Condition::ResourceConstraint).with_text("these are too many rules"));
    }
    let (domain, local) = (session.domain, session.bare.local().into());
    let question = SetArchivePreferences { domain, local, preferences: preferences.clone() };
    // A change goes on when the session ends.
    let pending = request.pending(session);
    cx.ask(question, move |answer, _, cx| {
        let answer = match answer {
            Ok(Ok(())) => Ok(xml::preferences(&preferences)),
            Ok(Err(_)) => Err(StanzaError::new(Condition::ItemNotFound)),
            Err(_) => Err(store_unavailable()),
        };
        cx.reply(pending.reply(answer.map(|prefs| Payload::from_element(&prefs))));
    });
    Ok(IqAnswer::Later)
}
