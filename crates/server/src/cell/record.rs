//! What one node of a cell sends another.

use super::request::{NodeReport, NodeRequest};
use carillon_core::command::{Command, Outcome, ReplyTo};
use carillon_core::connection::{CarriedClaim, QueueBound};
use carillon_core::message::ShardMessage;
use carillon_core::model::{ConnId, NodeId, Place, Settlement, ShardId};

/// One record on the bus, for one node.
#[derive(Debug)]
pub(crate) enum Record {
    /// A message for one of its shards.
    Message { shard: ShardId, message: ShardMessage },
    /// A message for each of its shards.
    MessageToAll(ShardMessage),
    /// A command that each of its shards carries out.
    CommandToAll { command: Command, reply: ReplyTo },
    /// The outcome of a command that it gave.
    Outcome { to: ReplyTo, outcome: Outcome },
    /// The domains changed: it reads them anew.
    DomainsChanged,
    /// Other modules were activated: it reads them anew.
    ModulesChanged,
    /// The sender ends: homes are no longer there.
    Leaving,
    /// The sender knows that this node has homes.
    Known,
    /// A client of the sender claims an account of this shard.
    Claim { shard: ShardId, edge: Edge, claim: Box<CarriedClaim> },
    /// Something from a connection of the sender, for its session on this shard.
    FromClient { shard: ShardId, edge: Edge, input: EdgeInput },
    /// Something for a connection of this shard, from its session at the sender.
    ToClient { shard: ShardId, conn: ConnId, output: EdgeOutput },
    /// A stanza that the sender was sent went on to another node.
    Forwarded { settlement: Settlement, to: NodeId },
    /// So did a command.
    CommandForwarded { reply: ReplyTo, to: NodeId },
    /// What an operator asks of it by the sender.
    Request { request: NodeRequest, number: u64 },
    /// Its answer to such a question.
    Report { number: u64, report: Box<NodeReport> },
    /// The sender has homes again.
    Returning,
    /// Whether the sender's sessions are written down: if not, what there is of them is old.
    Logs(bool),
}

carillon_core::form! {
    enum Record {
        0 = Message { shard, message },
        1 = MessageToAll(message),
        2 = CommandToAll { command, reply },
        3 = Outcome { to, outcome },
        4 = DomainsChanged,
        5 = Claim { shard, edge, claim },
        6 = FromClient { shard, edge, input },
        7 = ToClient { shard, conn, output },
        8 = Leaving,
        9 = Known,
        10 = Forwarded { settlement, to },
        11 = CommandForwarded { reply, to },
        20 = Request { request, number },
        21 = Report { number, report },
        22 = Returning,
        23 = ModulesChanged,
        30 = Logs(are_kept),
    }
}

/// A connection by the name that it has where its socket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) place: Place,
    pub(crate) conn: ConnId,
}

carillon_core::form! { struct Edge { place, conn } }

/// What a session is told of its connection on another node.
#[derive(Debug)]
pub(crate) enum EdgeInput {
    /// Bytes of the stream, or one message of a WebSocket.
    Bytes(Vec<u8>),
    /// It is gone, and the peer's TCP did not acknowledge so many bytes.
    Closed(u64),
    /// The answer to [`EdgeOutput::WatchFlush`].
    Flushed,
    /// The answer to [`EdgeOutput::CountUnacked`].
    Unacked(u64, u32),
    /// Too much waits for it.
    Overflowed(QueueBound),
}

carillon_core::form! {
    enum EdgeInput {
        0 = Bytes(bytes),
        1 = Closed(unacked),
        2 = Flushed,
        3 = Unacked(bytes, sent),
        4 = Overflowed(bound),
    }
}

/// What a session does with its connection on another node.
#[derive(Debug)]
pub(crate) enum EdgeOutput {
    /// Elements, one behind the other: where each of them ends.
    Send { bytes: Vec<u8>, ends: Vec<u32> },
    /// See [`carillon_core::Effect::WatchFlush`].
    WatchFlush,
    /// See [`carillon_core::Effect::CountUnacked`].
    CountUnacked(u32),
    /// Close it once everything sent before has left.
    Close,
    /// So many bytes were handled: that many more may come.
    Credit(u32),
}

carillon_core::form! {
    enum EdgeOutput {
        0 = Send { bytes, ends },
        1 = WatchFlush,
        2 = CountUnacked(sent),
        3 = Close,
        4 = Credit(bytes),
    }
}
