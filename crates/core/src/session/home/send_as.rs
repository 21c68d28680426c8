//! Stanzas that somebody outside has an account send: they go the way of those that its sessions send, as far as that does not depend on a client.

use crate::command::{Outcome, ReplyTo};
use crate::effect::Effect;
use crate::feature_state::PerAccount;
use crate::message::{AccountMessage, Requester, ShardMessage};
use crate::model::StanzaKind;
use crate::session::hook::{Denial, Direction};
use crate::session::pipeline::Pipeline;
use crate::session::{Cx, Sessions};
use crate::shard::SendAs;
use carillon_wire::jid::BareJid;
use carillon_wire::stanza::{Condition, Kind, Stanza, StanzaError};

/// Somebody has an account whose home this is send a stanza.
pub(crate) fn act(
    account: &BareJid,
    mut stanza: Stanza,
    reply: ReplyTo,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    stanza.from = Some(account.to_jid());
    if stanza.id.is_none() {
        stanza.id = Some(cx.shard.random.token().into());
    }
    let (number, forgotten) = cx.shard.send_as.wait(&stanza, reply);
    if let Some(to) = forgotten {
        cx.out.push(Effect::Reply { to, outcome: Outcome::Unknown });
    }
    let is_message = matches!(stanza.kind, Kind::Message(_));
    if is_message && !cx.pipeline.filters() {
        return send(account, number, stanza, sessions, cx);
    }
    let stanza = Box::new(stanza);
    let message = match is_message {
        true => AccountMessage::Sent { number, stanza },
        false => AccountMessage::Request { requester: Requester::Command(number), stanza },
    };
    super::receive(account, message, sessions, cx);
}

/// Why an account does not send what somebody has it send, if it does not.
pub(super) fn denial(
    account: &BareJid,
    message: &AccountMessage,
    record: &PerAccount,
    pipeline: &Pipeline,
) -> Option<Denial> {
    let (AccountMessage::Sent { stanza, .. }
    | AccountMessage::Request { requester: Requester::Command(_), stanza }) = message
    else {
        return None;
    };
    let to = stanza.to.as_ref().filter(|to| to.bare_str() != account.as_str())?;
    pipeline.denies(record, (Direction::Out, StanzaKind::sent(stanza)), to, None)
}

/// Tells whoever had it sent.
pub(super) fn deny(message: AccountMessage, denial: Denial, cx: &mut Cx<'_>) {
    let (AccountMessage::Sent { number, stanza }
    | AccountMessage::Request { requester: Requester::Command(number), stanza }) = message
    else {
        return;
    };
    if let Some(refusal) = stanza.error_reply(&(denial.0)()) {
        tell(number, Outcome::Answered(Box::new(refusal)), cx);
    }
}

/// Routes a message; whoever had it sent is told when it is settled.
pub(super) fn send(account: &BareJid, number: u32, mut stanza: Stanza, sessions: &Sessions, cx: &mut Cx<'_>) {
    let Some(to) = stanza.to.clone().filter(|to| cx.reachable(account.domain(), to).is_some()) else {
        let error = StanzaError::new(Condition::RemoteServerNotFound);
        let refusal = stanza.error_reply(&error).unwrap_or(stanza);
        return tell(number, Outcome::Answered(Box::new(refusal)), cx);
    };
    if let Some(screen) = cx.pipeline.screen {
        match screen(account, &mut stanza, false, cx) {
            Ok(None) => {}
            Ok(Some(how)) => {
                cx.shard.counters.stanzas_taken.count(how.name());
                return tell(number, Outcome::Count(0), cx);
            }
            Err(error) => {
                let refusal = stanza.error_reply(&error).unwrap_or(stanza);
                return tell(number, Outcome::Answered(Box::new(refusal)), cx);
            }
        }
    }
    let has_session = sessions.has_any(account.as_str());
    for hook in &cx.pipeline.acted {
        hook(account, &mut stanza, has_session, cx);
    }
    let settlement = Some(SendAs::settlement(cx.shard.place, number));
    let at = cx.shard.directory.account(to.bare_str());
    cx.post(at, ShardMessage::Stanza { stanza, settlement });
}

/// A request was dealt with, and there is nothing to be said.
pub(super) fn done(requester: Requester, cx: &mut Cx<'_>) {
    if let Requester::Command(number) = requester {
        tell(number, Outcome::Count(0), cx);
    }
}

/// Tells whoever waits for the stanza with this number.
pub(super) fn tell(number: u32, outcome: Outcome, cx: &mut Cx<'_>) {
    if let Some(to) = cx.shard.send_as.take(number) {
        cx.out.push(Effect::Reply { to, outcome });
    }
}
