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
        let (asks, responds): (Vec<ReadAsk>, Vec<Option<Respond>>) =
            batch.into_iter().map(|q| (q.ask, Some(q.respond))).unzip();
        self.counters.answered(asks.len());
        let mut responds = Responds { responds, complaints: &self.complaints };
        let done = catch_unwind(AssertUnwindSafe(|| self.snapshot(&asks, &mut responds, revisions)));
        let done = done.unwrap_or_else(|_| {
            tracing::error!("a store reader panicked; its questions fail");
            revisions.forget();
            Err(rusqlite::Error::InvalidQuery)
        });
        if let Err(e) = self.db.execute_batch("ROLLBACK")
            && !self.db.is_autocommit()
        {
            tracing::error!(error = %e, "store reader could not leave its snapshot");
        }
        if let Err(e) = done {
            self.complaints.failed("store read failed", &e);
            (0..asks.len()).for_each(|place| responds.give(place, Answer::Failed(Fault::Broken)));
        }
    }

    /// Answers all from one read transaction. It begins after every question of the batch was asked, so it holds every
    /// write that was answered before.
    fn snapshot(
        &self,
        asks: &[ReadAsk],
        responds: &mut Responds<'_>,
        revisions: &mut LastRevisions,
    ) -> Result<()> {
        self.db.prepare_cached("BEGIN")?.execute([])?;
        revisions.move_to(lookup::topic_changes(&self.db)?);
        let mut snapshot = Snapshot { db: &self.db, last: &self.last, tail: &self.tail, revisions };
        answer_all(&mut snapshot, asks, responds);
        Ok(())
    }
}

/// Where the answers of a batch go.
struct Responds<'a> {
    responds: Vec<Option<Respond>>,
    complaints: &'a Complaints,
}

impl Responds<'_> {
    /// Gives out the answer to the question at a place, unless it has one.
    fn give(&mut self, place: usize, answer: Answer) {
        let Some(respond) = self.responds.get_mut(place).and_then(Option::take) else { return };
        if !matches!(answer, Answer::Failed(_)) {
            self.complaints.succeeded();
        }
        respond.with(answer);
    }

    fn failed(&self, e: &rusqlite::Error) -> Answer {
        self.complaints.failed("store read failed", e);
        Answer::Failed(Fault::Broken)
    }
}

/// Answers many questions: those of logins together, and those for records; then the others, whose answers are given out one by one, so that
/// a batch of large ones is in nobody's memory as a whole.
fn answer_all(snapshot: &mut Snapshot<'_>, asks: &[ReadAsk], responds: &mut Responds<'_>) {
    together(snapshot, asks, responds, login::identities);
    together(snapshot, asks, responds, login::logins);
    together(snapshot, asks, responds, roster::records);
    for (place, ask) in asks.iter().enumerate() {
        if responds.responds[place].is_some() {
            let answer = ask.answer_by(snapshot).unwrap_or_else(|e| responds.failed(&e));
            responds.give(place, answer);
        }
    }
}

/// How questions of one type are answered together, an answer for each.
type Together<Q> = fn(&mut Snapshot<'_>, &[&Q]) -> Result<Vec<<Q as Question>::Answer>>;

/// Answers those of one type together; one by one should that fail.
fn together<Q: Question<Kind = ReadAsk>>(
    snapshot: &mut Snapshot<'_>,
    asks: &[ReadAsk],
    responds: &mut Responds<'_>,
    answer: Together<Q>,
) {
    let picked = asks.iter().enumerate().filter_map(|(place, ask)| Some((place, Q::among(ask)?)));
    let (places, picked): (Vec<usize>, Vec<&Q>) = picked.unzip();
    match answer(snapshot, &picked) {
        Ok(found) => {
            places.into_iter().zip(found).for_each(|(place, found)| responds.give(place, Q::wrap(found)));
        }
        // One of them may be alone with it.
        Err(_) => {
            for (place, question) in places.into_iter().zip(picked) {
                let found = answer(snapshot, &[question]).map(|found| found.into_iter().next().map(Q::wrap));
                let answer = found.unwrap_or_else(|e| Some(responds.failed(&e)));
                responds.give(place, answer.unwrap_or(Answer::Failed(Fault::Broken)));
            }
        }
    }
}
