//! Administrative acts.

use super::column::{int, ms, opt_text, text, uint};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use carillon_core::model::{Act, ActId, DomainId, KeyId};
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::acts::{FORGOTTEN_MAX, ListActs, NoteAct};
use rusqlite::{Error, Result, Row, params};

impl Answers<ListActs, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ListActs) -> Result<Vec<(ActId, Act)>> {
        // Each by an index.
        let wanted = match (asked.key, asked.domain) {
            (None, None) => "?3 IS NULL AND ?4 IS NULL",
            (Some(_), None) => "key = ?3 AND ?4 IS NULL",
            (None, Some(_)) => "?3 IS NULL AND key_domain = ?4",
            (Some(_), Some(_)) => "key = ?3 AND key_domain = ?4",
        };
        let mut query = self.db.prepare_cached(&format!(
            "SELECT id, at, key, key_name, key_domain, address, what, reason, outcome, request FROM act
             WHERE id < ?1 AND {wanted} ORDER BY id DESC LIMIT ?2"
        ))?;
        let (key, domain) = (asked.key.map(|key| key.0), asked.domain.map(|domain| domain.0));
        query.query_map(params![before(asked.before), asked.limit, key, domain], act)?.collect()
    }
}

impl Answers<NoteAct, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &NoteAct) -> Result<()> {
        let NoteAct { act, keep_since } = asked;
        self.run(
            "DELETE FROM act WHERE id IN (SELECT id FROM act ORDER BY id LIMIT ?2) AND at < ?1",
            params![int(keep_since.0), FORGOTTEN_MAX],
        )?;
        self.run(
            "INSERT INTO act (at, key, key_name, key_domain, address, what, reason, outcome, request)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                int(act.at.0),
                act.key.0,
                act.key_name,
                act.domain.map(|domain| domain.0),
                act.address,
                act.what,
                act.reason,
                act.outcome,
                act.request
            ],
        )?;
        Ok(())
    }
}

/// A number as the column has it, which has no higher ones.
fn before(id: ActId) -> i64 {
    int(id.0.min(i64::MAX.cast_unsigned()))
}

fn act(row: &Row<'_>) -> Result<(ActId, Act)> {
    let act = Act {
        at: ms(row, 1)?,
        key: KeyId(row.get(2)?),
        key_name: text(row, 3)?,
        domain: row.get::<_, Option<u32>>(4)?.map(DomainId),
        address: opt_text(row, 5)?,
        what: text(row, 6)?,
        reason: opt_text(row, 7)?,
        outcome: text(row, 8)?,
        request: text(row, 9)?,
    };
    Ok((ActId(uint(row, 0)?), act))
}
