//! Accounts, their keys, and what people see of them.

use super::column::{blob, int, jid, ms, number, opt_ms, uint};
use super::error::{Error, Result};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use super::{domain, lookup};
use carillon_core::model::*;
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::accounts::{
    Account, Accounts, CreateAccount, CreateAccountAnswer, Enrolment, ImportAccounts, ImportRefused,
    RevokeTokens, SetAccountState, SetCredentials,
};
use carillon_wire::jid::BareJid;
use tokio_postgres::Row;

/// The generation of an account after its next change, where the row is being changed: higher than that of the row and of every
/// subscription.
macro_rules! next_generation {
    () => {
        "1 + greatest(account.generation,
            (SELECT coalesce(max(s.generation), 0) FROM subscription s WHERE s.account = account.id))"
    };
}

/// What [`enrolment`] reads.
macro_rules! enrolments {
    () => {
        "SELECT a.id, a.local, d.name, a.disabled, a.created,
             (SELECT count(*) FROM notification n WHERE n.account = a.id AND n.due IS NULL)
         FROM account a JOIN domain d ON d.id = a.domain"
    };
}
impl Answers<CreateAccount, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &CreateAccount) -> Result<CreateAccountAnswer> {
        let CreateAccount { domain, local, credentials, is_in_band, now } = asked;
        let Some(domain_name) = lookup::domain_to_fill(self.db, *domain)? else {
            return Ok(CreateAccountAnswer::NoDomain);
        };
        check_prepared(local, &domain_name)?;
        let domain = i64::from(domain.0);
        let row = self.db.one(
            "SELECT EXISTS (SELECT 1 FROM account WHERE domain = $1 AND local = $2),
                 EXISTS (SELECT 1 FROM held_name WHERE domain = $1 AND local = $2 AND until > $3)",
            &[&domain, local, &int(now.0)],
        )?;
        if row.try_get(0)? {
            return Ok(CreateAccountAnswer::Exists);
        }
        if *is_in_band && row.try_get(1)? {
            return Ok(CreateAccountAnswer::Held);
        }
        if domain::room_for_accounts(self.db, asked.domain)? == Some(0) {
            return Ok(CreateAccountAnswer::DomainFull);
        }
        Ok(CreateAccountAnswer::Created(put(self, domain, local, credentials, *now)?))
    }
}

impl Answers<ImportAccounts, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ImportAccounts) -> Result<std::result::Result<(), ImportRefused>> {
        let Some(domain_name) = lookup::domain_to_fill(self.db, asked.domain)? else {
            return Ok(Err(ImportRefused::NoDomain));
        };
        let locals: Vec<&str> = asked.accounts.iter().map(|account| &*account.local).collect();
        if lookup::is_being_removed(self.db, asked.domain, &locals)? {
            return Ok(Err(ImportRefused::IsBeingRemoved));
        }
        if let Some(room) = domain::room_for_accounts(self.db, asked.domain)? {
            let new = self.db.one(
                "SELECT count(DISTINCT new.name) FROM unnest($2::text[]) AS new (name)
                 WHERE NOT EXISTS (SELECT 1 FROM account a WHERE a.domain = $1 AND a.local = new.name)",
                &[&i64::from(asked.domain.0), &locals],
            )?;
            if number(&new, 0)? > room {
                return Ok(Err(ImportRefused::DomainFull));
            }
        }
        for account in &asked.accounts {
            check_prepared(&account.local, &domain_name)?;
            put(self, asked.domain.0.into(), &account.local, &account.credentials, asked.now)?;
        }
        Ok(Ok(()))
    }
}

/// Writes an account; one that is there keeps all but its keys. Its name is not held back any more.
fn put(
    write: &Transaction<'_>,
    domain: i64,
    local: &str,
    credentials: &Credentials,
    now: UnixMs,
) -> Result<AccountId> {
    let (a, b) = (Columns::of(&credentials.sha1), Columns::of(&credentials.sha256));
    let row = write.returning_one(
        concat!(
            "WITH freed AS (DELETE FROM held_name WHERE domain = $1 AND local = $2)
             INSERT INTO account (domain, local, created, sha1_salt, sha1_iterations, sha1_stored_key, sha1_server_key,
                 sha256_salt, sha256_iterations, sha256_stored_key, sha256_server_key)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
             ON CONFLICT (domain, local) DO UPDATE SET
                 sha1_salt = excluded.sha1_salt, sha1_iterations = excluded.sha1_iterations,
                 sha1_stored_key = excluded.sha1_stored_key, sha1_server_key = excluded.sha1_server_key,
                 sha256_salt = excluded.sha256_salt, sha256_iterations = excluded.sha256_iterations,
                 sha256_stored_key = excluded.sha256_stored_key, sha256_server_key = excluded.sha256_server_key,
                 generation = ",
            next_generation!(),
            " RETURNING id"
        ),
        &[
            &domain, &local, &int(now.0), &a.salt, &a.iterations, &a.stored_key, &a.server_key, &b.salt, &b.iterations,
            &b.stored_key, &b.server_key,
        ],
    )?;
    uint(&row, 0).map(AccountId)
}

impl Answers<SetCredentials, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &SetCredentials) -> Result<std::result::Result<(), Missing>> {
        let (a, b) = (Columns::of(&asked.credentials.sha1), Columns::of(&asked.credentials.sha256));
        self.change(
            concat!(
                "UPDATE account SET sha1_salt = $3, sha1_iterations = $4, sha1_stored_key = $5, sha1_server_key = $6,
                     sha256_salt = $7, sha256_iterations = $8, sha256_stored_key = $9, sha256_server_key = $10,
                     generation = ",
                next_generation!(),
                " WHERE domain = $1 AND local = $2 AND NOT EXISTS (SELECT 1 FROM removal r WHERE r.account = account.id)"
            ),
            &[
                &i64::from(asked.domain.0), &asked.local, &a.salt, &a.iterations, &a.stored_key, &a.server_key, &b.salt,
                &b.iterations, &b.stored_key, &b.server_key,
            ],
        )
    }
}

impl Answers<SetAccountState, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &SetAccountState) -> Result<std::result::Result<(), Missing>> {
        let disabled = match asked.state {
            AccountState::Enabled => None,
            AccountState::Disabled(since) => Some(int(since.0)),
        };
        self.change(
            concat!(
                "UPDATE account SET disabled = $3, generation = ",
                next_generation!(),
                " WHERE domain = $1 AND local = $2 AND NOT EXISTS (SELECT 1 FROM removal r WHERE r.account = account.id)"
            ),
            &[&i64::from(asked.domain.0), &asked.local, &disabled],
        )
    }
}

impl Answers<RevokeTokens, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &RevokeTokens) -> Result<Option<Revocations>> {
        let found = self.db.opt(
            "SELECT id, revocations FROM account WHERE domain = $1 AND local = $2",
            &[&i64::from(asked.domain.0), &asked.local],
        )?;
        let Some(row) = found else { return Ok(None) };
        let mut revoked = revocations(&row, 1)?;
        match asked.agent {
            Some(agent) => revoked.revoke(agent),
            None => revoked.revoke_all(),
        }
        self.run(
            concat!(
                "UPDATE account SET revocations = $2, generation = ",
                next_generation!(),
                " WHERE id = $1"
            ),
            &[&row.try_get::<_, i64>(0)?, &revoked.to_bytes()],
        )?;
        Ok(Some(revoked))
    }
}

/// Raises the generation of an account whose subscriptions change otherwise than by a new one.
pub(super) fn changed(write: &Transaction<'_>, account: AccountId) -> Result<()> {
    let sql = concat!("UPDATE account SET generation = ", next_generation!(), " WHERE id = $1");
    write.run(sql, &[&int(account.0)]).map(drop)
}

/// The same of several accounts.
pub(super) fn all_changed(write: &Transaction<'_>, accounts: &[i64]) -> Result<()> {
    let sql =
        concat!("UPDATE account SET generation = ", next_generation!(), " WHERE id = ANY ($1::bigint[])");
    write.run(sql, &[&accounts]).map(drop)
}

impl Answers<Account, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Account) -> Result<Option<Box<Enrolment>>> {
        let found = self.db.opt(
            concat!(enrolments!(), " WHERE a.domain = $1 AND a.local = $2"),
            &[&i64::from(asked.domain.0), &asked.local],
        )?;
        let Some(mut enrolment) = found.as_ref().map(enrolment).transpose()? else { return Ok(None) };
        enrolment.topics =
            lookup::topics_of(self.db, enrolment.id)?.into_iter().map(|(_, name)| name).collect();
        Ok(Some(Box::new(enrolment)))
    }
}

impl Answers<Accounts, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Accounts) -> Result<Vec<Enrolment>> {
        // No local part is empty.
        let after = asked.after.as_deref().unwrap_or_default();
        let found = self.db.query(
            concat!(enrolments!(), " WHERE a.domain = $1 AND a.local > $2 ORDER BY a.local LIMIT $3"),
            &[&i64::from(asked.domain.0), &after, &i64::from(asked.limit)],
        )?;
        found.iter().map(enrolment).collect()
    }
}

fn enrolment(row: &Row) -> Result<Enrolment> {
    Ok(Enrolment {
        id: AccountId(uint(row, 0)?),
        jid: jid(row, 1, 2)?,
        state: state(row, 3)?,
        created: ms(row, 4)?,
        topics: Vec::new(),
        pending: number(row, 5)?,
    })
}

/// The state in the column `disabled`.
pub(super) fn state(row: &Row, column: usize) -> Result<AccountState> {
    Ok(opt_ms(row, column)?.map_or(AccountState::Enabled, AccountState::Disabled))
}

/// The tokens that were taken back, as the column `revocations` has them.
pub(super) fn revocations(row: &Row, column: usize) -> Result<Revocations> {
    let Some(bytes) = row.try_get::<_, Option<&[u8]>>(column)? else { return Ok(Revocations::default()) };
    Revocations::from_bytes(bytes).ok_or(Error::Corrupt("not revocations"))
}

/// The keys in the four columns from `first`.
pub(super) fn keys(row: &Row, first: usize) -> Result<Option<ScramKeys>> {
    let Some(iterations) = super::column::opt_number(row, first + 1)? else { return Ok(None) };
    Ok(Some(ScramKeys {
        salt: blob(row, first)?.into(),
        iterations,
        stored_key: blob(row, first + 2)?.into(),
        server_key: blob(row, first + 3)?.into(),
    }))
}

/// Keys as four columns.
#[derive(Default)]
struct Columns<'a> {
    salt: Option<&'a [u8]>,
    iterations: Option<i64>,
    stored_key: Option<&'a [u8]>,
    server_key: Option<&'a [u8]>,
}

impl Columns<'_> {
    fn of(keys: &Option<ScramKeys>) -> Columns<'_> {
        let Some(keys) = keys else { return Columns::default() };
        Columns {
            salt: Some(&keys.salt),
            iterations: Some(keys.iterations.into()),
            stored_key: Some(&keys.stored_key),
            server_key: Some(&keys.server_key),
        }
    }
}

/// A local part that was not prepared would make an account that nobody can name, and rows that cannot be read as an
/// address again.
fn check_prepared(local: &str, domain_name: &str) -> Result<()> {
    match BareJid::from_parts(Some(local), domain_name) {
        Ok(jid) if jid.local() == Some(local) => Ok(()),
        _ => Err(Error::Unfit("the local part is not prepared")),
    }
}
