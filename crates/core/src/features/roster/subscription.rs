//! What a client says about subscriptions to presence (RFC 6121 §3).

use super::{announced, xml};
use crate::error::StanzaError;
use crate::message::{Letter, Requester, RosterCause};
use crate::model::{BothSides, DomainId, Settlement, SubscriptionAction};
use crate::ports::store::roster::{ChangeSubscription, ChangeSubscriptionAnswer};
use crate::ports::{Fault, Question};
use crate::session::home::{self, AtHome};
use crate::session::hook::Flow;
use crate::session::{BoundSession, Cx, Sessions};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::{Condition, Kind, PresenceType, Stanza};
use std::sync::Arc;

/// Bytes of what comes with a request that are kept until it is answered: more is not.
const REQUEST_BYTES_MAX: usize = 4096;

/// One of an account's sessions says something.
pub(super) fn submit(
    session: &mut BoundSession,
    stanza: &mut Stanza,
    cx: &mut Cx<'_>,
) -> Result<Flow, StanzaError> {
    if let (Kind::Presence(PresenceType::Probe), Some(to)) = (stanza.kind, &stanza.to)
        && to.bare_str() != session.bare.as_str()
    {
        announced::ask(session, to, cx);
        return Ok(Flow::Taken);
    }
    let Some(action) = action(stanza) else { return Ok(Flow::Pass) };
    let contact = contact(stanza)?;
    // An account's own sessions see each other anyway.
    if contact.as_str() == session.bare.as_str() {
        return Ok(Flow::Taken);
    }
    let settlement = cx.settlement_of(session, stanza);
    let (requester, account) = (Requester::Session(session.id), session.bare.clone());
    let asked = Asked { account, contact, requester, stanza: stanza.clone(), settlement };
    ask(asked, session.domain, action, cx)?;
    Ok(Flow::Taken)
}

/// Somebody outside has the account say something.
pub(super) fn asked(
    requester: Requester,
    stanza: Box<Stanza>,
    home: &AtHome<'_>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) -> Option<Letter> {
    let Some(action) = action(&stanza) else { return Some(Letter::Request { requester, stanza }) };
    let contact = contact(&stanza).and_then(|contact| match contact == *home.account {
        false => Ok(contact),
        true => Err(StanzaError::new(Condition::NotAllowed).with_text("an account is no contact of its own")),
    });
    let asking = contact.and_then(|contact| {
        let (account, stanza) = (home.account.clone(), (*stanza).clone());
        ask(Asked { account, contact, requester, stanza, settlement: None }, home.domain, action, cx)
    });
    if let Err(error) = asking {
        home::reply(requester, &stanza, Err(error), sessions, cx);
    }
    None
}

fn action(stanza: &Stanza) -> Option<SubscriptionAction> {
    if let Kind::Presence(kind) = stanza.kind { xml::action(kind) } else { None }
}

fn contact(stanza: &Stanza) -> Result<BareJid, StanzaError> {
    let missing =
        || StanzaError::new(Condition::BadRequest).with_text("a subscription is somebody's: 'to' is missing");
    stanza.to.as_ref().map(Jid::bare).ok_or_else(missing)
}

/// What was asked for.
struct Asked {
    account: BareJid,
    contact: BareJid,
    requester: Requester,
    stanza: Stanza,
    settlement: Option<Settlement>,
}

/// Has the store change both sides.
fn ask(
    asked: Asked,
    domain: DomainId,
    action: SubscriptionAction,
    cx: &mut Cx<'_>,
) -> Result<(), StanzaError> {
    let contact = asked.contact.clone();
    let other = cx.domain_of(&contact.to_jid()).ok_or(StanzaError::new(Condition::RemoteServerNotFound))?.id;
    let request = asked.stanza.payload.bytes();
    let request = if request.len() <= REQUEST_BYTES_MAX { request.clone() } else { Default::default() };
    let local = asked.account.local().unwrap_or_default().into();
    let bounds = cx.shard.settings.limits.roster;
    let question = ChangeSubscription { domain, local, contact, other, action, request, bounds };
    cx.ask(question, move |answer, sessions, cx| answered(&asked, answer, sessions, cx));
    Ok(())
}

fn answered(
    asked: &Asked,
    answer: Result<<ChangeSubscription as Question>::Answer, Fault>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    let result = match answer {
        Ok(ChangeSubscriptionAnswer::Changed(both)) => {
            tell(*both, cx);
            Ok(())
        }
        Ok(ChangeSubscriptionAnswer::Full) => Err(full()),
        Ok(ChangeSubscriptionAnswer::NoAccount) => Err(StanzaError::new(Condition::ItemNotFound)),
        Err(fault) => Err(failed(fault, [&asked.account, &asked.contact], cx)),
    };
    home::reply(asked.requester, &asked.stanza, result, sessions, cx);
    cx.settle(asked.settlement);
}

/// Tells both homes what changed. The other is told first, so that it knows of the subscription before the presence that follows.
pub(super) fn tell(both: BothSides, cx: &mut Cx<'_>) {
    for (change, cause) in [(both.other, RosterCause::Contact), (both.own, RosterCause::Own)] {
        if let Some(change) = change {
            let letter = Letter::RosterChanged { change: Arc::new(change), cause };
            if let Some(account) = letter_account(&letter) {
                cx.letter(account, letter);
            }
        }
    }
}

fn letter_account(letter: &Letter) -> Option<BareJid> {
    if let Letter::RosterChanged { change, .. } = letter { Some(change.account.clone()) } else { None }
}

/// The store could not do it, or may have.
pub(super) fn failed<const N: usize>(fault: Fault, accounts: [&BareJid; N], cx: &mut Cx<'_>) -> StanzaError {
    if fault == Fault::Unknown {
        accounts.into_iter().for_each(|account| cx.letter(account.clone(), Letter::Doubt));
    }
    StanzaError::new(Condition::InternalServerError).with_text("the store cannot answer; try again later")
}

pub(super) fn full() -> StanzaError {
    StanzaError::new(Condition::ResourceConstraint).with_text("your roster is full")
}
