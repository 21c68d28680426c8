//! Who follows what.

use super::account;
use super::column::{int, jid, text, uint};
use super::write::Write;
use carillon_core::model::*;
use carillon_core::ports::Answer;
use carillon_wire::jid::BareJid;
use rusqlite::{Connection, OptionalExtension, Result, params};

pub(super) fn subscribe(
    write: &mut Write<'_>,
    topic: TopicId,
    (domain, local): (DomainId, &str),
    max: u32,
    now: UnixMs,
) -> Result<Answer> {
    let last = write
        .db
        .prepare_cached("SELECT last FROM topic WHERE id = ?1")?
        .query_row([topic.0], |row| row.get::<_, Option<i64>>(0))
        .optional()?;
    let Some(last) = last else { return Ok(Answer::Missing) };
    let Some(account) = account::find(write.db, domain, local)? else { return Ok(Answer::Missing) };
    if has(write.db, account, max)? && !follows(write.db, account, topic)? {
        return Ok(Answer::Full);
    }
    let last = last.map(|last| write.last_item(topic, Revision(last as u64))).transpose()?;
    let new = write.run(
        "INSERT INTO subscription (account, topic, since) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        params![int(account.0), topic.0, int(now.0)],
    )? > 0;
    if new {
        write.advance();
    }
    Ok(Answer::Subscribed { new, last })
}

pub(super) fn unsubscribe(
    write: &mut Write<'_>,
    topic: TopicId,
    domain: DomainId,
    local: &str,
) -> Result<Answer> {
    let Some(account) = account::find(write.db, domain, local)? else { return Ok(Answer::Missing) };
    write.change(
        "DELETE FROM subscription WHERE account = ?1 AND topic = ?2",
        params![int(account.0), topic.0],
    )
}

pub(super) fn of_account(db: &Connection, domain: DomainId, local: &str) -> Result<Answer> {
    let names = match account::find(db, domain, local)? {
        Some(account) => names(db, account)?,
        None => Vec::new(),
    };
    Ok(Answer::TopicNames(names))
}

pub(super) fn exists(db: &Connection, topic: TopicId, domain: DomainId, local: &str) -> Result<Answer> {
    let Some(account) = account::find(db, domain, local)? else { return Ok(Answer::Missing) };
    Ok(if follows(db, account, topic)? { Answer::Done } else { Answer::Missing })
}

fn follows(db: &Connection, account: AccountId, topic: TopicId) -> Result<bool> {
    db.prepare_cached("SELECT 1 FROM subscription WHERE account = ?1 AND topic = ?2")?
        .exists(params![int(account.0), topic.0])
}

/// Whether an account follows so many topics.
fn has(db: &Connection, account: AccountId, count: u32) -> Result<bool> {
    if count == u32::MAX {
        return Ok(false);
    }
    let counted: u32 = db
        .prepare_cached("SELECT count(*) FROM subscription WHERE account = ?1")?
        .query_row([int(account.0)], |row| row.get(0))?;
    Ok(counted >= count)
}

/// The followers of a topic in the byte order of their JIDs. Each page reads and sorts all of them (SQLite keeps only
/// the page's in memory): measured, 0.5 s where there are a million. This is for people, and never on the way of an item.
pub(super) fn of_topic(
    db: &Connection,
    topic: TopicId,
    after: Option<&BareJid>,
    limit: u16,
) -> Result<Answer> {
    let mut query = db.prepare_cached(
        "SELECT a.local, d.name, a.local || '@' || d.name AS jid
         FROM subscription s JOIN account a ON a.id = s.account JOIN domain d ON d.id = a.domain
         WHERE s.topic = ?1 AND jid > ?2 ORDER BY jid LIMIT ?3",
    )?;
    let after = after.map_or("", BareJid::as_str);
    let rows = query.query_map(params![topic.0, after, limit], |row| jid(row, 0, 1))?;
    Ok(Answer::Jids(rows.collect::<Result<_>>()?))
}

/// How many follow a topic. Counts the rows of an index: this is for people, too.
pub(super) fn count(db: &Connection, topic: TopicId) -> Result<Answer> {
    let mut query = db.prepare_cached("SELECT count(*) FROM subscription WHERE topic = ?1")?;
    query.query_row([topic.0], |row| uint(row, 0)).map(Answer::Count)
}

/// The topics an account follows, ordered by name.
pub(super) fn names(db: &Connection, account: AccountId) -> Result<Vec<(TopicId, Box<str>)>> {
    db.prepare_cached(
        "SELECT t.id, t.name FROM subscription s JOIN topic t ON t.id = s.topic WHERE s.account = ?1
         ORDER BY t.name, t.id",
    )?
    .query_map([int(account.0)], |row| Ok((TopicId(uint(row, 0)? as u32), text(row, 1)?)))?
    .collect()
}
