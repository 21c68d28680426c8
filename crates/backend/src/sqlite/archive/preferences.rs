//! What accounts want in their archives.

use super::super::column::{Code, corrupt, int};
use super::super::lookup;
use super::super::snapshot::Snapshot;
use super::super::transaction::Transaction;
use carillon_core::model::*;
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::archive::{ReadArchivePreferences, SetArchivePreferences};
use carillon_wire::jid::Jid;
use rusqlite::{Connection, Error, OptionalExtension, Result, params};

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
    let default = Code::of(wish % RULES).ok_or_else(|| corrupt(1, "no default of an archive"))?;
    let mut preferences = ArchivePreferences { default, always: Vec::new(), never: Vec::new() };
    if wish >= RULES {
        let mut query =
            db.prepare_cached("SELECT jid, wanted FROM archive_rule WHERE account = ?1 ORDER BY jid")?;
        let mut rows = query.query([account])?;
        while let Some(row) = rows.next()? {
            let jid = super::super::blocking::address(row, 0)?;
            let rules = if row.get(1)? { &mut preferences.always } else { &mut preferences.never };
            rules.push(jid);
        }
    }
    Ok(preferences)
}

/// Whether an account wants a message from or to this address.
pub(super) fn wants(db: &Connection, account: i64, wish: i64, other: &Jid) -> Result<bool> {
    let preferences = read(db, account, wish)?;
    let is_contact = match preferences.default {
        ArchiveDefault::Roster => db
            .prepare_cached("SELECT 1 FROM contact WHERE account = ?1 AND jid = ?2 AND listed = 1")?
            .exists(params![account, other.bare_str()])?,
        ArchiveDefault::Always | ArchiveDefault::Never => false,
    };
    Ok(preferences.wants(other, || is_contact))
}
