//! Those who want to hear of events.

use carillon_core::command::Event;
use carillon_core::model::DomainId;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Takes events until it returns false.
pub(crate) type Sink = Box<dyn Fn(&Event) -> bool + Send + Sync>;

/// One who wants to hear of events, known to every shard.
pub(crate) struct Watcher {
    domain: Option<DomainId>,
    sink: Sink,
    /// It has heard enough.
    gone: AtomicBool,
}

impl Watcher {
    /// One who wants those of `domain`, or all.
    pub(crate) fn new(domain: Option<DomainId>, sink: Sink) -> Arc<Watcher> {
        Arc::new(Watcher { domain, sink, gone: AtomicBool::new(false) })
    }

    /// Tells it; false when it wants no more.
    fn tell(&self, event: &Event) -> bool {
        let Event::Notification { domain, .. } = event;
        if self.gone.load(Ordering::Relaxed) {
            return false;
        }
        let goes_on = self.domain.is_some_and(|wanted| wanted != *domain) || (self.sink)(event);
        if !goes_on {
            self.gone.store(true, Ordering::Relaxed);
        }
        goes_on
    }
}

/// The watchers as one shard knows them.
#[derive(Default)]
pub(crate) struct Watchers(Vec<Arc<Watcher>>);

impl Watchers {
    /// One more. Past the bound the oldest makes room: it may be one that left and was never told of anything since.
    pub(crate) fn add(&mut self, watcher: Arc<Watcher>) {
        self.0.retain(|watcher| !watcher.gone.load(Ordering::Relaxed));
        if self.0.len() >= WATCHERS_MAX {
            self.0.remove(0).gone.store(true, Ordering::Relaxed);
        }
        self.0.push(watcher);
    }

    /// Tells all of them.
    pub(crate) fn tell(&mut self, event: &Event) {
        if !self.0.is_empty() {
            self.0.retain(|watcher| watcher.tell(event));
        }
    }
}

const WATCHERS_MAX: usize = 4096;
