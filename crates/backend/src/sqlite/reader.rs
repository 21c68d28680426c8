//! A thread that answers questions: what waits is answered from one snapshot.

use super::counters::Counters;
use super::dispatch::{self, Read};
use super::domain;
use super::last::LastItems;
use super::login::LastRevisions;
use super::question::{Question, Respond};
use super::queue::{Queue, Taken};
use carillon_core::ports::{Answer, Ask, Fault};
use rusqlite::{Connection, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Questions answered from one snapshot. The first waits for the last: at 256 that is 2 to 3 ms of a login storm.
const BATCH_MAX: usize = 256;

/// After so long without a question the memory of the last storm is given back.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a reader thread works with.
pub(super) struct Reader {
    pub(super) db: Connection,
    pub(super) queue: Arc<Queue>,
    pub(super) last: Arc<LastItems>,
    pub(super) counters: Arc<Counters>,
    /// How many readers share the queue.
    pub(super) readers: usize,
}

impl Reader {
    /// Answers questions until the queue is closed and empty.
    pub(super) fn run(self) {
        let mut revisions = LastRevisions::default();
        let mut patience = Some(PATIENCE);
        loop {
            match self.queue.take(self.readers, BATCH_MAX, patience) {
                Taken::Batch(batch) => {
                    patience = Some(PATIENCE);
                    self.answer(batch, &mut revisions);
                }
                Taken::Idle => {
                    patience = None;
                    revisions.forget();
                    if let Err(e) = self.db.execute_batch("PRAGMA shrink_memory") {
                        tracing::warn!(error = %e, "store reader could not give its memory back");
                    }
                }
                Taken::Closed => return,
            }
        }
    }

    fn answer(&self, batch: Vec<Question>, revisions: &mut LastRevisions) {
        let (asks, responds): (Vec<Ask>, Vec<Respond>) =
            batch.into_iter().map(|q| (q.ask, q.respond)).unzip();
        let answers = catch_unwind(AssertUnwindSafe(|| self.snapshot(&asks, revisions)));
        let answers = answers.unwrap_or_else(|_| {
            tracing::error!("a store reader panicked; its questions fail");
            revisions.forget();
            Err(rusqlite::Error::InvalidQuery)
        });
        if let Err(e) = self.db.execute_batch("ROLLBACK")
            && !self.db.is_autocommit()
        {
            tracing::error!(error = %e, "store reader could not leave its snapshot");
        }
        let answers = answers.unwrap_or_else(|e| {
            tracing::error!(error = %e, questions = asks.len(), "store reader failed");
            vec![Answer::Failed(Fault::Broken); asks.len()]
        });
        self.counters.answered(answers.len());
        for (respond, answer) in responds.into_iter().zip(answers) {
            respond.with(answer);
        }
    }

    /// Answers all from one read transaction. It begins after every question of the batch was asked, so it holds every
    /// write that was answered before.
    fn snapshot(&self, asks: &[Ask], revisions: &mut LastRevisions) -> Result<Vec<Answer>> {
        self.db.prepare_cached("BEGIN")?.execute([])?;
        revisions.move_to(domain::revision(&self.db)?);
        let mut read = Read { db: &self.db, last: &self.last, revisions };
        Ok(dispatch::reads(&mut read, asks))
    }
}
