//! What accounts want in their archives.

use super::super::blocking::address;
use super::super::column::int;
use super::super::connection::Connection;
use super::super::error::{Error, Result};
use super::super::lookup;
use super::super::snapshot::Snapshot;
use super::super::transaction::Transaction;
use crate::rows::code::Code;
use carillon_core::model::*;
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::archive::{ReadArchivePreferences, SetArchivePreferences};
use carillon_wire::jid::Jid;
use tokio_postgres::Row;

/// In `account.archive`, beside the default: there are rules.
const RULES: i64 = 8;

impl Answers<ReadArchivePreferences, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ReadArchivePreferences) -> Result<Option<ArchivePreferences>> {
        let found = self.db.opt(
            "SELECT id, archive FROM account WHERE domain = $1 AND local = $2",
            &[&i64::from(asked.domain.0), &asked.local],
        )?;
        let Some(row) = found else { return Ok(None) };
        let (account, wish): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        let mut preferences =
            ArchivePreferences { default: default(wish)?, always: Vec::new(), never: Vec::new() };
        if wish >= RULES {
            let sql = "SELECT jid, wanted FROM archive_rule WHERE account = $1 ORDER BY jid";
            add(&mut preferences, &self.db.query(sql, &[&account])?)?;
        }
        Ok(Some(preferences))
    }
}

impl Answers<SetArchivePreferences, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &SetArchivePreferences) -> Result<std::result::Result<(), Missing>> {
        let Some(account) = lookup::account(self.db, asked.domain, &asked.local)? else {
            return Ok(Err(Missing));
        };
        let (id, preferences) = (int(account.0), &asked.preferences);
        let has_rules = !preferences.always.is_empty() || !preferences.never.is_empty();
        let wish = preferences.default.code() + if has_rules { RULES } else { 0 };
        self.run("UPDATE account SET archive = $2 WHERE id = $1", &[&id, &wish])?;
        self.run("DELETE FROM archive_rule WHERE account = $1", &[&id])?;
        for (wanted, jids) in [(true, &preferences.always), (false, &preferences.never)] {
            let jids: Vec<&str> = jids.iter().map(Jid::as_str).collect();
            self.run(
                "INSERT INTO archive_rule (account, jid, wanted) SELECT DISTINCT $1::bigint, rule.jid, $3::boolean FROM unnest($2::text[]) AS rule (jid)",
                &[&id, &jids, &wanted],
            )?;
        }
        Ok(Ok(()))
    }
}

/// Whether an account wants a message from or to this address: of its rules those are looked at that may be about it.
pub(super) fn wants(db: &Connection, account: i64, wish: i64, other: &Jid) -> Result<bool> {
    let default = default(wish)?;
    let mut preferences = ArchivePreferences { default, always: Vec::new(), never: Vec::new() };
    if wish >= RULES {
        let mut covering = [other.as_str(), other.bare_str(), other.domain()].map(str::to_owned).to_vec();
        covering.extend(other.resource().map(|resource| format!("{}/{resource}", other.domain())));
        let sql = "SELECT jid, wanted FROM archive_rule WHERE account = $1 AND jid = ANY ($2::text[])
            AND hashtextextended(jid, 0) = ANY (ARRAY (SELECT hashtextextended(covering, 0) FROM unnest($2::text[]) AS covering))";
        add(&mut preferences, &db.query(sql, &[&account, &covering])?)?;
    }
    let is_contact = match default {
        ArchiveDefault::Roster => {
            let sql = "SELECT 1 FROM contact WHERE account = $1 AND jid = $2 AND listed";
            db.opt(sql, &[&account, &other.bare_str()])?.is_some()
        }
        ArchiveDefault::Always | ArchiveDefault::Never => false,
    };
    Ok(preferences.wants(other, || is_contact))
}

fn default(wish: i64) -> Result<ArchiveDefault> {
    Code::of(wish % RULES).ok_or(Error::Corrupt("no default of an archive"))
}

fn add(preferences: &mut ArchivePreferences, rows: &[Row]) -> Result<()> {
    for row in rows {
        let rules = if row.try_get(1)? { &mut preferences.always } else { &mut preferences.never };
        rules.push(address(row, 0)?);
    }
    Ok(())
}
