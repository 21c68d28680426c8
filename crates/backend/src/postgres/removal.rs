//! Removing accounts and domains: what belongs to them, in one list for all ways.

use super::column::{int, short, text, uint};
use super::error::{Error, Result};
use super::transaction::Transaction;
use super::{ending, event, links, lookup, room, topic, webhook};
use carillon_core::model::{AccountId, Affiliation, DomainId, RosterChange, TopicId, UnixMs};
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::accounts::DeleteAccount;
use carillon_core::ports::store::domains::DeleteDomain;
use carillon_core::ports::{Missing, Part};
use carillon_wire::jid::BareJid;

/// The tables with rows of accounts, and which of them are those of the account `$1`; in an order in which nothing that is left refers to what is gone.
/// Archives are not here: they are removed message by message, once their accounts are gone.
const OF_ACCOUNT: &[(&str, &str)] = &[
    ("push_step", "notification IN (SELECT id FROM notification WHERE account = $1)"),
    ("notification", "account = $1"),
    ("offline", "account = $1"),
    ("push", "registration IN (SELECT id FROM push_registration WHERE account = $1)"),
    ("push_room", "registration IN (SELECT id FROM push_registration WHERE account = $1)"),
    ("push_registration", "account = $1"),
    ("endpoint", "account = $1"),
    ("contact", "account = $1"),
    ("blocked", "account = $1"),
    ("privacy", "account = $1"),
    ("room_block", "account = $1"),
    ("private", "account = $1"),
    ("account_node_item", "node IN (SELECT id FROM account_node WHERE account = $1)"),
    ("account_node", "account = $1"),
    ("last_available", "account = $1"),
    ("vcard", "account = $1"),
    ("archive_rule", "account = $1"),
    ("subscription", "account = $1"),
    ("upload", "account = $1"),
    ("upload_account", "account = $1"),
    ("invitation", "account = $1"),
    (
        "broadcast_end",
        "account = $1 AND broadcast IN (SELECT seq FROM broadcast WHERE has_ends AND domain = (SELECT domain FROM account WHERE id = $1))",
    ),
];

/// Deletes the rows of the domain `$1` that are no account's, topic's or webhook's.
const OF_DOMAIN: &[&str] = &[
    "DELETE FROM domain_grant WHERE domain = $1",
    "DELETE FROM held_name WHERE domain = $1",
    "DELETE FROM invitation WHERE domain = $1",
    "DELETE FROM link_file WHERE domain = $1",
    "DELETE FROM link_domain WHERE domain = $1",
    "DELETE FROM idempotency_line WHERE key IN (SELECT id FROM api_key WHERE domain = $1)",
    "DELETE FROM idempotency WHERE key IN (SELECT id FROM api_key WHERE domain = $1)",
    "DELETE FROM api_key WHERE domain = $1",
    "DELETE FROM upload_domain WHERE domain = $1",
    "DELETE FROM broadcast_end WHERE broadcast IN (SELECT seq FROM broadcast WHERE domain = $1)",
    "DELETE FROM broadcast_given WHERE broadcast IN (SELECT seq FROM broadcast WHERE domain = $1)",
    "DELETE FROM broadcast WHERE domain = $1",
];

/// An account that is being removed.
struct Gone<'a> {
    account: AccountId,
    local: &'a str,
    domain_name: &'a str,
    /// When those are told who wait for what becomes of its notifications and memberships; none where its domain goes along.
    told_at: Option<UnixMs>,
}

/// What came of removing a part of an account.
#[derive(Default)]
struct Removed {
    /// What changed in the rosters of others.
    changes: Vec<RosterChange>,
    /// Rows that were changed, about.
    rows: usize,
    /// Whether there is more of it.
    more: bool,
}

/// Removes a part of an account that is there: all of it, or as many rows as there may be at once. Of one that is left in part nobody logs in.
fn account(write: &mut Transaction<'_>, gone: &Gone<'_>, rows_max: usize) -> Result<Removed> {
    let removed = remove(write, gone, rows_max)?;
    if removed.more {
        write.run(
            "UPDATE account SET disabled = $2 WHERE id = $1 AND disabled IS NULL",
            &[&int(gone.account.0), &int(gone.told_at.unwrap_or_default().0)],
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
    removed.rows += write.run("DELETE FROM account WHERE id = $1", &[&int(gone.account.0)])? as usize;
    removed.more = false;
    Ok(removed)
}

fn end_notifications(
    write: &mut Transaction<'_>,
    gone: &Gone<'_>,
    rows_max: usize,
    removed: &mut Removed,
) -> Result<()> {
    /// Its own, its trace, and an event.
    const ROWS_OF_END: usize = 3;
    if let Some(now) = gone.told_at {
        let max = (rows_max - removed.rows).div_ceil(ROWS_OF_END);
        removed.rows += ROWS_OF_END * ending::device_deleted(write, gone.account, now, limit(max))?;
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
    let (contacts, mut changes) = write.end_subscriptions(gone.account, &jid, limit(max))?;
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
             SELECT id FROM trace WHERE local = $1 AND domain = (SELECT domain FROM account WHERE id = $2)
             AND collapse_key IS NOT NULL LIMIT $3)",
        &[&gone.local, &int(gone.account.0), &limit(rows_max - removed.rows)],
    )? as usize;
    Ok(())
}

fn remove_rows(
    write: &mut Transaction<'_>,
    gone: &Gone<'_>,
    rows_max: usize,
    removed: &mut Removed,
) -> Result<()> {
    for (table, is_its) in OF_ACCOUNT {
        if removed.rows >= rows_max {
            return Ok(());
        }
        // Locked as they are found: one that another transaction changes meanwhile has another `ctid` after it.
        removed.rows += write.run(
            &format!("DELETE FROM {table} WHERE ctid IN (SELECT ctid FROM {table} WHERE {is_its} LIMIT $2 FOR UPDATE)"),
            &[&int(gone.account.0), &limit(rows_max - removed.rows)],
        )? as usize;
    }
    Ok(())
}

/// What was granted must not fall to the next who takes the name. A ban is the topic's, or the room's, and stays, or deleting the account would be the
/// way around it.
fn leave(write: &mut Transaction<'_>, gone: &Gone<'_>, rows_max: usize, removed: &mut Removed) -> Result<()> {
    removed.rows += write.run(
        "DELETE FROM affiliation WHERE ctid IN (
             SELECT ctid FROM affiliation WHERE jid = $1::text || '@' || $2::text AND affiliation > $3 LIMIT $4 FOR UPDATE)",
        &[&gone.local, &gone.domain_name, &short(Affiliation::Outcast), &limit(rows_max - removed.rows)],
    )? as usize;
    if let Ok(jid) = BareJid::from_parts(Some(gone.local), gone.domain_name) {
        let max = rows_max.saturating_sub(removed.rows).div_ceil(room::ROWS_OF_LEAVING);
        removed.rows += room::ROWS_OF_LEAVING * room::leave_all(write, &jid, gone.told_at, limit(max))?;
    }
    Ok(())
}

fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

impl Answers<DeleteAccount, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &DeleteAccount) -> Result<std::result::Result<Part<RosterChange>, Missing>> {
        let DeleteAccount { domain, local, now, held_until, rows_max } = asked;
        let Some(id) = lookup::account(self.db, *domain, local)? else { return Ok(Err(Missing)) };
        let Some(domain_name) = lookup::domain_name(self.db, *domain)? else { return Ok(Err(Missing)) };
        let gone = Gone { account: id, local, domain_name: &domain_name, told_at: Some(*now) };
        let removed = account(self, &gone, *rows_max as usize)?;
        let part = Part { entries: removed.changes, more: removed.more };
        if part.more {
            return Ok(Ok(part));
        }
        // Whatever the domain's policy is: strangers may have an invitation, or registration may be allowed later.
        self.run(
            "INSERT INTO held_name (domain, local, until) SELECT $1, $2, $3 WHERE $3 > $4::bigint
             ON CONFLICT (domain, local) DO UPDATE SET until = $3",
            &[&i64::from(domain.0), local, &int(held_until.0), &int(now.0)],
        )?;
        Ok(Ok(part))
    }
}

impl Answers<DeleteDomain, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &DeleteDomain) -> Result<std::result::Result<Part<RosterChange>, Missing>> {
        let DeleteDomain { domain, rows_max } = *asked;
        let Some(name) = lookup::domain_name(self.db, domain)? else { return Ok(Err(Missing)) };
        let mut part = Part { entries: Vec::new(), more: true };
        let mut rows = 0;
        while let Some((id, local)) = self.first_account(domain)? {
            if rows >= rows_max as usize {
                return Ok(Ok(part));
            }
            let gone = Gone { account: id, local: &local, domain_name: &name, told_at: None };
            let mut removed = account(self, &gone, rows_max as usize - rows)?;
            rows += removed.rows;
            // Who goes along need not be told.
            removed.changes.retain(|change| change.account.domain() != &*name);
            part.entries.append(&mut removed.changes);
        }
        while let Some(topic) = self.first_topic(domain)? {
            if rows >= rows_max as usize {
                return Ok(Ok(part));
            }
            rows += topic::remove(self, topic)?;
        }
        while let Some(room) = room::first_of(self.db, domain)? {
            if rows >= rows_max as usize {
                return Ok(Ok(part));
            }
            rows += room::remove(self, room)?;
        }
        let room = rows_max.saturating_sub(rows.try_into().unwrap_or(u32::MAX)).max(1);
        if links::remove_of_domain(self, domain, room)? == room as usize
            || event::remove_of_domain(self, domain, room)? == room as usize
        {
            return Ok(Ok(part));
        }
        let id = i64::from(domain.0);
        for sql in OF_DOMAIN {
            self.run(sql, &[&id])?;
        }
        webhook::delete_of_domain(self, domain)?;
        self.run("DELETE FROM domain WHERE id = $1", &[&id])?;
        Ok(Ok(Part { more: false, ..part }))
    }
}

impl Transaction<'_> {
    fn first_account(&self, domain: DomainId) -> Result<Option<(AccountId, Box<str>)>> {
        let row = self.db.opt(
            "SELECT id, local FROM account WHERE domain = $1 ORDER BY local LIMIT 1",
            &[&i64::from(domain.0)],
        )?;
        row.map(|row| Ok((AccountId(uint(&row, 0)?), text(&row, 1)?))).transpose()
    }

    fn first_topic(&self, domain: DomainId) -> Result<Option<TopicId>> {
        let row = self
            .db
            .opt("SELECT id FROM topic WHERE domain = $1 ORDER BY name LIMIT 1", &[&i64::from(domain.0)])?;
        row.map(|row| Ok(TopicId(super::column::number(&row, 0)?))).transpose()
    }
}
