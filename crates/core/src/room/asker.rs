//! Who asked a room for something, and how they are told what became of it.

use super::told::count_refusal;
use crate::command::{Outcome, ReplyTo, RoomOutcome, RoomRefusal};
use crate::effect::Effect;
use crate::error::StanzaError;
use crate::message::ShardMessage;
use crate::model::Settlement;
use crate::session::Cx;
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::{Kind, Stanza};

/// Who asked for something, and is told what becomes of it.
#[derive(Debug)]
pub(super) enum Asker {
    /// A client, by a stanza. A request is answered; a message is settled.
    Client { stanza: Box<Stanza>, settlement: Option<Settlement> },
    /// A command.
    Command(ReplyTo),
}

impl Asker {
    /// A client whose stanza nobody waits for to be settled.
    pub(super) fn client(stanza: Box<Stanza>) -> Asker {
        Asker::Client { stanza, settlement: None }
    }

    /// It was done.
    pub(super) fn done(self, outcome: RoomOutcome, cx: &mut Cx<'_>) {
        match self {
            Asker::Client { stanza, settlement } => {
                if let Kind::Iq(_) = stanza.kind {
                    reply(stanza.result_reply(), cx);
                }
                cx.settle(settlement);
            }
            Asker::Command(to) => {
                cx.out.push(Effect::Reply { to, outcome: Outcome::Room(Ok(outcome)) });
            }
        }
    }

    /// The account that asked, unless it was a command.
    pub(super) fn account(&self) -> Option<BareJid> {
        match self {
            Asker::Client { stanza, .. } => stanza.from.as_ref().map(Jid::bare),
            Asker::Command(_) => None,
        }
    }

    /// The id of the stanza.
    pub(super) fn id(&self) -> Option<Box<str>> {
        match self {
            Asker::Client { stanza, .. } => stanza.id.clone(),
            Asker::Command(_) => None,
        }
    }

    /// It was not done: a client is told this error, others that refusal.
    pub(super) fn refused_by(self, error: &StanzaError, refusal: RoomRefusal, cx: &mut Cx<'_>) {
        match self {
            Asker::Client { stanza, settlement } => {
                refuse(&stanza, error, cx);
                cx.settle(settlement);
            }
            Asker::Command(_) => self.refused(refusal, cx),
        }
    }

    /// It was not done.
    pub(super) fn refused(self, refusal: RoomRefusal, cx: &mut Cx<'_>) {
        match self {
            Asker::Client { stanza, settlement } => {
                refuse(&stanza, &refusal.into(), cx);
                cx.settle(settlement);
            }
            Asker::Command(to) => cx.out.push(Effect::Reply { to, outcome: refusal.outcome() }),
        }
    }
}

/// Answers a stanza with an error.
pub(super) fn refuse(stanza: &Stanza, error: &StanzaError, cx: &mut Cx<'_>) {
    if let Some(answer) = stanza.error_reply(error) {
        count_refusal(error, cx);
        reply(answer, cx);
    }
}

/// Answers a client, in order with what it is told of the room.
pub(super) fn reply(answer: Stanza, cx: &mut Cx<'_>) {
    let sender = answer.from.as_ref().zip(answer.to.as_ref());
    match sender.and_then(|(room, client)| cx.shard.claims.sender(room.bare(), client.bare())) {
        Some(place) => cx.post(place, ShardMessage::Reply { stanza: answer }),
        None => cx.reply(answer),
    }
}
