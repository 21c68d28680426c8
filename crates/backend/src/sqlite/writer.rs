//! The thread that writes: what waits shares one commit.
//!
//! While one group is on its way to the disk the next one gathers, so groups are as large as the load makes them. A lone write is
//! committed at once. Where several came together the next group begins two milliseconds after the last one at the earliest: what a
//! commit costs is paid for by more of them, and nobody waits longer than that.

use super::archive::{self, Fold, Newest, Plan, Tail};
use super::asked::{Asked, Respond, Write};
use super::complaints::{Complaints, Doing};
use super::counters::Counters;
use super::idempotency::ReservationNumber;
use super::last::LastItems;
use super::queue::{Queue, Taken};
use super::run::{self, Run};
use super::transaction::{Reached, Transaction};
use super::{ending, keeping, lookup};
use carillon_core::ports::store::notifications::{EndNotifications, NotificationChange, StoreNotification};
use carillon_core::ports::{Answer, Fault, Question};
use rusqlite::{Connection, ErrorCode};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Writes that share a commit at most.
const GROUP_MAX: usize = 1000;

/// How long after the beginning of a group of so many writes the next one begins at the earliest. A write that comes alone is not held
/// up; the more there are, the more a commit that they share saves.
fn pause_after(writes: usize) -> Duration {
    Duration::from_millis(match writes {
        0..=1 => 0,
        2..=5 => 2,
        6.. => 4,
    })
}

/// After so long without a write the memory of the last storm is given back.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the writer thread works with.
pub(super) struct Writer {
    db: Connection,
    queue: Arc<Queue<Write>>,
    last: Arc<LastItems>,
    tail: Arc<Tail>,
    plan: Plan,
    counters: Arc<Counters>,
    complaints: Complaints,
    reached: Reached,
}

impl Writer {
    /// A writer that goes on from what is in the store.
    pub(super) fn new(
        db: Connection,
        queue: Arc<Queue<Write>>,
        last: Arc<LastItems>,
        tail: Arc<Tail>,
        counters: Arc<Counters>,
    ) -> rusqlite::Result<Writer> {
        let reached = Reached {
            topic_changes: lookup::topic_changes(&db)?,
            run: Run::newest(&db, run::FULL)?,
            last_found: ReservationNumber::last(&db)?,
            newest_message: Newest::find(&db)?,
            fold: Fold::find(&db)?,
        };
        let complaints = Complaints::new(Doing::Writes, counters.clone());
        Ok(Writer { db, queue, last, tail, plan: Plan::default(), counters, complaints, reached })
    }

    /// The newest archived message: everything up to it has to be looked for in the database.
    pub(super) fn newest_message(&self) -> u64 {
        self.reached.newest_message.seq
    }

    /// Writes until the queue is closed and empty.
    pub(super) fn run(mut self) {
        let mut patience = Some(PATIENCE);
        loop {
            match self.queue.take(1, GROUP_MAX, patience) {
                Taken::Batch(batch) => {
                    patience = Some(PATIENCE);
                    let (began, pause) = (Instant::now(), pause_after(batch.len()));
                    self.answer(batch);
                    self.queue.gather(pause.saturating_sub(began.elapsed()));
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

    fn answer(&mut self, batch: Vec<Asked<Write>>) {
        let (asks, responds): (Vec<Write>, Vec<Respond>) =
            batch.into_iter().map(|q| (q.ask, q.respond)).unzip();
        let answers = self.group(&asks);
        self.counters.answered(answers.len());
        for (respond, answer) in responds.into_iter().zip(answers) {
            respond.with(answer);
        }
    }

    /// Does all of them in one commit. Answers mean what they say: the commit is on disk, or they are failures.
    fn group(&mut self, asks: &[Write]) -> Vec<Answer> {
        match self.attempt(asks, plain_steps) {
            Ok(answers) => answers,
            Err(Failure::Group(fault)) => failed(asks, fault),
            // One of them failed, which is rare: again, so that it harms none of the others.
            Err(Failure::Step) => match self.attempt(asks, guarded_steps) {
                Ok(answers) => answers,
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
    fn attempt(&mut self, asks: &[Write], steps: Steps) -> Result<Vec<Answer>, Failure> {
        let failure = match catch_unwind(AssertUnwindSafe(|| self.commit(asks, steps))) {
            Ok(Ok(Committed { answers, reached, took })) => {
                self.reached = reached;
                self.counters.committed(asks.len(), took);
                // A group of writes all of which failed is no success.
                if answers.iter().any(|answer| !matches!(answer, Answer::Failed(_))) {
                    self.complaints.succeeded();
                }
                return Ok(answers);
            }
            Ok(Err(failure)) => failure,
            Err(_) => {
                tracing::error!(writes = asks.len(), "the store writer panicked");
                // Without an open transaction it may have committed: what is done must not be done again.
                if self.db.is_autocommit() { Failure::Group(Fault::Unknown) } else { Failure::Step }
            }
        };
        if !self.db.is_autocommit()
            && let Err(e) = self.db.execute_batch("ROLLBACK")
        {
            tracing::error!(error = %e, "store rollback failed");
        }
        Err(failure)
    }

    fn commit(&mut self, asks: &[Write], steps: Steps) -> Result<Committed, Failure> {
        let mut write = Transaction::new(&self.db, &self.last, &self.tail, self.reached);
        write.has_tail = archive::is_behind(self.reached.fold, &self.tail);
        write.run("BEGIN IMMEDIATE", []).map_err(|e| self.group_failed(&e))?;
        let answers = steps(&mut write, asks, &self.complaints)?;
        archive::fold(&mut write, &mut self.plan).map_err(|e| self.group_failed(&e))?;
        archive::list(&mut write).map_err(|e| self.group_failed(&e))?;
        write.seal().map_err(|e| self.group_failed(&e))?;
        let began = Instant::now();
        self.counters.commit_began(began);
        let committed = write.run("COMMIT", []);
        self.counters.commit_ended();
        committed.map_err(|e| {
            self.complaints.failed("store commit failed", &e);
            Failure::Group(fate(&e))
        })?;
        let took = began.elapsed();
        let reached = write.committed();
        self.tail.folded(self.reached.fold, reached.fold);
        Ok(Committed { answers, reached, took })
    }

    fn group_failed(&self, e: &rusqlite::Error) -> Failure {
        self.complaints.failed("store commit failed", e);
        Failure::Group(Fault::Broken)
    }
}

fn failed(asks: &[Write], fault: Fault) -> Vec<Answer> {
    vec![Answer::Failed(fault); asks.len()]
}

/// What the failure of a COMMIT says of its transaction. After an input/output error the log may hold all of it, synchronised or
/// not, with the mark that ends it: SQLite goes on without it and overwrites it with the next commit, but if the process
/// ends before that, it is found in the log and counts. A full disk is noticed before that mark is written; everything else before
/// anything is.
fn fate(error: &rusqlite::Error) -> Fault {
    match error.sqlite_error_code() {
        Some(ErrorCode::SystemIoFailure) => Fault::Unknown,
        _ => Fault::Broken,
    }
}

/// A group that is on disk.
struct Committed {
    answers: Vec<Answer>,
    reached: Reached,
    /// How long the COMMIT took: the write-ahead log is written and synchronised in it.
    took: Duration,
}

/// What went wrong with a group.
enum Failure {
    /// Beginning or committing: nobody's fault.
    Group(Fault),
    /// One of the writes.
    Step,
}

type Steps = fn(&mut Transaction<'_>, &[Write], &Complaints) -> Result<Vec<Answer>, Failure>;

/// The writes of a group in which all is expected to go well. Notifications to be kept that follow each other are kept
/// together, and so are ended those to be ended.
fn plain_steps(
    write: &mut Transaction<'_>,
    asks: &[Write],
    complaints: &Complaints,
) -> Result<Vec<Answer>, Failure> {
    let mut answers = Vec::with_capacity(asks.len());
    for run in asks.chunk_by(|one, next| Kind::of(one) == Kind::of(next) && Kind::of(one) != Kind::Other) {
        answers.extend(together(write, run).map_err(|e| {
            complaints.failed("store write failed", &e);
            Failure::Step
        })?);
    }
    Ok(answers)
}

/// The writes that are many when there is much to do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Keep,
    End,
    Other,
}

impl Kind {
    fn of(write: &Write) -> Kind {
        let ask = &write.ask;
        if StoreNotification::among(ask).is_some() {
            Kind::Keep
        } else if EndNotifications::among(ask).is_some() {
            Kind::End
        } else {
            Kind::Other
        }
    }
}

/// Writes of one kind; an answer for each.
fn together(write: &mut Transaction<'_>, run: &[Write]) -> rusqlite::Result<Vec<Answer>> {
    match Kind::of(&run[0]) {
        Kind::Keep => {
            let keeps: Vec<_> = run.iter().filter_map(|write| StoreNotification::among(&write.ask)).collect();
            Ok(keeping::keep_all(write, &keeps)?.into_iter().map(StoreNotification::wrap).collect())
        }
        Kind::End => {
            let asked: Vec<_> = run.iter().filter_map(|write| EndNotifications::among(&write.ask)).collect();
            let changes: Vec<_> = asked.iter().flat_map(|asked| &asked.changes).collect();
            let otherwise = ending::change(write, &changes)?;
            let is_made =
                |change: &NotificationChange| !otherwise.iter().any(|other| ptr::eq(*other, change));
            let answer = |asked: &&EndNotifications| {
                let others = asked.changes.iter().filter(|change| !is_made(change));
                EndNotifications::wrap(others.map(|change| change.id).collect())
            };
            Ok(asked.iter().map(answer).collect())
        }
        Kind::Other => run.iter().map(|asked| one(write, asked)).collect(),
    }
}

/// A write of any kind.
fn one(write: &mut Transaction<'_>, asked: &Write) -> rusqlite::Result<Answer> {
    match asked.operation {
        None => asked.ask.answer_by(write),
        Some(operation) => asked.ask.answer_once_by(operation, write),
    }
}

/// The writes of a group one of which fails.
fn guarded_steps(
    write: &mut Transaction<'_>,
    asks: &[Write],
    complaints: &Complaints,
) -> Result<Vec<Answer>, Failure> {
    let savepoint = |e: rusqlite::Error| {
        complaints.failed("store write failed", &e);
        Failure::Group(Fault::Broken)
    };
    asks.iter()
        .map(|ask| guarded_step(write, ask, complaints).unwrap_or_else(|e| Err(savepoint(e))))
        .collect()
}

/// One write, all of it or nothing, whatever becomes of the others.
///
/// Not the first way, because the two more statements are a fifth of a write: measured (`store_cost`), a notification
/// stored and ended takes 26.6 µs of processor with them, 20.9 µs without.
fn guarded_step(
    write: &mut Transaction<'_>,
    ask: &Write,
    complaints: &Complaints,
) -> rusqlite::Result<Result<Answer, Failure>> {
    write.run("SAVEPOINT step", [])?;
    let answer = match one(write, ask) {
        Ok(answer) => answer,
        Err(e) => {
            complaints.failed("store write failed", &e);
            // A full disk or a failing one may have ended the transaction.
            if write.db.is_autocommit() {
                return Ok(Err(Failure::Step));
            }
            write.run("ROLLBACK TO step", [])?;
            Answer::Failed(Fault::Broken)
        }
    };
    write.run("RELEASE step", [])?;
    Ok(Ok(answer))
}

#[cfg(test)]
mod tests {
    use super::super::{Options, file, schema};
    use super::*;
    use carillon_core::model::Policy;
    use carillon_core::ports::store::Ask;
    use carillon_core::ports::store::domains::PutDomain;
    use rusqlite::ffi;

    #[test]
    fn only_what_may_be_in_the_log_is_unknown() {
        let fate_of = |code| fate(&rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
        for code in [ffi::SQLITE_IOERR, ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_FSYNC] {
            assert_eq!(fate_of(code), Fault::Unknown, "{code}");
        }
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_BUSY, ffi::SQLITE_NOMEM, ffi::SQLITE_CONSTRAINT] {
            assert_eq!(fate_of(code), Fault::Broken, "{code}");
        }
    }

    /// Commits, and panics before it can say so.
    fn commits_and_panics(
        write: &mut Transaction<'_>,
        asks: &[Write],
        complaints: &Complaints,
    ) -> Result<Vec<Answer>, Failure> {
        plain_steps(write, asks, complaints)?;
        write.run("COMMIT", []).expect("commits");
        panic!("this one is meant to");
    }

    #[test]
    fn what_may_have_been_committed_is_not_done_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options::new(folder.path().join("store.db"));
        let _lock = file::claim(&options.path).expect("it is made");
        let mut db = file::connect_writer(&options).expect("it opens");
        schema::migrate(&mut db, &options.path).expect("it is new");
        let (queue, last) = (Arc::new(Queue::new(1, 1)), Arc::new(LastItems::new(0)));
        let mut writer = Writer::new(db, queue, last, Arc::default(), Arc::default()).expect("it starts");
        let put = PutDomain { name: "example.org".into(), policy: Policy::default() };
        let Ask::Write(ask) = put.into() else { panic!("it is a write") };
        let failure = writer.attempt(&[ask.into()], commits_and_panics);
        assert!(matches!(failure, Err(Failure::Group(Fault::Unknown))));
    }
}
