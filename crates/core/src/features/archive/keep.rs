//! Keeping messages, before they are delivered.

use super::xml;
use crate::error::StanzaError;
use crate::error::store_unavailable;
use crate::model::{ArchiveId, ArchiveSide, Settlement};
use crate::ports::Fault;
use crate::ports::store::archive::{KeepMessage, KeepMessageAnswer};
use crate::route;
use crate::session::hook::{Arrival, Held};
use crate::session::mam;
use crate::session::{Cx, Sessions};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, Stanza};
use carillon_wire::xml::Element;

/// A stanza has come to the home of its account. It passes unless it has to be kept first, or what is before it.
pub(super) fn arrived(stanza: Stanza, settlement: Option<Settlement>, cx: &mut Cx<'_>) -> Arrival {
    let Some(account) = stanza.to.as_ref().map(Jid::bare) else { return Arrival::Passes(stanza, settlement) };
    let question = question(&stanza, cx);
    if question.is_none() && !cx.features.archive.holds(account.as_str()) {
        return Arrival::Passes(stanza, settlement);
    }
    if !cx.features.archive.has_room(account.as_str(), stanza.payload.bytes().len()) {
        let error = StanzaError::new(Condition::ResourceConstraint)
            .with_text("the store is too slow for what is sent to this account; try again later");
        refuse(&stanza, settlement, &error, cx);
        return Arrival::Refused;
    }
    let number = cx.features.archive.hold(account.as_str(), stanza, settlement, question.is_none());
    if let Some(question) = question {
        cx.ask(question, move |answer, sessions, cx| kept(&account, number, answer, sessions, cx));
    }
    Arrival::Held(Held::Archiving)
}

/// The write that keeps a message; none where nobody's archive is to have it.
fn question(stanza: &Stanza, cx: &Cx<'_>) -> Option<KeepMessage> {
    let side = |account: &Jid, peer: &Jid| {
        let domain = cx.shard.domains.named(account.domain()).filter(|domain| domain.policy.archive)?;
        Some(ArchiveSide { domain: domain.id, local: account.local()?.into(), peer: peer.clone() })
    };
    let (from, to) = (stanza.from.as_ref()?, stanza.to.as_ref()?);
    let (sender, recipient) = (side(from, to), side(to, from));
    if (sender.is_none() && recipient.is_none()) || !xml::is_kept(stanza) {
        return None;
    }
    Some(KeepMessage {
        sender,
        recipient,
        received: cx.now.unix,
        stanza: xml::write(stanza),
        has_contents: mam::has_contents(stanza),
        displayed: mam::displayed(stanza),
    })
}

/// The store has answered: the message is delivered, with what waited for it.
fn kept(
    account: &BareJid,
    number: u64,
    answer: Result<KeepMessageAnswer, Fault>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    match answer {
        Ok(KeepMessageAnswer::Kept { id, recipient, .. }) => {
            cx.features.archive.ready(account.as_str(), number, |stanza| {
                if recipient {
                    stamp(stanza, account, id);
                }
            });
        }
        // Who is not there is found by routing.
        Ok(KeepMessageAnswer::NotKept) => cx.features.archive.ready(account.as_str(), number, |_| {}),
        Err(_) => {
            if let Some((stanza, settlement)) = cx.features.archive.take(account.as_str(), number) {
                refuse(&stanza, settlement, &store_unavailable(), cx);
            }
        }
    }
    while let Some((stanza, settlement)) = cx.features.archive.next(account.as_str()) {
        route::stanza(&stanza, settlement, sessions, cx);
    }
}

/// The id under which the recipient finds it in the archive (XEP-0313 §4.1).
fn stamp(stanza: &mut Stanza, account: &BareJid, id: ArchiveId) {
    let id = Element::new("stanza-id", ns::STANZA_ID)
        .with_attr("id", id.to_string())
        .with_attr("by", account.as_str());
    stanza.payload.push_element(&id);
}

fn refuse(stanza: &Stanza, settlement: Option<Settlement>, error: &StanzaError, cx: &mut Cx<'_>) {
    if let Some(reply) = stanza.error_reply(error) {
        cx.reply(reply);
    }
    cx.settle(settlement);
}
