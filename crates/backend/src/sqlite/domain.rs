//! Domains.

use super::column::{Code, code, text, uint};
use super::write::Write;
use carillon_core::model::{Affiliation, Domain, DomainId, Policy, Revision};
use carillon_core::ports::Answer;
use rusqlite::{Connection, OptionalExtension, Result, params};

pub(super) fn list(db: &Connection) -> Result<Answer> {
    let mut query = db.prepare_cached(
        "SELECT id, name, sessions, registration, pubsub_create, sessions_max FROM domain ORDER BY name",
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
            },
        })
    })?;
    Ok(Answer::Domains(domains.collect::<Result<_>>()?))
}

pub(super) fn put(write: &mut Write<'_>, name: &str, policy: Policy) -> Result<Answer> {
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
        policy.sessions_max
    ];
    let id = match known {
        Some(id) => {
            write.run(
                "UPDATE domain SET sessions = ?2, registration = ?3, pubsub_create = ?4, sessions_max = ?5
                 WHERE name = ?1",
                columns,
            )?;
            id
        }
        None => {
            write.run(
                "INSERT INTO domain (name, sessions, registration, pubsub_create, sessions_max)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
                columns,
            )?;
            number(write.db.last_insert_rowid())?
        }
    };
    write.advance();
    let domain = Domain { id: DomainId(id), name: name.into(), policy };
    Ok(Answer::Domain { domain, created: known.is_none() })
}

pub(super) fn delete(write: &mut Write<'_>, domain: DomainId) -> Result<Answer> {
    let Some(name) = name(write.db, domain)? else { return Ok(Answer::Missing) };
    // Before the accounts go: what stands under their names in topics of other domains.
    write.run(
        "DELETE FROM affiliation WHERE affiliation > ?3
         AND jid IN (SELECT local || '@' || ?2 FROM account WHERE domain = ?1)",
        params![domain.0, name, Affiliation::Outcast.code()],
    )?;
    for table in ["notification", "offline", "subscription"] {
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
    write.change("DELETE FROM domain WHERE id = ?1", [domain.0])
}

/// The name of a domain, where there is one.
pub(super) fn name(db: &Connection, domain: DomainId) -> Result<Option<Box<str>>> {
    db.prepare_cached("SELECT name FROM domain WHERE id = ?1")?
        .query_row([domain.0], |row| text(row, 0))
        .optional()
}

/// The node's revision.
pub(super) fn revision(db: &Connection) -> Result<Revision> {
    db.prepare_cached("SELECT revision FROM node")?.query_row([], |row| uint(row, 0).map(Revision))
}

/// A new row's number as one of four bytes.
pub(super) fn number(rowid: i64) -> Result<u32> {
    u32::try_from(rowid).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(0, rowid))
}
