//! What the light sessions of a shard share: the names of the topics they follow, which of them wait for which topic, and the
//! event that is being given to them, printed once.

use super::frame;
use crate::Effects;
use crate::model::{ConnId, Map, PubsubEvent, TopicId};
use std::ops::Range;
use std::sync::Arc;

/// What the light sessions of a shard share.
#[derive(Debug, Default)]
pub struct Shared {
    /// The topics that light sessions here follow.
    names: Map<TopicId, Name>,
    topics: Map<Arc<str>, TopicId>,
    /// Topics whose homes were asked, and the connections that wait: they share one question.
    asked: Map<String, Vec<ConnId>>,
    printed: Printed,
}

/// A topic's name, and how many follow it.
#[derive(Debug)]
struct Name {
    name: Arc<str>,
    followers: u32,
}

/// An event, printed for light sessions.
#[derive(Debug, Default)]
struct Printed {
    event: Option<Arc<PubsubEvent>>,
    bytes: Vec<u8>,
}

/// The range of the effects' bytes that several connections are sent. Valid until the effects are carried out.
#[derive(Debug, Default)]
pub struct Written(Option<Range<usize>>);

/// Bytes that the buffer of printed events keeps.
const PRINTED_BYTES_KEPT: usize = 64 * 1024;

impl Shared {
    /// The topic of this name, if a light session here follows it.
    pub(crate) fn topic(&self, name: &str) -> Option<TopicId> {
        self.topics.get(name).copied()
    }

    /// The name of a topic that a light session here follows.
    pub(crate) fn name(&self, topic: TopicId) -> Option<Arc<str>> {
        self.names.get(&topic).map(|known| known.name.clone())
    }

    /// One more connection follows a topic.
    pub(crate) fn follow(&mut self, topic: TopicId, name: &str) {
        let known = self.names.entry(topic).or_insert_with(|| Name { name: name.into(), followers: 0 });
        known.followers += 1;
        self.topics.insert(known.name.clone(), topic);
    }

    /// One connection less follows a topic.
    pub(crate) fn leave(&mut self, topic: TopicId) {
        let Some(known) = self.names.get_mut(&topic) else { return };
        known.followers -= 1;
        if known.followers > 0 {
            return;
        }
        // Another topic may have the name by now.
        if self.topics.get(&known.name) == Some(&topic) {
            self.topics.remove(&known.name);
        }
        self.names.remove(&topic);
        self.shrink();
    }

    /// Adds a connection that waits for a topic. Returns whether it is the first, so that the topic's home is to be asked.
    pub(crate) fn wait(&mut self, name: &str, conn: ConnId) -> bool {
        let waiting = self.asked.entry_ref(name).or_default();
        waiting.push(conn);
        waiting.len() == 1
    }

    /// The topics whose homes were asked and have not answered.
    pub(crate) fn asked(&self) -> Vec<String> {
        let mut names: Vec<_> = self.asked.keys().cloned().collect();
        // The order of the questions is to be the same in every run.
        names.sort_unstable();
        names
    }

    /// Takes the connections that wait for a topic, because its home has answered.
    pub(crate) fn waiting(&mut self, name: &str) -> Vec<ConnId> {
        self.asked.remove(name).unwrap_or_default()
    }

    /// The event as light sessions are given it, printed once for all of them. Empty when followers are told nothing.
    pub(crate) fn print(&mut self, event: &Arc<PubsubEvent>, name: &str) -> &[u8] {
        let printed = &mut self.printed;
        if !printed.event.as_ref().is_some_and(|known| Arc::ptr_eq(known, event)) {
            printed.bytes.clear();
            if let Some(news) = event.news() {
                frame::publish(&mut printed.bytes, name, &news);
            }
            printed.event = Some(event.clone());
        }
        &printed.bytes
    }

    /// Forgets the printed event, because no fan-out is under way.
    pub(crate) fn rest(&mut self) {
        self.printed.event = None;
        self.printed.bytes.clear();
        self.printed.bytes.shrink_to(PRINTED_BYTES_KEPT);
    }

    fn shrink(&mut self) {
        if self.names.len() * 4 + 64 < self.names.capacity() {
            self.names.shrink_to_fit();
            self.topics.shrink_to_fit();
            self.asked.shrink_to_fit();
        }
    }
}

impl Written {
    /// Sends what `write` appends; the next connections are sent the same bytes.
    pub(crate) fn send(&mut self, conn: ConnId, out: &mut Effects, write: impl FnOnce(&mut Vec<u8>)) {
        if let Some(range) = &self.0 {
            return out.send_again(conn, range.clone());
        }
        let start = out.bytes.len();
        out.send(conn, write);
        self.0 = Some(start..out.bytes.len());
    }
}
