//! API keys.

use super::column::{int, ms, number, opt_int, opt_ms, text};
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
use rusqlite::{Error, OptionalExtension, Result, Row, params};

impl Answers<CreateKey, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &CreateKey) -> Result<CreateKeyAnswer> {
        let CreateKey { hash, name, domain, scopes, expires, networks, certificates, node_keys_max, now } =
            asked;
        if let Some(domain) = domain
            && lookup::domain_name(self.db, *domain)?.is_none()
        {
            return Ok(CreateKeyAnswer::NoDomain);
        }
        let is_full = match domain {
            Some(domain) => self.is_full_of_keys(*domain)?,
            None => self.has_node_keys(*node_keys_max)?,
        };
        if is_full {
            return Ok(CreateKeyAnswer::Full);
        }
        let made = self.run(
            "INSERT INTO api_key (hash, name, domain, scopes, created, expires, networks, certificates)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT DO NOTHING",
            params![
                hash,
                name,
                domain.map(|d| d.0),
                scopes.bits(),
                int(now.0),
                opt_int(*expires),
                networks.join("\n"),
                certificates.join("\n")
            ],
        )?;
        if made == 0 {
            return Ok(CreateKeyAnswer::Exists);
        }
        let id = KeyId(number(self.db.last_insert_rowid())?);
        Ok(CreateKeyAnswer::Created(ApiKey {
            id,
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
        self.db
            .prepare_cached("SELECT id, name, domain, scopes, created, expires, networks, used, certificates FROM api_key WHERE hash = ?1")?
            .query_row([asked.hash], key)
            .optional()
    }
}

impl Answers<Keys, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Keys) -> Result<Vec<ApiKey>> {
        let mut query = self.db.prepare_cached(
            "SELECT id, name, domain, scopes, created, expires, networks, used, certificates FROM api_key WHERE ?1 IS NULL OR domain = ?1 ORDER BY id",
        )?;
        let keys = query.query_map([asked.domain.map(|d| d.0)], key)?;
        keys.collect()
    }
}

impl Answers<DeleteKey, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &DeleteKey) -> Result<Result<(), Missing>> {
        if self.run("DELETE FROM api_key WHERE id = ?1", [asked.id.0])? == 0 {
            return Ok(Err(Missing));
        }
        self.run("DELETE FROM idempotency WHERE key = ?1", [asked.id.0])?;
        Ok(Ok(()))
    }
}

impl Answers<ExpireKey, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ExpireKey) -> Result<Result<ApiKey, Missing>> {
        self.run(
            "UPDATE api_key SET expires = ?2 WHERE id = ?1",
            params![asked.id.0, opt_int(asked.expires)],
        )?;
        let sql = "SELECT id, name, domain, scopes, created, expires, networks, used, certificates FROM api_key WHERE id = ?1";
        let found = self.db.prepare_cached(sql)?.query_row([asked.id.0], key).optional()?;
        Ok(found.ok_or(Missing))
    }
}

impl Answers<NoteKeyUse, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &NoteKeyUse) -> Result<()> {
        self.run(
            "UPDATE api_key SET used = max(coalesce(used, 0), ?2) WHERE id = ?1",
            params![asked.id.0, int(asked.at.0)],
        )?;
        Ok(())
    }
}

impl Transaction<'_> {
    /// Whether there are so many keys of no domain, of which there are no more to be counted.
    fn has_node_keys(&self, max: u32) -> Result<bool> {
        self.db
            .prepare_cached(
                "SELECT count(*) >= ?1 FROM api_key INDEXED BY api_key_node WHERE domain IS NULL",
            )?
            .query_row([max], |row| row.get(0))
    }

    /// Whether a domain has as many keys as it may, of which there are no more to be counted.
    fn is_full_of_keys(&self, domain: DomainId) -> Result<bool> {
        self.db
            .prepare_cached(
                "SELECT (SELECT count(*) FROM api_key WHERE domain = d.id) >= d.keys_max FROM domain d WHERE d.id = ?1",
            )?
            .query_row([domain.0], |row| row.get(0))
    }
}

fn key(row: &Row<'_>) -> Result<ApiKey> {
    Ok(ApiKey {
        id: KeyId(row.get(0)?),
        name: text(row, 1)?,
        domain: row.get::<_, Option<u32>>(2)?.map(DomainId),
        scopes: Scopes::from_bits(row.get(3)?),
        created: ms(row, 4)?,
        expires: opt_ms(row, 5)?,
        networks: lines(&text(row, 6)?),
        certificates: lines(&text(row, 8)?),
        used: opt_ms(row, 7)?,
    })
}
