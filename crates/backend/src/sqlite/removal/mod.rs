//! Removing accounts and domains in SQLite; what belongs to them is listed in [`rows::removal`](crate::rows::removal).

use super::column::{int, jid, text, uint};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use super::{account, ending, item, room};
use crate::rows::code::Code;
use crate::rows::removal::{Gone, Removes, Rows};
use carillon_core::model::{AccountId, Affiliation, DomainId, RosterChange, TopicId, UnixMs};
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::accounts::{UnfinishedRemoval, UnfinishedRemovals};
use carillon_wire::jid::BareJid;
use rusqlite::{Error, OptionalExtension, Result, params};

impl Removes for Transaction<'_> {
    type Error = Error;

    fn delete(&mut self, rows: &Rows, of: i64, max: usize) -> Result<usize> {
        let Rows { table, key, which } = rows;
        let sql = format!(
            "DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {which} LIMIT $2)"
        );
        self.run(&sql, params![of, limit(max)])
    }

    fn first(&mut self, question: &str, domain: DomainId) -> Result<Option<(u64, Box<str>)>> {
        let row = |row: &rusqlite::Row<'_>| Ok((uint(row, 0)?, text(row, 1)?));
        self.db.prepare_cached(question)?.query_row([domain.0], row).optional()
    }

    fn end_notifications(&mut self, account: AccountId, now: UnixMs, max: usize) -> Result<usize> {
        ending::device_deleted(self, account, now, max)
    }

    fn end_subscriptions(
        &mut self,
        account: AccountId,
        jid: &BareJid,
        max: usize,
    ) -> Result<(usize, Vec<RosterChange>)> {
        Transaction::end_subscriptions(self, account, jid, max)
    }

    fn forget_collapse_keys(&mut self, gone: &Gone<'_>, max: usize) -> Result<usize> {
        self.run(
            "UPDATE trace SET collapse_key = NULL WHERE id IN (
                 SELECT id FROM trace WHERE run IN (SELECT number FROM run) AND local = ?1
                 AND domain = (SELECT domain FROM account WHERE id = ?2) AND collapse_key IS NOT NULL LIMIT ?3)",
            params![gone.local, int(gone.account.0), limit(max)],
        )
    }

    fn leave_topics(&mut self, jid: &BareJid, max: usize) -> Result<usize> {
        self.run(
            "DELETE FROM affiliation WHERE (topic, jid) IN (
                 SELECT topic, jid FROM affiliation WHERE jid = ?1 AND affiliation > ?2 LIMIT ?3)",
            params![jid.as_str(), Affiliation::Outcast.code(), limit(max)],
        )
    }

    fn leave_rooms(&mut self, jid: &BareJid, told_at: Option<UnixMs>, max: usize) -> Result<usize> {
        room::leave_all(self, jid, told_at, max)
    }

    fn purge(&mut self, topic: TopicId, max: usize) -> Result<usize> {
        item::purge(self, topic, u32::try_from(max).unwrap_or(u32::MAX))
    }

    fn unfollow(&mut self, topic: TopicId, max: usize) -> Result<usize> {
        let accounts = self
            .db
            .prepare_cached("SELECT account FROM subscription WHERE topic = ?1 LIMIT ?2")?
            .query_map(params![topic.0, limit(max)], |row| uint(row, 0).map(AccountId))?
            .collect::<Result<Vec<AccountId>>>()?;
        for id in &accounts {
            account::changed(self, *id)?;
            self.run(
                "DELETE FROM subscription WHERE account = ?1 AND topic = ?2",
                params![int(id.0), topic.0],
            )?;
        }
        self.topic_changed(topic);
        Ok(accounts.len())
    }

    fn note_unfinished(&mut self, domain: DomainId, account: Option<AccountId>, now: UnixMs) -> Result<()> {
        let id = account.map_or(0, |account| int(account.0));
        self.run(
            "INSERT INTO removal (account, domain, at) VALUES (?1, ?2, ?3)
             ON CONFLICT (account, domain) DO UPDATE SET at = excluded.at",
            params![id, domain.0, int(now.0)],
        )?;
        if account.is_some() {
            let disable = "UPDATE account SET disabled = ?2 WHERE id = ?1 AND disabled IS NULL";
            self.run(disable, params![id, int(now.0)])?;
        }
        Ok(())
    }
}

impl Answers<UnfinishedRemovals, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &UnfinishedRemovals) -> Result<Vec<UnfinishedRemoval>> {
        let mut query = self.db.prepare_cached(
            "SELECT a.local, d.name, d.id FROM removal r JOIN domain d ON d.id = r.domain LEFT JOIN account a ON a.id = r.account
             WHERE r.at <= ?1 ORDER BY r.at, r.account, r.domain LIMIT ?2",
        )?;
        let rows = query.query_map(params![int(asked.before.0), asked.limit], |row| {
            let domain = DomainId(row.get(2)?);
            Ok(match row.get::<_, Option<String>>(0)? {
                Some(_) => UnfinishedRemoval::Account(domain, jid(row, 0, 1)?),
                None => UnfinishedRemoval::Domain(domain),
            })
        })?;
        rows.collect()
    }
}

fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
