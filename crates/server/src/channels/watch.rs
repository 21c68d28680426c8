//! Watchers of notifications and of events: they are told the states that notifications reach, or that there is something to read in the store.

use carillon_core::command::StateChange;
use carillon_core::model::{DomainId, States};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Takes changes until it returns false.
pub(crate) type Sink = Box<dyn Fn(&StateChange) -> bool + Send + Sync>;

/// Hears that there are events until it returns false.
pub(crate) type Hint = Box<dyn Fn() -> bool + Send + Sync>;

/// A watcher, known to every shard.
pub(crate) struct Watcher {
    wanted: Wanted,
    /// What takes it has returned false.
    gone: AtomicBool,
}

/// What a watcher wants.
enum Wanted {
    /// Changes of notifications of `domain`, or of all, that reach one of `states`.
    Changes { domain: Option<DomainId>, states: States, sink: Sink },
    /// That there are events of which no change tells.
    Events(Hint),
}

impl Watcher {
    /// Creates a watcher of the changes of `domain`, or of all domains, that reach one of `states`.
    pub(crate) fn new(domain: Option<DomainId>, states: States, sink: Sink) -> Arc<Watcher> {
        Arc::new(Watcher { wanted: Wanted::Changes { domain, states, sink }, gone: AtomicBool::new(false) })
    }

    /// Creates a watcher of events of which no change tells.
    pub(crate) fn of_events(hint: Hint) -> Arc<Watcher> {
        Arc::new(Watcher { wanted: Wanted::Events(hint), gone: AtomicBool::new(false) })
    }

    /// Tells it of a change; false if it wants no more.
    fn notify(&self, change: &StateChange) -> bool {
        self.goes_on(|wanted| match wanted {
            Wanted::Changes { domain, states, sink } => {
                let is_wanted = domain.is_none_or(|wanted| wanted == change.domain)
                    && states.contains(change.trace.state);
                !is_wanted || sink(change)
            }
            Wanted::Events(_) => true,
        })
    }

    /// Tells it that there are events; false if it wants no more.
    fn hint(&self) -> bool {
        self.goes_on(|wanted| match wanted {
            Wanted::Changes { .. } => true,
            Wanted::Events(hint) => hint(),
        })
    }

    fn goes_on(&self, tell: impl FnOnce(&Wanted) -> bool) -> bool {
        if self.gone.load(Ordering::Relaxed) {
            return false;
        }
        let goes_on = tell(&self.wanted);
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
    /// Whether any watcher follows events.
    follow_events: bool,
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

    /// Whether any watcher follows events.
    pub(crate) fn follow_events(&self) -> bool {
        self.follow_events
    }

    /// Tells all watchers of a change.
    pub(crate) fn notify(&mut self, change: &StateChange) {
        self.tell(|watcher| watcher.notify(change));
    }

    /// Tells those who follow events that there are some.
    pub(crate) fn hint(&mut self) {
        self.tell(Watcher::hint);
    }

    fn tell(&mut self, tell: impl Fn(&Watcher) -> bool) {
        let before = self.all.len();
        self.all.retain(|watcher| tell(watcher));
        if self.all.len() < before {
            self.count();
        }
    }

    fn count(&mut self) {
        (self.states, self.follow_events) = (States::NONE, false);
        for watcher in &self.all {
            match &watcher.wanted {
                Wanted::Changes { states, .. } => self.states = self.states.with(*states),
                Wanted::Events(_) => self.follow_events = true,
            }
        }
    }
}

const WATCHERS_MAX: usize = 4096;
