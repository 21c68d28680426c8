//! Topics and the affiliations to them.

use super::column::{code, int, ms, number, short, text, whole_jid};
use super::connection::Connection;
use super::error::{Error, Result};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use super::{domain, item, lookup};
use crate::rows::removal;
use carillon_core::model::*;
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::topics::{
    AffiliationsOf, ConfigureTopic, CreateTopic, CreateTopicAnswer, DeleteTopic, SetAffiliations, Topic,
    Topics,
};
use carillon_wire::jid::BareJid;
use std::collections::HashMap;
use tokio_postgres::Row;

/// What [`record`] reads.
macro_rules! records {
    ($rest:literal) => {
        concat!(
            "SELECT id, domain, name, created, title, access_model, publish_model, max_items, persist_items,
                 send_last, notify_retract, notify_delete, deliver_payloads FROM topic ",
            $rest
        )
    };
}

impl Answers<Topic, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Topic) -> Result<Option<Box<TopicRecord>>> {
        let found = self
            .db
            .opt(records!("WHERE domain = $1 AND name = $2"), &[&i64::from(asked.domain.0), &asked.name])?;
        let Some(row) = found else { return Ok(None) };
        let mut record = record(&row)?;
        record.affiliations = affiliations(self.db, &[record.id])?.remove(&record.id).unwrap_or_default();
        Ok(Some(Box::new(record)))
    }
}

impl Answers<Topics, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Topics) -> Result<Vec<TopicRecord>> {
        // No name is empty.
        let after = asked.after.as_deref().unwrap_or_default();
        let rows = self.db.query(
            records!("WHERE domain = $1 AND name > $2 ORDER BY name LIMIT $3"),
            &[&i64::from(asked.domain.0), &after, &i64::from(asked.limit)],
        )?;
        let mut records = rows.iter().map(record).collect::<Result<Vec<TopicRecord>>>()?;
        let ids: Vec<TopicId> = records.iter().map(|record| record.id).collect();
        let mut affiliations = affiliations(self.db, &ids)?;
        for record in &mut records {
            record.affiliations = affiliations.remove(&record.id).unwrap_or_default();
        }
        Ok(records)
    }
}

/// Whether one of those who are to own a topic owns `max` already.
fn owns(db: &Connection, standing: &[(BareJid, Affiliation)], max: u32) -> Result<bool> {
    let owners = standing.iter().filter(|(_, affiliation)| *affiliation == Affiliation::Owner);
    let owners: Vec<&str> = owners.map(|(jid, _)| jid.as_str()).collect();
    let row = db.one(
        "SELECT EXISTS (SELECT 1 FROM unnest($1::text[]) AS owner
             WHERE (SELECT count(*) FROM (
                 SELECT 1 FROM affiliation WHERE jid = owner AND affiliation = $2 LIMIT $3) AS owned) >= $3)",
        &[&owners, &short(Affiliation::Owner), &i64::from(max)],
    )?;
    Ok(row.try_get(0)?)
}

fn exists(db: &Connection, domain: DomainId, name: &str) -> Result<bool> {
    let sql = "SELECT 1 FROM topic WHERE domain = $1 AND name = $2";
    Ok(db.opt(sql, &[&i64::from(domain.0), &name])?.is_some())
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
        if domain::is_full_of_topics(self.db, *domain)? && !exists(self.db, *domain, name)? {
            return Ok(CreateTopicAnswer::DomainFull);
        }
        let made = self.returning_opt(
            "INSERT INTO topic (domain, name, created, title, access_model, publish_model, max_items, persist_items,
                 send_last, notify_retract, notify_delete, deliver_payloads)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING RETURNING id",
            &[
                &i64::from(domain.0),
                name,
                &int(now.0),
                &&*config.title,
                &short(config.access_model),
                &short(config.publish_model),
                &i64::from(config.max_items),
                &config.persist_items,
                &short(config.send_last_published_item),
                &config.notify_retract,
                &config.notify_delete,
                &config.deliver_payloads,
            ],
        )?;
        let Some(made) = made else { return Ok(CreateTopicAnswer::Exists) };
        let id = TopicId(number(&made, 0)?);
        set_standing(self, id, given)?;
        Ok(CreateTopicAnswer::Created(Box::new(TopicRecord {
            id,
            domain: *domain,
            name: name.clone(),
            config: config.clone(),
            affiliations: affiliations(self.db, &[id])?.remove(&id).unwrap_or_default(),
            created: *now,
        })))
    }
}

impl Answers<ConfigureTopic, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ConfigureTopic) -> Result<std::result::Result<bool, Missing>> {
        let ConfigureTopic { topic, config, items_max } = asked;
        let changed = self.run(
            "UPDATE topic SET title = $2, access_model = $3, publish_model = $4, max_items = $5, persist_items = $6,
                 send_last = $7, notify_retract = $8, notify_delete = $9, deliver_payloads = $10,
                 revision = revision + 1 WHERE id = $1",
            &[
                &i64::from(topic.0),
                &&*config.title,
                &short(config.access_model),
                &short(config.publish_model),
                &i64::from(config.max_items),
                &config.persist_items,
                &short(config.send_last_published_item),
                &config.notify_retract,
                &config.notify_delete,
                &config.deliver_payloads,
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
    fn answer(&mut self, asked: &SetAffiliations) -> Result<std::result::Result<(), Missing>> {
        let topic = i64::from(asked.topic.0);
        if self.run("UPDATE topic SET revision = revision + 1 WHERE id = $1", &[&topic])? == 0 {
            return Ok(Err(Missing));
        }
        set_standing(self, asked.topic, &asked.changes)?;
        self.topic_changed(asked.topic);
        Ok(Ok(()))
    }
}

impl Answers<DeleteTopic, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &DeleteTopic) -> Result<std::result::Result<bool, Missing>> {
        if self.db.opt("SELECT 1 FROM topic WHERE id = $1", &[&i64::from(asked.topic.0)])?.is_none() {
            return Ok(Err(Missing));
        }
        removal::topic(self, asked.topic, asked.rows_max as usize).map(Ok)
    }
}

impl Answers<AffiliationsOf, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &AffiliationsOf) -> Result<Vec<(Box<str>, Affiliation)>> {
        let rows = self.db.query(
            "SELECT t.name, f.affiliation FROM affiliation f JOIN topic t ON t.id = f.topic
             WHERE f.jid = $2 AND t.domain = $1 ORDER BY t.name",
            &[&i64::from(asked.domain.0), &asked.jid.as_str()],
        )?;
        rows.iter().map(|row| Ok((text(row, 0)?, code(row, 1)?))).collect()
    }
}

/// The affiliations to each of these topics, in the order of addresses.
fn affiliations(
    db: &Connection,
    topics: &[TopicId],
) -> Result<HashMap<TopicId, Vec<(BareJid, Affiliation)>>> {
    let ids: Vec<i64> = topics.iter().map(|topic| topic.0.into()).collect();
    let mut found: HashMap<TopicId, Vec<_>> = HashMap::new();
    for row in db.query(
        "SELECT topic, jid, affiliation FROM affiliation WHERE topic = ANY ($1::bigint[]) ORDER BY topic, jid",
        &[&ids],
    )? {
        let standing = (whole_jid(&row, 1)?, code(&row, 2)?);
        found.entry(TopicId(number(&row, 0)?)).or_default().push(standing);
    }
    Ok(found)
}

fn set_standing(write: &Transaction<'_>, topic: TopicId, changes: &[(BareJid, Affiliation)]) -> Result<()> {
    let topic = i64::from(topic.0);
    for (jid, affiliation) in changes {
        match affiliation {
            Affiliation::None => write
                .run("DELETE FROM affiliation WHERE topic = $1 AND jid = $2", &[&topic, &jid.as_str()])?,
            standing => write.run(
                "INSERT INTO affiliation (topic, jid, affiliation) VALUES ($1, $2, $3)
                 ON CONFLICT (topic, jid) DO UPDATE SET affiliation = excluded.affiliation",
                &[&topic, &jid.as_str(), &short(*standing)],
            )?,
        };
    }
    Ok(())
}

fn record(row: &Row) -> Result<TopicRecord> {
    Ok(TopicRecord {
        id: TopicId(number(row, 0)?),
        domain: DomainId(number(row, 1)?),
        name: text(row, 2)?,
        created: ms(row, 3)?,
        config: config(row, 4)?,
        affiliations: Vec::new(),
    })
}

/// The configuration in the columns from `first`.
pub(super) fn config(row: &Row, first: usize) -> Result<TopicConfig> {
    Ok(TopicConfig {
        title: text(row, first)?.into(),
        access_model: code(row, first + 1)?,
        publish_model: code(row, first + 2)?,
        max_items: number(row, first + 3)?,
        persist_items: row.try_get(first + 4)?,
        send_last_published_item: code(row, first + 5)?,
        notify_retract: row.try_get(first + 6)?,
        notify_delete: row.try_get(first + 7)?,
        deliver_payloads: row.try_get(first + 8)?,
    })
}
