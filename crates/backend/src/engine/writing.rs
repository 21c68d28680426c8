//! The thread that writes: what waits shares one commit.
//!
//! While one group is on its way to the disk the next one gathers, so groups are as large as the load makes them. A lone write is
//! committed at once. Where several came together the next group begins two milliseconds after the last one at the earliest, four where
//! they were many: what a commit costs is paid for by more of them, and nobody waits longer than that. Writes that nothing is held up by
//! ([`Carries::is_patient`](super::asked::Carries::is_patient)) go along with others, and count as none.

use super::asked::{Asked, Respond, Write};
use super::complaints::Complaints;
use super::counters::Counters;
use super::load::Load;
use super::queue::{Queue, Taken};
use carillon_core::ports::{Answer, Fault};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Writes that share a commit at most.
const GROUP_MAX: usize = 1000;

/// How long after the beginning of a group of so many writes the next one begins at the earliest. A write that comes alone is not held
/// up; the more there are, the more a commit that they share saves.
fn pause_after(writes: usize) -> Duration {
    Duration::from_millis(match writes {
        0..=1 => 0,
        2..=9 => 2,
        10.. => 4,
    })
}

/// What a store does with a group of writes.
pub(crate) trait Commits {
    /// Whether it can keep the failure of one write from the others of its group ([`Steps::Guarded`]). Otherwise a group that fails is halved
    /// until the one that fails is alone.
    const GUARDS: bool = true;

    /// Carries out all of them in one transaction, and commits it.
    fn commit(&mut self, asks: &[Write], steps: Steps, complaints: &Complaints)
    -> Result<Committed, Failure>;

    /// Whether a transaction is open. After a panic without one, it may have been committed.
    fn is_in_transaction(&self) -> bool;

    /// Ends an open transaction as if it had never been.
    fn roll_back(&mut self);

    /// Little was written for a while: memory that the last storm needed can be given back.
    fn rest(&mut self);
}

/// How the writes of a group are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steps {
    /// All is expected to go well: the failure of one fails the group.
    Plain,
    /// One of them has failed: each is done whole or not at all, whatever becomes of the others.
    Guarded,
}

/// What came of a write.
pub(crate) struct Done {
    pub(crate) answer: Answer,
    /// How many rows it changed, where that need not be as many as it carries.
    pub(crate) rows: usize,
}

impl Done {
    /// A write that changed what it carries, or nothing.
    pub(crate) fn as_it_carries(answer: Answer) -> Done {
        Done { answer, rows: 0 }
    }
}

/// A group that is on disk.
pub(crate) struct Committed {
    /// What came of each write.
    pub(crate) done: Vec<Done>,
    /// How long the commit itself took.
    pub(crate) took: Duration,
}

/// What went wrong with a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Beginning or committing: no write is the cause.
    Group(Fault),
    /// One of the writes.
    Step,
}

/// The thread that writes to a store.
pub(crate) struct Writer<C> {
    store: C,
    queue: Arc<Queue<Write>>,
    counters: Arc<Counters>,
    complaints: Complaints,
}

impl<C: Commits> Writer<C> {
    /// A writer to a store.
    pub(crate) fn new(
        store: C,
        queue: Arc<Queue<Write>>,
        counters: Arc<Counters>,
        complaints: Complaints,
    ) -> Writer<C> {
        Writer { store, queue, counters, complaints }
    }

    /// Writes until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        let mut load = Load::new(Instant::now());
        loop {
            let rests = match self.queue.take(1, GROUP_MAX, load.patience()) {
                Taken::Batch(batch) => {
                    load.answered(batch.len());
                    let urgent = batch.iter().filter(|asked| !asked.is_patient()).count();
                    let (began, pause) = (Instant::now(), pause_after(urgent));
                    self.answer(batch);
                    self.queue.gather(pause.saturating_sub(began.elapsed()));
                    load.rests(Instant::now())
                }
                Taken::Idle => load.rests_idle(Instant::now()),
                Taken::Closed => return,
            };
            if rests {
                self.store.rest();
            }
        }
    }

    fn answer(&mut self, batch: Vec<Asked<Write>>) {
        let counted: Vec<_> = batch.iter().map(|asked| (asked.account(), asked.cost())).collect();
        let (asks, responds): (Vec<Write>, Vec<Respond>) =
            batch.into_iter().map(|q| (q.ask, q.respond)).unzip();
        let done = self.group(&asks);
        self.counters.answered(done.len());
        // Before whoever asked can ask for more.
        let costs = counted.iter().zip(&done).map(|((_, cost), done)| done.rows.max(*cost));
        self.counters.cost(costs.sum());
        for ((account, cost), done) in counted.into_iter().zip(&done) {
            if let Some(account) = account.filter(|_| done.rows > cost) {
                self.queue.charge(account, done.rows - cost);
            }
        }
        for (respond, done) in responds.into_iter().zip(done) {
            respond.with(done.answer);
        }
    }

    /// Does all of them in one commit. Answers mean what they say: the commit is on disk, or they are failures.
    fn group(&mut self, asks: &[Write]) -> Vec<Done> {
        match self.attempt(asks, Steps::Plain) {
            Ok(done) => done,
            Err(Failure::Group(fault)) => failed(asks, fault),
            Err(Failure::Step) if !C::GUARDS => match asks.len() {
                0 | 1 => failed(asks, Fault::Broken),
                len => {
                    let (first, rest) = asks.split_at(len / 2);
                    let mut done = self.group(first);
                    done.extend(self.group(rest));
                    done
                }
            },
            // One of them failed, which is rare: again, so that it harms none of the others.
            Err(Failure::Step) => match self.attempt(asks, Steps::Guarded) {
                Ok(done) => done,
                // It ended the transaction of all, as a full disk does: each goes alone.
                Err(Failure::Step) if asks.len() > 1 => {
                    asks.chunks(1).flat_map(|ask| self.group(ask)).collect()
                }
                Err(Failure::Step) => failed(asks, Fault::Broken),
                Err(Failure::Group(fault)) => failed(asks, fault),
            },
        }
    }

    /// One transaction, committed or as if it had never been.
    pub(crate) fn attempt(&mut self, asks: &[Write], steps: Steps) -> Result<Vec<Done>, Failure> {
        let commit = || self.store.commit(asks, steps, &self.complaints);
        let failure = match catch_unwind(AssertUnwindSafe(commit)) {
            Ok(Ok(Committed { done, took })) => {
                self.counters.committed(asks.len(), took);
                // A group of writes all of which failed is no success.
                if done.iter().any(|done| !matches!(done.answer, Answer::Failed(_))) {
                    self.complaints.succeeded();
                }
                return Ok(done);
            }
            Ok(Err(failure)) => failure,
            Err(_) => {
                tracing::error!(writes = asks.len(), "the store writer panicked");
                // Without an open transaction it may have committed: what is done must not be done again.
                match self.store.is_in_transaction() {
                    true => Failure::Step,
                    false => Failure::Group(Fault::Unknown),
                }
            }
        };
        self.store.roll_back();
        Err(failure)
    }
}

fn failed(asks: &[Write], fault: Fault) -> Vec<Done> {
    asks.iter().map(|_| Done::as_it_carries(Answer::Failed(fault))).collect()
}
