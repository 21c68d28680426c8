//! Topics and who stands how to them.

use super::column::{Code, code, int, ms, text, whole_jid};
use super::write::Write;
use super::{domain, item};
use carillon_core::model::*;
use carillon_core::ports::Answer;
use carillon_wire::jid::BareJid;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

const RECORD: &str =
    "SELECT id, domain, name, created, title, access_model, publish_model, max_items, persist_items,
    send_last, notify_retract, notify_delete FROM topic";

pub(super) fn describe(db: &Connection, domain: DomainId, name: &str) -> Result<Answer> {
    let found = db
        .prepare_cached(&format!("{RECORD} WHERE domain = ?1 AND name = ?2"))?
        .query_row(params![domain.0, name], record)
        .optional()?;
    let Some(mut record) = found else { return Ok(Answer::Missing) };
    record.affiliations = affiliations(db, record.id)?;
    Ok(Answer::Topic(Box::new(record)))
}

pub(super) fn list(db: &Connection, domain: DomainId, after: Option<&str>, limit: u16) -> Result<Answer> {
    // No name is empty.
    let mut query =
        db.prepare_cached(&format!("{RECORD} WHERE domain = ?1 AND name > ?2 ORDER BY name LIMIT ?3"))?;
    let mut records = query
        .query_map(params![domain.0, after.unwrap_or(""), limit], record)?
        .collect::<Result<Vec<TopicRecord>>>()?;
    for record in &mut records {
        record.affiliations = affiliations(db, record.id)?;
    }
    Ok(Answer::Topics(records))
}

/// Whether one of those who are to own a topic owns `max` already.
pub(super) fn owns(db: &Connection, standing: &[(BareJid, Affiliation)], max: u32) -> Result<bool> {
    let owners = standing.iter().filter(|(_, affiliation)| *affiliation == Affiliation::Owner);
    let mut query =
        db.prepare_cached("SELECT count(*) FROM affiliation WHERE jid = ?1 AND affiliation = ?2")?;
    for (jid, affiliation) in owners {
        let owned: u32 = query.query_row(params![jid.as_str(), affiliation.code()], |row| row.get(0))?;
        if owned >= max {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(super) fn create(
    write: &mut Write<'_>,
    domain: DomainId,
    name: &str,
    config: &TopicConfig,
    standing: &[(BareJid, Affiliation)],
    now: UnixMs,
) -> Result<Answer> {
    if domain::name(write.db, domain)?.is_none() {
        return Ok(Answer::Missing);
    }
    let made = write.run(
        "INSERT INTO topic (domain, name, created, title, access_model, publish_model, max_items, persist_items,
             send_last, notify_retract, notify_delete)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT DO NOTHING",
        params![
            domain.0,
            name,
            int(now.0),
            config.title,
            config.access_model.code(),
            config.publish_model.code(),
            config.max_items,
            config.persist_items,
            config.send_last_published_item.code(),
            config.notify_retract,
            config.notify_delete
        ],
    )?;
    if made == 0 {
        return Ok(Answer::Exists);
    }
    let id = TopicId(domain::number(write.db.last_insert_rowid())?);
    set_standing(write, id, standing)?;
    write.advance();
    Ok(Answer::Topic(Box::new(TopicRecord {
        id,
        domain,
        name: name.into(),
        config: config.clone(),
        affiliations: affiliations(write.db, id)?,
        created: now,
    })))
}

pub(super) fn configure(write: &mut Write<'_>, topic: TopicId, config: &TopicConfig) -> Result<Answer> {
    let changed = write.run(
        "UPDATE topic SET title = ?2, access_model = ?3, publish_model = ?4, max_items = ?5, persist_items = ?6,
             send_last = ?7, notify_retract = ?8, notify_delete = ?9 WHERE id = ?1",
        params![
            topic.0,
            config.title,
            config.access_model.code(),
            config.publish_model.code(),
            config.max_items,
            config.persist_items,
            config.send_last_published_item.code(),
            config.notify_retract,
            config.notify_delete
        ],
    )?;
    if changed == 0 {
        return Ok(Answer::Missing);
    }
    // A topic that keeps no items any more would send the last one it kept for ever.
    let keep = if config.persist_items { config.max_items } else { 0 };
    item::trim(write, topic, keep)?;
    write.advance();
    Ok(Answer::Done)
}

pub(super) fn set_affiliations(
    write: &mut Write<'_>,
    topic: TopicId,
    changes: &[(BareJid, Affiliation)],
) -> Result<Answer> {
    if !exists(write.db, topic)? {
        return Ok(Answer::Missing);
    }
    set_standing(write, topic, changes)?;
    write.advance();
    Ok(Answer::Done)
}

pub(super) fn delete(write: &mut Write<'_>, topic: TopicId) -> Result<Answer> {
    write.run("DELETE FROM item WHERE topic = ?1", [topic.0])?;
    write.run("DELETE FROM subscription WHERE topic = ?1", [topic.0])?;
    write.run("DELETE FROM affiliation WHERE topic = ?1", [topic.0])?;
    write.change("DELETE FROM topic WHERE id = ?1", [topic.0])
}

/// Whether there is such a topic.
pub(super) fn exists(db: &Connection, topic: TopicId) -> Result<bool> {
    db.prepare_cached("SELECT 1 FROM topic WHERE id = ?1")?.exists([topic.0])
}

/// The topics of a domain to which an account stands in some way.
pub(super) fn standing_of(db: &Connection, domain: DomainId, jid: &BareJid) -> Result<Answer> {
    let mut query = db.prepare_cached(
        "SELECT t.name, f.affiliation FROM affiliation f JOIN topic t ON t.id = f.topic
         WHERE f.jid = ?2 AND t.domain = ?1 ORDER BY t.name",
    )?;
    let rows = query.query_map(params![domain.0, jid.as_str()], |row| Ok((text(row, 0)?, code(row, 1)?)))?;
    Ok(Answer::Affiliations(rows.collect::<Result<_>>()?))
}

fn affiliations(db: &Connection, topic: TopicId) -> Result<Vec<(BareJid, Affiliation)>> {
    db.prepare_cached("SELECT jid, affiliation FROM affiliation WHERE topic = ?1 ORDER BY jid")?
        .query_map([topic.0], |row| Ok((whole_jid(row, 0)?, code(row, 1)?)))?
        .collect()
}

fn set_standing(write: &Write<'_>, topic: TopicId, changes: &[(BareJid, Affiliation)]) -> Result<()> {
    for (jid, affiliation) in changes {
        match affiliation {
            Affiliation::None => write.run(
                "DELETE FROM affiliation WHERE topic = ?1 AND jid = ?2",
                params![topic.0, jid.as_str()],
            )?,
            standing => write.run(
                "INSERT INTO affiliation (topic, jid, affiliation) VALUES (?1, ?2, ?3)
                 ON CONFLICT (topic, jid) DO UPDATE SET affiliation = excluded.affiliation",
                params![topic.0, jid.as_str(), standing.code()],
            )?,
        };
    }
    Ok(())
}

fn record(row: &Row<'_>) -> Result<TopicRecord> {
    Ok(TopicRecord {
        id: TopicId(row.get(0)?),
        domain: DomainId(row.get(1)?),
        name: text(row, 2)?,
        created: ms(row, 3)?,
        config: TopicConfig {
            title: row.get(4)?,
            access_model: code(row, 5)?,
            publish_model: code(row, 6)?,
            max_items: row.get(7)?,
            persist_items: row.get(8)?,
            send_last_published_item: code(row, 9)?,
            notify_retract: row.get(10)?,
            notify_delete: row.get(11)?,
        },
        affiliations: Vec::new(),
    })
}
