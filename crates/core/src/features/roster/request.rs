//! What clients ask of the roster (RFC 6121 §2.2–§2.5), at the account's home.

use super::subscription::{self, failed, full, tell};
use super::xml::{self, Set};
use crate::error::StanzaError;
use crate::message::{Letter, Requester};
use crate::model::BothSides;
use crate::ports::Question;
use crate::ports::store::roster::{PutContact, PutContactAnswer, RemoveContact, RemoveContactAnswer};
use crate::session::home::{self, AtHome};
use crate::session::{Cx, Sessions};
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Kind, Stanza};
use carillon_wire::xml::Element;

/// Answers a request about the roster, or gives it back because it is about something else.
pub(super) fn answer(
    requester: Requester,
    stanza: Box<Stanza>,
    home: &mut AtHome<'_>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) -> Option<Letter> {
    if let Kind::Presence(_) = stanza.kind {
        return subscription::asked(requester, stanza, home, sessions, cx);
    }
    let Some(query) = stanza.payload.find("query", ns::ROSTER).map(|query| query.element()) else {
        return Some(Letter::Request { requester, stanza });
    };
    match stanza.kind {
        Kind::Iq(IqType::Get) if !home::is_awaited(requester, sessions) => {}
        Kind::Iq(IqType::Get) => get(requester, &stanza, &query, home, sessions, cx),
        _ => {
            if let Err(error) = set(requester, &stanza, &query, home, cx) {
                home::reply(requester, &stanza, Err(error), sessions, cx);
            }
        }
    }
    None
}

/// The roster; nothing if it is the one that the client knows (RFC 6121 §2.6.3).
fn get(
    requester: Requester,
    stanza: &Stanza,
    query: &Element,
    home: &AtHome<'_>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    if let Requester::Session(session) = requester
        && let Some(session) = sessions.bound(session)
    {
        session.state.roster.is_interested = true;
        cx.homes.shown(home.account, session.id, home.generation);
    }
    let roster = &home.record.roster;
    let is_known = query.attr("ver") == Some(roster.version().to_string().as_str());
    let mut reply = stanza.result_reply();
    if !is_known {
        reply.payload.push_element(&xml::roster(roster));
    }
    home::answer(requester, reply, sessions, cx);
}

fn set(
    requester: Requester,
    stanza: &Stanza,
    query: &Element,
    home: &AtHome<'_>,
    cx: &mut Cx<'_>,
) -> Result<(), StanzaError> {
    let set = xml::set(query)?;
    let (Set::Put { contact, .. } | Set::Remove(contact)) = &set;
    if contact == home.account {
        return Err(StanzaError::new(Condition::NotAllowed).with_text("an account cannot be its own contact"));
    }
    let account = home.account.clone();
    let (domain, local) = (home.domain, Box::<str>::from(account.local().unwrap_or_default()));
    let stanza = stanza.clone();
    match set {
        Set::Put { contact, name, groups } => {
            let bounds = cx.shard.settings.limits.roster;
            let question = PutContact { domain, local, contact, name, groups, bounds };
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
    let local = account.local().unwrap_or_default().into();
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
