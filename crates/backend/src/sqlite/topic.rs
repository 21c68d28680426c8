//! Topics and who stands how to them.

use super::column::{code, int, ms, number, text, whole_jid};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use super::{item, lookup};
use crate::rows::code::Code;
use crate::rows::removal;
use carillon_core::model::*;
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::topics::{
    AffiliationsOf, ConfigureTopic, CreateTopic, CreateTopicAnswer, DeleteTopic, SetAffiliations, Topic,
    Topics,
};
use carillon_wire::jid::BareJid;
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params};

const RECORD: &str =
    "SELECT id, domain, name, created, title, access_model, publish_model, max_items, persist_items,
    send_last, notify_retract, notify_delete, deliver_payloads FROM topic";

impl Answers<Topic, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Topic) -> Result<Option<Box<TopicRecord>>> {
        let found = self
            .db
            .prepare_cached(&format!("{RECORD} WHERE domain = ?1 AND name = ?2"))?
            .query_row(params![asked.domain.0, asked.name], record)
            .optional()?;
        let Some(mut record) = found else { return Ok(None) };
        record.affiliations = affiliations(self.db, record.id)?;
        Ok(Some(Box::new(record)))
    }
}

impl Answers<Topics, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Topics) -> Result<Vec<TopicRecord>> {
        // No name is empty.
        let after = asked.after.as_deref().unwrap_or_default();
        let mut query = self
            .db
            .prepare_cached(&format!("{RECORD} WHERE domain = ?1 AND name > ?2 ORDER BY name LIMIT ?3"))?;
        let mut records = query
            .query_map(params![asked.domain.0, after, asked.limit], record)?
            .collect::<Result<Vec<TopicRecord>>>()?;
        for record in &mut records {
            record.affiliations = affiliations(self.db, record.id)?;
        }
        Ok(records)
    }
}

/// Whether one of those who are to own a topic owns `max` already.
fn owns(db: &Connection, standing: &[(BareJid, Affiliation)], max: u32) -> Result<bool> {
    let owners = standing.iter().filter(|(_, affiliation)| *affiliation == Affiliation::Owner);
    // Others may have made it own more.
    let mut query = db.prepare_cached(
        "SELECT count(*) FROM (SELECT 1 FROM affiliation WHERE jid = ?1 AND affiliation = ?2 LIMIT ?3)",
    )?;
    for (jid, affiliation) in owners {
        let owned: u32 = query.query_row(params![jid.as_str(), affiliation.code(), max], |row| row.get(0))?;
        if owned >= max {
            return Ok(true);
        }
    }
    Ok(false)
}

fn exists(db: &Connection, domain: DomainId, name: &str) -> Result<bool> {
    db.prepare_cached("SELECT 1 FROM topic WHERE domain = ?1 AND name = ?2")?.exists(params![domain.0, name])
}

impl Answers<CreateTopic, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &CreateTopic) -> Result<CreateTopicAnswer> {
        let CreateTopic { domain, name, config, affiliations: given, owned_max, now } = asked;
        if owns(self.db, given, *owned_max)? {
            return Ok(CreateTopicAnswer::Full);
        }
        if lookup::domain_name(self.db, *domain)?.is_none() {
            return Ok(CreateTopicAnswer::NoDomain);
        }
        if lookup::is_full_of_topics(self.db, *domain)? && !exists(self.db, *domain, name)? {
            return Ok(CreateTopicAnswer::DomainFull);
        }
        let made = self.run(
            "INSERT INTO topic (domain, name, created, title, access_model, publish_model, max_items, persist_items,
                 send_last, notify_retract, notify_delete, deliver_payloads)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT DO NOTHING",
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
                config.notify_delete,
                config.deliver_payloads
            ],
        )?;
        if made == 0 {
            return Ok(CreateTopicAnswer::Exists);
        }
        let id = TopicId(number(self.db.last_insert_rowid())?);
        set_standing(self, id, given)?;
        Ok(CreateTopicAnswer::Created(Box::new(TopicRecord {
            id,
            domain: *domain,
            name: name.clone(),
            config: config.clone(),
            affiliations: affiliations(self.db, id)?,
            created: *now,
        })))
    }
}

impl Answers<ConfigureTopic, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ConfigureTopic) -> Result<Result<bool, Missing>> {
        let ConfigureTopic { topic, config, items_max } = asked;
        let changed = self.run(
            "UPDATE topic SET title = ?2, access_model = ?3, publish_model = ?4, max_items = ?5, persist_items = ?6,
                 send_last = ?7, notify_retract = ?8, notify_delete = ?9, deliver_payloads = ?10,
                 revision = revision + 1 WHERE id = ?1",
            params![
                topic.0,
                config.title,
                config.access_model.code(),
                config.publish_model.code(),
                config.max_items,
                config.persist_items,
                config.send_last_published_item.code(),
                config.notify_retract,
                config.notify_delete,
                config.deliver_payloads
            ],
        )?;
        if changed == 0 {
            return Ok(Err(Missing));
        }
        // A topic that keeps no items any more would send the last one it kept for ever.
        let keep = if config.persist_items { config.max_items } else { 0 };
        let more = item::trim(self, *topic, keep, *items_max)?;
        self.topic_changed(*topic);
        Ok(Ok(more))
    }
}

impl Answers<SetAffiliations, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &SetAffiliations) -> Result<Result<(), Missing>> {
        if self.run("UPDATE topic SET revision = revision + 1 WHERE id = ?1", [asked.topic.0])? == 0 {
            return Ok(Err(Missing));
        }
        set_standing(self, asked.topic, &asked.changes)?;
        self.topic_changed(asked.topic);
        Ok(Ok(()))
    }
}

impl Answers<DeleteTopic, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &DeleteTopic) -> Result<Result<bool, Missing>> {
        let is_there =
            self.db.prepare_cached("SELECT 1 FROM topic WHERE id = ?1")?.exists([asked.topic.0])?;
        if !is_there {
            return Ok(Err(Missing));
        }
        removal::topic(self, asked.topic, asked.rows_max as usize).map(Ok)
    }
}

impl Answers<AffiliationsOf, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &AffiliationsOf) -> Result<Vec<(Box<str>, Affiliation)>> {
        let mut query = self.db.prepare_cached(
            "SELECT t.name, f.affiliation FROM affiliation f JOIN topic t ON t.id = f.topic
             WHERE f.jid = ?2 AND t.domain = ?1 ORDER BY t.name",
        )?;
        let rows = query.query_map(params![asked.domain.0, asked.jid.as_str()], |row| {
            Ok((text(row, 0)?, code(row, 1)?))
        })?;
        rows.collect()
    }
}

fn affiliations(db: &Connection, topic: TopicId) -> Result<Vec<(BareJid, Affiliation)>> {
    db.prepare_cached("SELECT jid, affiliation FROM affiliation WHERE topic = ?1 ORDER BY jid")?
        .query_map([topic.0], |row| Ok((whole_jid(row, 0)?, code(row, 1)?)))?
        .collect()
}

fn set_standing(write: &Transaction<'_>, topic: TopicId, changes: &[(BareJid, Affiliation)]) -> Result<()> {
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
        config: config(row, 4)?,
        affiliations: Vec::new(),
    })
}

/// The columns of a topic's or a node's configuration.
pub(super) const CONFIG: &str =
    "title, access_model, publish_model, max_items, persist_items, send_last, notify_retract,
    notify_delete, deliver_payloads";

/// The configuration in the columns from `first`.
pub(super) fn config(row: &Row<'_>, first: usize) -> Result<TopicConfig> {
    Ok(TopicConfig {
        title: row.get(first)?,
        access_model: code(row, first + 1)?,
        publish_model: code(row, first + 2)?,
        max_items: row.get(first + 3)?,
        persist_items: row.get(first + 4)?,
        send_last_published_item: code(row, first + 5)?,
        notify_retract: row.get(first + 6)?,
        notify_delete: row.get(first + 7)?,
        deliver_payloads: row.get(first + 8)?,
    })
}
