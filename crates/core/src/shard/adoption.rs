//! Clients that want to resume a session of a node that died, before the session has come to its account's new home.

use crate::message::AdoptionMessage;
use crate::model::{ConnId, Map, Mono, NodeId, Set, Settlement};
use carillon_wire::jid::BareJid;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// The dead nodes a shard knows of, and the clients that wait for sessions of theirs.
#[derive(Debug, Default)]
pub struct Adoption {
    /// Whether the sessions of this cell's nodes are written down.
    pub is_on: bool,
    /// Nodes that are dead, and when it was heard.
    gone: Vec<(NodeId, Mono)>,
    /// Clients that wait for the sessions of an account, and until when.
    waiting: Map<BareJid, SmallVec<[(ConnId, Mono); 1]>>,
    /// No client's wait ends before this time.
    due: Option<Mono>,
    /// What is for accounts that seem to be at home at a dead node.
    kept: Vec<AdoptionMessage>,
    kept_bytes: usize,
    /// Stanzas of senders on other nodes that were settled here, the oldest first.
    settled: VecDeque<(Settlement, Mono)>,
    /// The same as a set: a client may repeat many.
    was_settled: Set<Settlement>,
    /// Stanzas that were delivered already and will arrive a second time.
    known: Set<Settlement>,
}

/// How long after a node's death its sessions are waited for.
const ADOPTED_MS: u64 = 6_000;
/// How long they are waited for while it is not known here that the node is dead.
const HEARD_MS: u64 = 3_000;
/// How long the settlement of a stanza is remembered while its sender's node lives: longer than it takes to tell that node, and to write it down there.
const SETTLED_MS: u64 = 5_000;
/// The same after that node's death: the client may come back and repeat the stanza.
const REPEATED_MS: u64 = 600_000;
/// How many of these are remembered, and stanzas that are about to come.
const SETTLED_MAX: usize = 100_000;
const KNOWN_MAX: usize = 10_000;
/// Bytes of sessions that wait until it is known that their node is dead.
const KEPT_BYTES_MAX: usize = 64 << 20;
/// Deaths that are remembered.
const GONE_MAX: usize = 64;
/// Bits of a session's key that are random; those above name the node that made it.
const RANDOM_BITS: u32 = 40;
/// The bits of a node's number that are in a key.
const NODE_BITS: u32 = (1 << 24) - 1;

impl Adoption {
    /// What a client names its session by: in a cell whose sessions are written down it says of which node it is.
    pub fn key(&self, random: u64, own: NodeId) -> u64 {
        match self.is_on {
            true => u64::from(own.0 & NODE_BITS) << RANDOM_BITS | random & ((1 << RANDOM_BITS) - 1),
            false => random,
        }
    }

    /// Until when to wait for a session that is not here; none if it cannot come. `lives`: whether a node is known to live.
    pub fn comes_until(
        &self,
        key: u64,
        now: Mono,
        own: NodeId,
        mut lives: impl FnMut(u32) -> bool,
    ) -> Option<Mono> {
        let node = (key >> RANDOM_BITS) as u32;
        if !self.is_on || node == own.0 & NODE_BITS {
            return None;
        }
        let gone = self.gone.iter().rev().find(|(gone, _)| gone.0 & NODE_BITS == node);
        match gone {
            Some((_, at)) => Some(at.plus(ADOPTED_MS)).filter(|until| *until > now),
            None => lives(node).then(|| now.plus(HEARD_MS)),
        }
    }

    /// Whether this is a node whose number has these bits.
    pub fn is_named(node: NodeId, bits: u32) -> bool {
        node.0 & NODE_BITS == bits
    }

    /// Notes that these nodes are dead.
    pub fn lose(&mut self, nodes: &[NodeId], now: Mono) {
        self.gone.extend(nodes.iter().map(|node| (*node, now)));
        let over = self.gone.len().saturating_sub(GONE_MAX);
        self.gone.drain(..over);
    }

    /// Keeps what is for an account that seems to be at home at a dead node.
    pub fn keep(&mut self, message: AdoptionMessage) {
        let bytes = message.memory_bytes();
        if self.kept_bytes + bytes <= KEPT_BYTES_MAX {
            self.kept_bytes += bytes;
            self.kept.push(message);
        }
    }

    /// What was kept.
    pub fn take_kept(&mut self) -> Vec<AdoptionMessage> {
        self.kept_bytes = 0;
        std::mem::take(&mut self.kept)
    }

    /// Notes that a stanza of a sender on another node is settled here.
    pub fn settled(&mut self, settlement: Settlement, now: Mono) {
        while let Some((old, at)) = self.settled.front() {
            let is_gone = self.gone.iter().any(|(gone, _)| *gone == old.place.node);
            let kept_ms = if is_gone { REPEATED_MS } else { SETTLED_MS };
            if now.since(*at) < kept_ms && self.settled.len() < SETTLED_MAX {
                break;
            }
            self.was_settled.remove(old);
            self.settled.pop_front();
        }
        if self.was_settled.insert(settlement) {
            self.settled.push_back((settlement, now));
        }
    }

    /// Whether a stanza was settled here.
    pub fn was_settled(&self, settlement: &Settlement) -> bool {
        self.was_settled.contains(settlement)
    }

    /// Notes that a stanza which was delivered already will arrive again.
    pub fn knows(&mut self, settlement: Settlement) {
        if self.known.len() < KNOWN_MAX {
            self.known.insert(settlement);
        }
    }

    /// Whether this stanza was delivered already and was expected again. It is not expected a third time.
    pub fn is_known(&mut self, settlement: &Settlement) -> bool {
        !self.known.is_empty() && self.known.remove(settlement)
    }

    /// Has a client wait for sessions of an account.
    pub fn wait(&mut self, account: BareJid, conn: ConnId, until: Mono) {
        self.due = Some(self.due.map_or(until, |due| due.min(until)));
        self.waiting.entry(account).or_default().push((conn, until));
    }

    /// Clients that waited for sessions of this account.
    pub fn take(&mut self, account: &BareJid) -> Vec<ConnId> {
        let waited = self.waiting.remove(account).unwrap_or_default();
        if self.waiting.is_empty() {
            self.due = None;
        }
        waited.into_iter().map(|(conn, _)| conn).collect()
    }

    /// Clients that have waited for too long.
    pub fn take_due(&mut self, now: Mono) -> Vec<ConnId> {
        let mut late = Vec::new();
        if self.due.is_none_or(|due| due > now) {
            return late;
        }
        self.waiting.retain(|_, waits| {
            late.extend(waits.iter().filter(|(_, until)| *until <= now).map(|(conn, _)| *conn));
            waits.retain(|(_, until)| *until > now);
            !waits.is_empty()
        });
        self.due = self.waiting.values().flatten().map(|(_, until)| *until).min();
        late
    }

    /// When somebody may have waited for too long.
    pub fn due(&self) -> Option<Mono> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: NodeId = NodeId(7);
    const CONN: ConnId = ConnId { slot: 1, generation: 1 };

    #[test]
    fn it_is_waited_for_sessions_of_nodes_that_died_and_of_no_others() {
        let mut adoption = Adoption { is_on: true, ..Adoption::default() };
        let key = |node| Adoption { is_on: true, ..Adoption::default() }.key(u64::MAX, NodeId(node));
        adoption.lose(&[NodeId(3)], Mono(1000));
        let until = |node, now| adoption.comes_until(key(node), Mono(now), OWN, |bits| bits == 4);
        assert_eq!(until(3, 2000), Some(Mono(1000 + ADOPTED_MS)));
        assert_eq!(until(3, 1000 + ADOPTED_MS), None, "long ago");
        assert_eq!(until(4, 2000), Some(Mono(2000 + HEARD_MS)), "it may be dead");
        assert_eq!((until(7, 2000), until(5, 2000)), (None, None));
        adoption.is_on = false;
        assert_eq!(adoption.comes_until(key(3), Mono(2000), OWN, |_| true), None);
        assert_eq!(adoption.key(u64::MAX, OWN), u64::MAX);
    }

    #[test]
    fn who_waits_is_called_once() {
        let (mut adoption, account) = (Adoption::default(), BareJid::new("alice@localhost").unwrap());
        adoption.wait(account.clone(), CONN, Mono(5));
        assert_eq!(adoption.due(), Some(Mono(5)));
        assert!(adoption.take_due(Mono(4)).is_empty());
        assert_eq!(adoption.take(&account), [CONN]);
        assert!(adoption.take_due(Mono(5)).is_empty() && adoption.due().is_none());
    }

    #[test]
    fn what_was_settled_is_remembered_for_a_while_and_longer_of_a_dead_node() {
        let mut adoption = Adoption { is_on: true, ..Adoption::default() };
        let of = |node, number| Settlement {
            place: crate::model::Place { node: NodeId(node), ..Default::default() },
            session: crate::model::SessionId { slot: 1, generation: 1 },
            number,
        };
        adoption.settled(of(3, 1), Mono(0));
        adoption.settled(of(3, 1), Mono(1));
        adoption.lose(&[NodeId(3)], Mono(2));
        adoption.settled(of(4, 2), Mono(SETTLED_MS + 2));
        assert!(adoption.was_settled(&of(3, 1)) && adoption.was_settled(&of(4, 2)));
        adoption.settled(of(4, 3), Mono(REPEATED_MS));
        assert!(!adoption.was_settled(&of(3, 1)) && !adoption.was_settled(&of(4, 2)));
        adoption.knows(of(3, 9));
        assert!(adoption.is_known(&of(3, 9)) && !adoption.is_known(&of(3, 9)));
    }
}
