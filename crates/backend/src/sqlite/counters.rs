//! What the store counts for the operator.

use super::complaints::Doing;
use carillon_core::model::Durations;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How a store is at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// The last read or the last write failed.
    pub fails: bool,
    /// Damage was met since the store was opened, or a disk that could not be read: SQLite reports both alike.
    pub may_be_damaged: bool,
    /// For how long the commit that is under way has been, if one is.
    pub committing: Option<Duration>,
}

/// Figures that grow from the start, and how the store is now.
#[derive(Debug, Default)]
pub(super) struct Counters {
    answered: AtomicU64,
    commits: AtomicU64,
    writes: AtomicU64,
    /// Only the writer's thread and whoever reads the figures take the lock.
    commit: Mutex<Durations>,
    /// Since when a commit is under way.
    committing: Mutex<Option<Instant>>,
    reads_fail: AtomicBool,
    writes_fail: AtomicBool,
    may_be_damaged: AtomicBool,
}

impl Counters {
    /// Notes questions answered.
    pub(super) fn answered(&self, count: usize) {
        self.answered.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Notes a commit that `writes` shared, and how long it `took`.
    pub(super) fn committed(&self, writes: usize, took: Duration) {
        self.commit.lock().unwrap_or_else(PoisonError::into_inner).record(took);
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.writes.fetch_add(writes as u64, Ordering::Relaxed);
    }

    /// A commit begins.
    pub(super) fn commit_began(&self, at: Instant) {
        *self.committing.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }

    /// It has ended, one way or the other.
    pub(super) fn commit_ended(&self) {
        *self.committing.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// A read or a write failed.
    pub(super) fn failed(&self, doing: Doing, may_be_damaged: bool) {
        self.fails(doing).store(true, Ordering::Relaxed);
        if may_be_damaged {
            self.may_be_damaged.store(true, Ordering::Relaxed);
        }
    }

    /// One went well after others had failed.
    pub(super) fn succeeded(&self, doing: Doing) {
        self.fails(doing).store(false, Ordering::Relaxed);
    }

    fn fails(&self, doing: Doing) -> &AtomicBool {
        match doing {
            Doing::Reads => &self.reads_fail,
            Doing::Writes => &self.writes_fail,
        }
    }

    /// How the store is now.
    pub(super) fn health(&self) -> Health {
        let of = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        let began = *self.committing.lock().unwrap_or_else(PoisonError::into_inner);
        Health {
            fails: of(&self.reads_fail) || of(&self.writes_fail),
            may_be_damaged: of(&self.may_be_damaged),
            committing: began.map(|at| at.elapsed()),
        }
    }

    /// How long commits took so far.
    pub(super) fn commit(&self) -> Durations {
        *self.commit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answered, commits and writes so far.
    pub(super) fn read(&self) -> (u64, u64, u64) {
        let of = |n: &AtomicU64| n.load(Ordering::Relaxed);
        (of(&self.answered), of(&self.commits), of(&self.writes))
    }
}
