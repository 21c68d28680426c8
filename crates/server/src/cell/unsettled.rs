//! Stanzas that clients of this shard sent to homes on other nodes, as long as nobody said that they are settled there. When a node is gone
//! or something that it was sent is lost, whether it dealt with them is not known: their senders are told so, and they count as settled. So
//! no stream waits for what nobody answers.

use carillon_core::message::{RoomOp, ShardMessage};
use carillon_core::model::{NodeId, Settlement};
use carillon_wire::jid::Jid;
use carillon_wire::stanza::{Condition, Kind, MessageType, Stanza, StanzaError};
use std::collections::{BTreeMap, VecDeque};

/// The stanzas that are not settled, by the node that they were sent to, in the order in which they were sent. There are as many as the core has
/// sessions wait for.
#[derive(Debug, Default)]
pub(crate) struct Unsettled {
    sent: BTreeMap<NodeId, VecDeque<Sent>>,
    count: u64,
    bytes: u64,
}

/// What its sender is told of a stanza.
#[derive(Debug)]
struct Sent {
    settlement: Settlement,
    kind: Kind,
    from: Option<Jid>,
    to: Option<Jid>,
    id: Option<Box<str>>,
}

impl Unsettled {
    /// A message goes to another node: if a stanza is in it that somebody waits for, it is remembered.
    pub(crate) fn sent(&mut self, to: NodeId, message: &ShardMessage) {
        let (stanza, settlement) = match message {
            ShardMessage::Stanza { stanza, settlement: Some(settlement) } => (stanza, settlement),
            ShardMessage::Room {
                op: RoomOp::Stanza { stanza, settlement: Some(settlement), .. }, ..
            } => (&**stanza, settlement),
            _ => return,
        };
        let (settlement, kind) = (*settlement, stanza.kind);
        let (from, to_jid, id) = (stanza.from.clone(), stanza.to.clone(), stanza.id.clone());
        let sent = Sent { settlement, kind, from, to: to_jid, id };
        (self.count, self.bytes) = (self.count + 1, self.bytes + sent.bytes());
        self.sent.entry(to).or_default().push_back(sent);
    }

    /// How many there are, and the bytes of what is remembered of them.
    pub(crate) fn count(&self) -> (u64, u64) {
        (self.count, self.bytes)
    }

    /// A stanza is settled. Most are in the order in which they were sent.
    pub(crate) fn settled(&mut self, settlement: &Settlement) {
        let Settlement { place, session, number } = settlement;
        let is_it = |sent: &Sent| {
            let of = &sent.settlement;
            (of.number, of.session, of.place) == (*number, *session, *place)
        };
        for sent in self.sent.values_mut() {
            if let Some(it) = sent.iter().position(is_it).and_then(|at| sent.remove(at)) {
                (self.count, self.bytes) = (self.count - 1, self.bytes - it.bytes());
                break;
            }
        }
        self.sent.retain(|_, sent| !sent.is_empty());
    }

    /// What is said to the senders of stanzas to a node that is lost, and that they are settled.
    pub(crate) fn lose(&mut self, node: NodeId) -> Vec<ShardMessage> {
        let lost = self.sent.remove(&node).unwrap_or_default();
        self.count -= lost.len() as u64;
        self.bytes -= lost.iter().map(Sent::bytes).sum::<u64>();
        lost.into_iter()
            .flat_map(|sent| {
                let settled = ShardMessage::Settled(sent.settlement);
                sent.reply().map(|stanza| ShardMessage::Reply { stanza }).into_iter().chain([settled])
            })
            .collect()
    }
}

impl Sent {
    /// What it takes of memory.
    fn bytes(&self) -> u64 {
        let jid = |jid: &Option<Jid>| jid.as_ref().map_or(0, |jid| jid.as_str().len());
        let id = self.id.as_ref().map_or(0, |id| id.len());
        (size_of::<Sent>() + jid(&self.from) + jid(&self.to) + id) as u64
    }

    fn reply(self) -> Option<Stanza> {
        if self.kind == Kind::Message(MessageType::Error) {
            return None;
        }
        let stanza = Stanza {
            kind: self.kind,
            from: self.from,
            to: self.to,
            id: self.id,
            ..Stanza::message(MessageType::Normal)
        };
        let text = "the node that serves the recipient is gone; whether it has the stanza is not known";
        stanza.error_reply(&StanzaError::new(Condition::RemoteServerTimeout).with_text(text))
    }
}
