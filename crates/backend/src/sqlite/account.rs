//! Accounts, their keys, and what people see of them.

use super::column::{blob, int, jid, ms, opt_ms, uint};
use super::lookup;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::rows::removal::{self, Gone};
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::accounts::{
    Account, Accounts, CreateAccount, CreateAccountAnswer, DeleteAccount, Enrolment, ImportAccounts,
    ImportRefused, RevokeTokens, SetAccountState, SetCredentials,
};
use carillon_core::ports::{Missing, Part};
use carillon_wire::jid::BareJid;
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, ToSql, params};
use std::collections::BTreeSet;

impl Answers<CreateAccount, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &CreateAccount) -> Result<CreateAccountAnswer> {
        let CreateAccount { domain, local, credentials, is_in_band, now } = asked;
        let Some(domain_name) = lookup::domain_to_fill(self.db, *domain)? else {
            return Ok(CreateAccountAnswer::NoDomain);
        };
        check_prepared(local, &domain_name)?;
        if lookup::account(self.db, *domain, local)?.is_some() {
            return Ok(CreateAccountAnswer::Exists);
        }
        if *is_in_band && is_held(self.db, *domain, local, *now)? {
            return Ok(CreateAccountAnswer::Held);
        }
        if lookup::room_for_accounts(self.db, *domain)? == Some(0) {
            return Ok(CreateAccountAnswer::DomainFull);
        }
        put(self, *domain, local, credentials, *now)?;
        Ok(CreateAccountAnswer::Created(AccountId(self.db.last_insert_rowid() as u64)))
    }
}

impl Answers<ImportAccounts, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ImportAccounts) -> Result<Result<(), ImportRefused>> {
        let Some(domain_name) = lookup::domain_to_fill(self.db, asked.domain)? else {
            return Ok(Err(ImportRefused::NoDomain));
        };
        for account in &asked.accounts {
            if lookup::is_being_removed(self.db, asked.domain, &account.local)? {
                return Ok(Err(ImportRefused::IsBeingRemoved));
            }
        }
        if let Some(room) = lookup::room_for_accounts(self.db, asked.domain)? {
            let mut new = BTreeSet::new();
            for account in &asked.accounts {
                if lookup::account(self.db, asked.domain, &account.local)?.is_none() {
                    new.insert(&*account.local);
                }
            }
            if new.len() as u64 > u64::from(room) {
                return Ok(Err(ImportRefused::DomainFull));
            }
        }
        for account in &asked.accounts {
            check_prepared(&account.local, &domain_name)?;
            put(self, asked.domain, &account.local, &account.credentials, asked.now)?;
        }
        Ok(Ok(()))
    }
}

/// The generation of an account after its next change, where the row is being changed: higher than that of the row and of every
/// subscription.
const NEXT_GENERATION: &str = "1 + max(account.generation,
    (SELECT coalesce(max(s.generation), 0) FROM subscription s WHERE s.account = account.id))";

/// What an account follows is about to change, otherwise than by one more topic.
pub(super) fn changed(write: &Transaction<'_>, account: AccountId) -> Result<()> {
    let sql = format!("UPDATE account SET generation = {NEXT_GENERATION} WHERE id = ?1");
    write.run(&sql, [int(account.0)])?;
    Ok(())
}

/// Whether a name is held back since its account was removed.
fn is_held(db: &Connection, domain: DomainId, local: &str, now: UnixMs) -> Result<bool> {
    db.prepare_cached("SELECT 1 FROM held_name WHERE domain = ?1 AND local = ?2 AND until > ?3")?
        .exists(params![domain.0, local, int(now.0)])
}

/// Forgets names that are not held back any more, at most `max`.
pub(super) fn release_names(write: &Transaction<'_>, now: UnixMs, max: u32) -> Result<()> {
    write.run(
        "DELETE FROM held_name WHERE rowid IN (SELECT rowid FROM held_name WHERE until <= ?1 ORDER BY until LIMIT ?2)",
        params![int(now.0), max],
    )?;
    Ok(())
}

/// Writes an account; one that is there keeps all but its keys. Its name is not held back any more.
fn put(
    write: &Transaction<'_>,
    domain: DomainId,
    local: &str,
    credentials: &Credentials,
    now: UnixMs,
) -> Result<usize> {
    let [a, b, c, d] = key_columns(&credentials.sha1);
    let [e, f, g, h] = key_columns(&credentials.sha256);
    write.run("DELETE FROM held_name WHERE domain = ?1 AND local = ?2", params![domain.0, local])?;
    write.run(
        &format!(
            "INSERT INTO account (domain, local, created, sha1_salt, sha1_iterations, sha1_stored_key, sha1_server_key,
             sha256_salt, sha256_iterations, sha256_stored_key, sha256_server_key)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
         ON CONFLICT (domain, local) DO UPDATE SET
             sha1_salt = excluded.sha1_salt, sha1_iterations = excluded.sha1_iterations,
             sha1_stored_key = excluded.sha1_stored_key, sha1_server_key = excluded.sha1_server_key,
             sha256_salt = excluded.sha256_salt, sha256_iterations = excluded.sha256_iterations,
             sha256_stored_key = excluded.sha256_stored_key, sha256_server_key = excluded.sha256_server_key,
             generation = {NEXT_GENERATION}"
        ),
        params![domain.0, local, int(now.0), a, b, c, d, e, f, g, h],
    )
}

impl Answers<SetCredentials, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &SetCredentials) -> Result<Result<(), Missing>> {
        let [a, b, c, d] = key_columns(&asked.credentials.sha1);
        let [e, f, g, h] = key_columns(&asked.credentials.sha256);
        self.change(
            &format!(
                "UPDATE account SET sha1_salt = ?3, sha1_iterations = ?4, sha1_stored_key = ?5, sha1_server_key = ?6,
                     sha256_salt = ?7, sha256_iterations = ?8, sha256_stored_key = ?9, sha256_server_key = ?10,
                     generation = {NEXT_GENERATION}
                 WHERE domain = ?1 AND local = ?2 AND NOT EXISTS (SELECT 1 FROM removal r WHERE r.account = account.id)"
            ),
            params![asked.domain.0, asked.local, a, b, c, d, e, f, g, h],
        )
    }
}

impl Answers<SetAccountState, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &SetAccountState) -> Result<Result<(), Missing>> {
        let disabled = match asked.state {
            AccountState::Enabled => None,
            AccountState::Disabled(since) => Some(int(since.0)),
        };
        self.change(
            &format!(
                "UPDATE account SET disabled = ?3, generation = {NEXT_GENERATION}
                 WHERE domain = ?1 AND local = ?2 AND NOT EXISTS (SELECT 1 FROM removal r WHERE r.account = account.id)"
            ),
            params![asked.domain.0, asked.local, disabled],
        )
    }
}

impl Answers<RevokeTokens, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &RevokeTokens) -> Result<Option<Revocations>> {
        let Some(account) = lookup::account(self.db, asked.domain, &asked.local)? else { return Ok(None) };
        let mut revoked = self
            .db
            .prepare_cached("SELECT revocations FROM account WHERE id = ?1")?
            .query_row([int(account.0)], |row| revocations(row, 0))?;
        match asked.agent {
            Some(agent) => revoked.revoke(agent),
            None => revoked.revoke_all(),
        }
        self.run(
            &format!("UPDATE account SET revocations = ?2, generation = {NEXT_GENERATION} WHERE id = ?1"),
            params![int(account.0), revoked.to_bytes()],
        )?;
        Ok(Some(revoked))
    }
}

impl Answers<DeleteAccount, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &DeleteAccount) -> Result<Result<Part<RosterChange>, Missing>> {
        let DeleteAccount { domain, local, now, held_until, rows_max } = asked;
        let (domain, now) = (*domain, *now);
        let Some(account) = lookup::account(self.db, domain, local)? else { return Ok(Err(Missing)) };
        let Some(domain_name) = lookup::domain_name(self.db, domain)? else { return Ok(Err(Missing)) };
        let gone = Gone { account, domain, local, domain_name: &domain_name, now, with_domain: false };
        let part = self.overwriting(|write| removal::account(write, &gone, *rows_max as usize))?;
        if part.more {
            return Ok(Ok(part));
        }
        // Whatever the domain's policy is: strangers may have an invitation, or registration may be allowed later.
        self.run(
            "INSERT OR REPLACE INTO held_name (domain, local, until) SELECT ?1, ?2, ?3 WHERE ?3 > ?4",
            params![domain.0, local, int(held_until.0), int(now.0)],
        )?;
        Ok(Ok(part))
    }
}

impl Answers<Account, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Account) -> Result<Option<Box<Enrolment>>> {
        let found = self
            .db
            .prepare_cached(&format!("{ENROLMENT} WHERE a.domain = ?1 AND a.local = ?2"))?
            .query_row(params![asked.domain.0, asked.local], enrolment)
            .optional()?;
        let Some(mut enrolment) = found else { return Ok(None) };
        enrolment.topics =
            lookup::topics_of(self.db, enrolment.id)?.into_iter().map(|(_, name)| name).collect();
        Ok(Some(Box::new(enrolment)))
    }
}

impl Answers<Accounts, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Accounts) -> Result<Vec<Enrolment>> {
        // No local part is empty.
        let after = asked.after.as_deref().unwrap_or_default();
        let mut query = self.db.prepare_cached(&format!(
            "{ENROLMENT} WHERE a.domain = ?1 AND a.local > ?2 ORDER BY a.local LIMIT ?3"
        ))?;
        let rows = query.query_map(params![asked.domain.0, after, asked.limit], enrolment)?;
        rows.collect()
    }
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
        Error::FromSqlConversionFailure(column, rusqlite::types::Type::Blob, "not revocations".into())
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
        _ => Err(Error::InvalidParameterName("the local part is not prepared".to_owned())),
    }
}
