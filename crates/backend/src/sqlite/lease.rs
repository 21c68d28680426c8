//! Leases.

use super::column::{int, ms, text};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::leases::{Held, LEASES_MAX, Lease, Refused, ReleaseLease, TakeLease};
use rusqlite::{Connection, Error, OptionalExtension, Result, params};

impl Answers<Lease, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Lease) -> Result<Option<Held>> {
        Ok(find(self.db, &asked.name)?.filter(|held| held.until > asked.now))
    }
}

impl Answers<TakeLease, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &TakeLease) -> Result<Result<(), Refused>> {
        let TakeLease { name, holder, now, until } = asked;
        self.run("DELETE FROM lease WHERE until <= ?1", [int(now.0)])?;
        match find(self.db, name)? {
            Some(held) if held.holder != *holder => return Ok(Err(Refused::Held(held))),
            None if self.leases()? >= LEASES_MAX => return Ok(Err(Refused::TooMany)),
            _ => {}
        }
        self.run(
            "INSERT INTO lease (name, holder, until) VALUES (?1, ?2, ?3)
             ON CONFLICT (name) DO UPDATE SET until = excluded.until",
            params![name, holder, int(until.0)],
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
    let mut query = db.prepare_cached("SELECT holder, until FROM lease WHERE name = ?1")?;
    query.query_row([name], |row| Ok(Held { holder: text(row, 0)?, until: ms(row, 1)? })).optional()
}
