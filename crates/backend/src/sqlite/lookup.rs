//! The small questions that the nouns ask about each other.

use super::column::{int, text, uint};
use carillon_core::model::{AccountId, DomainId, TopicId};
use rusqlite::{Connection, OptionalExtension, Result, params};

/// The name of a domain, where there is one.
pub(super) fn domain_name(db: &Connection, domain: DomainId) -> Result<Option<Box<str>>> {
    db.prepare_cached("SELECT name FROM domain WHERE id = ?1")?
        .query_row([domain.0], |row| text(row, 0))
        .optional()
}

/// The name of a domain that may get something more: it is there, and is not being removed.
pub(super) fn domain_to_fill(db: &Connection, domain: DomainId) -> Result<Option<Box<str>>> {
    let sql = "SELECT name FROM domain d WHERE id = ?1
         AND NOT EXISTS (SELECT 1 FROM removal r WHERE r.account = 0 AND r.domain = d.id)";
    db.prepare_cached(sql)?.query_row([domain.0], |row| text(row, 0)).optional()
}

/// Whether the removal of an account has begun.
pub(super) fn is_being_removed(db: &Connection, domain: DomainId, local: &str) -> Result<bool> {
    db.prepare_cached(
        "SELECT 1 FROM account a JOIN removal r ON r.account = a.id WHERE a.domain = ?1 AND a.local = ?2",
    )?
    .exists(params![domain.0, local])
}

/// The domain of this name, where there is one.
pub(super) fn domain_named(db: &Connection, name: &str) -> Result<Option<DomainId>> {
    db.prepare_cached("SELECT id FROM domain WHERE name = ?1")?
        .query_row([name], |row| row.get(0).map(DomainId))
        .optional()
}

/// An account's number, where there is one.
pub(super) fn account(db: &Connection, domain: DomainId, local: &str) -> Result<Option<AccountId>> {
    db.prepare_cached("SELECT id FROM account WHERE domain = ?1 AND local = ?2")?
        .query_row(params![domain.0, local], |row| uint(row, 0).map(AccountId))
        .optional()
}

/// The topics an account follows, ordered by name.
pub(super) fn topics_of(db: &Connection, account: AccountId) -> Result<Vec<(TopicId, Box<str>)>> {
    db.prepare_cached(
        "SELECT t.id, t.name FROM subscription s JOIN topic t ON t.id = s.topic WHERE s.account = ?1
         ORDER BY t.name, t.id",
    )?
    .query_map([int(account.0)], |row| Ok((TopicId(uint(row, 0)? as u32), text(row, 1)?)))?
    .collect()
}

/// How many commits have changed topics: while that stays, what was read of them holds.
pub(super) fn topic_changes(db: &Connection) -> Result<u64> {
    db.prepare_cached("SELECT topic_changes FROM node")?.query_row([], |row| uint(row, 0))
}

/// How many more accounts a domain may have; none where its policy has no bound.
pub(super) fn room_for_accounts(db: &Connection, domain: DomainId) -> Result<Option<u32>> {
    db.prepare_cached(
        "SELECT CASE WHEN accounts_max > 0 THEN max(accounts_max - accounts, 0) END FROM domain WHERE id = ?1",
    )?
    .query_row([domain.0], |row| row.get(0))
}

/// Whether a domain has as many topics as its policy allows.
pub(super) fn is_full_of_topics(db: &Connection, domain: DomainId) -> Result<bool> {
    db.prepare_cached("SELECT topics_max > 0 AND topics >= topics_max FROM domain WHERE id = ?1")?
        .query_row([domain.0], |row| row.get(0))
}
