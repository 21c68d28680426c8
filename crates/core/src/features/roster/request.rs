//! What clients ask of the roster (RFC 6121 §2.2–§2.5), at the account's home.

use super::subscription::{failed, full, tell};
use super::xml::{self, Set};
use crate::error::StanzaError;
use crate::message::Requester;
use crate::model::BothSides;
use crate::ports::Question;
use crate::ports::store::roster::{PutContact, PutContactAnswer, RemoveContact, RemoveContactAnswer};
use crate::session::home;
use crate::session::homes::AtHome;
use crate::session::{Cx, Sessions};
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, Stanza};

/// The roster; nothing if it is the one that the client knows (RFC 6121 §2.6.3).
pub(super) fn get(
    requester: Requester,
    request: &Stanza,
    home: &AtHome<'_>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    if !home::is_awaited(requester, sessions) {
        return;
    }
    if let Requester::Session(session) = requester
        && let Some(session) = sessions.bound(session)
    {
        session.state.roster.is_interested = true;
        cx.homes.shown(home.account, session.id, home.generation);
    }
    let roster = &home.record.roster;
    let query = request.payload.find("query", ns::ROSTER).map(|query| query.element());
    let version = query.as_ref().and_then(|query| query.attr("ver"));
    let is_known = version == Some(roster.version().to_string().as_str());
    let mut reply = request.result_reply();
    if !is_known {
        reply.payload.push_element(&xml::roster(roster));
    }
    home::answer(requester, reply, sessions, cx);
}

/// Puts or removes a contact.
pub(super) fn set(
    requester: Requester,
    request: &Stanza,
    home: &AtHome<'_>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    if let Err(error) = change(requester, request, home, cx) {
        home::reply(requester, request, Err(error), sessions, cx);
    }
}

fn change(
    requester: Requester,
    stanza: &Stanza,
    home: &AtHome<'_>,
    cx: &mut Cx<'_>,
) -> Result<(), StanzaError> {
    let query = stanza.payload.find("query", ns::ROSTER).ok_or(StanzaError::new(Condition::BadRequest))?;
    let set = xml::set(&query.element())?;
    let (Set::Put { contact, .. } | Set::Remove(contact)) = &set;
    if contact == home.account {
        return Err(StanzaError::new(Condition::NotAllowed).with_text("an account cannot be its own contact"));
    }
    let account = home.account.clone();
    let (domain, local) = (home.domain, Box::<str>::from(home.local));
    let stanza = stanza.clone();
    match set {
        Set::Put { contact, name, groups } => {
            let bounds = cx.shard.settings.limits.roster;
            let question = PutContact { domain, local, contact, name, groups, stand: None, bounds };
            cx.ask(question, move |answer, sessions, cx| {
                let result = match answer {
                    Ok(PutContactAnswer::Put(change)) => {
                        done(BothSides { own: Some(*change), ..BothSides::default() }, cx)
                    }
                    Ok(PutContactAnswer::Full) => Err(full()),
                    Ok(PutContactAnswer::NoAccount) => Err(StanzaError::new(Condition::ItemNotFound)),
                    Err(fault) => Err(failed(fault, [&account], cx)),
                };
                home::reply(requester, &stanza, result, sessions, cx);
            });
        }
        Set::Remove(contact) => remove(requester, stanza, account, contact, home, cx),
    }
    Ok(())
}

/// Removes a contact, and the subscriptions with it (RFC 6121 §2.5).
fn remove(
    requester: Requester,
    stanza: Stanza,
    account: BareJid,
    contact: BareJid,
    home: &AtHome<'_>,
    cx: &mut Cx<'_>,
) {
    let other = cx.domain_of(&contact.to_jid()).map(|domain| domain.id);
    let local = home.local.into();
    let question = RemoveContact { domain: home.domain, local, contact: contact.clone(), other };
    cx.ask(question, move |answer: Result<<RemoveContact as Question>::Answer, _>, sessions, cx| {
        let result = match answer {
            Ok(RemoveContactAnswer::Removed(both)) => done(*both, cx),
            Ok(RemoveContactAnswer::Missing | RemoveContactAnswer::NoAccount) => {
                Err(StanzaError::new(Condition::ItemNotFound))
            }
            Err(fault) => Err(failed(fault, [&account, &contact], cx)),
        };
        home::reply(requester, &stanza, result, sessions, cx);
    });
}

fn done(both: BothSides, cx: &mut Cx<'_>) -> Result<(), StanzaError> {
    tell(both, cx);
    Ok(())
}
