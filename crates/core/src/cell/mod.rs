//! Who of a cell lives: what a node concludes from the beats that it hears and from what it reads of the store, on its own clock alone.
//!
//! The verdict that a node is dead is a row of the store ([`Members::bury`](crate::ports::Members::bury)). This says when to ask for it, and
//! when a node has to stop acting itself, because another may have it buried and it would not know:
//!
//! | what is observed | what follows |
//! |---|---|
//! | no beat of a member for 9 s, while beats of one's own come back | it may be buried |
//! | no beat of a member for 1 s, and the store has no connection of it any more in two readings | it may be buried: its process is gone |
//! | one's own row says dead | fenced for good |
//! | nothing read of the store for 6 s, while another says that its reads work | fenced until something is read |
//! | one's own clock went on by 6 s between two looks | fenced until something is read: this process was stopped |
//! | the bus cannot be reached, and reading fails | fenced until something is read: others may find that this process is gone |
//! | nothing read for 6 s, and nobody says that its reads work | nothing: nobody can be buried |
//!
//! Whoever has not heard its own beats and read the store without a pause for 5 s concludes nothing from connections: all of them may just come
//! back.
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
/// A member without a beat for so long, of which the store has no connection any more, may be buried: beats come twice per second.
pub const GONE_MS: u64 = 1_000;
/// A beat that comes so late may be missing.
const EARLY_MS: u64 = 600;
/// Who was away for a moment reaches the bus and the store again within this.
const RETURN_MS: u64 = 5_000;
/// Two readings that tell something of connections are at least so far apart.
const APART_MS: u64 = 200;
/// A node that could read nothing for so long may be buried without knowing.
pub const BLIND_MS: u64 = 6_000;
/// Beats that come twice per second are late after this: what was concluded from their coming holds no longer.
const LATE_MS: u64 = 3_000;

/// What a node has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This one is to be buried.
    Bury(Epoch, Death),
    /// The node must act no longer.
    Fence(Fence),
    /// It may act again.
    Unfence,
}

/// Why a node counts as dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// Its process is gone: neither the bus nor the store has a connection of it.
    Gone,
    /// Nothing was heard of it for long.
    Silent,
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
    /// It reaches neither the others nor the store.
    Alone,
}

/// What a node knows of the others.
#[derive(Debug)]
pub struct Watch {
    own: Epoch,
    membership: Membership,
    nodes: Map<Epoch, Observed>,
    /// When the last reading of the store that succeeded began.
    read: Mono,
    /// Since when readings succeed without a pause, and whether the last one failed.
    reads_since: Mono,
    read_failed: bool,
    /// Whether the bus can be reached.
    reaches_bus: bool,
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
    /// How far it has counted its beats.
    count: Option<u64>,
    moved: Mono,
    /// When it said last that its reads work.
    reads: Option<Mono>,
    /// Its connections to the store.
    connections: Connections,
}

/// What was read of a node's connections to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connections {
    /// None was seen yet: it says nothing that there is none.
    Unseen,
    /// There was one.
    Open,
    /// There was one before, and none in a reading that began then, nor since.
    Gone(Mono),
}

impl Connections {
    fn read(&mut self, is_connected: bool, began: Mono) {
        *self = match *self {
            _ if is_connected => Connections::Open,
            Connections::Open => Connections::Gone(began),
            unchanged => unchanged,
        };
    }
}

impl Watch {
    /// For a node that has just registered.
    pub fn new(own: Epoch, now: Mono) -> Watch {
        Watch {
            own,
            membership: Membership::default(),
            nodes: Map::default(),
            read: now,
            reads_since: now,
            read_failed: false,
            reaches_bus: true,
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
        let node = self.nodes.entry(from).or_insert(Observed::new(now));
        if node.count.is_some_and(|known| count <= known) {
            return;
        }
        (node.count, node.moved) = (Some(count), now);
        if store {
            node.reads = Some(now);
        }
    }

    /// Notes whether the bus can be reached.
    pub fn note_bus(&mut self, reaches_bus: bool) {
        self.reaches_bus = reaches_bus;
    }

    /// Notes that the store could not be read.
    pub fn note_failed_read(&mut self) {
        self.read_failed = true;
    }

    /// The store was read; the reading began then.
    pub fn read(&mut self, began: Mono, membership: Membership, now: Mono) {
        if self.read_failed || began.since(self.read) > LATE_MS {
            self.reads_since = began;
        }
        self.read_failed = false;
        self.read = self.read.max(began);
        // Whoever is new has its time from now on.
        for member in membership.members.iter().filter(|member| !member.is_dead && member.epoch != self.own) {
            let node = self.nodes.entry(member.epoch).or_insert(Observed::new(now));
            node.connections.read(member.is_connected, began);
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
            let dead = |epoch| Some(Verdict::Bury(epoch, self.death(epoch, now)?));
            verdicts.extend(self.others().filter_map(dead));
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
            None if !self.reaches_bus && self.read_failed && self.has_others() => Some((Fence::Alone, now)),
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

    /// The other members that live.
    fn others(&self) -> impl Iterator<Item = Epoch> {
        self.membership.living().into_iter().filter(|epoch| *epoch != self.own)
    }

    fn has_others(&self) -> bool {
        self.others().next().is_some()
    }

    /// Whether this node hears others: its own beats come back.
    fn hears(&self, now: Mono) -> bool {
        self.own_beat.is_some_and(|at| now.since(at) <= LATE_MS)
    }

    /// Why a member counts as dead, if it does.
    fn death(&self, epoch: Epoch, now: Mono) -> Option<Death> {
        if self.is_gone(epoch, now) {
            return Some(Death::Gone);
        }
        self.is_silent(epoch, now).then_some(Death::Silent)
    }

    /// Whether a member was silent for long enough while others were heard.
    fn is_silent(&self, epoch: Epoch, now: Mono) -> bool {
        let since = |node: &Observed| node.moved.max(self.hears_since);
        self.hears(now) && self.nodes.get(&epoch).is_some_and(|node| now.since(since(node)) >= SILENCE_MS)
    }

    /// Whether the process of a member is gone: neither the bus nor the store has a connection of it.
    fn is_gone(&self, epoch: Epoch, now: Mono) -> bool {
        let is_steady = now.since(self.hears_since) >= RETURN_MS && now.since(self.reads_since) >= RETURN_MS;
        is_steady && self.hears(now) && !self.read_failed && self.is_missed(epoch, now)
    }

    /// Whether its beat is overdue, and two readings saw no connection of it.
    fn is_missed(&self, epoch: Epoch, now: Mono) -> bool {
        let Some(node) = self.nodes.get(&epoch) else { return false };
        let Connections::Gone(at) = node.connections else { return false };
        // The bus works: one's own beat has come since the member's was due.
        let bus_works = self.own_beat.is_some_and(|own| own.since(node.moved) >= EARLY_MS);
        bus_works && now.since(node.moved) >= GONE_MS && self.read.since(at) >= APART_MS
    }

    /// Whether the store is to be read more often than once per second: a member is late.
    pub fn is_urgent(&self, now: Mono) -> bool {
        let is_late = |epoch: Epoch| {
            let node = self.nodes.get(&epoch);
            node.is_some_and(|node| (EARLY_MS..SILENCE_MS).contains(&now.since(node.moved)))
        };
        self.others().any(is_late)
    }
}

impl Observed {
    /// Of a node of which nothing was heard.
    fn new(now: Mono) -> Observed {
        Observed { count: None, moved: now, reads: None, connections: Connections::Unseen }
    }
}
