//! Which sessions of this shard follow which topic, and the walk that gives them an item.
//!
//! Upstream nobody lists subscribers: a [`Notice`] comes once to each shard, and the shard walks its own dense list of slots.
//! The list is shared with the walks under way (`Arc`) and copied only if it changes while one is. A walk is done in slices,
//! so that logins and direct messages go in between; walks are done one after the other, so that a session sees the items of
//! a topic in their order.

use crate::model::{Map, Revision, TopicId};
use crate::topic::Notice;
use std::collections::VecDeque;
use std::sync::Arc;

/// The topics that sessions of this shard follow.
#[derive(Debug, Default)]
pub struct Subscribers {
    topics: Map<TopicId, Local>,
    walks: VecDeque<Walk>,
    /// The highest revision of any notice that came.
    revision: Revision,
}

/// A topic as this shard sees it.
#[derive(Debug, Default)]
struct Local {
    slots: Arc<Vec<u32>>,
    /// The newest notice that is sent at login, if the topic has one.
    last: Option<Arc<Notice>>,
    /// Turns of housekeeping since somebody here followed it.
    idle: u8,
}

/// A fan-out under way.
#[derive(Debug)]
struct Walk {
    notice: Arc<Notice>,
    slots: Arc<Vec<u32>>,
    next: usize,
}

impl Subscribers {
    /// A session follows a topic from now on; its position in the topic's list, to be given to [`Subscribers::remove`].
    /// `last` is what the store knew to be the topic's last item.
    pub fn add(&mut self, topic: TopicId, slot: u32, last: Option<Arc<Notice>>) -> u32 {
        let local = self.topics.entry(topic).or_default();
        local.idle = 0;
        let slots = Arc::make_mut(&mut local.slots);
        slots.push(slot);
        let position = slots.len() as u32 - 1;
        if let Some(last) = last {
            local.newer(last);
        }
        position
    }

    /// The session at this position follows the topic no longer. The slot of the session that took its position, if any:
    /// it must be told. No search, so that fifteen thousand sessions can go at once.
    pub fn remove(&mut self, topic: TopicId, position: u32) -> Option<u32> {
        let slots = Arc::make_mut(&mut self.topics.get_mut(&topic)?.slots);
        slots.swap_remove(position as usize);
        slots.get(position as usize).copied()
    }

    /// The notice that is sent for a topic at login, if any.
    pub fn last(&self, topic: TopicId) -> Option<&Arc<Notice>> {
        self.topics.get(&topic)?.last.as_ref()
    }

    /// The highest revision of any notice that came: what a session that was just given all last items has seen.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// A notice came: what it means for later logins is noted, and its walk is put in line.
    pub fn publish(&mut self, notice: &Arc<Notice>) {
        self.revision = self.revision.max(notice.revision());
        // Also without followers here: a login whose data were read before may be on its way.
        let local = self.topics.entry(notice.topic()).or_default();
        match notice.retained() {
            crate::topic::Retained::Last(last) => local.newer(last.clone()),
            crate::topic::Retained::Nothing => local.last = None,
            crate::topic::Retained::Unchanged => {}
        }
        if notice.is_told() && !local.slots.is_empty() {
            self.walks.push_back(Walk { notice: notice.clone(), slots: local.slots.clone(), next: 0 });
        }
    }

    /// The next subscribers to give a notice to, at most `max`, or none when no walk is under way.
    pub fn slice(&mut self, max: usize) -> Option<(Arc<Notice>, Arc<Vec<u32>>, std::ops::Range<usize>)> {
        let walk = self.walks.front_mut()?;
        let range = walk.next..(walk.next + max).min(walk.slots.len());
        walk.next = range.end;
        let slice = (walk.notice.clone(), walk.slots.clone(), range);
        if walk.next == walk.slots.len() {
            self.walks.pop_front();
        }
        Some(slice)
    }

    /// Whether a walk is under way.
    pub fn is_walking(&self) -> bool {
        !self.walks.is_empty()
    }

    /// Forgets topics that nobody here followed for two calls. Called less often than the longest login takes.
    pub fn tidy(&mut self) {
        self.topics.retain(|_, local| {
            if local.slots.is_empty() {
                local.idle += 1;
            }
            local.idle < 3
        });
        if self.topics.capacity() > 4 * self.topics.len() + 64 {
            self.topics.shrink_to_fit();
        }
    }
}

impl Local {
    fn newer(&mut self, last: Arc<Notice>) {
        if self.last.as_ref().is_none_or(|l| l.revision() <= last.revision()) {
            self.last = Some(last);
        }
    }
}
