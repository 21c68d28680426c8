//! What a client says about subscriptions to presence (RFC 6121 §3).

use super::xml;
use crate::error::StanzaError;
use crate::message::Letter;
use crate::model::{BothSides, SessionId, Settlement};
use crate::ports::store::roster::{ChangeSubscription, ChangeSubscriptionAnswer};
use crate::ports::{Fault, Question};
use crate::session::hook::Flow;
use crate::session::{BoundSession, Cx, Sessions};
use carillon_wire::jid::BareJid;
use carillon_wire::stanza::{Condition, Kind, Stanza};
use std::sync::Arc;

/// Bytes of what comes with a request that are kept until it is answered: more is not.
const REQUEST_BYTES_MAX: usize = 4096;

pub(super) fn submit(
    session: &mut BoundSession,
    stanza: &mut Stanza,
    cx: &mut Cx<'_>,
) -> Result<Flow, StanzaError> {
    let Kind::Presence(kind) = stanza.kind else { return Ok(Flow::Pass) };
    let Some(action) = xml::action(kind) else { return Ok(Flow::Pass) };
    let Some(to) = &stanza.to else {
        return Err(StanzaError::new(Condition::BadRequest)
            .with_text("a subscription is somebody's: 'to' is missing"));
    };
    let contact = to.bare();
    // An account's own sessions see each other anyway.
    if contact.as_str() == session.bare.as_str() {
        return Ok(Flow::Taken);
    }
    let other = cx.domain_of(&contact.to_jid()).ok_or(StanzaError::new(Condition::RemoteServerNotFound))?.id;
    let request = stanza.payload.bytes();
    let request = if request.len() <= REQUEST_BYTES_MAX { request.clone() } else { Default::default() };
    let settlement = cx.settlement_of(session, stanza);
    let question = ChangeSubscription {
        domain: session.domain,
        local: session.bare.local().unwrap_or_default().into(),
        contact: contact.clone(),
        other,
        action,
        request,
        bounds: cx.shard.settings.limits.roster,
    };
    let asked = Asked {
        account: session.bare.clone(),
        contact,
        session: session.id,
        stanza: stanza.clone(),
        settlement,
    };
    cx.ask(question, move |answer, sessions, cx| answered(&asked, answer, sessions, cx));
    Ok(Flow::Taken)
}

/// What was asked for.
struct Asked {
    account: BareJid,
    contact: BareJid,
    session: SessionId,
    stanza: Stanza,
    settlement: Option<Settlement>,
}

fn answered(
    asked: &Asked,
    answer: Result<<ChangeSubscription as Question>::Answer, Fault>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    let refusal = match answer {
        Ok(ChangeSubscriptionAnswer::Changed(both)) => {
            tell(*both, cx);
            None
        }
        Ok(ChangeSubscriptionAnswer::Full) => Some(full()),
        Ok(ChangeSubscriptionAnswer::NoAccount) => Some(StanzaError::new(Condition::ItemNotFound)),
        Err(fault) => Some(failed(fault, [&asked.account, &asked.contact], cx)),
    };
    if let Some(error) = refusal
        && let Some(session) = sessions.bound(asked.session)
    {
        session.refuse(&asked.stanza, &error, cx);
    }
    cx.settle(asked.settlement);
}

/// Tells both homes what changed. The other is told first, so that it knows of the subscription before the presence that follows.
pub(super) fn tell(both: BothSides, cx: &mut Cx<'_>) {
    for (change, is_own) in [(both.other, false), (both.own, true)] {
        if let Some(change) = change {
            let letter = Letter::RosterChanged { change: Arc::new(change), is_own };
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
