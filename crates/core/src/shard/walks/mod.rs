//! The fan-outs under way in a shard.
//!
//! Each topic has a queue of events, walked one after the other, so that its followers see them in order. The topics take
//! turns, one slice each, so that a flooded topic does not delay the others. The queues are bounded: when one is too long,
//! the shard is *behind* with its topic and says so, and the topic's home refuses further publications ([`super::Behind`]).

use crate::message::Pace;
use crate::model::{Map, PubsubEvent, TopicId};
use crate::settings::Fanout;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// The fan-outs under way.
#[derive(Debug, Default)]
pub(super) struct Walks {
    lines: Map<TopicId, Line>,
    /// The topics that have a queue, in the order of their turns.
    turns: VecDeque<TopicId>,
    backlog: PendingFanout,
}

/// Deliveries to followers that are still to be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingFanout {
    /// How many.
    pub deliveries: usize,
    /// Bytes of their events and of the lists of their recipients.
    pub bytes: usize,
}

impl std::ops::AddAssign for PendingFanout {
    fn add_assign(&mut self, other: PendingFanout) {
        self.deliveries += other.deliveries;
        self.bytes += other.bytes;
    }
}

/// An event on its way to the followers of its topic.
#[derive(Debug)]
pub(super) struct Walk {
    event: Arc<PubsubEvent>,
    slots: Arc<Vec<u32>>,
    next: usize,
    /// Sessions that were given all last items at this count or later have it.
    cutoff: u64,
}

/// A part of a walk.
#[derive(Debug)]
pub struct Slice {
    /// The event.
    pub event: Arc<PubsubEvent>,
    /// The slots of the walk.
    slots: Arc<Vec<u32>>,
    range: Range<usize>,
    /// Sessions that were given all last items at this count or later are passed over.
    pub(super) cutoff: u64,
    /// The topic with which the shard has just caught up.
    pub caught_up: Option<TopicId>,
}

/// The events of a topic that wait, and the one that is being walked.
#[derive(Debug, Default)]
struct Line {
    walks: VecDeque<Walk>,
    deliveries: usize,
    pace: Pace,
}

impl Walks {
    /// Queues a walk. Returns whether the shard has just fallen behind with the topic.
    pub(super) fn push(&mut self, walk: Walk, bounds: &Fanout) -> bool {
        let topic = walk.event.topic();
        let line = self.lines.entry(topic).or_default();
        if line.walks.is_empty() {
            self.turns.push_back(topic);
        }
        self.backlog.deliveries += walk.slots.len();
        self.backlog.bytes += walk.bytes();
        line.deliveries += walk.slots.len();
        line.walks.push_back(walk);
        let is_long =
            line.deliveries > bounds.waiting_deliveries || self.backlog.bytes > bounds.waiting_bytes;
        // An event alone is never too much, however many it is for.
        let falls_behind = is_long && line.walks.len() > 1 && line.pace == Pace::CaughtUp;
        if falls_behind {
            line.pace = Pace::Behind;
        }
        falls_behind
    }

    /// The next deliveries, at most `max`; none when no walk is under way.
    pub(super) fn next(&mut self, max: usize, bounds: &Fanout) -> Option<Slice> {
        let topic = self.turns.pop_front()?;
        let line = self.lines.get_mut(&topic).expect("a topic has its turn as long as it has a line");
        let walk = line.walks.front_mut().expect("a topic has a line as long as it has a walk");
        let range = walk.next..(walk.next + max).min(walk.slots.len());
        walk.next = range.end;
        let (event, slots, cutoff) = (walk.event.clone(), walk.slots.clone(), walk.cutoff);
        if range.end == slots.len() {
            self.backlog.bytes -= walk.bytes();
            line.walks.pop_front();
        }
        self.backlog.deliveries -= range.len();
        line.deliveries -= range.len();
        let caught_up = line.has_caught_up(self.backlog.bytes, bounds);
        if caught_up {
            line.pace = Pace::CaughtUp;
        }
        match line.walks.is_empty() {
            true => drop(self.lines.remove(&topic)),
            false => self.turns.push_back(topic),
        }
        Some(Slice { event, slots, range, cutoff, caught_up: caught_up.then_some(topic) })
    }

    /// Takes a slot out of the walks of such events of a topic.
    #[expect(clippy::indexing_slicing, reason = "a walk is never beyond the end of its list")]
    pub(super) fn pass_over(&mut self, topic: TopicId, slot: u32, is_such: impl Fn(&PubsubEvent) -> bool) {
        let Some(line) = self.lines.get_mut(&topic) else { return };
        for walk in line.walks.iter_mut().filter(|walk| is_such(&walk.event)) {
            if let Some(at) = walk.slots[walk.next..].iter().position(|s| *s == slot) {
                Arc::make_mut(&mut walk.slots)[walk.next + at] = u32::MAX;
            }
        }
    }

    /// Whether no walk is under way.
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// The deliveries that are still to be made.
    pub(super) fn backlog(&self) -> PendingFanout {
        self.backlog
    }

    /// Gives back what a burst made it grow to.
    pub(super) fn tidy(&mut self) {
        if self.is_empty() {
            self.lines.shrink_to_fit();
            self.turns.shrink_to_fit();
        }
    }
}

impl Walk {
    /// A walk that begins with the first of `slots`.
    pub(super) fn new(event: Arc<PubsubEvent>, slots: Arc<Vec<u32>>, cutoff: u64) -> Walk {
        Walk { event, slots, next: 0, cutoff }
    }

    /// Bytes that it may hold alone: its list is shared until a follower comes or goes.
    fn bytes(&self) -> usize {
        size_of::<Walk>() + self.event.bytes() + self.slots.len() * size_of::<u32>()
    }
}

impl Line {
    /// Whether the shard was behind with the topic and is not any more. Bytes of other topics count only while this topic
    /// holds some, too.
    fn has_caught_up(&self, bytes: usize, bounds: &Fanout) -> bool {
        let is_short = self.deliveries <= bounds.waiting_deliveries / 2 && bytes <= bounds.waiting_bytes / 2;
        self.pace == Pace::Behind && (is_short || self.walks.is_empty())
    }
}

impl Slice {
    /// The slots of the followers it is for; `u32::MAX` in place of one that is passed over.
    #[expect(clippy::indexing_slicing, reason = "the range is of this list")]
    pub fn slots(&self) -> &[u32] {
        &self.slots[self.range.clone()]
    }
}

#[cfg(test)]
mod tests;
