//! What accounts want in their archives.

use super::super::column::{corrupt, int};
use super::super::lookup;
use super::super::snapshot::Snapshot;
use super::super::transaction::Transaction;
use crate::rows::code::Code;
use carillon_core::model::*;
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::archive::{ReadArchivePreferences, SetArchivePreferences};
use carillon_wire::jid::Jid;
use rusqlite::{Connection, Error, OptionalExtension, Result, Rows, params};

/// In `account.archive`, beside the default: there are rules.
const RULES: i64 = 8;

impl Answers<ReadArchivePreferences, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ReadArchivePreferences) -> Result<Option<ArchivePreferences>> {
        let found = self
            .db
            .prepare_cached("SELECT id, archive FROM account WHERE domain = ?1 AND local = ?2")?
            .query_row(params![asked.domain.0, asked.local], |row| Ok((row.get(0)?, row.get(1)?)));
        found.optional()?.map(|(account, wish)| read(self.db, account, wish)).transpose()
    }
}

impl Answers<SetArchivePreferences, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &SetArchivePreferences) -> Result<Result<(), Missing>> {
        let Some(account) = lookup::account(self.db, asked.domain, &asked.local)? else {
            return Ok(Err(Missing));
        };
        let (id, preferences) = (int(account.0), &asked.preferences);
        let has_rules = !preferences.always.is_empty() || !preferences.never.is_empty();
        let wish = preferences.default.code() + if has_rules { RULES } else { 0 };
        self.run("UPDATE account SET archive = ?2 WHERE id = ?1", params![id, wish])?;
        self.run("DELETE FROM archive_rule WHERE account = ?1", [id])?;
        for (wanted, jids) in [(true, &preferences.always), (false, &preferences.never)] {
            for jid in jids {
                self.run(
                    "INSERT OR IGNORE INTO archive_rule (account, jid, wanted) VALUES (?1, ?2, ?3)",
                    params![id, jid.as_str(), wanted],
                )?;
            }
        }
        Ok(Ok(()))
    }
}

/// What an account wants: `wish` is its `account.archive`.
fn read(db: &Connection, account: i64, wish: i64) -> Result<ArchivePreferences> {
    let mut preferences =
        ArchivePreferences { default: default(wish)?, always: Vec::new(), never: Vec::new() };
    if wish >= RULES {
        let mut query =
            db.prepare_cached("SELECT jid, wanted FROM archive_rule WHERE account = ?1 ORDER BY jid")?;
        add(&mut preferences, &mut query.query([account])?)?;
    }
    Ok(preferences)
}

/// Whether an account wants a message from or to this address: of its rules those are looked at that may be about it.
pub(super) fn wants(db: &Connection, account: i64, wish: i64, other: &Jid) -> Result<bool> {
    let default = default(wish)?;
    let mut preferences = ArchivePreferences { default, always: Vec::new(), never: Vec::new() };
    if wish >= RULES {
        let of_domain = other.resource().map(|resource| format!("{}/{resource}", other.domain()));
        let sql = "SELECT jid, wanted FROM archive_rule WHERE account = ?1 AND jid IN (?2, ?3, ?4, ?5)";
        let mut query = db.prepare_cached(sql)?;
        let covering = params![account, other.as_str(), other.bare_str(), other.domain(), of_domain];
        add(&mut preferences, &mut query.query(covering)?)?;
    }
    let is_contact = match default {
        ArchiveDefault::Roster => db
            .prepare_cached("SELECT 1 FROM contact WHERE account = ?1 AND jid = ?2 AND listed = 1")?
            .exists(params![account, other.bare_str()])?,
        ArchiveDefault::Always | ArchiveDefault::Never => false,
    };
    Ok(preferences.wants(other, || is_contact))
}

fn default(wish: i64) -> Result<ArchiveDefault> {
    Code::of(wish % RULES).ok_or_else(|| corrupt(1, "no default of an archive"))
}

fn add(preferences: &mut ArchivePreferences, rows: &mut Rows<'_>) -> Result<()> {
    while let Some(row) = rows.next()? {
        let jid = super::super::column::address(row, 0)?;
        let rules = if row.get(1)? { &mut preferences.always } else { &mut preferences.never };
        rules.push(jid);
    }
    Ok(())
}
