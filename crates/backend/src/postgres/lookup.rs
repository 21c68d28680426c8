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
