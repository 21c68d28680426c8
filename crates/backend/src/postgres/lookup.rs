//! The small questions that the nouns ask about each other.

use super::column::{text, uint};
use super::connection::Connection;
use super::error::Result;
use carillon_core::model::{AccountId, DomainId, TopicId};

/// The name of a domain, where there is one.
pub(super) fn domain_name(db: &Connection, domain: DomainId) -> Result<Option<Box<str>>> {
    let found = db.opt("SELECT name FROM domain WHERE id = $1", &[&i64::from(domain.0)])?;
    found.map(|row| text(&row, 0)).transpose()
}

/// The name of a domain that may get something more: it is there, and is not being removed.
pub(super) fn domain_to_fill(db: &Connection, domain: DomainId) -> Result<Option<Box<str>>> {
    let sql = "SELECT name FROM domain d WHERE id = $1
         AND NOT EXISTS (SELECT 1 FROM removal r WHERE r.account = 0 AND r.domain = d.id)";
    db.opt(sql, &[&i64::from(domain.0)])?.map(|row| text(&row, 0)).transpose()
}

/// Whether the removal of one of these accounts has begun.
pub(super) fn is_being_removed(db: &Connection, domain: DomainId, locals: &[&str]) -> Result<bool> {
    let sql = "SELECT 1 FROM account a JOIN removal r ON r.account = a.id
         WHERE a.domain = $1 AND a.local = ANY ($2::text[]) LIMIT 1";
    Ok(db.opt(sql, &[&i64::from(domain.0), &locals])?.is_some())
}

/// An account's number, where there is one.
pub(super) fn account(db: &Connection, domain: DomainId, local: &str) -> Result<Option<AccountId>> {
    let found =
        db.opt("SELECT id FROM account WHERE domain = $1 AND local = $2", &[&i64::from(domain.0), &local])?;
    found.map(|row| uint(&row, 0).map(AccountId)).transpose()
}

/// The topics an account follows, ordered by name.
pub(super) fn topics_of(db: &Connection, account: AccountId) -> Result<Vec<(TopicId, Box<str>)>> {
    db.query(
        "SELECT t.id, t.name FROM subscription s JOIN topic t ON t.id = s.topic WHERE s.account = $1
         ORDER BY t.name, t.id",
        &[&super::column::int(account.0)],
    )?
    .iter()
    .map(|row| Ok((TopicId(super::column::number(row, 0)?), text(row, 1)?)))
    .collect()
}

/// The domain of this name, where there is one.
pub(super) fn domain_named(db: &Connection, name: &str) -> Result<Option<DomainId>> {
    let found = db.opt("SELECT id FROM domain WHERE name = $1", &[&name])?;
    found.map(|row| super::column::number(&row, 0).map(DomainId)).transpose()
}
