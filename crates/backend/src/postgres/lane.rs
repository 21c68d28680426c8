//! A lane: a connection that commits groups of writes, one after the other, and knows of each whether it did.

use super::connection::Connection;
use super::error::{Error, Result};
use super::keys::Keys;
use super::node::Node;
use super::transaction::Transaction;
use super::writes;
use crate::engine::asked::Write;
use crate::engine::complaints::Complaints;
use crate::engine::counters::Counters;
use crate::engine::writing::{Commits, Committed, Failure, Steps};
use crate::rows::last::LastItems;
use carillon_core::ports::Fault;
use std::sync::Arc;
use std::time::Instant;

/// How often a group is done again that met another group.
const CONFLICTS_MAX: u32 = 8;

/// What a thread that writes works with.
pub(super) struct Lane {
    db: Connection,
    node: Node,
    number: i32,
    last: Arc<LastItems>,
    counters: Arc<Counters>,
    /// Groups that it has committed.
    done: i64,
    /// Whether a transaction is open.
    is_open: bool,
    /// Since when the database is away.
    away: Option<Instant>,
}

/// Why a group was not committed.
enum Undone {
    /// The connection was lost before COMMIT was sent: nothing was changed.
    Lost(Error),
    /// COMMIT was sent, and what became of it is not known.
    Unsettled(Error),
    /// It met another group, and may succeed when it is done again.
    Conflict(Error),
    /// Not for a write's sake: the process is buried, or the server refuses.
    Refused(Error),
    /// One of the writes failed.
    Step(Error),
}

impl Lane {
    /// The lane of this number. It connects when there is something to write.
    pub(super) fn new(
        db: Connection,
        node: Node,
        number: i32,
        last: Arc<LastItems>,
        counters: Arc<Counters>,
    ) -> Lane {
        Lane { db, node, number, last, counters, done: 0, is_open: false, away: None }
    }

    /// Sees to it that there is a connection, and that it is known what was committed before it was lost.
    pub(super) fn connect(&mut self) -> Result<()> {
        if self.db.is_open() {
            return Ok(());
        }
        self.is_open = false;
        let before = self.away;
        let since = *self.away.get_or_insert_with(Instant::now);
        loop {
            match self.db.connect(before).and_then(|()| self.settled()) {
                Ok(done) => {
                    self.done = done;
                    self.away = None;
                    if since.elapsed() >= self.db.patience() {
                        tracing::info!(lane = self.number, "the database is back");
                    }
                    return Ok(());
                }
                // It was there, and is lost again.
                Err(e) if e.is_lost() && self.db.is_made() && since.elapsed() < self.db.patience() => {
                    self.db.abandon();
                }
                Err(e) => {
                    self.db.abandon();
                    return Err(e);
                }
            }
        }
    }

    /// How many groups are committed. What the lost connection had begun ends first: its session is ended, and the row of the lane is
    /// waited for.
    fn settled(&self) -> Result<i64> {
        self.db.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE application_name = $1 AND datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()",
            &[&self.db.name()],
        )?;
        let row = self.db.opt(
            "SELECT n FROM lane WHERE node = $1 AND epoch = $2 AND lane = $3 FOR UPDATE",
            &[&self.node.name, &self.node.epoch, &self.number],
        )?;
        Ok(row.ok_or(Error::Corrupt("the row of a lane is gone"))?.try_get(0)?)
    }

    /// One transaction, or nothing. The answers are made before COMMIT is sent, and count once that is known to be done.
    fn attempt(&mut self, asks: &[Write]) -> std::result::Result<Committed, Undone> {
        let next = self.done + 1;
        self.is_open = true;
        self.begin(asks, next).map_err(|e| Undone::before_commit(e, Undone::Refused))?;
        let mut write = Transaction::new(&self.db, &self.node, &self.last);
        let done =
            writes::answer_all(&mut write, asks).map_err(|e| Undone::before_commit(e, Undone::Step))?;
        let began = Instant::now();
        self.counters.commit_began(began);
        let makes_pushes = write.makes_pushes.get();
        let (published, committed) = write.commit();
        self.counters.commit_ended();
        self.is_open = false;
        if let Err(e) = committed {
            let is_done = self.is_done(next);
            let figures = self.db.figures();
            match is_done {
                Some(_) => figures.settled(),
                None => figures.unknown(),
            }
            match is_done {
                Some(true) => {
                    tracing::info!(error = %e, lane = self.number, "a commit that failed was found to be done");
                }
                Some(false) if e.is_lost() => return Err(Undone::Lost(e)),
                Some(false) if e.is_conflict() => return Err(Undone::Conflict(e)),
                Some(false) => return Err(Undone::Refused(e)),
                None => return Err(Undone::Unsettled(e)),
            }
        }
        self.done = next;
        self.db.figures().committed();
        published.into_iter().for_each(|item| drop(self.last.keep(item)));
        if makes_pushes {
            self.counters.pushes.tell();
        }
        Ok(Committed { done, took: began.elapsed() })
    }

    /// Begins a transaction, waits for the locks of the group, and takes its number: one round trip.
    fn begin(&self, asks: &[Write], next: i64) -> Result<()> {
        let keys = Keys::of(asks);
        self.db.pipeline_between(
            "BEGIN",
            &[
                ("SELECT lock_keys($1, $2, $3, $4, $5, $6)", &keys.params()),
                (
                    "SELECT lane_step($1, $2, $3, $4)",
                    &[&self.node.name, &self.node.epoch, &self.number, &next],
                ),
            ],
            "",
        )
    }

    /// Whether the group of this number, whose COMMIT was sent, is committed; none while that cannot be known.
    fn is_done(&mut self, number: i64) -> Option<bool> {
        if self.db.is_open()
            && let Ok(row) = self.db.one(
                "SELECT n FROM lane WHERE node = $1 AND epoch = $2 AND lane = $3",
                &[&self.node.name, &self.node.epoch, &self.number],
            )
        {
            return row.try_get(0).ok().map(|n: i64| n == number);
        }
        self.db.abandon();
        self.connect().ok()?;
        Some(self.done == number)
    }

    /// Ends an open transaction as if it had never been.
    fn leave(&mut self) {
        if std::mem::take(&mut self.is_open)
            && self.db.is_open()
            && let Err(e) = self.db.batch("ROLLBACK")
        {
            tracing::debug!(error = %e, "store rollback failed");
            self.db.abandon();
        }
    }
}

impl Undone {
    /// What an error before COMMIT means; `otherwise` where the connection is as good as before.
    fn before_commit(e: Error, otherwise: fn(Error) -> Undone) -> Undone {
        match e {
            e if e.is_lost() => Undone::Lost(e),
            e if e.is_conflict() => Undone::Conflict(e),
            e if e.is_fenced() => Undone::Refused(e),
            e => otherwise(e),
        }
    }
}

impl Commits for Lane {
    const GUARDS: bool = false;

    fn commit(
        &mut self,
        asks: &[Write],
        _: Steps,
        complaints: &Complaints,
    ) -> std::result::Result<Committed, Failure> {
        let group_failed = |e: Error, fault: Fault| {
            complaints.failed("store commit failed", &e);
            Failure::Group(fault)
        };
        let (mut conflicts, began) = (0, Instant::now());
        loop {
            self.connect().map_err(|e| group_failed(e, Fault::Broken))?;
            let e = match self.attempt(asks) {
                Ok(committed) => return Ok(committed),
                Err(Undone::Step(e)) => {
                    complaints.failed("store write failed", &e);
                    return Err(Failure::Step);
                }
                Err(Undone::Refused(e)) => return Err(group_failed(e, Fault::Broken)),
                Err(Undone::Unsettled(e)) => return Err(group_failed(e, Fault::Unknown)),
                Err(Undone::Lost(e)) => {
                    self.db.abandon();
                    e
                }
                Err(Undone::Conflict(e)) => {
                    conflicts += 1;
                    e
                }
            };
            self.leave();
            if conflicts > CONFLICTS_MAX || began.elapsed() > 2 * self.db.patience() {
                return Err(group_failed(e, Fault::Broken));
            }
            self.db.figures().repeats();
            tracing::debug!(error = %e, lane = self.number, "a group is done again");
        }
    }

    fn is_in_transaction(&self) -> bool {
        self.is_open
    }

    fn roll_back(&mut self) {
        self.leave();
    }

    fn rest(&mut self) {}
}
