//! Domains.

use super::column::{Code, code, int, number, text, uint};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use super::{lookup, removal, topic, webhook};
use carillon_core::model::{AccountId, Domain, DomainId, Policy, RosterChange, TopicId};
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::domains::{DeleteDomain, Domains, PutDomain, PutDomainAnswer};
use carillon_core::ports::{Missing, Part};
use rusqlite::{Connection, Error, OptionalExtension, Result, params};

impl Answers<Domains, Error> for Snapshot<'_> {
    fn answer(&mut self, Domains: &Domains) -> Result<Vec<Domain>> {
        let mut query = self.db.prepare_cached(
            "SELECT id, name, sessions, registration, pubsub_create, sessions_max, messages_durable,
             resumption_ms_max, archive, archive_days, archive_messages_max, archive_bytes_max, account_management FROM domain ORDER BY name",
        )?;
        let domains = query.query_map([], |row| {
            Ok(Domain {
                id: DomainId(row.get(0)?),
                name: text(row, 1)?.into(),
                policy: Policy {
                    sessions: code(row, 2)?,
                    registration: row.get(3)?,
                    pubsub_create: code(row, 4)?,
                    sessions_max: row.get(5)?,
                    messages_durable: row.get(6)?,
                    resumption_ms_max: row.get(7)?,
                    archive: row.get(8)?,
                    archive_days: row.get(9)?,
                    archive_messages_max: row.get(10)?,
                    archive_bytes_max: uint(row, 11)?,
                    account_management: row.get(12)?,
                },
            })
        })?;
        domains.collect()
    }
}

impl Answers<PutDomain, Error> for Transaction<'_> {
    fn answer(&mut self, question: &PutDomain) -> Result<PutDomainAnswer> {
        put(self, &question.name, question.policy)
    }
}

impl Answers<DeleteDomain, Error> for Transaction<'_> {
    fn answer(&mut self, question: &DeleteDomain) -> Result<Result<Part<RosterChange>, Missing>> {
        delete(self, question)
    }
}

fn put(write: &mut Transaction<'_>, name: &str, policy: Policy) -> Result<PutDomainAnswer> {
    let known: Option<u32> = write
        .db
        .prepare_cached("SELECT id FROM domain WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()?;
    let columns = params![
        name,
        policy.sessions.code(),
        policy.registration,
        policy.pubsub_create.code(),
        policy.sessions_max,
        policy.messages_durable,
        policy.resumption_ms_max,
        policy.archive,
        policy.archive_days,
        policy.archive_messages_max,
        int(policy.archive_bytes_max),
        policy.account_management
    ];
    let id = match known {
        Some(id) => {
            write.run(
                "UPDATE domain SET sessions = ?2, registration = ?3, pubsub_create = ?4, sessions_max = ?5,
                 messages_durable = ?6, resumption_ms_max = ?7, archive = ?8, archive_days = ?9,
                 archive_messages_max = ?10, archive_bytes_max = ?11, account_management = ?12 WHERE name = ?1",
                columns,
            )?;
            id
        }
        None => {
            write.run(
                "INSERT INTO domain (name, sessions, registration, pubsub_create, sessions_max, messages_durable,
                 resumption_ms_max, archive, archive_days, archive_messages_max, archive_bytes_max, account_management)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
                columns,
            )?;
            number(write.db.last_insert_rowid())?
        }
    };
    let domain = Domain { id: DomainId(id), name: name.into(), policy };
    Ok(PutDomainAnswer { domain, created: known.is_none() })
}

fn delete(write: &mut Transaction<'_>, asked: &DeleteDomain) -> Result<Result<Part<RosterChange>, Missing>> {
    let DeleteDomain { domain, rows_max } = *asked;
    let Some(name) = lookup::domain_name(write.db, domain)? else { return Ok(Err(Missing)) };
    let mut part = Part { entries: Vec::new(), more: true };
    let mut rows = 0;
    while let Some((account, local)) = first_account(write.db, domain)? {
        if rows >= rows_max as usize {
            return Ok(Ok(part));
        }
        let mut removed = removal::account(write, account, &local, &name)?;
        rows += removed.rows;
        // Who goes along need not be told.
        removed.changes.retain(|change| change.account.domain() != &*name);
        part.entries.append(&mut removed.changes);
    }
    while let Some(topic) = first_topic(write.db, domain)? {
        if rows >= rows_max as usize {
            return Ok(Ok(part));
        }
        rows += topic::remove(write, topic)?;
    }
    removal::rest_of_domain(write, domain)?;
    webhook::delete_of_domain(write, domain)?;
    write.run("DELETE FROM domain WHERE id = ?1", [domain.0])?;
    Ok(Ok(Part { more: false, ..part }))
}

fn first_account(db: &Connection, domain: DomainId) -> Result<Option<(AccountId, Box<str>)>> {
    db.prepare_cached("SELECT id, local FROM account WHERE domain = ?1 ORDER BY local LIMIT 1")?
        .query_row([domain.0], |row| Ok((AccountId(uint(row, 0)?), text(row, 1)?)))
        .optional()
}

fn first_topic(db: &Connection, domain: DomainId) -> Result<Option<TopicId>> {
    db.prepare_cached("SELECT id FROM topic WHERE domain = ?1 ORDER BY name LIMIT 1")?
        .query_row([domain.0], |row| row.get(0).map(TopicId))
        .optional()
}
