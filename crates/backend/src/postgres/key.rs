//! API keys.

use super::column::{int, ms, number, opt_int, opt_ms, opt_number, text};
use super::error::{Error, Result};
use super::lookup;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::rows::key::lines;
use carillon_core::model::*;
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::keys::{
    CreateKey, CreateKeyAnswer, DeleteKey, ExpireKey, Key, Keys, NoteKeyUse,
};
use tokio_postgres::Row;

impl Answers<CreateKey, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &CreateKey) -> Result<CreateKeyAnswer> {
        let CreateKey { hash, name, domain, scopes, expires, networks, certificates, node_keys_max, now } =
            asked;
        if let Some(domain) = domain
            && lookup::domain_name(self.db, *domain)?.is_none()
        {
            return Ok(CreateKeyAnswer::NoDomain);
        }
        let domain_id = domain.map(|domain| i64::from(domain.0));
        let row = self.db.one(
            "SELECT (SELECT count(*) FROM api_key WHERE domain IS NOT DISTINCT FROM $1)
                 >= coalesce((SELECT keys_max FROM domain WHERE id = $1), $2)",
            &[&domain_id, &i64::from(*node_keys_max)],
        )?;
        if row.try_get(0)? {
            return Ok(CreateKeyAnswer::Full);
        }
        let made = self.returning_opt(
            "INSERT INTO api_key (hash, name, domain, scopes, created, expires, networks, certificates)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
             ON CONFLICT DO NOTHING RETURNING id",
            &[
                &&hash[..],
                name,
                &domain_id,
                &i64::from(scopes.bits()),
                &int(now.0),
                &opt_int(*expires),
                &networks.join("\n"),
                &certificates.join("\n"),
            ],
        )?;
        let Some(made) = made else { return Ok(CreateKeyAnswer::Exists) };
        Ok(CreateKeyAnswer::Created(ApiKey {
            id: KeyId(number(&made, 0)?),
            name: (**name).into(),
            domain: *domain,
            scopes: *scopes,
            created: *now,
            expires: *expires,
            networks: networks.clone(),
            certificates: certificates.clone(),
            used: None,
        }))
    }
}

impl Answers<Key, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Key) -> Result<Option<ApiKey>> {
        let found = self.db.opt(
            "SELECT id, name, domain, scopes, created, expires, networks, used, certificates FROM api_key WHERE hash = $1",
            &[&&asked.hash[..]],
        )?;
        found.as_ref().map(key).transpose()
    }
}

impl Answers<Keys, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Keys) -> Result<Vec<ApiKey>> {
        let found = self.db.query(
            "SELECT id, name, domain, scopes, created, expires, networks, used, certificates FROM api_key
             WHERE $1::bigint IS NULL OR domain = $1 ORDER BY id",
            &[&asked.domain.map(|domain| i64::from(domain.0))],
        )?;
        found.iter().map(key).collect()
    }
}

impl Answers<DeleteKey, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &DeleteKey) -> Result<std::result::Result<(), Missing>> {
        let id = i64::from(asked.id.0);
        if self.run("DELETE FROM api_key WHERE id = $1", &[&id])? == 0 {
            return Ok(Err(Missing));
        }
        self.run("DELETE FROM idempotency_line WHERE key = $1", &[&id])?;
        self.run("DELETE FROM idempotency WHERE key = $1", &[&id])?;
        Ok(Ok(()))
    }
}

impl Answers<ExpireKey, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ExpireKey) -> Result<std::result::Result<ApiKey, Missing>> {
        let changed = self.returning_opt(
            "UPDATE api_key SET expires = $2 WHERE id = $1
             RETURNING id, name, domain, scopes, created, expires, networks, used, certificates",
            &[&i64::from(asked.id.0), &opt_int(asked.expires)],
        )?;
        changed.as_ref().map(key).transpose().map(|found| found.ok_or(Missing))
    }
}

impl Answers<NoteKeyUse, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &NoteKeyUse) -> Result<()> {
        self.run(
            "UPDATE api_key SET used = greatest(used, $2) WHERE id = $1",
            &[&i64::from(asked.id.0), &int(asked.at.0)],
        )?;
        Ok(())
    }
}

fn key(row: &Row) -> Result<ApiKey> {
    Ok(ApiKey {
        id: KeyId(number(row, 0)?),
        name: text(row, 1)?,
        domain: opt_number(row, 2)?.map(DomainId),
        scopes: Scopes::from_bits(number(row, 3)?.try_into().map_err(|_| Error::Corrupt("no scopes"))?),
        created: ms(row, 4)?,
        expires: opt_ms(row, 5)?,
        networks: lines(&text(row, 6)?),
        certificates: lines(&text(row, 8)?),
        used: opt_ms(row, 7)?,
    })
}
