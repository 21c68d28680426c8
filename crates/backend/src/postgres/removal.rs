//! Removing accounts and domains: what belongs to them, in one list for all ways.

use super::column::{int, short, text, uint};
use super::error::{Error, Result};
use super::transaction::Transaction;
use super::{ending, event, links, lookup, room, topic, webhook};
use carillon_core::model::{AccountId, Affiliation, DomainId, RoomAffiliation, RosterChange, TopicId};
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::accounts::DeleteAccount;
use carillon_core::ports::store::domains::DeleteDomain;
use carillon_core::ports::{Missing, Part};
use carillon_wire::jid::BareJid;

/// Deletes the rows of the account `$1`, in an order in which nothing that is left refers to what is gone. Archives are not here: they are removed
/// message by message, once their accounts are gone.
const OF_ACCOUNT: &[&str] = &[
    "DELETE FROM push_step WHERE notification IN (SELECT id FROM notification WHERE account = $1)",
    "DELETE FROM notification WHERE account = $1",
    "DELETE FROM offline WHERE account = $1",
    "DELETE FROM push WHERE registration IN (SELECT id FROM push_registration WHERE account = $1)",
    "DELETE FROM push_registration WHERE account = $1",
    "DELETE FROM endpoint WHERE account = $1",
    "DELETE FROM contact WHERE account = $1",
    "DELETE FROM blocked WHERE account = $1",
    "DELETE FROM privacy WHERE account = $1",
    "DELETE FROM room_block WHERE account = $1",
    "DELETE FROM private WHERE account = $1",
    "DELETE FROM account_node_item WHERE node IN (SELECT id FROM account_node WHERE account = $1)",
    "DELETE FROM account_node WHERE account = $1",
    "DELETE FROM last_available WHERE account = $1",
    "DELETE FROM vcard WHERE account = $1",
    "DELETE FROM archive_rule WHERE account = $1",
    "DELETE FROM subscription WHERE account = $1",
    "DELETE FROM upload WHERE account = $1",
    "DELETE FROM upload_account WHERE account = $1",
    "DELETE FROM invitation WHERE account = $1",
    "DELETE FROM broadcast_end WHERE account = $1
         AND broadcast IN (SELECT seq FROM broadcast WHERE has_ends AND domain = (SELECT domain FROM account WHERE id = $1))",
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

/// What came of removing an account.
struct Removed {
    /// What changed in the rosters of others.
    changes: Vec<RosterChange>,
    /// Rows that were changed.
    rows: usize,
}

/// Removes an account that is there.
fn account(
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
    let mut rows = 2 * changes.len() as u64;
    // What became of its notifications is known for some time, but not what their senders called them.
    rows += write.run(
        "UPDATE trace SET collapse_key = NULL WHERE local = $1
             AND domain = (SELECT domain FROM account WHERE id = $2) AND collapse_key IS NOT NULL",
        &[&local, &id],
    )?;
    for sql in OF_ACCOUNT {
        rows += write.run(sql, &[&id])?;
    }
    // What was granted must not fall to the next who takes the name. A ban is the topic's and stays, or deleting the
    // account would be the way around it.
    rows += write.run(
        "DELETE FROM affiliation WHERE jid = $1::text || '@' || $2::text AND affiliation > $3",
        &[&local, &domain_name, &short(Affiliation::Outcast)],
    )?;
    rows += write.run(
        "DELETE FROM room_member WHERE jid = $1::text || '@' || $2::text AND affiliation > $3",
        &[&local, &domain_name, &short(RoomAffiliation::Outcast)],
    )?;
    rows += write.run("DELETE FROM account WHERE id = $1", &[&id])?;
    Ok(Removed { changes, rows: rows as usize })
}

impl Answers<DeleteAccount, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &DeleteAccount) -> Result<std::result::Result<Vec<RosterChange>, Missing>> {
        let DeleteAccount { domain, local, now, held_until } = asked;
        let Some(id) = lookup::account(self.db, *domain, local)? else { return Ok(Err(Missing)) };
        let Some(domain_name) = lookup::domain_name(self.db, *domain)? else { return Ok(Err(Missing)) };
        ending::device_deleted(self, id, *now)?;
        if let Ok(jid) = BareJid::from_parts(Some(local), &domain_name) {
            room::note_leaving(self, &jid, *now)?;
        }
        let removed = account(self, id, local, &domain_name)?;
        // Whatever the domain's policy is: strangers may have an invitation, or registration may be allowed later.
        self.run(
            "INSERT INTO held_name (domain, local, until) SELECT $1, $2, $3 WHERE $3 > $4::bigint
             ON CONFLICT (domain, local) DO UPDATE SET until = $3",
            &[&i64::from(domain.0), local, &int(held_until.0), &int(now.0)],
        )?;
        Ok(Ok(removed.changes))
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
            let mut removed = account(self, id, &local, &name)?;
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
