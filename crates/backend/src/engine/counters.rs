//! What the store counts for the operator.

use super::push_hint::Listener;
use carillon_core::model::Durations;
use carillon_core::ports::StoreHealth;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// What a thread does with the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    Reads,
    Writes,
}

/// Figures that grow from the start, and how the store is now.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    answered: AtomicU64,
    commits: AtomicU64,
    writes: AtomicU64,
    write_cost: AtomicU64,
    /// Only the writer's thread and whoever reads the figures take the lock.
    commit: Mutex<Durations>,
    /// Since when commits are under way, by the threads that wait for them.
    committing: Mutex<Vec<(ThreadId, Instant)>>,
    reads_fail: AtomicBool,
    writes_fail: AtomicBool,
    may_be_damaged: AtomicBool,
    /// Who is told of pushes.
    pub(crate) pushes: Listener,
}

impl Counters {
    /// Notes questions answered.
    pub(crate) fn answered(&self, count: usize) {
        self.answered.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Notes a commit that `writes` shared, and how long it `took`.
    pub(crate) fn committed(&self, writes: usize, took: Duration) {
        self.commit.lock().unwrap_or_else(PoisonError::into_inner).record(took);
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.writes.fetch_add(writes as u64, Ordering::Relaxed);
    }

    /// Notes what writes have cost.
    pub(crate) fn cost(&self, cost: usize) {
        self.write_cost.fetch_add(cost as u64, Ordering::Relaxed);
    }

    /// What writes have cost so far.
    pub(crate) fn write_cost(&self) -> u64 {
        self.write_cost.load(Ordering::Relaxed)
    }

    /// A commit begins.
    pub(crate) fn commit_began(&self, at: Instant) {
        self.committing().push((thread::current().id(), at));
    }

    /// It has ended, one way or the other.
    pub(crate) fn commit_ended(&self) {
        let here = thread::current().id();
        self.committing().retain(|(thread, _)| *thread != here);
    }

    fn committing(&self) -> MutexGuard<'_, Vec<(ThreadId, Instant)>> {
        self.committing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A read or a write failed.
    pub(crate) fn failed(&self, doing: Doing, may_be_damaged: bool) {
        self.fails(doing).store(true, Ordering::Relaxed);
        if may_be_damaged {
            self.may_be_damaged.store(true, Ordering::Relaxed);
        }
    }

    /// One went well after others had failed.
    pub(crate) fn succeeded(&self, doing: Doing) {
        self.fails(doing).store(false, Ordering::Relaxed);
    }

    fn fails(&self, doing: Doing) -> &AtomicBool {
        match doing {
            Doing::Reads => &self.reads_fail,
            Doing::Writes => &self.writes_fail,
        }
    }

    /// How the store is now.
    pub(crate) fn health(&self) -> StoreHealth {
        let of = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        let began = self.committing().iter().map(|(_, at)| *at).min();
        StoreHealth {
            fails: of(&self.reads_fail) || of(&self.writes_fail),
            may_be_damaged: of(&self.may_be_damaged),
            committing: began.map(|at| at.elapsed()),
        }
    }

    /// How long commits took so far.
    pub(crate) fn commit(&self) -> Durations {
        *self.commit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answered, commits and writes so far.
    pub(crate) fn read(&self) -> (u64, u64, u64) {
        let of = |n: &AtomicU64| n.load(Ordering::Relaxed);
        (of(&self.answered), of(&self.commits), of(&self.writes))
    }
}
