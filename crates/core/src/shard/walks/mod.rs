//! The fan-outs under way in a shard, of topics and of rooms.
//!
//! Each topic, and each room, has a queue of events, walked one after the other, so that those who are given them see them in order. They take
//! turns, one slice each, so that a flooded one does not delay the others. The queues are bounded: when one is too long,
//! the shard is *behind* with it and says so, and its home refuses more ([`super::Behind`], [`RoomOp::Pace`](crate::message::RoomOp::Pace)).

use crate::message::Pace;
use crate::model::{Map, PubsubEvent, TopicId};
use crate::settings::Fanout;
use std::borrow::Borrow;
use std::collections::VecDeque;
use std::hash::Hash;
use std::ops::Range;
use std::sync::Arc;

/// Something that several are given, one after the other.
pub(super) trait FanOut: Clone {
    /// Names a queue: a topic or a room.
    type Line: Clone + Eq + Hash;
    /// Whose queue it is in.
    fn line(&self) -> Self::Line;
    /// How many deliveries it is.
    fn deliveries(&self) -> usize;
    /// Bytes that it may hold alone: what it shares with others counts in full.
    fn bytes(&self) -> usize;
}

/// The fan-outs under way.
#[derive(Debug)]
pub(super) struct Walks<F: FanOut> {
    lines: Map<F::Line, Line<F>>,
    /// Those that have a queue, in the order of their turns.
    turns: VecDeque<F::Line>,
    backlog: PendingFanout,
}

/// Deliveries that are still to be made.
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

/// A fan-out, and how far it is.
#[derive(Debug)]
struct Walk<F> {
    of: F,
    next: usize,
}

/// A part of a walk.
#[derive(Debug)]
pub(super) struct Part<F: FanOut> {
    pub(super) of: F,
    /// Which of its deliveries.
    pub(super) range: Range<usize>,
    /// The topic or room with which the shard has just caught up.
    pub(super) caught_up: Option<F::Line>,
}

/// The events of a topic or a room that wait, and the one that is being walked.
#[derive(Debug)]
struct Line<F> {
    walks: VecDeque<Walk<F>>,
    deliveries: usize,
    pace: Pace,
}

impl<F: FanOut> Default for Walks<F> {
    fn default() -> Walks<F> {
        Walks { lines: Map::default(), turns: VecDeque::new(), backlog: PendingFanout::default() }
    }
}

impl<F> Default for Line<F> {
    fn default() -> Line<F> {
        Line { walks: VecDeque::new(), deliveries: 0, pace: Pace::CaughtUp }
    }
}

impl<F: FanOut> Walks<F> {
    /// Queues a walk. Returns whether the shard has just fallen behind with its topic or room.
    pub(super) fn push(&mut self, of: F, bounds: &Fanout) -> bool {
        let (key, deliveries, bytes) = (of.line(), of.deliveries(), bytes_of(&of));
        let line = self.lines.entry(key.clone()).or_default();
        if line.walks.is_empty() {
            self.turns.push_back(key);
        }
        self.backlog.deliveries += deliveries;
        self.backlog.bytes += bytes;
        line.deliveries += deliveries;
        line.walks.push_back(Walk { of, next: 0 });
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
    pub(super) fn next(&mut self, max: usize, bounds: &Fanout) -> Option<Part<F>> {
        let key = self.turns.pop_front()?;
        let line = self.lines.get_mut(&key).expect("there is a turn as long as there is a line");
        let walk = line.walks.front_mut().expect("there is a line as long as there is a walk");
        let deliveries = walk.of.deliveries();
        let range = walk.next..(walk.next + max).min(deliveries);
        walk.next = range.end;
        let of = walk.of.clone();
        if range.end == deliveries {
            self.backlog.bytes -= bytes_of(&of);
            line.walks.pop_front();
        }
        self.backlog.deliveries -= range.len();
        line.deliveries -= range.len();
        let caught_up = line.has_caught_up(self.backlog.bytes, bounds);
        if caught_up {
            line.pace = Pace::CaughtUp;
        }
        let caught_up = caught_up.then(|| key.clone());
        match line.walks.is_empty() {
            true => drop(self.lines.remove(&key)),
            false => self.turns.push_back(key),
        }
        Some(Part { of, range, caught_up })
    }

    /// Whether something of a topic or a room waits.
    pub(super) fn waits<K: Eq + Hash + ?Sized>(&self, line: &K) -> bool
    where
        F::Line: Borrow<K>,
    {
        !self.lines.is_empty() && self.lines.contains_key(line)
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

/// Bytes that a walk may hold alone.
fn bytes_of<F: FanOut>(of: &F) -> usize {
    size_of::<Walk<F>>() + of.bytes()
}

/// An event on its way to the followers of its topic.
#[derive(Clone, Debug)]
pub(super) struct Publication {
    event: Arc<PubsubEvent>,
    slots: Arc<Vec<u32>>,
    /// Sessions that were given all last items at this count or later have it.
    cutoff: u64,
}

impl Publication {
    /// An event for these slots.
    pub(super) fn new(event: Arc<PubsubEvent>, slots: Arc<Vec<u32>>, cutoff: u64) -> Publication {
        Publication { event, slots, cutoff }
    }
}

impl FanOut for Publication {
    type Line = TopicId;

    fn line(&self) -> TopicId {
        self.event.topic()
    }

    fn deliveries(&self) -> usize {
        self.slots.len()
    }

    fn bytes(&self) -> usize {
        size_of::<Publication>() + self.event.bytes() + self.slots.len() * size_of::<u32>()
    }
}

/// A part of a walk over the followers of a topic.
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

impl From<Part<Publication>> for Slice {
    fn from(part: Part<Publication>) -> Slice {
        let Part { of: Publication { event, slots, cutoff }, range, caught_up } = part;
        Slice { event, slots, range, cutoff, caught_up }
    }
}

impl Slice {
    /// The slots of the followers it is for; `u32::MAX` in place of one that is passed over.
    #[expect(clippy::indexing_slicing, reason = "the range is of this list")]
    pub fn slots(&self) -> &[u32] {
        &self.slots[self.range.clone()]
    }
}

impl Walks<Publication> {
    /// Takes a slot out of the walks of such events of a topic.
    #[expect(clippy::indexing_slicing, reason = "a walk is never beyond the end of its list")]
    pub(super) fn pass_over(&mut self, topic: TopicId, slot: u32, is_such: impl Fn(&PubsubEvent) -> bool) {
        let Some(line) = self.lines.get_mut(&topic) else { return };
        for walk in line.walks.iter_mut().filter(|walk| is_such(&walk.of.event)) {
            if let Some(at) = walk.of.slots[walk.next..].iter().position(|s| *s == slot) {
                Arc::make_mut(&mut walk.of.slots)[walk.next + at] = u32::MAX;
            }
        }
    }
}

impl<F> Line<F> {
    /// Whether the shard was behind with the topic or room and is not any more. Bytes of others count only while this one
    /// holds some, too.
    fn has_caught_up(&self, bytes: usize, bounds: &Fanout) -> bool {
        let is_short = self.deliveries <= bounds.waiting_deliveries / 2 && bytes <= bounds.waiting_bytes / 2;
        self.pace == Pace::Behind && (is_short || self.walks.is_empty())
    }
}

#[cfg(test)]
mod tests;
