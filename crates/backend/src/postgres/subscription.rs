//! Who follows what.

use super::column::{int, jid, uint};
use super::connection::Connection;
use super::error::{Error, Result};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use super::{account, lookup};
use carillon_core::model::*;
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::subscriptions::{
    IsSubscribed, Subscribe, SubscribeAnswer, SubscriberCount, Subscribers, SubscriptionsOf, Unsubscribe,
};
use carillon_wire::jid::BareJid;

impl Answers<Subscribe, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &Subscribe) -> Result<SubscribeAnswer> {
        let topic = i64::from(asked.topic.0);
        if self.db.opt("SELECT 1 FROM topic WHERE id = $1", &[&topic])?.is_none() {
            return Ok(SubscribeAnswer::Missing);
        }
        let Some(account) = lookup::account(self.db, asked.domain, &asked.local)? else {
            return Ok(SubscribeAnswer::Missing);
        };
        if has(self.db, account, asked.max)? && !follows(self.db, account, asked.topic)? {
            return Ok(SubscribeAnswer::Full);
        }
        let last = self.newest(asked.topic)?;
        // The account's next generation, noted here and not in its row: that would be one row more to write.
        let new = self.run(
            "INSERT INTO subscription (account, topic, since, generation)
             SELECT a.id, $2, $3, 1 + greatest(a.generation,
                 (SELECT coalesce(max(s.generation), 0) FROM subscription s WHERE s.account = a.id))
             FROM account a WHERE a.id = $1
             ON CONFLICT DO NOTHING",
            &[&int(account.0), &topic, &int(asked.now.0)],
        )? > 0;
        Ok(SubscribeAnswer::Subscribed { new, last })
    }
}

impl Answers<Unsubscribe, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &Unsubscribe) -> Result<std::result::Result<(), Missing>> {
        let Some(number) = lookup::account(self.db, asked.domain, &asked.local)? else {
            return Ok(Err(Missing));
        };
        if !follows(self.db, number, asked.topic)? {
            return Ok(Err(Missing));
        }
        account::changed(self, number)?;
        self.change(
            "DELETE FROM subscription WHERE account = $1 AND topic = $2",
            &[&int(number.0), &i64::from(asked.topic.0)],
        )
    }
}

impl Answers<SubscriptionsOf, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &SubscriptionsOf) -> Result<Vec<(TopicId, Box<str>)>> {
        match lookup::account(self.db, asked.domain, &asked.local)? {
            Some(account) => lookup::topics_of(self.db, account),
            None => Ok(Vec::new()),
        }
    }
}

impl Answers<IsSubscribed, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &IsSubscribed) -> Result<bool> {
        let Some(account) = lookup::account(self.db, asked.domain, &asked.local)? else { return Ok(false) };
        follows(self.db, account, asked.topic)
    }
}

fn follows(db: &Connection, account: AccountId, topic: TopicId) -> Result<bool> {
    let found = db.opt(
        "SELECT 1 FROM subscription WHERE account = $1 AND topic = $2",
        &[&int(account.0), &i64::from(topic.0)],
    )?;
    Ok(found.is_some())
}

/// Whether an account follows so many topics. They are counted no further.
fn has(db: &Connection, account: AccountId, count: u32) -> Result<bool> {
    if count == u32::MAX {
        return Ok(false);
    }
    let counted = db.one(
        "SELECT (SELECT count(*) FROM (SELECT 1 FROM subscription WHERE account = $1 LIMIT $2) AS s) >= $2",
        &[&int(account.0), &i64::from(count)],
    )?;
    Ok(counted.try_get(0)?)
}

/// The followers of a topic in the byte order of their JIDs. Each page reads and sorts all of them: this is for people, and never on the way
/// of an item.
impl Answers<Subscribers, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Subscribers) -> Result<Vec<BareJid>> {
        let after = asked.after.as_ref().map_or("", BareJid::as_str);
        let rows = self.db.query(
            "SELECT local, name FROM (
                 SELECT a.local, d.name, (a.local || '@' || d.name) COLLATE \"C\" AS jid
                 FROM subscription s JOIN account a ON a.id = s.account JOIN domain d ON d.id = a.domain
                 WHERE s.topic = $1) AS follower
             WHERE jid > $2 ORDER BY jid LIMIT $3",
            &[&i64::from(asked.topic.0), &after, &i64::from(asked.limit)],
        )?;
        rows.iter().map(|row| jid(row, 0, 1)).collect()
    }
}

/// How many follow a topic. Counts the rows of an index: this is for people, too.
impl Answers<SubscriberCount, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &SubscriberCount) -> Result<u64> {
        uint(
            &self
                .db
                .one("SELECT count(*) FROM subscription WHERE topic = $1", &[&i64::from(asked.topic.0)])?,
            0,
        )
    }
}
