//! Leases.

use super::column::{int, ms, number, text};
use super::connection::Connection;
use super::error::{Error, Result};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::leases::{Held, LEASES_MAX, Lease, Refused, ReleaseLease, TakeLease};

impl Answers<Lease, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Lease) -> Result<Option<Held>> {
        Ok(find(self.db, &asked.name)?.filter(|held| held.until > asked.now))
    }
}

impl Answers<TakeLease, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &TakeLease) -> Result<std::result::Result<(), Refused>> {
        let TakeLease { name, holder, now, until } = asked;
        self.run("DELETE FROM lease WHERE until <= $1", &[&int(now.0)])?;
        match find(self.db, name)? {
            Some(held) if held.holder != *holder => return Ok(Err(Refused::Held(held))),
            None if number(&self.db.one("SELECT count(*) FROM lease", &[])?, 0)? >= LEASES_MAX => {
                return Ok(Err(Refused::TooMany));
            }
            _ => {}
        }
        self.run(
            "INSERT INTO lease (name, holder, until) VALUES ($1, $2, $3)
             ON CONFLICT (name) DO UPDATE SET until = excluded.until",
            &[name, holder, &int(until.0)],
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
    let row = db.opt("SELECT holder, until FROM lease WHERE name = $1", &[&name])?;
    row.map(|row| Ok(Held { holder: text(&row, 0)?, until: ms(&row, 1)? })).transpose()
}
