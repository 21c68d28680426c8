//! Watchers of notifications: they are told the states that these reach.

use carillon_core::command::StateChange;
use carillon_core::model::{DomainId, States};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Takes changes until it returns false.
pub(crate) type Sink = Box<dyn Fn(&StateChange) -> bool + Send + Sync>;

/// A watcher of changes, known to every shard.
pub(crate) struct Watcher {
    domain: Option<DomainId>,
    states: States,
    sink: Sink,
    /// Its sink has returned false.
    gone: AtomicBool,
}

impl Watcher {
    /// Creates a watcher of the changes of `domain`, or of all domains, that reach one of `states`.
    pub(crate) fn new(domain: Option<DomainId>, states: States, sink: Sink) -> Arc<Watcher> {
        Arc::new(Watcher { domain, states, sink, gone: AtomicBool::new(false) })
    }

    /// Tells it of a change; false if it wants no more.
    fn notify(&self, change: &StateChange) -> bool {
        let StateChange { domain, trace } = change;
        if self.gone.load(Ordering::Relaxed) {
            return false;
        }
        let wants = self.domain.is_none_or(|wanted| wanted == *domain) && self.states.contains(trace.state);
        let goes_on = !wants || (self.sink)(change);
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
    /// The states that any watcher wants.
    states: States,
}

impl Watchers {
    /// Adds a watcher. Beyond the bound the oldest is dropped: it may have left without being noticed.
    pub(crate) fn add(&mut self, watcher: Arc<Watcher>) {
        self.all.retain(|watcher| !watcher.gone.load(Ordering::Relaxed));
        if self.all.len() >= WATCHERS_MAX {
            self.all.remove(0).gone.store(true, Ordering::Relaxed);
        }
        self.all.push(watcher);
        self.count();
    }

    /// The states that any watcher wants; changes of other states need not be made.
    pub(crate) fn states(&self) -> States {
        self.states
    }

    /// Tells all watchers of a change.
    pub(crate) fn notify(&mut self, change: &StateChange) {
        let before = self.all.len();
        self.all.retain(|watcher| watcher.notify(change));
        if self.all.len() < before {
            self.count();
        }
    }

    fn count(&mut self) {
        self.states = self.all.iter().fold(States::NONE, |all, watcher| all.with(watcher.states));
    }
}

const WATCHERS_MAX: usize = 4096;
