//! What a shard knows of sessions that a dead node left, and of what was published while they were nowhere.

use crate::feature_state::Shared;
use crate::model::{Item, Map, Mono, PubsubEvent, Revision, SessionId, TopicId};
use std::collections::VecDeque;
use std::sync::Arc;

/// Events of so many bytes are held back for a topic. Past it they are given up, and the topic is read again.
const HELD_BYTES_MAX: usize = 4 << 20;

/// The sessions that are behind, and what they lack.
#[derive(Debug, Default)]
pub struct Missed {
    /// With the topics that each waits for.
    pub(crate) sessions: VecDeque<(SessionId, Vec<TopicId>)>,
    pub(crate) topics: Map<TopicId, Reading>,
    /// A topic has been read since all sessions were looked at.
    pub(crate) has_news: bool,
    pub(crate) again: Option<Mono>,
}

/// A topic for which sessions wait.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) sessions: usize,
    pub(crate) stage: Stage,
    /// What was published meanwhile, in order, and its bytes.
    pub(crate) held: Vec<Arc<PubsubEvent>>,
    held_bytes: usize,
}

/// How far the reading of a topic has come.
#[derive(Debug, Default)]
pub(crate) enum Stage {
    /// The store is to be asked.
    #[default]
    Due,
    Asked,
    /// More was held back than may be, since the store was asked.
    Outdated,
    Read(Read),
}

/// What the store has of a topic.
#[derive(Debug, Default)]
pub(crate) struct Read {
    /// Oldest first, as followers are shown them.
    pub(crate) items: Vec<(Arc<Item>, Arc<PubsubEvent>)>,
    pub(crate) newest: Revision,
}

impl Shared for Missed {
    fn due(&self) -> Option<Mono> {
        self.again
    }
}

impl Missed {
    /// Holds an event back, if sessions wait for its topic.
    pub(crate) fn holds(&mut self, event: &Arc<PubsubEvent>) -> bool {
        let Some(reading) = self.topics.get_mut(&event.topic()) else { return false };
        // It comes once for each session.
        if reading.held.last().is_some_and(|last| Arc::ptr_eq(last, event)) {
            return true;
        }
        reading.held_bytes += event.bytes();
        reading.held.push(event.clone());
        if reading.held_bytes > HELD_BYTES_MAX {
            (reading.held, reading.held_bytes) = (Vec::new(), 0);
            reading.stage = match std::mem::take(&mut reading.stage) {
                Stage::Asked | Stage::Outdated => Stage::Outdated,
                Stage::Due | Stage::Read(_) => Stage::Due,
            };
            self.again = self.again.or(Some(Mono(0)));
        }
        true
    }

    /// Whether all of these topics have been read.
    pub(crate) fn has_read(&self, topics: &[TopicId]) -> bool {
        let is_read =
            |topic| self.topics.get(topic).is_none_or(|reading| matches!(reading.stage, Stage::Read(_)));
        topics.iter().all(is_read)
    }

    /// A session does not wait for these topics any more.
    pub(crate) fn release(&mut self, topics: &[TopicId]) {
        for topic in topics {
            if let Some(reading) = self.topics.get_mut(topic) {
                reading.sessions -= 1;
                if reading.sessions == 0 {
                    self.topics.remove(topic);
                }
            }
        }
    }
}
