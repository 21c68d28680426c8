//! A connection: the server's queue, a socket that takes as many bytes as it is told, and what has arrived on either side.

use crate::connection::{Offered, SendQueue};
use crate::model::ConnId;
use carillon_wire::Framing;
use std::collections::VecDeque;

/// A connection between a client and a shard.
#[derive(Debug)]
pub struct Link {
    /// The shard that has it, or to which it moves.
    pub shard: usize,
    /// Its name there.
    pub conn: ConnId,
    pub(super) stage: Stage,
    pub(super) framing: Framing,
    /// What the client sent and the shard was not given: pieces of a stream, or whole messages of WebSocket.
    pub(super) to_server: VecDeque<Vec<u8>>,
    /// Bytes that the client sent, and how many of them the shard was given.
    pub(super) said_bytes: u64,
    pub(super) heard_bytes: u64,
    /// The session waits for something, and is given nothing meanwhile.
    pub(super) paused: bool,
    queue: SendQueue,
    /// Bytes that the socket takes now; none while it takes all.
    room: Option<usize>,
    /// Of what the socket took, what has not arrived at the client's side.
    on_the_way: usize,
    /// What the shard sent and its queue took, and where in the stream of bytes each ends.
    taken: VecDeque<(Vec<u8>, u64)>,
    sent_bytes: u64,
    arrived_bytes: u64,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// A shard has it.
    Open,
    /// It is on its way to another shard; lost meanwhile, that shard hears of it when it has arrived.
    Moving {
        /// Whether it was lost.
        lost: bool,
    },
    /// The server closed it. What is queued still leaves.
    Closed,
    /// It is gone.
    Lost,
}

/// What the shard has to hear of what it sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Nothing,
    /// What was watched has left.
    Flushed,
    /// The queue is full, for the first time.
    Overflowed,
}

impl Link {
    pub(super) fn new(shard: usize, conn: ConnId, framing: Framing) -> Link {
        Link {
            shard,
            conn,
            stage: Stage::Open,
            framing,
            to_server: VecDeque::new(),
            said_bytes: 0,
            heard_bytes: 0,
            paused: false,
            queue: SendQueue::default(),
            room: None,
            on_the_way: 0,
            taken: VecDeque::new(),
            sent_bytes: 0,
            arrived_bytes: 0,
        }
    }

    /// Whether the server has not closed it, and it is not lost.
    pub fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open | Stage::Moving { lost: false })
    }

    /// Whether its session reads: it does not while it waits or moves.
    pub fn is_read(&self) -> bool {
        self.stage == Stage::Open && !self.paused
    }

    /// Bytes that the client has sent.
    pub fn said(&self) -> u64 {
        self.said_bytes
    }

    /// How many of [`Link::said`] the session has dealt with; none that is sure while it waits for something.
    pub fn dealt_with(&self) -> Option<u64> {
        self.is_read().then_some(self.heard_bytes)
    }

    /// Whether nothing comes to either side any more.
    pub fn is_over(&self) -> bool {
        !self.is_open() && self.on_the_way == 0 && self.queue.queued() == 0
    }

    /// Bytes that wait because the socket does not take them.
    pub fn queued(&self) -> usize {
        self.queue.queued()
    }

    /// The shard sends elements: all of them, or none.
    pub(super) fn send<'a>(
        &mut self,
        elements: impl Iterator<Item = &'a [u8]> + Clone,
        bound: usize,
    ) -> Heard {
        let len = elements.clone().map(<[u8]>::len).sum();
        match self.queue.offer(len, bound) {
            Offered::Overflowed { first: true } => return Heard::Overflowed,
            Offered::Overflowed { first: false } => return Heard::Nothing,
            Offered::Taken => {}
            Offered::FlushFirst => debug_assert!(false, "nothing is held back here"),
        }
        let mut direct = Vec::new();
        for bytes in elements {
            self.sent_bytes += bytes.len() as u64;
            self.taken.push_back((bytes.to_vec(), self.sent_bytes));
            self.queue.tail(&mut direct).extend_from_slice(bytes);
        }
        if !direct.is_empty() {
            let count = self.socket(direct.len());
            self.queue.wrote(&direct, count);
        }
        Heard::Nothing
    }

    /// How many of `len` bytes the socket takes.
    fn socket(&mut self, len: usize) -> usize {
        let count = self.room.map_or(len, |room| room.min(len));
        self.room = self.room.map(|room| room - count);
        self.on_the_way += count;
        count
    }

    /// From now on the socket takes so many bytes, or all; what waits is written.
    pub(super) fn has_room(&mut self, room: Option<usize>) -> Heard {
        self.room = room;
        let waiting = self.queue.queued();
        if waiting == 0 || self.stage == Stage::Lost {
            return Heard::Nothing;
        }
        let count = self.socket(waiting);
        if self.queue.sent(count) { Heard::Flushed } else { Heard::Nothing }
    }

    /// So many bytes of what the socket took arrive at the client's side.
    pub(super) fn arrive(&mut self, count: usize) {
        let count = count.min(self.on_the_way);
        self.on_the_way -= count;
        self.arrived_bytes += count as u64;
    }

    /// Bytes that the socket took and that have not arrived.
    pub fn on_the_way(&self) -> usize {
        self.on_the_way
    }

    /// The shard wants to hear when all of it has left; whether it has.
    pub(super) fn watch(&mut self) -> bool {
        self.queue.watch()
    }

    pub(super) fn unacked(&self) -> u64 {
        self.queue.unacked(|| Some(self.on_the_way as u64))
    }

    pub(super) fn overflow_reported(&mut self) {
        self.queue.overflow_reported();
    }

    /// The connection is lost: what has not arrived never will.
    pub(super) fn lose(&mut self) {
        self.stage = Stage::Lost;
        self.queue.discard();
        self.on_the_way = 0;
        self.to_server.clear();
        let arrived = self.arrived_bytes;
        self.taken.retain(|(_, end)| *end <= arrived);
    }

    /// The next element that was sent to the client and has arrived whole.
    pub fn received(&mut self) -> Option<Vec<u8>> {
        let (_, end) = self.taken.front()?;
        if *end > self.arrived_bytes { None } else { self.taken.pop_front().map(|(bytes, _)| bytes) }
    }

    /// What was sent and is behind so many bytes of the stream, each with where it ends.
    pub fn sent_after(&self, bytes: u64) -> impl Iterator<Item = (&[u8], u64)> {
        let new = self.taken.iter().filter(move |(_, end)| *end > bytes);
        new.map(|(element, end)| (&element[..], *end))
    }

    /// The next element that was sent to the client, whether or not it has arrived.
    pub fn sent(&mut self) -> Option<Vec<u8>> {
        self.taken.pop_front().map(|(bytes, _)| bytes)
    }
}
