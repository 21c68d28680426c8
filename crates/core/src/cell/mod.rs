//! Who of a cell lives: what a node concludes from the beats that it hears and from what it reads of the store, on its own clock alone.
//!
//! The verdict that a node is dead is a row of the store ([`Members::bury`](crate::ports::Members::bury)). This says when to ask for it, and
//! when a node has to stop acting itself, because another may have it buried and it would not know:
//!
//! | what is observed | what follows |
//! |---|---|
//! | no beat of a member for 9 s, while beats of one's own come back | it may be buried |
//! | one's own row says dead | fenced for good |
//! | nothing read of the store for 6 s, while another says that its reads work | fenced until something is read |
//! | one's own clock went on by 6 s between two looks | fenced until something is read: this process was stopped |
//! | nothing read for 6 s, and nobody says that its reads work | nothing: nobody can be buried |
//!
//! A node that is fenced delivers nothing and ends nothing. Since it may be stopped between two looks, whoever acts for it compares the clock with
//! [`Watch::acts_until`] before the effects are carried out.

#[cfg(test)]
mod tests;

use crate::model::{Epoch, Map, Mono};
use crate::ports::Membership;
use std::sync::Arc;

/// A member without a beat for so long may be buried.
pub const SILENCE_MS: u64 = 9_000;
/// A node that could read nothing for so long may be buried without knowing.
pub const BLIND_MS: u64 = 6_000;
/// Beats that come once per second are late after this: what was concluded from their coming holds no longer.
const LATE_MS: u64 = 3_000;

/// What a node has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This one is silent: it is to be buried.
    Bury(Epoch),
    /// The node must act no longer.
    Fence(Fence),
    /// It may act again.
    Unfence,
}

/// Why a node must not act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// It is dead: its row says so. It ends, and starts again with another epoch.
    Buried,
    /// It cannot read the store, and others can.
    Blind,
    /// It did nothing for so long that others may have buried it.
    Stopped,
}

/// What a node knows of the others.
#[derive(Debug)]
pub struct Watch {
    own: Epoch,
    membership: Membership,
    nodes: Map<Epoch, Observed>,
    /// When the last reading of the store that succeeded began.
    read: Mono,
    /// When a beat of its own came back last, and since when they come back without a pause.
    own_beat: Option<Mono>,
    hears_since: Mono,
    looked: Mono,
    /// Why it must not act, and since when.
    fence: Option<(Fence, Mono)>,
}

/// What is heard of a node.
#[derive(Debug)]
struct Observed {
    count: u64,
    moved: Mono,
    /// When it said last that its reads work.
    reads: Option<Mono>,
}

impl Watch {
    /// For a node that has just registered.
    pub fn new(own: Epoch, now: Mono) -> Watch {
        Watch {
            own,
            membership: Membership::default(),
            nodes: Map::default(),
            read: now,
            own_beat: None,
            hears_since: now,
            looked: now,
            fence: None,
        }
    }

    /// A beat was heard. One that does not count further than the one before says nothing.
    pub fn beat(&mut self, from: Epoch, count: u64, store: bool, now: Mono) {
        if from == self.own {
            if self.own_beat.is_none_or(|at| now.since(at) > LATE_MS) {
                self.hears_since = now;
            }
            self.own_beat = Some(now);
            return;
        }
        let known = self.nodes.get(&from).is_some_and(|node| count <= node.count);
        if known {
            return;
        }
        let reads = if store { Some(now) } else { self.nodes.get(&from).and_then(|node| node.reads) };
        self.nodes.insert(from, Observed { count, moved: now, reads });
    }

    /// The store was read; the reading began then.
    pub fn read(&mut self, began: Mono, membership: Membership, now: Mono) {
        self.read = self.read.max(began);
        // Whoever is new has its time from now on.
        for epoch in membership.living() {
            if epoch != self.own {
                self.nodes.entry(epoch).or_insert(Observed { count: 0, moved: now, reads: None });
            }
        }
        let living = membership.living();
        self.nodes.retain(|epoch, node| living.contains(epoch) || now.since(node.moved) <= SILENCE_MS);
        self.membership = membership;
    }

    /// Looks at the clock, at least once per second. What follows, each once; but a burial again and again until it is seen.
    pub fn look(&mut self, now: Mono) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        let before = self.fence();
        self.fence = self.fenced(now);
        self.looked = now;
        match self.fence() {
            Some(fence) if before != Some(fence) => verdicts.push(Verdict::Fence(fence)),
            None if before.is_some() => verdicts.push(Verdict::Unfence),
            _ => {}
        }
        if self.fence.is_none() {
            verdicts.extend(self.silent(now).map(Verdict::Bury));
        }
        verdicts
    }

    /// Until when the node may act, if it is not looked at the clock before.
    pub fn acts_until(&self) -> Option<Mono> {
        self.fence.is_none().then(|| self.looked.plus(BLIND_MS))
    }

    /// Why the node must not act, if it must not.
    pub fn fence(&self) -> Option<Fence> {
        self.fence.map(|(fence, _)| fence)
    }

    /// Who lives, and the newest epoch that is known of, for [`Claims::view`](crate::ports::Claims::view).
    pub fn view(&self) -> (Arc<[Epoch]>, Epoch) {
        (self.membership.living().into(), self.membership.newest)
    }

    /// When a node was heard last, or became known; this node, when its own beat came back last.
    pub fn heard(&self, epoch: Epoch) -> Option<Mono> {
        if epoch == self.own { self.own_beat } else { self.nodes.get(&epoch).map(|node| node.moved) }
    }

    /// When the last reading of the store that succeeded began.
    pub fn read_at(&self) -> Mono {
        self.read
    }

    /// The nodes as they were read last.
    pub fn membership(&self) -> &Membership {
        &self.membership
    }

    fn fenced(&mut self, now: Mono) -> Option<(Fence, Mono)> {
        if self.fence() == Some(Fence::Buried) || self.is_buried() {
            return Some((Fence::Buried, now));
        }
        if now.since(self.looked) >= BLIND_MS {
            // Nothing that was heard before says who is silent now.
            (self.own_beat, self.hears_since) = (None, now);
            return Some((Fence::Stopped, now));
        }
        match self.fence {
            Some((_, at)) if self.read >= at => None,
            None if now.since(self.read) >= BLIND_MS && self.others_read(now) => Some((Fence::Blind, now)),
            unchanged => unchanged,
        }
    }

    /// Whether the store says that this node is dead: its row, or that there is none although there is a newer one.
    fn is_buried(&self) -> bool {
        let own = self.membership.members.iter().find(|member| member.epoch == self.own);
        own.map_or(self.membership.newest >= self.own, |own| own.is_dead)
    }

    fn others_read(&self, now: Mono) -> bool {
        self.nodes.values().any(|node| node.reads.is_some_and(|at| now.since(at) <= LATE_MS))
    }

    /// Members that were silent for long enough while others were heard.
    fn silent(&self, now: Mono) -> impl Iterator<Item = Epoch> {
        let hears = self.own_beat.is_some_and(|at| now.since(at) <= LATE_MS);
        let since = self.hears_since;
        let is_silent = move |node: &Observed| now.since(node.moved.max(since)) >= SILENCE_MS;
        let members = self.membership.living().into_iter().filter(move |_| hears);
        members.filter(move |epoch| self.nodes.get(epoch).is_some_and(is_silent))
    }
}
