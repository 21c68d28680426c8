//! Stanzas that clients of this node sent to homes on other nodes, as long as nobody said that they are settled there. When a node is gone
//! or something that it was sent is lost, whether it dealt with them is not known: their senders are told so, and they count as settled. So
//! no stream waits for what nobody answers.
//!
//! A stanza may go on to a third node, which its sender's node is told ([`Record::Forwarded`](super::Record::Forwarded)).

use carillon_core::message::{RoomOp, ShardMessage};
use carillon_core::model::{NodeId, Settlement, ShardId};
use carillon_wire::jid::Jid;
use carillon_wire::stanza::{Condition, Kind, MessageType, Stanza, StanzaError};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The stanzas that are not settled, a part for each shard whose sessions wait for them: any shard may send them on. There are as many as the
/// core has sessions wait for.
#[derive(Debug)]
pub(crate) struct Unsettled {
    own: NodeId,
    parts: Box<[Mutex<Part>]>,
}

/// Those of one shard, by the node that they were sent to, in the order in which they were sent.
#[derive(Debug, Default)]
struct Part {
    sent: BTreeMap<NodeId, VecDeque<Sent>>,
    /// Nodes that are gone.
    gone: BTreeSet<NodeId>,
    count: u64,
    bytes: u64,
}

/// What its sender is told of a stanza.
#[derive(Debug)]
pub(crate) struct Sent {
    settlement: Settlement,
    kind: Kind,
    from: Option<Jid>,
    to: Option<Jid>,
    id: Option<Box<str>>,
}

carillon_core::form! { struct Sent { settlement, kind, from, to, id } }

/// The stanzas of one shard that are not settled, on their way to another process.
#[derive(Debug, Default)]
pub(crate) struct LeftUnsettled {
    sent: Vec<(NodeId, Sent)>,
    gone: Vec<NodeId>,
}

carillon_core::form! { struct LeftUnsettled { sent, gone } }

impl Unsettled {
    /// Takes out what a shard has of them.
    pub(crate) fn leave(&self, shard: ShardId) -> LeftUnsettled {
        let Some(part) = self.parts.get(usize::from(shard.0)) else { return LeftUnsettled::default() };
        let Part { sent, gone, .. } =
            std::mem::take(&mut *part.lock().unwrap_or_else(PoisonError::into_inner));
        let of_node = |(node, sent): (NodeId, VecDeque<Sent>)| sent.into_iter().map(move |sent| (node, sent));
        LeftUnsettled { sent: sent.into_iter().flat_map(of_node).collect(), gone: gone.into_iter().collect() }
    }

    /// Goes on with what a shard left.
    pub(crate) fn go_on(&self, shard: ShardId, left: LeftUnsettled) {
        let Some(part) = self.parts.get(usize::from(shard.0)) else { return };
        let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
        part.gone.extend(left.gone);
        left.sent.into_iter().for_each(|(to, sent)| part.add(to, sent));
    }
}

impl Unsettled {
    /// There is none.
    pub(crate) fn new(own: NodeId, shards: usize) -> Unsettled {
        Unsettled { own, parts: (0..shards).map(|_| Mutex::default()).collect() }
    }

    fn part(&self, of: &Settlement) -> Option<MutexGuard<'_, Part>> {
        let part = (of.place.node == self.own).then(|| self.parts.get(usize::from(of.place.shard.0)))??;
        Some(part.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A message goes to another node: if a stanza is in it that somebody waits for, it is remembered. If that is somebody of another node, it
    /// comes back, so that the other node can be told.
    pub(crate) fn sent(&self, to: NodeId, message: &ShardMessage) -> Option<Settlement> {
        let (stanza, settlement) = match message {
            ShardMessage::Stanza { stanza, settlement: Some(settlement) } => (stanza, settlement),
            ShardMessage::Room {
                op: RoomOp::Stanza { stanza, settlement: Some(settlement), .. }, ..
            } => (&**stanza, settlement),
            _ => return None,
        };
        let Some(mut part) = self.part(settlement) else { return Some(*settlement) };
        let (settlement, kind) = (*settlement, stanza.kind);
        let (from, to_jid, id) = (stanza.from.clone(), stanza.to.clone(), stanza.id.clone());
        part.add(to, Sent { settlement, kind, from, to: to_jid, id });
        None
    }

    /// How many there are of the sessions of a shard, and the bytes of what is remembered of them.
    pub(crate) fn count(&self, shard: ShardId) -> (u64, u64) {
        let Some(part) = self.parts.get(usize::from(shard.0)) else { return (0, 0) };
        let part = part.lock().unwrap_or_else(PoisonError::into_inner);
        (part.count, part.bytes)
    }

    /// A stanza is settled. Most are in the order in which they were sent.
    pub(crate) fn settled(&self, settlement: &Settlement) {
        if let Some(mut part) = self.part(settlement) {
            part.take(settlement);
        }
    }

    /// A stanza was sent on to a third node. What is said to its sender, if that is gone.
    pub(crate) fn forwarded(&self, settlement: &Settlement, to: NodeId) -> Vec<ShardMessage> {
        let Some(mut part) = self.part(settlement) else { return Vec::new() };
        let Some(sent) = part.take(settlement) else { return Vec::new() };
        if part.gone.contains(&to) {
            return sent.lost();
        }
        part.add(to, sent);
        Vec::new()
    }

    /// What is said to the senders of stanzas to a node that is lost, of the sessions of one shard, and that they are settled. `is_gone`: whether the node does
    /// not come back.
    pub(crate) fn lose(&self, shard: ShardId, node: NodeId, is_gone: bool) -> Vec<ShardMessage> {
        let Some(part) = self.parts.get(usize::from(shard.0)) else { return Vec::new() };
        let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
        if is_gone {
            part.gone.insert(node);
        }
        let lost = part.sent.remove(&node).unwrap_or_default();
        part.count -= lost.len() as u64;
        part.bytes -= lost.iter().map(Sent::bytes).sum::<u64>();
        drop(part);
        lost.into_iter().flat_map(Sent::lost).collect()
    }
}

impl Part {
    fn add(&mut self, to: NodeId, sent: Sent) {
        (self.count, self.bytes) = (self.count + 1, self.bytes + sent.bytes());
        self.sent.entry(to).or_default().push_back(sent);
    }

    fn take(&mut self, settlement: &Settlement) -> Option<Sent> {
        let Settlement { place, session, number } = settlement;
        let is_it = |sent: &Sent| {
            let of = &sent.settlement;
            (of.number, of.session, of.place) == (*number, *session, *place)
        };
        let found = self.sent.iter().find_map(|(node, sent)| Some((*node, sent.iter().position(is_it)?)));
        let (node, at) = found?;
        let sent = self.sent.get_mut(&node)?;
        let taken = sent.remove(at)?;
        if sent.is_empty() {
            self.sent.remove(&node);
        }
        (self.count, self.bytes) = (self.count - 1, self.bytes - taken.bytes());
        Some(taken)
    }
}

impl Sent {
    /// What it takes of memory.
    fn bytes(&self) -> u64 {
        let jid = |jid: &Option<Jid>| jid.as_ref().map_or(0, |jid| jid.as_str().len());
        let id = self.id.as_ref().map_or(0, |id| id.len());
        (size_of::<Sent>() + jid(&self.from) + jid(&self.to) + id) as u64
    }

    fn lost(self) -> Vec<ShardMessage> {
        let settled = ShardMessage::Settled(self.settlement);
        self.reply().map(|stanza| ShardMessage::Reply { stanza }).into_iter().chain([settled]).collect()
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
