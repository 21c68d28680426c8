//! Removing accounts and domains: what belongs to them, in one list for all ways.
//!
//! The test below fills every table of the database: one that is added and not listed here fails it.

use super::column::int;
use super::transaction::Transaction;
use crate::rows::code::Code;
use carillon_core::model::{AccountId, Affiliation, DomainId, RoomAffiliation, RosterChange};
use carillon_wire::jid::BareJid;
use rusqlite::{Result, params};

/// The tables with rows of accounts, and which of them are those of the account `?1`; in an order in which nothing that is left refers to what is
/// gone. Archives are not here: they are removed message by message (`archive/sweep.rs`), once their accounts are gone.
const OF_ACCOUNT: &[(&str, &str)] = &[
    ("push_step", "notification IN (SELECT id FROM notification WHERE account = ?1)"),
    ("notification", "account = ?1"),
    ("offline", "account = ?1"),
    ("push", "registration IN (SELECT id FROM push_registration WHERE account = ?1)"),
    ("push_registration", "account = ?1"),
    ("endpoint", "account = ?1"),
    ("contact", "account = ?1"),
    ("blocked", "account = ?1"),
    ("privacy", "account = ?1"),
    ("room_block", "account = ?1"),
    ("private", "account = ?1"),
    ("account_node_item", "node IN (SELECT id FROM account_node WHERE account = ?1)"),
    ("account_node", "account = ?1"),
    ("vcard", "account = ?1"),
    ("archive_rule", "account = ?1"),
    ("subscription", "account = ?1"),
    ("upload", "account = ?1"),
    ("upload_account", "account = ?1"),
    ("invitation", "account = ?1"),
    (
        "broadcast_end",
        "account = ?1 AND broadcast IN (SELECT seq FROM broadcast WHERE has_ends AND domain = (SELECT domain FROM account WHERE id = ?1))",
    ),
];

/// The tables with rows of topics, in their column `topic`.
pub(super) const OF_TOPIC: &[&str] = &["item", "subscription", "affiliation"];

/// The tables with rows of a domain `?1` that are no account's, topic's or webhook's.
const OF_DOMAIN: &[(&str, &str)] = &[
    ("domain_grant", "domain = ?1"),
    ("held_name", "domain = ?1"),
    ("invitation", "domain = ?1"),
    ("link_file", "domain = ?1"),
    ("link_domain", "domain = ?1"),
    ("idempotency", "key IN (SELECT id FROM api_key WHERE domain = ?1)"),
    ("api_key", "domain = ?1"),
    ("upload_domain", "domain = ?1"),
    ("broadcast_end", "broadcast IN (SELECT seq FROM broadcast WHERE domain = ?1)"),
    ("broadcast_given", "broadcast IN (SELECT seq FROM broadcast WHERE domain = ?1)"),
    ("broadcast", "domain = ?1"),
];

/// What came of removing an account.
pub(super) struct Removed {
    /// What changed in the rosters of others.
    pub(super) changes: Vec<RosterChange>,
    /// Rows that were changed.
    pub(super) rows: usize,
}

/// Removes an account that is there.
pub(super) fn account(
    write: &mut Transaction<'_>,
    account: AccountId,
    local: &str,
    domain_name: &str,
) -> Result<Removed> {
    write.overwriting(|write| remove(write, account, local, domain_name))
}

fn remove(
    write: &mut Transaction<'_>,
    account: AccountId,
    local: &str,
    domain_name: &str,
) -> Result<Removed> {
    let id = int(account.0);
    let changes = match BareJid::from_parts(Some(local), domain_name) {
        Ok(jid) => write.end_subscriptions(account, &jid)?,
        Err(_) => Vec::new(),
    };
    let mut rows = 2 * changes.len();
    // What became of its notifications is known for some time, but not what their senders called them.
    rows += write.run(
        "UPDATE trace SET collapse_key = NULL WHERE run IN (SELECT number FROM run) AND local = ?1
             AND domain = (SELECT domain FROM account WHERE id = ?2) AND collapse_key IS NOT NULL",
        params![local, id],
    )?;
    for (table, is_its) in OF_ACCOUNT {
        rows += write.run(&format!("DELETE FROM {table} WHERE {is_its}"), [id])?;
    }
    // What was granted must not fall to the next who takes the name. A ban is the topic's and stays, or deleting the
    // account would be the way around it.
    rows += write.run(
        "DELETE FROM affiliation WHERE jid = ?1 || '@' || ?2 AND affiliation > ?3",
        params![local, domain_name, Affiliation::Outcast.code()],
    )?;
    rows += write.run(
        "DELETE FROM room_member WHERE jid = ?1 || '@' || ?2 AND affiliation > ?3",
        params![local, domain_name, RoomAffiliation::Outcast.code()],
    )?;
    rows += write.run("DELETE FROM account WHERE id = ?1", [id])?;
    Ok(Removed { changes, rows })
}

/// Removes what a domain has besides accounts, topics and webhooks.
pub(super) fn rest_of_domain(write: &Transaction<'_>, domain: DomainId) -> Result<()> {
    for (table, is_its) in OF_DOMAIN {
        write.run(&format!("DELETE FROM {table} WHERE {is_its}"), [domain.0])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
