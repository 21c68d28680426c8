//! What a client says about subscriptions to presence (RFC 6121 §3).

use super::{announced, xml};
use crate::error::{StanzaError, store_unavailable};
use crate::message::{AccountMessage, Requester, RosterCause};
use crate::model::{BothSides, DomainId, REQUEST_BYTES_MAX, SubscriptionAction};
use crate::ports::store::roster::{ChangeSubscription, ChangeSubscriptionAnswer};
use crate::ports::{Fault, Question};
use crate::session::home;
use crate::session::homes::AtHome;
use crate::session::hook::{Flow, Taken};
use crate::session::{BoundSession, Cx, Sessions, Wait};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::{Condition, Kind, PresenceType, Stanza};
use std::sync::Arc;

/// One of an account's sessions says something: until the store has done it, the session says nothing more. So those whose rosters it changes
/// are told of few changes at once, and of few per minute between the two.
pub(super) fn submit(
    session: &mut BoundSession,
    stanza: &mut Stanza,
    cx: &mut Cx<'_>,
) -> Result<Flow, StanzaError> {
    if let (Kind::Presence(PresenceType::Probe), Some(to)) = (stanza.kind, &stanza.to)
        && to.bare_str() != session.bare.as_str()
    {
        announced::ask(session, to, cx);
        return Ok(Flow::Taken(Taken::Subscription));
    }
    let Some(action) = action(stanza) else { return Ok(Flow::Pass) };
    let contact = contact(stanza)?;
    // An account's own sessions see each other anyway.
    if contact.as_str() == session.bare.as_str() {
        return Ok(Flow::Taken(Taken::Ignored));
    }
    let account = session.bare.to_bare();
    let question = question(&account, (session.domain, session.bare.local()), &contact, action, stanza, cx)?;
    if !cx.features.roster.admits(&account, &contact, cx.now.mono) {
        let text = "you change this subscription too often; try again in some seconds";
        return Err(StanzaError::new(Condition::ResourceConstraint).with_text(text));
    }
    Ok(Flow::Wait(Wait::write(question, move |answer, cx| {
        answered(&account, &contact, answer, cx).map(|()| Flow::Taken(Taken::Subscription))
    })))
}

/// Somebody outside has the account say something.
pub(super) fn asked(
    requester: Requester,
    stanza: Box<Stanza>,
    home: &AtHome<'_>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) -> Option<AccountMessage> {
    let Some(action) = action(&stanza) else { return Some(AccountMessage::Request { requester, stanza }) };
    let contact = contact(&stanza).and_then(|contact| match contact == *home.account {
        false => Ok(contact),
        true => Err(StanzaError::new(Condition::NotAllowed).with_text("an account is no contact of its own")),
    });
    let asking = contact.and_then(|contact| {
        let account = home.account.clone();
        let question = question(&account, (home.domain, home.local), &contact, action, &stanza, cx)?;
        let stanza = stanza.clone();
        cx.ask(question, move |answer, sessions, cx| {
            let result = answered(&account, &contact, answer, cx);
            home::reply(requester, &stanza, result, sessions, cx);
        });
        Ok(())
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

/// Has the store change both sides.
fn question(
    account: &BareJid,
    (domain, local): (DomainId, &str),
    contact: &BareJid,
    action: SubscriptionAction,
    stanza: &Stanza,
    cx: &Cx<'_>,
) -> Result<ChangeSubscription, StanzaError> {
    let to = contact.to_jid();
    let other = match action {
        SubscriptionAction::Subscribe | SubscriptionAction::Subscribed => cx.reachable(account.domain(), &to),
        // To end one is always possible.
        SubscriptionAction::Unsubscribe | SubscriptionAction::Unsubscribed => cx.domain_of(&to),
    };
    let other = other.ok_or(StanzaError::new(Condition::RemoteServerNotFound))?.id;
    let request = stanza.payload.bytes();
    let request = if request.len() <= REQUEST_BYTES_MAX { request.clone() } else { Default::default() };
    let (local, contact) = (local.into(), contact.clone());
    let bounds = cx.shard.settings.limits.roster;
    let by_lists = cx.pipeline.session_list.is_some();
    Ok(ChangeSubscription { domain, local, contact, other, action, request, bounds, by_lists })
}

fn answered(
    account: &BareJid,
    contact: &BareJid,
    answer: Result<<ChangeSubscription as Question>::Answer, Fault>,
    cx: &mut Cx<'_>,
) -> Result<(), StanzaError> {
    match answer {
        Ok(ChangeSubscriptionAnswer::Changed(both)) => {
            tell(*both, cx);
            Ok(())
        }
        Ok(ChangeSubscriptionAnswer::Full) => Err(full()),
        Ok(ChangeSubscriptionAnswer::NoAccount) => Err(StanzaError::new(Condition::ItemNotFound)),
        Err(fault) => Err(failed(fault, [account, contact], cx)),
    }
}

/// Tells both homes what changed. The other is told first, so that it knows of the subscription before the presence that follows.
pub(super) fn tell(both: BothSides, cx: &mut Cx<'_>) {
    let other = [both.other, both.evicted].map(|change| (change, RosterCause::Contact));
    for (change, cause) in other.into_iter().chain([(both.own, RosterCause::Own)]) {
        if let Some(change) = change {
            let message = AccountMessage::RosterChanged { change: Arc::new(change), cause };
            if let Some(account) = account_of(&message) {
                cx.tell_account(account, message);
            }
        }
    }
}

fn account_of(message: &AccountMessage) -> Option<BareJid> {
    if let AccountMessage::RosterChanged { change, .. } = message {
        Some(change.account.clone())
    } else {
        None
    }
}

/// The store could not do it, or may have.
pub(super) fn failed<const N: usize>(fault: Fault, accounts: [&BareJid; N], cx: &mut Cx<'_>) -> StanzaError {
    if fault == Fault::Unknown {
        accounts.into_iter().for_each(|account| cx.tell_account(account.clone(), AccountMessage::Reload));
    }
    store_unavailable()
}

pub(super) fn full() -> StanzaError {
    StanzaError::new(Condition::ResourceConstraint).with_text("your roster is full")
}
