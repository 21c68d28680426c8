//! What is known of a session.

use super::inbound::Inbound;
use super::queue::{Entry, Queue};
use crate::form::{Form, Malformed, Reader, Writer};
use crate::model::{Mono, PubsubEvent, Settlement};
use crate::shard::{Addressee, Chat, Tracked};
use carillon_wire::stanza::{SharedStanza, Stanza};
use std::collections::VecDeque;
use std::sync::Arc;

/// The counts of a session whose client enabled stream management, and what it has not acknowledged.
#[derive(Debug, Default)]
pub struct StreamManagement {
    /// What was received since it was enabled.
    pub(crate) inbound: Inbound,
    /// What has to be acknowledged in time, because senders wait for it: all up to this number of sent stanzas, modulo 2^32.
    pub(crate) due: Option<u32>,
    /// What was sent since and is not acknowledged.
    pub(crate) queue: Queue<Sent>,
    /// What is noted in a cell in case a node dies; eight bytes where nothing is.
    pub(crate) noted: Option<Box<Noted>>,
}

// Whoever dies again while its client repeats what it sent has it handled once more.
crate::form! { struct StreamManagement { inbound, due, queue, noted: omitted(None) } }

/// What is noted of a session in a cell whose sessions are written down.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    /// Of a session that a dead node left: what it was there.
    pub(crate) origin: Option<Origin>,
    /// Who waited for messages that were acknowledged a moment ago: what is written of the session says so, too, as it may not have been written yet
    /// that their senders know.
    recent: VecDeque<(Settlement, Mono)>,
}

impl StreamManagement {
    /// A message was acknowledged whose sender is a session of this node.
    pub(crate) fn note_recent(&mut self, settlement: Settlement, now: Mono) {
        let recent = &mut self.noted.get_or_insert_default().recent;
        while recent.front().is_some_and(|(_, at)| now.since(*at) > RECENT_MS) {
            recent.pop_front();
        }
        recent.push_back((settlement, now));
    }

    /// Those that were noted a moment ago.
    pub(crate) fn recent(&mut self, now: Mono) -> Vec<Settlement> {
        let Some(noted) = &mut self.noted else { return Vec::new() };
        noted.recent.retain(|(_, at)| now.since(*at) <= RECENT_MS);
        let settlements = noted.recent.iter().map(|(settlement, _)| *settlement).collect();
        if noted.recent.is_empty() && noted.origin.is_none() {
            self.noted = None;
        }
        settlements
    }
}

/// How long that is: as long as it takes until what a sender learns is written, and once more.
const RECENT_MS: u64 = 2_000;

/// The name of a session at the node that died.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// Who waited for the stanzas of its client, but for their numbers.
    pub(crate) old: Settlement,
    /// The last stanza of the client that may be one that it repeats.
    pub(crate) last: u32,
}

/// A stanza sent and not yet acknowledged.
#[derive(Debug)]
pub(crate) enum Sent {
    /// It may be lost.
    Anything,
    /// It is routed again when the session ends, unless another session of the account has it.
    Chat(Box<(Stanza, Chat)>),
    /// A feature is told when it is acknowledged.
    Tracked(Tracked, u128),
    /// It is sent again when the session is resumed.
    Stanza(Box<Stanza>),
    /// It is sent again, too. All who are sent it share it.
    Event(Arc<PubsubEvent>),
    /// It is sent again, and a feature is told when it is acknowledged.
    TrackedStanza(Box<(Tracked, u128, Stanza)>),
    /// It is sent again, as [`Sent::Event`] is, with this address of the session.
    Shared(Arc<SharedStanza>, Addressee),
}

// What is shared came with this version: to those who read no newer one it is a stanza without `to`, which clients take as theirs.
const SHARED_SINCE: u16 = 5;

impl Form for Sent {
    fn write(&self, out: &mut Writer) {
        match self {
            Sent::Anything => out.tag(0),
            Sent::Chat(message) => {
                out.tag(1);
                message.write(out);
            }
            Sent::Tracked(kind, number) => {
                out.tag(2);
                kind.write(out);
                number.write(out);
            }
            Sent::Stanza(stanza) => {
                out.tag(3);
                stanza.write(out);
            }
            Sent::Event(event) => {
                out.tag(4);
                event.write(out);
            }
            Sent::TrackedStanza(tracked) => {
                out.tag(5);
                tracked.write(out);
            }
            Sent::Shared(stanza, _) if out.version() < SHARED_SINCE => {
                out.tag(3);
                Form::write(stanza.stanza(), out);
            }
            Sent::Shared(stanza, to) => {
                out.tag(6);
                stanza.write(out);
                to.write(out);
            }
        }
    }

    fn read(input: &mut Reader<'_>) -> Result<Sent, Malformed> {
        Ok(match input.tag()? {
            0 => Sent::Anything,
            1 => Sent::Chat(Form::read(input)?),
            2 => Sent::Tracked(Form::read(input)?, Form::read(input)?),
            3 => Sent::Stanza(Form::read(input)?),
            4 => Sent::Event(Form::read(input)?),
            5 => Sent::TrackedStanza(Form::read(input)?),
            6 => Sent::Shared(Form::read(input)?, Form::read(input)?),
            _ => return Err(input.unknown_tag("no variant of Sent has this number")),
        })
    }
}

impl Sent {
    /// Whether the sender of a message waits for its acknowledgement.
    pub(crate) fn is_settled_by_acknowledgement(&self) -> bool {
        matches!(self, Sent::Chat(message) if message.1.settlement.is_some())
    }
}

impl Entry for Sent {
    fn bytes(&self) -> usize {
        match self {
            Sent::Chat(message) => message.0.memory_bytes(),
            Sent::Stanza(stanza) => stanza.memory_bytes(),
            Sent::Event(event) => event.bytes(),
            Sent::Shared(stanza, _) => stanza.memory_bytes(),
            Sent::TrackedStanza(tracked) => tracked.2.memory_bytes(),
            Sent::Anything | Sent::Tracked(..) => 0,
        }
    }

    fn is_awaited(&self) -> bool {
        matches!(self, Sent::Chat(_) | Sent::Tracked(..) | Sent::TrackedStanza(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::decode;
    use crate::form::testing::{AT_ONCE, NOW_MS, proves};
    use crate::shard::Chat;
    use carillon_wire::stanza::MessageType;

    #[test]
    fn its_form() {
        let (mut state, chat) =
            (StreamManagement::default(), Stanza::message(MessageType::Chat).with_id("1"));
        proves("stream management, begun", &state);
        state.inbound.handled();
        let number = state.inbound.begin(&chat);
        state.inbound.handled();
        state.inbound.request();
        state.due = Some(number);
        let tracked = (Tracked(*b"noti"), 1 << 100, chat.clone());
        let entries = [
            Sent::Anything,
            Sent::Chat(Box::new((chat.clone(), Chat::default()))),
            Sent::Tracked(Tracked(*b"offl"), 7),
            Sent::Stanza(Box::new(chat)),
            Sent::TrackedStanza(Box::new(tracked)),
        ];
        let bounds = super::super::queue::Bounds { stanzas: 100, bytes: 10_000 };
        for entry in entries {
            state.queue.push(entry, bounds);
        }
        proves("stream management", &state);
        let said = Stanza::message(MessageType::Groupchat).with_id("2");
        let shared = Sent::Shared(Arc::new(SharedStanza::new(said)), Addressee::Account);
        proves("stream management, shared", &shared);
    }

    /// To a process of the release before it is a stanza.
    #[test]
    fn what_is_shared_is_a_stanza_to_an_older_process() {
        let said = Stanza::message(MessageType::Groupchat).with_id("2");
        let shared = Sent::Shared(Arc::new(SharedStanza::new(said.clone())), Addressee::Client);
        let mut out = Writer::of_version(NOW_MS, SHARED_SINCE - 1);
        shared.write(&mut out);
        let read: Sent = decode(&out.finish(), AT_ONCE).unwrap();
        assert_eq!(format!("{read:?}"), format!("{:?}", Sent::Stanza(Box::new(said))));
    }
}
