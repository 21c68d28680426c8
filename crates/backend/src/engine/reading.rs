//! A thread that answers questions: what waits is answered from one snapshot.

use super::asked::{Asked, Respond};
use super::complaints::{Complaints, Failing};
use super::counters::Counters;
use super::load::Load;
use super::queue::{Queue, Taken};
use carillon_core::ports::store::ReadAsk;
use carillon_core::ports::{Answer, Fault};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

/// Questions answered from one snapshot. The first waits for the last: at 256 that is 2 to 3 ms of a login storm.
const BATCH_MAX: usize = 256;

/// How a store answers the questions that change nothing.
pub(crate) trait Snapshots {
    /// Why it could not.
    type Error: Failing;

    /// Answers all from one read transaction. It begins after every question of the batch was asked, so it holds every write that
    /// was answered before.
    fn answer(&mut self, asks: &[ReadAsk], responds: &mut Responds<'_>) -> Result<(), Self::Error>;

    /// Leaves the snapshot, if one is open.
    fn leave(&mut self);

    /// A batch panicked: what is remembered from one batch to the next may be wrong.
    fn forget(&mut self);

    /// Little was asked for a while: memory that the last storm needed can be given back.
    fn rest(&mut self);
}

/// What a thread that reads works with.
pub(crate) struct Reader<S> {
    pub(crate) store: S,
    pub(crate) queue: Arc<Queue<ReadAsk>>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) complaints: Complaints,
    /// How many readers share the queue.
    pub(crate) readers: usize,
}

impl<S: Snapshots> Reader<S> {
    /// Answers questions until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        let mut load = Load::new(Instant::now());
        loop {
            let rests = match self.queue.take(self.readers, BATCH_MAX, load.patience()) {
                Taken::Batch(batch) => {
                    load.answered(batch.len());
                    self.answer(batch);
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

    fn answer(&mut self, batch: Vec<Asked<ReadAsk>>) {
        let (asks, responds): (Vec<ReadAsk>, Vec<Option<Respond>>) =
            batch.into_iter().map(|q| (q.ask, Some(q.respond))).unzip();
        self.counters.answered(asks.len());
        let mut responds = Responds { responds, complaints: &self.complaints };
        let done = catch_unwind(AssertUnwindSafe(|| self.store.answer(&asks, &mut responds)));
        self.store.leave();
        match done {
            Ok(Ok(())) => return,
            Ok(Err(e)) => self.complaints.failed("store read failed", &e),
            Err(_) => {
                tracing::error!("a store reader panicked; its questions fail");
                self.store.forget();
                self.complaints.failed("store read failed", &Panicked);
            }
        }
        (0..asks.len()).for_each(|place| responds.give(place, Answer::Failed(Fault::Broken)));
    }
}

/// Where the answers of a batch go.
pub(crate) struct Responds<'a> {
    responds: Vec<Option<Respond>>,
    complaints: &'a Complaints,
}

impl Responds<'_> {
    /// Whether the question at a place is not answered yet.
    pub(crate) fn is_open(&self, place: usize) -> bool {
        self.responds.get(place).is_some_and(Option::is_some)
    }

    /// Gives out the answer to the question at a place, unless it has one.
    pub(crate) fn give(&mut self, place: usize, answer: Answer) {
        let Some(respond) = self.responds.get_mut(place).and_then(Option::take) else { return };
        if !matches!(answer, Answer::Failed(_)) {
            self.complaints.succeeded();
        }
        respond.with(answer);
    }

    /// The answer to a question that failed.
    pub(crate) fn failed(&self, e: &dyn Failing) -> Answer {
        self.complaints.failed("store read failed", e);
        Answer::Failed(Fault::Broken)
    }
}

/// The code of a store panicked.
#[derive(Debug, thiserror::Error)]
#[error("a panic")]
struct Panicked;

impl Failing for Panicked {
    fn may_be_damage(&self) -> bool {
        false
    }
}
