//! A thread that answers questions: what waits is answered from one snapshot.

use super::archive::Tail;
use super::asked::{Asked, Respond};
use super::complaints::Complaints;
use super::counters::Counters;
use super::last::LastItems;
use super::queue::{Queue, Taken};
use super::snapshot::{LastRevisions, Snapshot};
use super::{login, lookup, roster};
use carillon_core::ports::store::ReadAsk;
use carillon_core::ports::store::accounts::{Identity, Login};
use carillon_core::ports::store::roster::ReadRecord;
use carillon_core::ports::{Answer, Fault, Question};
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
    pub(super) queue: Arc<Queue<ReadAsk>>,
    pub(super) last: Arc<LastItems>,
    pub(super) tail: Arc<Tail>,
    pub(super) counters: Arc<Counters>,
    pub(super) complaints: Complaints,
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

    fn answer(&self, batch: Vec<Asked<ReadAsk>>, revisions: &mut LastRevisions) {
        let (asks, responds): (Vec<ReadAsk>, Vec<Respond>) =
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
            self.complaints.failed("store read failed", &e);
            vec![Answer::Failed(Fault::Broken); asks.len()]
        });
        if answers.iter().any(|answer| !matches!(answer, Answer::Failed(_))) {
            self.complaints.succeeded();
        }
        self.counters.answered(answers.len());
        for (respond, answer) in responds.into_iter().zip(answers) {
            respond.with(answer);
        }
    }

    /// Answers all from one read transaction. It begins after every question of the batch was asked, so it holds every
    /// write that was answered before.
    fn snapshot(&self, asks: &[ReadAsk], revisions: &mut LastRevisions) -> Result<Vec<Answer>> {
        self.db.prepare_cached("BEGIN")?.execute([])?;
        revisions.move_to(lookup::topic_changes(&self.db)?);
        let mut snapshot = Snapshot { db: &self.db, last: &self.last, tail: &self.tail, revisions };
        Ok(answers(&mut snapshot, asks, &self.complaints))
    }
}

/// Answers many questions, in their order: those of logins together, and those for records.
fn answers(snapshot: &mut Snapshot<'_>, asks: &[ReadAsk], complaints: &Complaints) -> Vec<Answer> {
    let failed = |e: &rusqlite::Error| {
        complaints.failed("store read failed", e);
        Answer::Failed(Fault::Broken)
    };
    let one = |ask: &ReadAsk| {
        let is_one_of_many =
            Identity::among(ask).is_some() || Login::among(ask).is_some() || ReadRecord::among(ask).is_some();
        (!is_one_of_many).then(|| ask.answer_by(snapshot).unwrap_or_else(|e| failed(&e)))
    };
    let mut answers: Vec<Option<Answer>> = asks.iter().map(one).collect();
    together(snapshot, asks, &mut answers, login::identities, &failed);
    together(snapshot, asks, &mut answers, login::logins, &failed);
    together(snapshot, asks, &mut answers, roster::records, &failed);
    answers.into_iter().map(|answer| answer.unwrap_or(Answer::Failed(Fault::Broken))).collect()
}

/// How questions of one type are answered together, an answer for each.
type Together<Q> = fn(&mut Snapshot<'_>, &[&Q]) -> Result<Vec<<Q as Question>::Answer>>;

/// Answers those of one type together; one by one should that fail.
fn together<Q: Question<Kind = ReadAsk>>(
    snapshot: &mut Snapshot<'_>,
    asks: &[ReadAsk],
    answers: &mut [Option<Answer>],
    answer: Together<Q>,
    failed: &dyn Fn(&rusqlite::Error) -> Answer,
) {
    let picked = asks.iter().enumerate().filter_map(|(place, ask)| Some((place, Q::among(ask)?)));
    let (places, picked): (Vec<usize>, Vec<&Q>) = picked.unzip();
    match answer(snapshot, &picked) {
        Ok(found) => {
            for (place, found) in places.into_iter().zip(found) {
                answers[place] = Some(Q::wrap(found));
            }
        }
        // One of them may be alone with it.
        Err(_) => {
            for (place, question) in places.into_iter().zip(picked) {
                let found = answer(snapshot, &[question]).map(|found| found.into_iter().next().map(Q::wrap));
                answers[place] = found.unwrap_or_else(|e| Some(failed(&e)));
            }
        }
    }
}
