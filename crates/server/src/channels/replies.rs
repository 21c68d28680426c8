//! Who waits for the outcomes of commands. A command carries a number (`ReplyTo`), which is resolved here: it may come from another thread, and
//! in a cell from another node.

use carillon_core::command::{Outcome, ReplyTo};
use carillon_core::model::{Mono, NodeId, ShardId};
use carillon_core::ports::Reply;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Who waits for the outcomes of the commands that this node gave, a part for each shard that carries them out: a shard and those who give it commands
/// share a lock with nobody else. It is held for some instructions, and once per second for a look at all who wait.
pub(crate) struct Replies {
    own: NodeId,
    parts: Box<[Mutex<Part>]>,
    /// Where generations begin: what another node answers the process before this one of the node is not for whoever waits here.
    first: u16,
}

/// Those who wait for one shard.
#[derive(Default)]
struct Part {
    entries: Vec<PendingReply>,
    free: Vec<u32>,
    /// Nodes that are gone: who is sent on to one of them by somebody who has not heard of it would wait for nothing.
    gone: BTreeSet<NodeId>,
}

/// A place for one who waits.
struct PendingReply {
    /// Tells who waits here from those before.
    generation: u16,
    reply: Option<Reply<Outcome>>,
    /// The node that is to answer.
    at: NodeId,
    since: Mono,
}

/// Who has waited for so long is told that the outcome is unknown: a number that is lost on the way tells nobody.
const LOST_AFTER_MS: u64 = 120_000;

impl Replies {
    /// Nobody waits.
    pub(crate) fn new(own: NodeId, shards: u16) -> Replies {
        let first = std::process::id() as u16;
        Replies { own, parts: (0..shards).map(|_| Mutex::default()).collect(), first }
    }

    /// Somebody waits for what a shard does: the number by which it answers.
    pub(crate) fn add(&self, shard: ShardId, reply: Reply<Outcome>, now: Mono) -> ReplyTo {
        self.add_at(self.own, shard, reply, now)
    }

    /// The same for what another node does; the shard is one of this node all the same. If that node is gone the outcome is unknown at once.
    pub(crate) fn add_at(&self, at: NodeId, shard: ShardId, reply: Reply<Outcome>, now: Mono) -> ReplyTo {
        let mut part = self.part(shard);
        let index = part.free.pop().unwrap_or(part.entries.len() as u32);
        if index as usize == part.entries.len() {
            part.entries.push(PendingReply { generation: self.first, reply: None, at, since: now });
        }
        let entry = &mut part.entries[index as usize];
        (entry.reply, entry.at, entry.since) = (Some(reply), at, now);
        let number = u64::from(shard.0) << 48 | u64::from(entry.generation) << 32 | u64::from(index);
        let (to, is_gone) = (ReplyTo { node: self.own, number }, part.gone.contains(&at));
        drop(part);
        if is_gone {
            self.give(to, Outcome::Unknown);
        }
        to
    }

    /// Who waits under this number, for the last time.
    pub(crate) fn take(&self, to: ReplyTo) -> Option<Reply<Outcome>> {
        let (shard, generation, index) =
            (ShardId((to.number >> 48) as u16), (to.number >> 32) as u16, to.number as u32);
        if to.node != self.own || usize::from(shard.0) >= self.parts.len() {
            return None;
        }
        let mut part = self.part(shard);
        let entry = part.entries.get_mut(index as usize).filter(|entry| entry.generation == generation)?;
        let reply = entry.reply.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        part.free.push(index);
        Some(reply)
    }

    /// Gives an outcome to whoever waits for it.
    pub(crate) fn give(&self, to: ReplyTo, outcome: Outcome) {
        if let Some(reply) = self.take(to) {
            reply(outcome);
        }
    }

    /// A command went on to another node, which is to answer, if it is not gone.
    pub(crate) fn forwarded(&self, to: ReplyTo, at: NodeId) {
        let (shard, generation, index) =
            (ShardId((to.number >> 48) as u16), (to.number >> 32) as u16, to.number as u32);
        if to.node != self.own || usize::from(shard.0) >= self.parts.len() {
            return;
        }
        let mut part = self.part(shard);
        let entry = part.entries.get_mut(index as usize).filter(|entry| entry.generation == generation);
        entry.into_iter().for_each(|entry| entry.at = at);
        let is_gone = part.gone.contains(&at);
        drop(part);
        if is_gone {
            self.give(to, Outcome::Unknown);
        }
    }

    /// A shard has ended. What it was given it may have done.
    pub(crate) fn end(&self, shard: ShardId) {
        self.give_up(shard, |_| true);
    }

    /// Another node is gone, or something that it sent was lost. What it was given it may have done.
    pub(crate) fn lose(&self, node: NodeId, is_gone: bool) {
        for shard in 0..self.parts.len() as u16 {
            if is_gone {
                self.part(ShardId(shard)).gone.insert(node);
            }
            self.give_up(ShardId(shard), |entry| entry.at == node);
        }
    }

    /// Gives up those who have waited for too long.
    pub(crate) fn expire(&self, now: Mono) {
        for shard in 0..self.parts.len() as u16 {
            self.give_up(ShardId(shard), |entry| now.0.saturating_sub(entry.since.0) >= LOST_AFTER_MS);
        }
    }

    fn give_up(&self, shard: ShardId, is_lost: impl Fn(&PendingReply) -> bool) {
        let mut lost = Vec::new();
        let mut part = self.part(shard);
        let Part { entries, free, .. } = &mut *part;
        for (index, entry) in (0..).zip(entries) {
            if is_lost(entry)
                && let Some(reply) = entry.reply.take()
            {
                entry.generation = entry.generation.wrapping_add(1);
                free.push(index);
                lost.push(reply);
            }
        }
        drop(part);
        lost.into_iter().for_each(|reply| reply(Outcome::Unknown));
    }

    fn part(&self, shard: ShardId) -> MutexGuard<'_, Part> {
        self.parts[usize::from(shard.0)].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    fn waiter(replies: &Replies, shard: u16, now: u64) -> (ReplyTo, Receiver<Outcome>) {
        let (sender, outcomes) = sync_channel(1);
        let reply = Box::new(move |outcome| drop(sender.send(outcome)));
        (replies.add(ShardId(shard), reply, Mono(now)), outcomes)
    }

    #[test]
    fn each_waits_for_its_own_outcome_and_once() {
        let replies = Replies::new(NodeId(0), 2);
        let (one, first) = waiter(&replies, 1, 0);
        let (two, second) = waiter(&replies, 1, 0);
        replies.give(two, Outcome::Count(2));
        replies.give(one, Outcome::Count(1));
        assert!(matches!((first.recv(), second.recv()), (Ok(Outcome::Count(1)), Ok(Outcome::Count(2)))));
        let (_, third) = waiter(&replies, 1, 0);
        for stale in [
            one,
            two,
            ReplyTo { node: NodeId(9), number: one.number },
            ReplyTo { node: NodeId(0), number: u64::MAX },
        ] {
            replies.give(stale, Outcome::Missing);
        }
        assert!(third.try_recv().is_err(), "who waits now has another number than who waited there before");
    }

    #[test]
    fn who_waits_for_a_shard_that_ended_or_for_too_long_is_told_that_nobody_knows() {
        let replies = Replies::new(NodeId(0), 2);
        let ((_, gone), (_, old), (young, there)) =
            (waiter(&replies, 0, 0), waiter(&replies, 1, 0), waiter(&replies, 1, 1000));
        replies.end(ShardId(0));
        assert!(matches!(gone.try_recv(), Ok(Outcome::Unknown)) && old.try_recv().is_err());
        let (sender, far) = sync_channel(1);
        let wait = |sender: SyncSender<Outcome>| -> Reply<Outcome> {
            Box::new(move |outcome| drop(sender.send(outcome)))
        };
        replies.add_at(NodeId(7), ShardId(1), wait(sender), Mono(1000));
        replies.lose(NodeId(7), false);
        assert!(matches!(far.try_recv(), Ok(Outcome::Unknown)) && old.try_recv().is_err());
        // Somebody who has not heard of it sends a command there, or on to it.
        let ((late, later), (sender, forwarded)) = (sync_channel(2), sync_channel(1));
        replies.add_at(NodeId(7), ShardId(1), wait(late.clone()), Mono(1000));
        assert!(later.try_recv().is_err());
        replies.lose(NodeId(7), true);
        replies.add_at(NodeId(7), ShardId(1), wait(late), Mono(1000));
        assert!([later.try_recv(), later.try_recv()].iter().all(|got| matches!(got, Ok(Outcome::Unknown))));
        let to = replies.add_at(NodeId(8), ShardId(1), wait(sender), Mono(1000));
        replies.forwarded(to, NodeId(7));
        assert!(matches!(forwarded.try_recv(), Ok(Outcome::Unknown)));
        replies.expire(Mono(LOST_AFTER_MS));
        assert!(matches!(old.try_recv(), Ok(Outcome::Unknown)) && there.try_recv().is_err());
        replies.give(young, Outcome::Count(0));
        assert!(matches!(there.try_recv(), Ok(Outcome::Count(0))));
    }
}
