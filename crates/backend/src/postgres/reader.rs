//! How the questions that change nothing are answered: a batch from one snapshot.

use super::connection::Connection;
use super::error::{Error, Result};
use super::node::Node;
use super::snapshot::Snapshot;
use super::{login, roster};
use crate::engine::reading::{Responds, Snapshots};
use crate::rows::last::LastItems;
use carillon_core::ports::store::ReadAsk;
use carillon_core::ports::{Answer, Fault, Question};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often it is asked how large the database is.
const SIZE_EVERY: Duration = Duration::from_secs(60);

/// What a thread that reads works with.
pub(super) struct Connected {
    db: Connection,
    node: Node,
    last: Arc<LastItems>,
    /// The size of the database, for the figures.
    size: Arc<AtomicU64>,
    sized: Option<Instant>,
    away: Option<Instant>,
}

impl Connected {
    pub(super) fn new(db: Connection, node: Node, last: Arc<LastItems>, size: Arc<AtomicU64>) -> Connected {
        Connected { db, node, last, size, sized: None, away: None }
    }

    fn connect(&mut self) -> Result<()> {
        let before = self.away;
        self.away.get_or_insert_with(Instant::now);
        self.db.connect(before)?;
        self.away = None;
        Ok(())
    }

    fn batch(&mut self, asks: &[ReadAsk], responds: &mut Responds<'_>) -> Result<()> {
        self.db.batch(BEGIN)?;
        if self.sized.is_none_or(|at| at.elapsed() >= SIZE_EVERY) {
            self.sized = Some(Instant::now());
            let size: i64 = self.db.one("SELECT pg_database_size(current_database())", &[])?.try_get(0)?;
            self.size.store(size.unsigned_abs(), Ordering::Relaxed);
        }
        let mut snapshot = Snapshot { db: &self.db, node: &self.node, last: &self.last };
        together(&mut snapshot, asks, responds, login::identities)?;
        together(&mut snapshot, asks, responds, login::logins)?;
        together(&mut snapshot, asks, responds, roster::records)?;
        for (place, ask) in asks.iter().enumerate() {
            if responds.is_open(place) {
                let answer = ask.answer_by(&mut snapshot);
                give(&snapshot, responds, place, answer)?;
            }
        }
        Ok(())
    }
}

/// One state of the database for all statements that follow.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Gives out an answer. What failed ends the transaction, so that the others have another snapshot; what failed with the connection is left to the
/// next one.
fn give(
    snapshot: &Snapshot<'_>,
    responds: &mut Responds<'_>,
    place: usize,
    answer: Result<Answer>,
) -> Result<()> {
    match answer {
        Ok(answer) => responds.give(place, answer),
        Err(e) if e.is_lost() => return Err(e),
        Err(e) => {
            responds.give(place, responds.failed(&e));
            snapshot.db.batch("ROLLBACK")?;
            snapshot.db.batch(BEGIN)?;
        }
    }
    Ok(())
}

/// How questions of one type are answered together, an answer for each.
type Together<Q> = fn(&mut Snapshot<'_>, &[&Q]) -> Result<Vec<<Q as Question>::Answer>>;

/// Answers those of one type together; one by one should that fail.
fn together<Q: Question<Kind = ReadAsk>>(
    snapshot: &mut Snapshot<'_>,
    asks: &[ReadAsk],
    responds: &mut Responds<'_>,
    answer: Together<Q>,
) -> Result<()> {
    let picked = asks.iter().enumerate().filter(|(place, _)| responds.is_open(*place));
    let picked = picked.filter_map(|(place, ask)| Some((place, Q::among(ask)?)));
    let (places, picked): (Vec<usize>, Vec<&Q>) = picked.unzip();
    if picked.is_empty() {
        return Ok(());
    }
    match answer(snapshot, &picked) {
        Ok(found) => {
            places.into_iter().zip(found).for_each(|(place, found)| responds.give(place, Q::wrap(found)));
        }
        Err(e) if e.is_lost() => return Err(e),
        // One of them may be alone with it.
        Err(_) => {
            snapshot.db.batch("ROLLBACK")?;
            snapshot.db.batch(BEGIN)?;
            for (place, question) in places.into_iter().zip(picked) {
                let found = answer(snapshot, &[question]).map(|found| found.into_iter().next().map(Q::wrap));
                give(
                    snapshot,
                    responds,
                    place,
                    found.map(|found| found.unwrap_or(Answer::Failed(Fault::Broken))),
                )?;
            }
        }
    }
    Ok(())
}

impl Snapshots for Connected {
    type Error = Error;

    /// A connection that is lost under a batch is made again, for what is not answered yet, while there is patience.
    fn answer(&mut self, asks: &[ReadAsk], responds: &mut Responds<'_>) -> Result<()> {
        let began = Instant::now();
        loop {
            self.connect()?;
            match self.batch(asks, responds) {
                Err(e) if e.is_lost() && began.elapsed() < self.db.patience() => self.db.abandon(),
                done => return done,
            }
        }
    }

    fn leave(&mut self) {
        if self.db.is_open()
            && let Err(e) = self.db.batch("ROLLBACK")
        {
            tracing::debug!(error = %e, "store reader could not leave its snapshot");
            self.db.abandon();
        }
    }

    fn forget(&mut self) {}

    fn rest(&mut self) {}
}
