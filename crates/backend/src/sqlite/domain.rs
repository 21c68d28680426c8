//! Domains.

use super::column::{Code, code, int, number, text, uint};
use super::lookup;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use super::webhook;
use carillon_core::model::{Affiliation, Domain, DomainId, Policy};
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::domains::{DeleteDomain, Domains, PutDomain, PutDomainAnswer};
use rusqlite::{Error, OptionalExtension, Result, params};

impl Answers<Domains, Error> for Snapshot<'_> {
    fn answer(&mut self, Domains: &Domains) -> Result<Vec<Domain>> {
        let mut query = self.db.prepare_cached(
            "SELECT id, name, sessions, registration, pubsub_create, sessions_max, messages_durable,
             resumption_ms_max, archive, archive_days, archive_messages_max, archive_bytes_max FROM domain ORDER BY name",
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
    fn answer(&mut self, question: &DeleteDomain) -> Result<Result<(), Missing>> {
        delete(self, question.domain)
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
        int(policy.archive_bytes_max)
    ];
    let id = match known {
        Some(id) => {
            write.run(
                "UPDATE domain SET sessions = ?2, registration = ?3, pubsub_create = ?4, sessions_max = ?5,
                 messages_durable = ?6, resumption_ms_max = ?7, archive = ?8, archive_days = ?9,
                 archive_messages_max = ?10, archive_bytes_max = ?11 WHERE name = ?1",
                columns,
            )?;
            id
        }
        None => {
            write.run(
                "INSERT INTO domain (name, sessions, registration, pubsub_create, sessions_max, messages_durable,
                 resumption_ms_max, archive, archive_days, archive_messages_max, archive_bytes_max)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                columns,
            )?;
            number(write.db.last_insert_rowid())?
        }
    };
    let domain = Domain { id: DomainId(id), name: name.into(), policy };
    Ok(PutDomainAnswer { domain, created: known.is_none() })
}

fn delete(write: &mut Transaction<'_>, domain: DomainId) -> Result<Result<(), Missing>> {
    let Some(name) = lookup::domain_name(write.db, domain)? else { return Ok(Err(Missing)) };
    // Before the accounts go: what stands under their names in topics of other domains.
    write.run(
        "DELETE FROM affiliation WHERE affiliation > ?3
         AND jid IN (SELECT local || '@' || ?2 FROM account WHERE domain = ?1)",
        params![domain.0, name, Affiliation::Outcast.code()],
    )?;
    write.run(
        "DELETE FROM account_node_item WHERE node IN (SELECT n.id FROM account CROSS JOIN account_node n ON n.account = account.id WHERE domain = ?1)",
        [domain.0],
    )?;
    for table in
        ["notification", "offline", "contact", "blocked", "account_node", "archive_rule", "subscription"]
    {
        let sql = format!("DELETE FROM {table} WHERE account IN (SELECT id FROM account WHERE domain = ?1)");
        write.run(&sql, [domain.0])?;
    }
    for table in ["subscription", "affiliation", "item"] {
        let sql = format!("DELETE FROM {table} WHERE topic IN (SELECT id FROM topic WHERE domain = ?1)");
        write.run(&sql, [domain.0])?;
    }
    write.run("DELETE FROM topic WHERE domain = ?1", [domain.0])?;
    write.run("DELETE FROM account WHERE domain = ?1", [domain.0])?;
    write
        .run("DELETE FROM idempotency WHERE key IN (SELECT id FROM api_key WHERE domain = ?1)", [domain.0])?;
    write.run("DELETE FROM api_key WHERE domain = ?1", [domain.0])?;
    webhook::delete_of_domain(write, domain)?;
    write.change("DELETE FROM domain WHERE id = ?1", [domain.0])
}
