//! Accounts, their keys, and what people see of them.

use super::column::{Code, blob, int, jid, ms, opt_ms, uint};
use super::write::Write;
use super::{domain, ending};
use carillon_core::model::*;
use carillon_core::ports::{Answer, Enrolment, ImportedAccount};
use carillon_wire::jid::BareJid;
use rusqlite::{Connection, OptionalExtension, Result, Row, ToSql, params};

/// An account's number, where there is one.
pub(super) fn find(db: &Connection, domain: DomainId, local: &str) -> Result<Option<AccountId>> {
    db.prepare_cached("SELECT id FROM account WHERE domain = ?1 AND local = ?2")?
        .query_row(params![domain.0, local], |row| uint(row, 0).map(AccountId))
        .optional()
}

pub(super) fn create(
    write: &mut Write<'_>,
    domain: DomainId,
    local: &str,
    credentials: &Credentials,
    now: UnixMs,
) -> Result<Answer> {
    let Some(domain_name) = domain::name(write.db, domain)? else { return Ok(Answer::Missing) };
    check_prepared(local, &domain_name)?;
    if find(write.db, domain, local)?.is_some() {
        return Ok(Answer::Exists);
    }
    put(write, domain, local, credentials, now)?;
    write.advance();
    Ok(Answer::Account(AccountId(write.db.last_insert_rowid() as u64)))
}

pub(super) fn import(
    write: &mut Write<'_>,
    domain: DomainId,
    accounts: &[ImportedAccount],
    now: UnixMs,
) -> Result<Answer> {
    let Some(domain_name) = domain::name(write.db, domain)? else { return Ok(Answer::Missing) };
    for account in accounts {
        check_prepared(&account.local, &domain_name)?;
        put(write, domain, &account.local, &account.credentials, now)?;
    }
    write.advance();
    Ok(Answer::Count(accounts.len() as u64))
}

/// Writes an account; one that is there keeps all but its keys.
fn put(
    write: &Write<'_>,
    domain: DomainId,
    local: &str,
    credentials: &Credentials,
    now: UnixMs,
) -> Result<usize> {
    let [a, b, c, d] = key_columns(&credentials.sha1);
    let [e, f, g, h] = key_columns(&credentials.sha256);
    write.run(
        "INSERT INTO account (domain, local, created, sha1_salt, sha1_iterations, sha1_stored_key, sha1_server_key,
             sha256_salt, sha256_iterations, sha256_stored_key, sha256_server_key)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
         ON CONFLICT (domain, local) DO UPDATE SET
             sha1_salt = excluded.sha1_salt, sha1_iterations = excluded.sha1_iterations,
             sha1_stored_key = excluded.sha1_stored_key, sha1_server_key = excluded.sha1_server_key,
             sha256_salt = excluded.sha256_salt, sha256_iterations = excluded.sha256_iterations,
             sha256_stored_key = excluded.sha256_stored_key, sha256_server_key = excluded.sha256_server_key",
        params![domain.0, local, int(now.0), a, b, c, d, e, f, g, h],
    )
}

pub(super) fn set_credentials(
    write: &mut Write<'_>,
    domain: DomainId,
    local: &str,
    credentials: &Credentials,
) -> Result<Answer> {
    let [a, b, c, d] = key_columns(&credentials.sha1);
    let [e, f, g, h] = key_columns(&credentials.sha256);
    write.change(
        "UPDATE account SET sha1_salt = ?3, sha1_iterations = ?4, sha1_stored_key = ?5, sha1_server_key = ?6,
             sha256_salt = ?7, sha256_iterations = ?8, sha256_stored_key = ?9, sha256_server_key = ?10
         WHERE domain = ?1 AND local = ?2",
        params![domain.0, local, a, b, c, d, e, f, g, h],
    )
}

pub(super) fn set_state(
    write: &mut Write<'_>,
    domain: DomainId,
    local: &str,
    state: AccountState,
) -> Result<Answer> {
    let disabled = match state {
        AccountState::Enabled => None,
        AccountState::Disabled(since) => Some(int(since.0)),
    };
    write.change(
        "UPDATE account SET disabled = ?3 WHERE domain = ?1 AND local = ?2",
        params![domain.0, local, disabled],
    )
}

pub(super) fn revoke_tokens(
    write: &mut Write<'_>,
    domain: DomainId,
    local: &str,
    agent: Option<AgentId>,
) -> Result<Answer> {
    let Some(account) = find(write.db, domain, local)? else { return Ok(Answer::Missing) };
    let mut revoked = write
        .db
        .prepare_cached("SELECT revocations FROM account WHERE id = ?1")?
        .query_row([int(account.0)], |row| revocations(row, 0))?;
    match agent {
        Some(agent) => revoked.revoke(agent),
        None => revoked.revoke_all(),
    }
    write.run(
        "UPDATE account SET revocations = ?2 WHERE id = ?1",
        params![int(account.0), revoked.to_bytes()],
    )?;
    write.advance();
    Ok(Answer::Revocations(revoked))
}

pub(super) fn delete(write: &mut Write<'_>, domain: DomainId, local: &str, now: UnixMs) -> Result<Answer> {
    let Some(account) = find(write.db, domain, local)? else { return Ok(Answer::Missing) };
    let Some(domain_name) = domain::name(write.db, domain)? else { return Ok(Answer::Missing) };
    let id = int(account.0);
    ending::device_deleted(write, account, now)?;
    write.run("DELETE FROM offline WHERE account = ?1", [id])?;
    write.run("DELETE FROM subscription WHERE account = ?1", [id])?;
    // What was granted must not fall to the next who takes the name. A ban is the topic's and stays, or deleting the
    // account would be the way around it.
    write.run(
        "DELETE FROM affiliation WHERE jid = ?1 || '@' || ?2 AND affiliation > ?3",
        params![local, domain_name, Affiliation::Outcast.code()],
    )?;
    write.change("DELETE FROM account WHERE id = ?1", [id])
}

pub(super) fn describe(db: &Connection, domain: DomainId, local: &str) -> Result<Answer> {
    let found = db
        .prepare_cached(&format!("{ENROLMENT} WHERE a.domain = ?1 AND a.local = ?2"))?
        .query_row(params![domain.0, local], enrolment)
        .optional()?;
    let Some(mut enrolment) = found else { return Ok(Answer::Missing) };
    enrolment.topics =
        super::subscription::names(db, enrolment.id)?.into_iter().map(|(_, name)| name).collect();
    Ok(Answer::Enrolment(Box::new(enrolment)))
}

pub(super) fn list(db: &Connection, domain: DomainId, after: Option<&str>, limit: u16) -> Result<Answer> {
    // No local part is empty.
    let mut query = db.prepare_cached(&format!(
        "{ENROLMENT} WHERE a.domain = ?1 AND a.local > ?2 ORDER BY a.local LIMIT ?3"
    ))?;
    let rows = query.query_map(params![domain.0, after.unwrap_or(""), limit], enrolment)?;
    Ok(Answer::Enrolments(rows.collect::<Result<_>>()?))
}

const ENROLMENT: &str = "SELECT a.id, a.local, d.name, a.disabled, a.created,
    (SELECT count(*) FROM notification n WHERE n.account = a.id AND n.due IS NULL)
    FROM account a JOIN domain d ON d.id = a.domain";

fn enrolment(row: &Row<'_>) -> Result<Enrolment> {
    Ok(Enrolment {
        id: AccountId(uint(row, 0)?),
        jid: jid(row, 1, 2)?,
        state: state(row, 3)?,
        created: ms(row, 4)?,
        topics: Vec::new(),
        pending: row.get(5)?,
    })
}

/// The state in the column `disabled`.
pub(super) fn state(row: &Row<'_>, column: usize) -> Result<AccountState> {
    Ok(opt_ms(row, column)?.map_or(AccountState::Enabled, AccountState::Disabled))
}

/// The tokens that were taken back, as the column `revocations` has them.
pub(super) fn revocations(row: &Row<'_>, column: usize) -> Result<Revocations> {
    let Some(bytes) = row.get::<_, Option<Vec<u8>>>(column)? else { return Ok(Revocations::default()) };
    Revocations::from_bytes(&bytes).ok_or_else(|| {
        rusqlite::Error::FromSqlConversionFailure(
            column,
            rusqlite::types::Type::Blob,
            "not revocations".into(),
        )
    })
}

/// The keys in the four columns from `first`.
pub(super) fn keys(row: &Row<'_>, first: usize) -> Result<Option<ScramKeys>> {
    let Some(iterations) = row.get(first + 1)? else { return Ok(None) };
    Ok(Some(ScramKeys {
        salt: blob(row, first)?.into(),
        iterations,
        stored_key: blob(row, first + 2)?.into(),
        server_key: blob(row, first + 3)?.into(),
    }))
}

fn key_columns(keys: &Option<ScramKeys>) -> [Option<&dyn ToSql>; 4] {
    match keys {
        None => [None; 4],
        Some(keys) => {
            [Some(&keys.salt), Some(&keys.iterations), Some(&keys.stored_key), Some(&keys.server_key)]
        }
    }
}

/// A local part that was not prepared would make an account that nobody can name, and rows that cannot be read as an
/// address again.
fn check_prepared(local: &str, domain_name: &str) -> Result<()> {
    match BareJid::from_parts(Some(local), domain_name) {
        Ok(jid) if jid.local() == Some(local) => Ok(()),
        _ => Err(rusqlite::Error::InvalidParameterName("the local part is not prepared".to_owned())),
    }
}
