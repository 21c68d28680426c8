//! Topics of which something may not have come here: each is read from the store, and what followers lack is told in its place. As long as
//! nothing is lost there are none.

use crate::model::{Map, Mono, PubsubEvent, Revision, Set, TopicId};
use std::collections::VecDeque;
use std::sync::Arc;

/// Topics that are read at the same time at most.
const READS_MAX: usize = 16;

/// Events of so many bytes are held back for a topic. Past it they are told, without what was before them.
const HELD_BYTES_MAX: usize = 4 << 20;

/// A topic that the store could not read is read again after this time.
const AGAIN_MS: u64 = 1000;

/// The topics that are read, and what is known to be missing.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    topics: Map<TopicId, Gap>,
    /// Those that are to be read, in their order.
    due: VecDeque<TopicId>,
    /// How many are being read.
    reads: usize,
    /// When those that the store could not read are due again.
    again: Option<Mono>,
    missing: Missing,
}

/// A topic that is to be read or is being read.
#[derive(Debug, Default)]
struct Gap {
    stage: Stage,
    /// Events that came behind something that did not, in order, and their bytes.
    held: Vec<Arc<PubsubEvent>>,
    held_bytes: usize,
    /// The newest of them when the store was asked: its answer contains everything before that.
    covered: Revision,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// It waits for its turn.
    #[default]
    Due,
    /// The store was asked.
    Asked,
    /// Something was lost after the store was asked.
    Outdated,
    /// The store could not answer.
    Failed,
}

impl Gaps {
    /// Something of a topic may have been lost until now.
    pub(super) fn look_into(&mut self, topic: TopicId) {
        let Gaps { topics, due, .. } = self;
        let gap = topics.entry(topic).or_insert_with(|| {
            due.push_back(topic);
            Gap::default()
        });
        if gap.stage == Stage::Asked {
            gap.stage = Stage::Outdated;
        }
    }

    /// Something of a topic is missing before this event, which is held back.
    pub(super) fn open(&mut self, event: &Arc<PubsubEvent>) {
        self.look_into(event.topic());
        if let Some(gap) = self.topics.get_mut(&event.topic()) {
            gap.held_bytes += event.bytes();
            gap.held.push(event.clone());
        }
    }

    /// Holds an event back if something before it is missing. Gives back all that is held once that is too much.
    pub(super) fn holds(&mut self, event: &Arc<PubsubEvent>) -> Held {
        if self.topics.is_empty() {
            return Held::No;
        }
        let Some(gap) = self.topics.get_mut(&event.topic()).filter(|gap| !gap.held.is_empty()) else {
            return Held::No;
        };
        gap.held_bytes += event.bytes();
        gap.held.push(event.clone());
        if gap.held_bytes <= HELD_BYTES_MAX {
            return Held::Yes;
        }
        gap.held_bytes = 0;
        Held::TooMuch(std::mem::take(&mut gap.held))
    }

    /// The next topic to be read, and the revision of the newest event that is held back for it, if any.
    pub(super) fn next(&mut self) -> Option<(TopicId, Option<Revision>)> {
        if self.reads >= READS_MAX {
            return None;
        }
        let topic = self.due.pop_front()?;
        let gap = self.topics.entry(topic).or_default();
        gap.stage = Stage::Asked;
        self.reads += 1;
        let newest = gap.held.iter().map(|event| event.revision()).max();
        gap.covered = newest.unwrap_or_default();
        Some((topic, newest))
    }

    /// A topic has been read. Returns what was held back for it, unless it has to be read again; and up to which revision the store had to know all.
    pub(super) fn read(&mut self, topic: TopicId) -> Option<(Vec<Arc<PubsubEvent>>, Revision)> {
        self.reads = self.reads.saturating_sub(1);
        let gap = self.topics.get_mut(&topic)?;
        if gap.stage == Stage::Outdated {
            gap.stage = Stage::Due;
            self.due.push_back(topic);
            return None;
        }
        self.topics.remove(&topic).map(|gap| (gap.held, gap.covered))
    }

    /// The oldest item that is held back for a topic.
    pub(super) fn oldest_held(&self, topic: TopicId) -> Option<Revision> {
        let held = &self.topics.get(&topic)?.held;
        held.iter().filter(|event| event.is_item()).map(|event| event.revision()).min()
    }

    /// Whether a topic is to be read or is being read.
    pub(super) fn is_open(&self, topic: TopicId) -> bool {
        self.topics.contains_key(&topic)
    }

    /// The store could not read a topic.
    pub(super) fn failed(&mut self, topic: TopicId, now: Mono) {
        self.reads = self.reads.saturating_sub(1);
        if let Some(gap) = self.topics.get_mut(&topic) {
            gap.stage = Stage::Failed;
            self.again.get_or_insert(now.plus(AGAIN_MS));
        }
    }

    /// When those that failed are due again.
    pub(super) fn due(&self) -> Option<Mono> {
        self.again
    }

    /// Those that failed are read again.
    pub(super) fn tick(&mut self, now: Mono) {
        if self.again.is_none_or(|at| at > now) {
            return;
        }
        self.again = None;
        let failed = self.topics.iter_mut().filter(|(_, gap)| gap.stage == Stage::Failed);
        let mut failed: Vec<TopicId> = failed
            .map(|(topic, gap)| {
                gap.stage = Stage::Due;
                *topic
            })
            .collect();
        failed.sort_unstable();
        self.due.extend(failed);
    }

    /// Gives back what the death of a node made it grow to.
    pub(super) fn tidy(&mut self) {
        if self.topics.is_empty() {
            self.topics.shrink_to_fit();
            self.due.shrink_to_fit();
        }
    }

    /// Notes that the followers were not told of revisions between these two, if there were any.
    pub(super) fn pass(&mut self, topic: TopicId, after: Revision, before: Revision) {
        self.missing.note(topic, after.0 + 1..before.0);
    }

    /// Whether this revision was skipped so. It is forgotten.
    pub(super) fn was_passed(&mut self, topic: TopicId, revision: Revision) -> bool {
        self.missing.take(topic, revision.0)
    }
}

/// What becomes of an event of a topic.
pub(super) enum Held {
    /// It is told.
    No,
    /// It waits.
    Yes,
    /// It and all that waited are told now.
    TooMuch(Vec<Arc<PubsubEvent>>),
}

/// Revisions of which nobody here was told, as many of the newest as have room.
#[derive(Debug, Default)]
struct Missing {
    revisions: Set<(TopicId, u64)>,
    order: VecDeque<(TopicId, u64)>,
}

/// How many are remembered: about 200 KiB. Of one place no more than the newest of them.
const MISSING_MAX: usize = 4096;
const MISSING_OF_ONE_MAX: u64 = 64;

impl Missing {
    fn note(&mut self, topic: TopicId, revisions: std::ops::Range<u64>) {
        let newest = revisions.end.saturating_sub(MISSING_OF_ONE_MAX).max(revisions.start)..revisions.end;
        for revision in newest {
            if !self.revisions.insert((topic, revision)) {
                continue;
            }
            if self.order.len() == MISSING_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.revisions.remove(&oldest);
            }
            self.order.push_back((topic, revision));
        }
    }

    fn take(&mut self, topic: TopicId, revision: u64) -> bool {
        if self.revisions.is_empty() || !self.revisions.remove(&(topic, revision)) {
            return false;
        }
        self.order.retain(|one| *one != (topic, revision));
        true
    }
}
