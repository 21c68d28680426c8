//! Removing accounts and domains in PostgreSQL; what belongs to them is listed in [`rows::removal`](crate::rows::removal).

use super::column::{int, jid, number, opt_text, short, text, uint};
use super::error::{Error, Result};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use super::{account, ending, item, lookup, room};
use crate::rows::removal::{self, Gone, GoneDomain, Removes, Rows};
use carillon_core::model::{AccountId, Affiliation, DomainId, RosterChange, TopicId, UnixMs};
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::accounts::{DeleteAccount, UnfinishedRemoval, UnfinishedRemovals};
use carillon_core::ports::store::domains::DeleteDomain;
use carillon_core::ports::{Missing, Part};
use carillon_wire::jid::BareJid;
use tokio_postgres::Row;

impl Removes for Transaction<'_> {
    type Error = Error;

    fn delete(&mut self, rows: &Rows, of: i64, max: usize) -> Result<usize> {
        let Rows { table, which, .. } = rows;
        // Locked as they are found: one that another transaction changes meanwhile has another `ctid` after it.
        let sql = format!(
            "DELETE FROM {table} WHERE ctid IN (SELECT ctid FROM {table} WHERE {which} LIMIT $2 FOR UPDATE)"
        );
        Ok(self.run(&sql, &[&of, &limit(max)])? as usize)
    }

    fn first(&mut self, question: &str, domain: DomainId) -> Result<Option<(u64, Box<str>)>> {
        let row = self.db.opt(question, &[&i64::from(domain.0)])?;
        row.map(|row| Ok((uint(&row, 0)?, text(&row, 1)?))).transpose()
    }

    fn end_notifications(&mut self, account: AccountId, now: UnixMs, max: usize) -> Result<usize> {
        ending::device_deleted(self, account, now, limit(max))
    }

    fn end_subscriptions(
        &mut self,
        account: AccountId,
        jid: &BareJid,
        max: usize,
    ) -> Result<(usize, Vec<RosterChange>)> {
        Transaction::end_subscriptions(self, account, jid, limit(max))
    }

    fn forget_collapse_keys(&mut self, gone: &Gone<'_>, max: usize) -> Result<usize> {
        let forgotten = self.run(
            "UPDATE trace SET collapse_key = NULL WHERE id IN (
                 SELECT id FROM trace WHERE local = $1 AND domain = (SELECT domain FROM account WHERE id = $2)
                 AND collapse_key IS NOT NULL LIMIT $3)",
            &[&gone.local, &int(gone.account.0), &limit(max)],
        )?;
        Ok(forgotten as usize)
    }

    fn leave_topics(&mut self, jid: &BareJid, max: usize) -> Result<usize> {
        let left = self.run(
            "DELETE FROM affiliation WHERE ctid IN (
                 SELECT ctid FROM affiliation WHERE jid = $1 AND affiliation > $2 LIMIT $3 FOR UPDATE)",
            &[&jid.as_str(), &short(Affiliation::Outcast), &limit(max)],
        )?;
        Ok(left as usize)
    }

    fn leave_rooms(&mut self, jid: &BareJid, told_at: Option<UnixMs>, max: usize) -> Result<usize> {
        room::leave_all(self, jid, told_at, limit(max))
    }

    fn purge(&mut self, topic: TopicId, max: usize) -> Result<usize> {
        item::purge(self, topic, u32::try_from(max).unwrap_or(u32::MAX))
    }

    fn unfollow(&mut self, topic: TopicId, max: usize) -> Result<usize> {
        let id = i64::from(topic.0);
        let rows = self
            .db
            .query("SELECT account FROM subscription WHERE topic = $1 LIMIT $2", &[&id, &limit(max)])?;
        let accounts = rows.iter().map(|row| Ok(row.try_get(0)?)).collect::<Result<Vec<i64>>>()?;
        account::all_changed(self, &accounts)?;
        self.run(
            "DELETE FROM subscription WHERE topic = $1 AND account = ANY ($2::bigint[])",
            &[&id, &accounts],
        )?;
        self.topic_changed(topic);
        Ok(accounts.len())
    }

    fn note_unfinished(&mut self, domain: DomainId, account: Option<AccountId>, now: UnixMs) -> Result<()> {
        let id = account.map_or(0, |account| int(account.0));
        self.run(
            "INSERT INTO removal (account, domain, at) VALUES ($1, $2, $3)
             ON CONFLICT (account, domain) DO UPDATE SET at = excluded.at",
            &[&id, &i64::from(domain.0), &int(now.0)],
        )?;
        if account.is_some() {
            let disable = "UPDATE account SET disabled = $2 WHERE id = $1 AND disabled IS NULL";
            self.run(disable, &[&id, &int(now.0)])?;
        }
        Ok(())
    }
}

impl Answers<UnfinishedRemovals, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &UnfinishedRemovals) -> Result<Vec<UnfinishedRemoval>> {
        let rows = self.db.query(
            "SELECT a.local, d.name, d.id FROM removal r JOIN domain d ON d.id = r.domain LEFT JOIN account a ON a.id = r.account
             WHERE r.at <= $1 ORDER BY r.at, r.account, r.domain LIMIT $2",
            &[&int(asked.before.0), &i64::from(asked.limit)],
        )?;
        let entry = |row: &Row| {
            let domain = DomainId(number(row, 2)?);
            Ok(match opt_text(row, 0)? {
                Some(_) => UnfinishedRemoval::Account(domain, jid(row, 0, 1)?),
                None => UnfinishedRemoval::Domain(domain),
            })
        };
        rows.iter().map(entry).collect()
    }
}

fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

impl Answers<DeleteAccount, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &DeleteAccount) -> Result<std::result::Result<Part<RosterChange>, Missing>> {
        let DeleteAccount { domain, local, now, held_until, rows_max } = asked;
        let (domain, now) = (*domain, *now);
        let Some(account) = lookup::account(self.db, domain, local)? else { return Ok(Err(Missing)) };
        let Some(domain_name) = lookup::domain_name(self.db, domain)? else { return Ok(Err(Missing)) };
        let gone = Gone { account, domain, local, domain_name: &domain_name, now, with_domain: false };
        let part = removal::account(self, &gone, *rows_max as usize)?;
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
        let DeleteDomain { domain, now, rows_max } = *asked;
        let Some(name) = lookup::domain_name(self.db, domain)? else { return Ok(Err(Missing)) };
        removal::domain(self, &GoneDomain { domain, name: &name, now }, rows_max as usize).map(Ok)
    }
}
