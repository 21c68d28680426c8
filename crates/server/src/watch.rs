//! Those who want to hear of events.

use carillon_core::command::Event;
use carillon_core::model::{DomainId, States};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Takes events until it returns false.
pub(crate) type Sink = Box<dyn Fn(&Event) -> bool + Send + Sync>;

/// One who wants to hear of events, known to every shard.
pub(crate) struct Watcher {
    domain: Option<DomainId>,
    states: States,
    sink: Sink,
    /// It has heard enough.
    gone: AtomicBool,
}

impl Watcher {
    /// One who wants those of `domain`, or all, that reach one of `states`.
    pub(crate) fn new(domain: Option<DomainId>, states: States, sink: Sink) -> Arc<Watcher> {
        Arc::new(Watcher { domain, states, sink, gone: AtomicBool::new(false) })
    }

    /// Tells it; false when it wants no more.
    fn notify(&self, event: &Event) -> bool {
        let Event::Notification { domain, trace } = event;
        if self.gone.load(Ordering::Relaxed) {
            return false;
        }
        let wants = self.domain.is_none_or(|wanted| wanted == *domain) && self.states.contains(trace.state);
        let goes_on = !wants || (self.sink)(event);
        if !goes_on {
            self.gone.store(true, Ordering::Relaxed);
        }
        goes_on
    }
}

/// The watchers as one shard knows them.
#[derive(Default)]
pub(crate) struct Watchers {
    all: Vec<Arc<Watcher>>,
    /// The states that any of them wants.
    states: States,
}

impl Watchers {
    /// One more. Past the bound the oldest makes room: it may be one that left and was never told of anything since.
    pub(crate) fn add(&mut self, watcher: Arc<Watcher>) {
        self.all.retain(|watcher| !watcher.gone.load(Ordering::Relaxed));
        if self.all.len() >= WATCHERS_MAX {
            self.all.remove(0).gone.store(true, Ordering::Relaxed);
        }
        self.all.push(watcher);
        self.count();
    }

    /// The states that any of them wants: of others no event need be made.
    pub(crate) fn states(&self) -> States {
        self.states
    }

    /// Tells all of them.
    pub(crate) fn notify(&mut self, event: &Event) {
        let before = self.all.len();
        self.all.retain(|watcher| watcher.notify(event));
        if self.all.len() < before {
            self.count();
        }
    }

    fn count(&mut self) {
        self.states = self.all.iter().fold(States::NONE, |all, watcher| all.with(watcher.states));
    }
}

const WATCHERS_MAX: usize = 4096;
