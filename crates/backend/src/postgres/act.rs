//! Administrative acts.

use super::column::{int, ms, number, opt_number, opt_text, text, uint};
use super::error::{Error, Result};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use carillon_core::model::{Act, ActId, DomainId, KeyId};
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::acts::{FORGOTTEN_MAX, ListActs, NoteAct};
use tokio_postgres::Row;

/// The newest acts before one, as [`act`] reads them.
macro_rules! acts {
    ($wanted:literal) => {
        concat!(
            "SELECT id, at, key, key_name, key_domain, address, what, reason, outcome, request FROM act
             WHERE id < $1 AND ",
            $wanted,
            " ORDER BY id DESC LIMIT $2"
        )
    };
}

impl Answers<ListActs, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ListActs) -> Result<Vec<(ActId, Act)>> {
        let before = int(asked.before.0.min(i64::MAX.cast_unsigned()));
        let limit = i64::from(asked.limit);
        let key = asked.key.map(|key| i64::from(key.0));
        let domain = asked.domain.map(|domain| i64::from(domain.0));
        let found = match (key, domain) {
            (None, None) => self.db.query(acts!("true"), &[&before, &limit])?,
            (Some(key), None) => self.db.query(acts!("key = $3"), &[&before, &limit, &key])?,
            (None, Some(domain)) => self.db.query(acts!("key_domain = $3"), &[&before, &limit, &domain])?,
            (Some(key), Some(domain)) => {
                self.db.query(acts!("key = $3 AND key_domain = $4"), &[&before, &limit, &key, &domain])?
            }
        };
        found.iter().map(act).collect()
    }
}

impl Answers<NoteAct, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &NoteAct) -> Result<()> {
        let NoteAct { act, keep_since } = asked;
        self.run(
            "DELETE FROM act WHERE id IN (SELECT id FROM act ORDER BY id LIMIT $2) AND at < $1",
            &[&int(keep_since.0), &i64::from(FORGOTTEN_MAX)],
        )?;
        self.run(
            "INSERT INTO act (at, key, key_name, key_domain, address, what, reason, outcome, request)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            &[
                &int(act.at.0),
                &i64::from(act.key.0),
                &act.key_name,
                &act.domain.map(|domain| i64::from(domain.0)),
                &act.address,
                &act.what,
                &act.reason,
                &act.outcome,
                &act.request,
            ],
        )?;
        Ok(())
    }
}

fn act(row: &Row) -> Result<(ActId, Act)> {
    let act = Act {
        at: ms(row, 1)?,
        key: KeyId(number(row, 2)?),
        key_name: text(row, 3)?,
        domain: opt_number(row, 4)?.map(DomainId),
        address: opt_text(row, 5)?,
        what: text(row, 6)?,
        reason: opt_text(row, 7)?,
        outcome: text(row, 8)?,
        request: text(row, 9)?,
    };
    Ok((ActId(uint(row, 0)?), act))
}
