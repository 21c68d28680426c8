//! Receipts as they happen, shared by the streams that want the same ones.

use carillon_core::command::StateChange;
use carillon_core::model::{DomainId, States, Trace};
use carillon_server::node::Node;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};

/// Receipts that are told once, as they happen: of what has not ended, and of notifications that are not stored. One feed for each topic
/// that is followed.
pub(crate) struct Feeds {
    open: Mutex<HashMap<Topic, Arc<Feed>>>,
    streams: Arc<Semaphore>,
    events_max: usize,
}

type Feed = broadcast::Sender<Arc<Trace>>;

/// What a feed is about: the receipts of a domain, or of all, that reach one of these states.
pub(super) type Topic = (Option<DomainId>, States);

impl Feeds {
    /// Feeds for at most `streams_max` streams, each of which may be `events_max` events behind.
    pub(crate) fn new(events_max: usize, streams_max: usize) -> Feeds {
        Feeds { open: Mutex::default(), streams: Arc::new(Semaphore::new(streams_max)), events_max }
    }

    /// Room for a stream, if there is any.
    pub(super) fn streams(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.streams).try_acquire_owned().ok()
    }

    /// The receipts of a topic from now on.
    pub(super) fn subscribe(&self, node: &Node, topic: Topic) -> broadcast::Receiver<Arc<Trace>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = open.get(&topic) {
            let receipts = feed.subscribe();
            // Alone on the feed, this stream cannot tell whether the node has dropped its sink already.
            if feed.receiver_count() > 1 {
                return receipts;
            }
        }
        open.retain(|_, feed| feed.receiver_count() > 0);
        let (feed, receipts) = broadcast::channel(self.events_max);
        let feed = Arc::new(feed);
        let weak = Arc::downgrade(&feed);
        open.insert(topic, feed);
        let (domain, states) = topic;
        let sink = move |change: &StateChange| weak.upgrade().is_some_and(|feed| publish(&feed, change));
        node.watch(domain, states, Box::new(sink));
        receipts
    }

    /// Ends the feeds of a domain that is gone.
    pub(crate) fn forget(&self, domain: DomainId) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(of, _), _| *of != Some(domain));
    }
}

/// Whether anyone listens still. Never blocks: a stream that is too far behind loses the oldest events, and is told how
/// many.
fn publish(feed: &Feed, change: &StateChange) -> bool {
    let trace = &change.trace;
    // The ends of what is stored are events of the store.
    let is_here = trace.ended.is_none() || !trace.is_kept();
    feed.receiver_count() > 0 && (!is_here || feed.send(Arc::clone(trace)).is_ok())
}
