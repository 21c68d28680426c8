//! The thread that writes: what waits shares one commit.
//!
//! There is no delay to fill a group. While one group is on its way to the disk the next one gathers, so groups are as
//! large as the load makes them.

use super::counters::Counters;
use super::last::LastItems;
use super::question::{Question, Respond};
use super::queue::{Queue, Taken};
use super::write::Write;
use super::{dispatch, domain};
use carillon_core::model::Revision;
use carillon_core::ports::{Answer, Ask, Fault};
use rusqlite::Connection;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Writes that share a commit at most.
const GROUP_MAX: usize = 1000;

/// After so long without a write the memory of the last storm is given back.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the writer thread works with.
pub(super) struct Writer {
    db: Connection,
    queue: Arc<Queue>,
    last: Arc<LastItems>,
    counters: Arc<Counters>,
    revision: Revision,
}

impl Writer {
    /// A writer that goes on from what is in the store.
    pub(super) fn new(
        db: Connection,
        queue: Arc<Queue>,
        last: Arc<LastItems>,
        counters: Arc<Counters>,
    ) -> rusqlite::Result<Writer> {
        let revision = domain::revision(&db)?;
        Ok(Writer { db, queue, last, counters, revision })
    }

    /// Writes until the queue is closed and empty.
    pub(super) fn run(mut self) {
        let mut patience = Some(PATIENCE);
        loop {
            match self.queue.take(1, GROUP_MAX, patience) {
                Taken::Batch(batch) => {
                    patience = Some(PATIENCE);
                    self.answer(batch);
                }
                Taken::Idle => {
                    patience = None;
                    if let Err(e) = self.db.execute_batch("PRAGMA shrink_memory") {
                        tracing::warn!(error = %e, "store writer could not give its memory back");
                    }
                }
                Taken::Closed => return,
            }
        }
    }

    fn answer(&mut self, batch: Vec<Question>) {
        let (asks, responds): (Vec<Ask>, Vec<Respond>) =
            batch.into_iter().map(|q| (q.ask, q.respond)).unzip();
        let answers = self.group(&asks);
        self.counters.answered(answers.len());
        for (respond, answer) in responds.into_iter().zip(answers) {
            respond.with(answer);
        }
    }

    /// Does all of them in one commit. Answers mean what they say: the commit is on disk, or they are failures.
    fn group(&mut self, asks: &[Ask]) -> Vec<Answer> {
        let failure = match catch_unwind(AssertUnwindSafe(|| self.commit(asks))) {
            Ok(Ok((answers, revision))) => {
                self.revision = revision;
                self.counters.committed(asks.len());
                return answers;
            }
            Ok(Err(failure)) => Some(failure),
            Err(_) => None,
        };
        if !self.db.is_autocommit()
            && let Err(e) = self.db.execute_batch("ROLLBACK")
        {
            tracing::error!(error = %e, "store rollback failed");
        }
        if let Some(Failure::Group(e)) = &failure {
            tracing::error!(error = %e, writes = asks.len(), "store commit failed");
        } else if asks.len() > 1 {
            // One took the others along, so each goes alone.
            return asks.chunks(1).flat_map(|ask| self.group(ask)).collect();
        } else {
            tracing::error!("a store write ended its transaction or panicked");
        }
        vec![Answer::Failed(Fault::Broken); asks.len()]
    }

    fn commit(&self, asks: &[Ask]) -> Result<(Vec<Answer>, Revision), Failure> {
        self.db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let mut write = Write::new(&self.db, &self.last, self.revision);
        let mut answers = Vec::with_capacity(asks.len());
        for ask in asks {
            answers.push(step(&mut write, ask)?);
        }
        write.seal()?;
        self.db.prepare_cached("COMMIT")?.execute([])?;
        Ok((answers, write.committed()))
    }
}

/// What went wrong with a group.
enum Failure {
    /// Beginning or committing: nobody's fault.
    Group(rusqlite::Error),
    /// One write ended the transaction of all.
    Step,
}

impl From<rusqlite::Error> for Failure {
    fn from(e: rusqlite::Error) -> Failure {
        Failure::Group(e)
    }
}

/// One write, all of it or nothing.
fn step(write: &mut Write<'_>, ask: &Ask) -> Result<Answer, Failure> {
    write.run("SAVEPOINT step", [])?;
    let answer = match dispatch::write(write, ask) {
        Ok(answer) => answer,
        Err(e) => {
            tracing::error!(error = %e, "store write failed");
            // A full disk or a failing one may have ended the transaction.
            if write.db.is_autocommit() {
                return Err(Failure::Step);
            }
            write.run("ROLLBACK TO step", [])?;
            Answer::Failed(Fault::Broken)
        }
    };
    write.run("RELEASE step", [])?;
    Ok(answer)
}
