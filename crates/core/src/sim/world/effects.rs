//! What an input makes a shard do. Every effect is carried out here and nowhere else.

use super::World;
use super::link::{Heard, Stage};
use crate::connection::{CarriedClaim, QueueBound};
use crate::form::{Clock, Form, decode, encode};
use crate::model::{ConnId, Now, Place, ShardId};
use crate::sasl::ChannelBinding;
use crate::{Effect, Effects, Input};
use std::collections::VecDeque;
use std::ops::Range;

/// Measures what the shards spend.
pub trait Meters {
    /// Runs what a shard does with an input.
    fn handles(&mut self, run: &mut dyn FnMut());
    /// Runs a slice of a shard's fan-outs.
    fn walks(&mut self, run: &mut dyn FnMut());
}

impl World {
    /// Gives a shard an input, and after it what it has to hear of its own effects.
    pub fn give(&mut self, shard: usize, input: Input<'_>) {
        self.trace.note(format_args!("{} > {shard} {input:?}", self.now.mono.0));
        self.handle(shard, input);
        self.walking[shard] = true;
    }

    /// The same, of many inputs of one kind to all shards.
    pub fn every_shard(&mut self, input: impl Fn() -> Input<'static>) {
        (0..self.shards.len()).for_each(|shard| self.give(shard, input()));
    }

    /// Goes on with a shard's fan-outs, for one slice.
    pub(super) fn walk(&mut self, shard: usize) {
        let (machine, now) = (&mut self.shards[shard], self.now);
        let mut effects = std::mem::take(&mut self.effects);
        let mut left = false;
        let mut run = || left = machine.walk(now, &mut effects);
        match &mut self.meters {
            Some(meters) => meters.walks(&mut run),
            None => run(),
        }
        self.walking[shard] = left;
        self.trace.note(format_args!("{} > {shard} walks", now.mono.0));
        self.carry_out(shard, effects);
    }

    fn handle(&mut self, shard: usize, input: Input<'_>) {
        let (machine, now) = (&mut self.shards[shard], self.now);
        let mut effects = std::mem::take(&mut self.effects);
        effects.journal.keep(self.logs);
        let mut input = Some(input);
        let mut run = || {
            if let Some(input) = input.take() {
                machine.handle(now, input, &mut effects);
            }
        };
        match &mut self.meters {
            Some(meters) => meters.handles(&mut run),
            None => run(),
        }
        self.carry_out(shard, effects);
    }

    /// Carries out effects, then tells the shard what it has to hear of them.
    pub(super) fn carry_out(&mut self, shard: usize, mut effects: Effects) {
        let mut upcalls = VecDeque::new();
        let mut list = std::mem::take(&mut effects.list);
        let mut left = list.drain(..).peekable();
        while let Some(effect) = left.next() {
            self.trace.note(format_args!("  {shard} {effect:?}"));
            let Effect::Send { conn, range } = effect else {
                self.carry_out_one(shard, effect, &mut upcalls);
                continue;
            };
            // What a connection is sent in one piece is queued in one piece, as the server does it.
            let mut run = vec![range];
            while let Some(Effect::Send { range, .. }) = left.next_if(|next| follows(next, conn, &run)) {
                self.trace.note(format_args!("  {shard} and {range:?}"));
                run.push(range);
            }
            self.send(shard, conn, &run, &effects.bytes, &mut upcalls);
        }
        drop(left);
        effects.list = list;
        self.journal.extend_from_slice(effects.journal.bytes());
        let mut journal = effects.journal.take(Vec::new());
        journal.clear();
        self.trace.note(format_args!("  {}", effects.bytes.escape_ascii()));
        effects.clear();
        self.effects = effects;
        for upcall in upcalls {
            // It may have been lost or closed by what was told before.
            if let Input::Overflowed { conn, .. } = upcall {
                self.links[conn.slot as usize].overflow_reported();
            }
            self.trace.note(format_args!("  < {shard} {upcall:?}"));
            self.handle(shard, upcall);
        }
    }

    /// Sends a connection elements, in one piece.
    fn send(
        &mut self,
        shard: usize,
        conn: ConnId,
        elements: &[Range<usize>],
        bytes: &[u8],
        upcalls: &mut VecDeque<Input<'static>>,
    ) {
        let link = &mut self.links[conn.slot as usize];
        let is_known = link.shard == shard && link.conn == conn && link.stage == Stage::Open;
        assert!(is_known, "shard {shard} sends to {conn:?}, which it does not have: {link:?}");
        let elements = elements.iter().map(|range| &bytes[range.clone()]);
        if link.send(elements, self.plan.queue_bytes_max) == Heard::Overflowed {
            upcalls.push_back(Input::Overflowed { conn, bound: QueueBound::Own });
        }
        self.arrive(conn.slot as usize);
    }

    fn carry_out_one(&mut self, shard: usize, effect: Effect, upcalls: &mut VecDeque<Input<'static>>) {
        match effect {
            Effect::Send { .. } => debug_assert!(false, "it is sent with those that follow"),
            Effect::Datagram { .. } => debug_assert!(false, "no connection of the simulation has datagrams"),
            Effect::Secure { conn } => {
                upcalls.push_back(Input::Secured { conn, binding: ChannelBinding::default() });
            }
            Effect::Pause { conn } => self.links[conn.slot as usize].paused = true,
            Effect::Resume { conn } => self.links[conn.slot as usize].paused = false,
            Effect::WatchFlush { conn } => {
                if self.links[conn.slot as usize].watch() {
                    upcalls.push_back(Input::Flushed { conn });
                }
            }
            Effect::CountUnacked { conn, sent } => {
                let bytes = self.links[conn.slot as usize].unacked();
                upcalls.push_front(Input::Unacked { conn, bytes, sent });
            }
            Effect::Close { conn } => self.close(conn, upcalls),
            Effect::Move { conn, to, moving } => {
                let is_own = to.node == self.place(shard).node;
                let (to, link) = (self.at(to), &mut self.links[conn.slot as usize]);
                (link.shard, link.stage) = (to, Stage::Moving { lost: false });
                let input = if is_own {
                    Input::Arrived { conn, moving }
                } else {
                    let claim = Box::new(self.carried(&CarriedClaim::from(*moving)));
                    Input::Carried { conn, via: self.place(shard).node, claim }
                };
                self.post(shard, to, input);
            }
            Effect::MovePlayer { conn, to, joining } => {
                let (to, link) = (self.at(to), &mut self.links[conn.slot as usize]);
                (link.shard, link.stage) = (to, Stage::Moving { lost: false });
                self.post(shard, to, Input::ArrivedPlayer { conn, joining });
            }
            Effect::Post { to, message } => {
                let is_own = to.node == self.place(shard).node;
                let message = if is_own { message } else { self.carried(&message) };
                self.post(shard, self.at(to), Input::Message(message));
            }
            Effect::PostAll { to, message } => {
                for own in 0..self.plan.shards {
                    let to = Place { node: to, shard: ShardId(own) };
                    let message = self.carried(&message);
                    self.post(shard, self.at(to), Input::Message(message));
                }
            }
            Effect::Ask { ticket, ask } => {
                self.asked += 1;
                self.disk.ask(shard, ticket, ask);
            }
            Effect::Derive { ticket, derivation } => {
                self.derivations += 1;
                let derived = derivation.run();
                self.derived.push((shard, Input::Derived { ticket, derived }));
            }
            Effect::Reply { to, outcome } => {
                let is_own = to.node == self.place(shard).node;
                let outcome = if is_own { outcome } else { self.carried(&outcome) };
                self.replied(to, outcome);
            }
            Effect::Hop(hop) => self.hops.push(*hop),
            Effect::StateChange(change) => self.changes.push(change),
            Effect::EventStored => {}
        }
    }

    /// The server closes a connection: for its shard it is gone at once, and what is queued still leaves.
    fn close(&mut self, conn: ConnId, upcalls: &mut VecDeque<Input<'static>>) {
        let link = &mut self.links[conn.slot as usize];
        if link.stage == Stage::Open {
            link.stage = Stage::Closed;
            link.to_server.clear();
            upcalls.push_back(Input::Closed { conn, unacked: link.unacked() });
        }
    }

    /// What comes out at another node of what a node sends it: it has a form, and is no more than that.
    fn carried<T: Form>(&self, value: &T) -> T {
        let now_ms = self.now.mono.0;
        let bytes = encode(value, now_ms);
        decode(&bytes, Clock { now_ms, elapsed_ms: 0 }).expect("what a node of this release wrote")
    }

    pub(super) fn post(&mut self, from: usize, to: usize, input: Input<'static>) {
        self.posts[from * self.shards.len() + to].push_back(input);
    }

    /// Takes what one shard has for another: it never arrives.
    pub fn take_posts(&mut self, from: usize, to: usize) -> Vec<Input<'static>> {
        self.posts[from * self.shards.len() + to].drain(..).collect()
    }

    /// Delivers the oldest of what one shard has for another.
    pub(super) fn deliver(&mut self, queue: usize) {
        let to = queue % self.shards.len();
        let Some(input) = self.posts[queue].pop_front() else { return };
        let (Input::Arrived { conn, .. } | Input::ArrivedPlayer { conn, .. } | Input::Carried { conn, .. }) =
            input
        else {
            return self.give(to, input);
        };
        let link = &mut self.links[conn.slot as usize];
        let lost = link.stage == Stage::Moving { lost: true };
        // The shard finds out when it reads.
        link.stage = Stage::Open;
        self.give(to, input);
        if lost && self.links[conn.slot as usize].stage == Stage::Open {
            let unacked = self.links[conn.slot as usize].unacked();
            self.links[conn.slot as usize].lose();
            self.give(to, Input::Closed { conn, unacked });
        }
    }

    /// Moves the clock, without telling anybody.
    pub(super) fn set_clock(&mut self, now: Now) {
        self.now = now;
    }
}

/// Whether an effect sends a connection what follows this.
fn follows(effect: &Effect, to: ConnId, run: &[Range<usize>]) -> bool {
    let (Some(first), Some(last)) = (run.first(), run.last()) else { return false };
    matches!(effect, Effect::Send { conn, range }
        if *conn == to && range.start == last.end && range.end - first.start <= RUN_BYTES_MAX)
}

/// Bytes that the server sends in one piece, unless one element is longer.
const RUN_BYTES_MAX: usize = 16 * 1024;
