//! Leases.

use super::column::{int, ms, number, opt_text, text};
use super::connection::Connection;
use super::error::{Error, Result};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::leases::{
    Held, LEASES_MAX, Lease, ListLeases, Refused, ReleaseLease, TakeLease,
};
use tokio_postgres::Row;

impl Answers<Lease, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Lease) -> Result<Option<Held>> {
        Ok(find(self.db, &asked.name)?.filter(|held| held.until > asked.now))
    }
}

impl Answers<ListLeases, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ListLeases) -> Result<Vec<(Box<str>, Held)>> {
        let rows = self.db.query(
            "SELECT name, holder, until, state FROM lease WHERE until > $1 AND ($2::text IS NULL OR name > $2) ORDER BY name LIMIT $3",
            &[&int(asked.now.0), &asked.after, &i64::from(asked.limit)],
        )?;
        rows.iter().map(|row| Ok((text(row, 0)?, held(row, 1)?))).collect()
    }
}

impl Answers<TakeLease, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &TakeLease) -> Result<std::result::Result<(), Refused>> {
        let TakeLease { name, holder, now, until, state } = asked;
        self.run("DELETE FROM lease WHERE until <= $1", &[&int(now.0)])?;
        match find(self.db, name)? {
            Some(held) if held.holder != *holder => return Ok(Err(Refused::Held(held))),
            None if number(&self.db.one("SELECT count(*) FROM lease", &[])?, 0)? >= LEASES_MAX => {
                return Ok(Err(Refused::TooMany));
            }
            _ => {}
        }
        self.run(
            "INSERT INTO lease (name, holder, until, state) VALUES ($1, $2, $3, $4)
             ON CONFLICT (name) DO UPDATE SET until = excluded.until, state = coalesce(excluded.state, lease.state)",
            &[name, holder, &int(until.0), state],
        )?;
        Ok(Ok(()))
    }
}

impl Answers<ReleaseLease, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ReleaseLease) -> Result<()> {
        self.run("DELETE FROM lease WHERE name = $1 AND holder = $2", &[&asked.name, &asked.holder]).map(drop)
    }
}

fn find(db: &Connection, name: &str) -> Result<Option<Held>> {
    let row = db.opt("SELECT holder, until, state FROM lease WHERE name = $1", &[&name])?;
    row.map(|row| held(&row, 0)).transpose()
}

/// What stands in a row from this column on.
fn held(row: &Row, at: usize) -> Result<Held> {
    Ok(Held { holder: text(row, at)?, until: ms(row, at + 1)?, state: opt_text(row, at + 2)? })
}
