//! Leases.

use super::column::{int, ms, text};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::leases::{
    Held, LEASES_MAX, Lease, ListLeases, Refused, ReleaseLease, TakeLease,
};
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params};

impl Answers<Lease, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Lease) -> Result<Option<Held>> {
        Ok(find(self.db, &asked.name)?.filter(|held| held.until > asked.now))
    }
}

impl Answers<ListLeases, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ListLeases) -> Result<Vec<(Box<str>, Held)>> {
        let mut query = self.db.prepare_cached(
            "SELECT name, holder, until, state FROM lease WHERE until > ?1 AND (?2 IS NULL OR name > ?2) ORDER BY name LIMIT ?3",
        )?;
        let of = params![int(asked.now.0), asked.after, asked.limit];
        query.query_map(of, |row| Ok((text(row, 0)?, held(row, 1)?)))?.collect()
    }
}

impl Answers<TakeLease, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &TakeLease) -> Result<Result<(), Refused>> {
        let TakeLease { name, holder, now, until, state } = asked;
        self.run("DELETE FROM lease WHERE until <= ?1", [int(now.0)])?;
        match find(self.db, name)? {
            Some(held) if held.holder != *holder => return Ok(Err(Refused::Held(held))),
            None if self.leases()? >= LEASES_MAX => return Ok(Err(Refused::TooMany)),
            _ => {}
        }
        self.run(
            "INSERT INTO lease (name, holder, until, state) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (name) DO UPDATE SET until = excluded.until, state = coalesce(excluded.state, lease.state)",
            params![name, holder, int(until.0), state],
        )?;
        Ok(Ok(()))
    }
}

impl Answers<ReleaseLease, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ReleaseLease) -> Result<()> {
        self.run("DELETE FROM lease WHERE name = ?1 AND holder = ?2", params![asked.name, asked.holder])?;
        Ok(())
    }
}

impl Transaction<'_> {
    fn leases(&self) -> Result<u32> {
        self.db.prepare_cached("SELECT count(*) FROM lease")?.query_row([], |row| row.get(0))
    }
}

fn find(db: &Connection, name: &str) -> Result<Option<Held>> {
    let mut query = db.prepare_cached("SELECT holder, until, state FROM lease WHERE name = ?1")?;
    query.query_row([name], |row| held(row, 0)).optional()
}

/// What stands in a row from this column on.
fn held(row: &Row<'_>, at: usize) -> Result<Held> {
    Ok(Held { holder: text(row, at)?, until: ms(row, at + 1)?, state: row.get(at + 2)? })
}
