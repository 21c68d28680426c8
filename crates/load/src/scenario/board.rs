//! Where the threads of a run tell each other how far they are.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

use super::RunError;

/// The longest the conductor sleeps without looking at the board.
const GLANCE: Duration = Duration::from_millis(20);

/// A number that only grows. It publishes nothing but itself, so its order with other memory does not matter.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicUsize);

/// Counts of all threads, and the conductor's signals to them.
#[derive(Debug)]
pub(super) struct Board {
    conductor: Thread,
    population: usize,
    /// Logins that succeeded.
    pub(super) online: Counter,
    /// Logins that failed.
    pub(super) failed: Counter,
    /// Sessions that ended unasked.
    pub(super) lost: Counter,
    /// Threads that ended.
    pub(super) gone: Counter,
    /// What the scenario counts.
    pub(super) done: Counter,
    /// What the scenario counts of failures.
    pub(super) refused: Counter,
    go: AtomicBool,
    stop: AtomicBool,
}

impl Counter {
    pub(super) fn add(&self, count: usize) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn value(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Board {
    /// The calling thread is the conductor of so many clients.
    pub(super) fn new(population: usize) -> Self {
        Self {
            conductor: std::thread::current(),
            population,
            online: Counter::default(),
            failed: Counter::default(),
            lost: Counter::default(),
            gone: Counter::default(),
            done: Counter::default(),
            refused: Counter::default(),
            go: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        }
    }

    /// Makes the conductor look at the board.
    pub(super) fn notify(&self) {
        self.conductor.unpark();
    }

    /// Makes the conductor look once every login has an outcome.
    pub(super) fn settle_logins(&self) {
        if self.logins_are_over() {
            self.notify();
        }
    }

    /// Every login has succeeded or failed.
    pub(super) fn logins_are_over(&self) -> bool {
        self.online.value() + self.failed.value() >= self.population
    }

    /// How far the run was when its time was over.
    pub(super) fn deadline(&self) -> RunError {
        RunError::Deadline {
            population: self.population,
            online: self.online.value(),
            failed: self.failed.value(),
            lost: self.lost.value(),
        }
    }

    /// As the conductor: waits until something is so; `false` if it is not by the deadline.
    pub(super) fn wait(&self, deadline: Instant, mut so: impl FnMut() -> bool) -> bool {
        loop {
            if so() {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            std::thread::park_timeout(left.min(GLANCE));
        }
    }

    /// Lets the scenario's action begin.
    pub(super) fn start(&self) {
        self.go.store(true, Ordering::Release);
    }

    pub(super) fn started(&self) -> bool {
        self.go.load(Ordering::Acquire)
    }

    /// Ends the run.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}
