//! What the light sessions of a shard share: the names of the topics they follow, who waits for which topic, and the item that
//! is being given to them, printed once.

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
    /// Topics that their homes were asked for, and who waits for it: one question for all of them.
    asked: Map<String, Vec<ConnId>>,
    printed: Printed,
}

/// A topic's name, and how many follow it.
#[derive(Debug)]
struct Name {
    name: Arc<str>,
    followers: u32,
}

/// An event as light sessions are given it.
#[derive(Debug, Default)]
struct Printed {
    event: Option<Arc<PubsubEvent>>,
    bytes: Vec<u8>,
}

/// Where in the effects' bytes stands what several connections are sent. Good until the effects are carried out.
#[derive(Debug, Default)]
pub struct Written(Option<Range<usize>>);

/// Bytes that the buffer of printed notices keeps.
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

    /// One more follows a topic.
    pub(crate) fn follow(&mut self, topic: TopicId, name: &str) {
        let known = self.names.entry(topic).or_insert_with(|| Name { name: name.into(), followers: 0 });
        known.followers += 1;
        self.topics.insert(known.name.clone(), topic);
    }

    /// One follows it no longer.
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

    /// Someone waits for a topic; whether nobody did before, so that its home is to be asked.
    pub(crate) fn wait(&mut self, name: &str, conn: ConnId) -> bool {
        let waiting = self.asked.entry_ref(name).or_default();
        waiting.push(conn);
        waiting.len() == 1
    }

    /// Those who wait for a topic, whose home has answered.
    pub(crate) fn waiting(&mut self, name: &str) -> Vec<ConnId> {
        self.asked.remove(name).unwrap_or_default()
    }

    /// An event as light sessions are given it: printed once for all of them. Empty when it says nothing.
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

    /// No fan-out is under way: nothing printed is kept.
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
    /// Sends what `write` appends, and to the next ones the same bytes again.
    pub(crate) fn send(&mut self, conn: ConnId, out: &mut Effects, write: impl FnOnce(&mut Vec<u8>)) {
        if let Some(range) = &self.0 {
            return out.send_again(conn, range.clone());
        }
        let start = out.bytes.len();
        out.send(conn, write);
        self.0 = Some(start..out.bytes.len());
    }
}
