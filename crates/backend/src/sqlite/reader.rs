//! How SQLite answers the questions that change nothing.

use super::archive_tail::Tail;
use super::snapshot::{LastRevisions, Snapshot};
use super::{login, lookup, roster};
use crate::engine::reading::{Responds, Snapshots};
use crate::rows::last::LastItems;
use carillon_core::ports::store::ReadAsk;
use carillon_core::ports::{Answer, Fault, Question};
use rusqlite::{Connection, Result};
use std::sync::Arc;

/// What a thread that reads works with.
pub(super) struct Connected {
    pub(super) db: Connection,
    pub(super) last: Arc<LastItems>,
    pub(super) tail: Arc<Tail>,
    pub(super) revisions: LastRevisions,
}

impl Snapshots for Connected {
    type Error = rusqlite::Error;

    fn answer(&mut self, asks: &[ReadAsk], responds: &mut Responds<'_>) -> Result<()> {
        let Connected { db, last, tail, revisions } = self;
        db.prepare_cached("BEGIN")?.execute([])?;
        revisions.move_to(lookup::topic_changes(db)?);
        answer_all(&mut Snapshot { db, last, tail, revisions }, asks, responds);
        Ok(())
    }

    fn leave(&mut self) {
        if let Err(e) = self.db.execute_batch("ROLLBACK")
            && !self.db.is_autocommit()
        {
            tracing::error!(error = %e, "store reader could not leave its snapshot");
        }
    }

    fn forget(&mut self) {
        self.revisions.forget();
    }

    fn rest(&mut self) {
        self.revisions.forget();
        if let Err(e) = self.db.execute_batch("PRAGMA shrink_memory") {
            tracing::warn!(error = %e, "store reader could not give its memory back");
        }
    }
}

/// Answers many questions: those of logins together, and those for records; then the others, whose answers are given out one by one, so that
/// a batch of large ones is in nobody's memory as a whole.
fn answer_all(snapshot: &mut Snapshot<'_>, asks: &[ReadAsk], responds: &mut Responds<'_>) {
    together(snapshot, asks, responds, login::identities);
    together(snapshot, asks, responds, login::logins);
    together(snapshot, asks, responds, roster::records);
    for (place, ask) in asks.iter().enumerate() {
        if responds.is_open(place) {
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
