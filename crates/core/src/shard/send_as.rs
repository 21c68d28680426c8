//! Stanzas that somebody outside has an account send, and who waits to hear what became of them.

use crate::command::ReplyTo;
use crate::model::{Place, SessionId, Settlement};
use carillon_wire::jid::Jid;
use carillon_wire::stanza::{Kind, MessageType, Stanza};
use std::collections::VecDeque;

/// Who is waiting. Oldest first.
#[derive(Debug)]
pub struct SendAs {
    waiting: VecDeque<AwaitedStanza>,
    /// The number of the last one.
    last: u32,
}

/// A stanza of which somebody wants to know what becomes of it.
#[derive(Debug)]
struct AwaitedStanza {
    number: u32,
    reply: ReplyTo,
    /// Where a message goes, and its id: an error that comes from there is its.
    message: Option<(Jid, Box<str>)>,
}

/// How many wait at most: who waits longest is not told any more.
const WAITING_MAX: usize = 4096;

/// Stands for a session in the settlement of such a message. No session has it: their slots are those of connections.
const NOBODY: SessionId = SessionId { slot: u32::MAX, generation: u32::MAX };

impl SendAs {
    /// Nobody waits. Numbers go on from `last`, which is random: settlements of an earlier process, which arrive with sessions of it, match none of this one.
    pub(crate) fn new(last: u32) -> SendAs {
        SendAs { waiting: VecDeque::new(), last }
    }

    /// Somebody waits for what becomes of this stanza; its number. The second one is told that it is not waited for any longer, if there is one.
    pub(crate) fn wait(&mut self, stanza: &Stanza, reply: ReplyTo) -> (u32, Option<ReplyTo>) {
        let forgotten = if self.waiting.len() < WAITING_MAX { None } else { self.waiting.pop_front() };
        self.last = self.last.wrapping_add(1);
        let is_message = matches!(stanza.kind, Kind::Message(_));
        let message = stanza.to.clone().zip(stanza.id.clone()).filter(|_| is_message);
        self.waiting.push_back(AwaitedStanza { number: self.last, reply, message });
        (self.last, forgotten.map(|waiting| waiting.reply))
    }

    /// How its recipient's home says that a message is settled.
    pub(crate) fn settlement(place: Place, number: u32) -> Settlement {
        Settlement { place, session: NOBODY, number }
    }

    /// Something is settled: who waits for it.
    pub(crate) fn settled(&mut self, settled: &Settlement) -> Option<ReplyTo> {
        if settled.session == NOBODY { self.take(settled.number) } else { None }
    }

    /// Who waits for the stanza with this number.
    pub(crate) fn take(&mut self, number: u32) -> Option<ReplyTo> {
        let place = self.waiting.iter().position(|waiting| waiting.number == number)?;
        self.waiting.remove(place).map(|waiting| waiting.reply)
    }

    /// The server has sent an account this: who waits for it, if it says that a message of theirs was refused.
    pub(crate) fn refused(&mut self, reply: &Stanza) -> Option<ReplyTo> {
        if self.waiting.is_empty() || reply.kind != Kind::Message(MessageType::Error) {
            return None;
        }
        let (from, id) = reply.from.as_ref().zip(reply.id.as_deref())?;
        let is_it = |waiting: &AwaitedStanza| {
            waiting.message.as_ref().is_some_and(|(to, of)| to == from && **of == *id)
        };
        let place = self.waiting.iter().position(is_it)?;
        self.waiting.remove(place).map(|waiting| waiting.reply)
    }
}
