//! Removing accounts and domains: what belongs to them, in one list for all ways.
//!
//! The test below fills every table of the database: one that is added and not listed here fails it.

use super::column::int;
use super::transaction::Transaction;
use super::{ending, room};
use crate::rows::code::Code;
use carillon_core::model::{AccountId, Affiliation, DomainId, RosterChange, UnixMs};
use carillon_wire::jid::BareJid;
use rusqlite::{Result, params};

/// The tables with rows of accounts, their keys, and which of them are those of the account `?1`; in an order in which nothing that is left refers to
/// what is gone. Archives are not here: they are removed message by message (`archive/sweep.rs`), once their accounts are gone.
const OF_ACCOUNT: &[(&str, &str, &str)] = &[
    (
        "push_step",
        "notification, registration",
        "notification IN (SELECT id FROM notification WHERE account = ?1)",
    ),
    ("notification", "seq", "account = ?1"),
    ("offline", "seq", "account = ?1"),
    ("push", "id", "registration IN (SELECT id FROM push_registration WHERE account = ?1)"),
    (
        "push_room",
        "room, jid, registration",
        "registration IN (SELECT id FROM push_registration WHERE account = ?1)",
    ),
    ("push_registration", "id", "account = ?1"),
    ("endpoint", "id", "account = ?1"),
    ("contact", "account, jid", "account = ?1"),
    ("blocked", "account, jid", "account = ?1"),
    ("privacy", "account", "account = ?1"),
    ("room_block", "account, is_room, jid", "account = ?1"),
    ("private", "account, ns, name", "account = ?1"),
    ("account_node_item", "rowid", "node IN (SELECT id FROM account_node WHERE account = ?1)"),
    ("account_node", "id", "account = ?1"),
    ("vcard", "account", "account = ?1"),
    ("archive_rule", "account, jid, wanted", "account = ?1"),
    ("subscription", "account, topic", "account = ?1"),
    ("upload", "id", "account = ?1"),
    ("upload_account", "account", "account = ?1"),
    ("invitation", "id", "account = ?1"),
    (
        "broadcast_end",
        "broadcast, account",
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

/// An account that is being removed.
pub(super) struct Gone<'a> {
    pub(super) account: AccountId,
    pub(super) local: &'a str,
    pub(super) domain_name: &'a str,
    /// When those are told who wait for what becomes of its notifications and memberships; none where its domain goes along.
    pub(super) told_at: Option<UnixMs>,
}

/// What came of removing a part of an account.
#[derive(Default)]
pub(super) struct Removed {
    /// What changed in the rosters of others.
    pub(super) changes: Vec<RosterChange>,
    /// Rows that were changed, about.
    pub(super) rows: usize,
    /// Whether there is more of it.
    pub(super) more: bool,
}

/// Removes a part of an account that is there: all of it, or as many rows as there may be at once. Of one that is left in part nobody logs in.
pub(super) fn account(write: &mut Transaction<'_>, gone: &Gone<'_>, rows_max: usize) -> Result<Removed> {
    let removed = write.overwriting(|write| remove(write, gone, rows_max))?;
    if removed.more {
        write.run(
            "UPDATE account SET disabled = ?2 WHERE id = ?1 AND disabled IS NULL",
            params![int(gone.account.0), int(gone.told_at.unwrap_or_default().0)],
        )?;
    }
    Ok(removed)
}

/// Removes rows of one kind, and counts them; no more of them once there are as many as there may be.
type Step = fn(&mut Transaction<'_>, &Gone<'_>, usize, &mut Removed) -> Result<()>;

fn remove(write: &mut Transaction<'_>, gone: &Gone<'_>, rows_max: usize) -> Result<Removed> {
    const STEPS: [Step; 5] = [end_notifications, end_subscriptions, forget_collapse_keys, remove_rows, leave];
    let mut removed = Removed { more: true, ..Removed::default() };
    for step in STEPS {
        step(write, gone, rows_max, &mut removed)?;
        if removed.rows >= rows_max {
            return Ok(removed);
        }
    }
    removed.rows += write.run("DELETE FROM account WHERE id = ?1", [int(gone.account.0)])?;
    removed.more = false;
    Ok(removed)
}

fn end_notifications(
    write: &mut Transaction<'_>,
    gone: &Gone<'_>,
    rows_max: usize,
    removed: &mut Removed,
) -> Result<()> {
    if let Some(now) = gone.told_at {
        let max = (rows_max - removed.rows).div_ceil(ending::ROWS_OF_END);
        removed.rows += ending::ROWS_OF_END * ending::device_deleted(write, gone.account, now, max)?;
    }
    Ok(())
}

fn end_subscriptions(
    write: &mut Transaction<'_>,
    gone: &Gone<'_>,
    rows_max: usize,
    removed: &mut Removed,
) -> Result<()> {
    /// Two on the other side, and one on this.
    const ROWS_OF_CONTACT: usize = 3;
    let Ok(jid) = BareJid::from_parts(Some(gone.local), gone.domain_name) else { return Ok(()) };
    let max = (rows_max - removed.rows).div_ceil(ROWS_OF_CONTACT);
    let (contacts, mut changes) = write.end_subscriptions(gone.account, &jid, max)?;
    removed.rows += ROWS_OF_CONTACT * contacts;
    removed.changes.append(&mut changes);
    Ok(())
}

/// What became of its notifications is known for some time, but not what their senders called them.
fn forget_collapse_keys(
    write: &mut Transaction<'_>,
    gone: &Gone<'_>,
    rows_max: usize,
    removed: &mut Removed,
) -> Result<()> {
    removed.rows += write.run(
        "UPDATE trace SET collapse_key = NULL WHERE id IN (
             SELECT id FROM trace WHERE run IN (SELECT number FROM run) AND local = ?1
             AND domain = (SELECT domain FROM account WHERE id = ?2) AND collapse_key IS NOT NULL LIMIT ?3)",
        params![gone.local, int(gone.account.0), limit(rows_max - removed.rows)],
    )?;
    Ok(())
}

fn remove_rows(
    write: &mut Transaction<'_>,
    gone: &Gone<'_>,
    rows_max: usize,
    removed: &mut Removed,
) -> Result<()> {
    for (table, key, is_its) in OF_ACCOUNT {
        if removed.rows >= rows_max {
            return Ok(());
        }
        removed.rows += write.run(
            &format!(
                "DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {is_its} LIMIT ?2)"
            ),
            params![int(gone.account.0), limit(rows_max - removed.rows)],
        )?;
    }
    Ok(())
}

/// What was granted must not fall to the next who takes the name. A ban is the topic's, or the room's, and stays, or deleting the account would be the
/// way around it.
fn leave(write: &mut Transaction<'_>, gone: &Gone<'_>, rows_max: usize, removed: &mut Removed) -> Result<()> {
    removed.rows += write.run(
        "DELETE FROM affiliation WHERE (topic, jid) IN (
             SELECT topic, jid FROM affiliation WHERE jid = ?1 || '@' || ?2 AND affiliation > ?3 LIMIT ?4)",
        params![gone.local, gone.domain_name, Affiliation::Outcast.code(), limit(rows_max - removed.rows)],
    )?;
    if let Ok(jid) = BareJid::from_parts(Some(gone.local), gone.domain_name) {
        let max = rows_max.saturating_sub(removed.rows).div_ceil(room::ROWS_OF_LEAVING);
        removed.rows += room::ROWS_OF_LEAVING * room::leave_all(write, &jid, gone.told_at, max)?;
    }
    Ok(())
}

fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
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
