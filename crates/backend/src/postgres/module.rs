//! Modules.

use super::column::{blob, int, ms, number, opt_text, text, uint};
use super::error::{Error, Result};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use bytes::Bytes;
use carillon_core::ports::Missing;
use carillon_core::ports::modules::{ModuleHash, OnFailure};
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::modules::{
    ActivateModule, Activation, Configured, DeactivateModule, ListModules, MODULE_VERSIONS_MAX, MODULES_MAX,
    ModuleCode, ModuleIsActive, ModuleList, PushModule, PushedModule, RemoveModule, TooManyModules,
};
use tokio_postgres::Row;

impl Answers<ListModules, Error> for Snapshot<'_> {
    fn answer(&mut self, _: &ListModules) -> Result<ModuleList> {
        let versions = self.db.query(
            "SELECT name, hash, length(code)::bigint, pushed FROM module ORDER BY name COLLATE \"C\", pushed DESC, hash DESC",
            &[],
        )?;
        let activated = self.db.query(
            "SELECT name, hash, config, base, base_config, domain, percent, shadow, closed, since, node
             FROM module_activation ORDER BY name COLLATE \"C\"",
            &[],
        )?;
        Ok(ModuleList {
            versions: versions.iter().map(version).collect::<Result<_>>()?,
            activated: activated.iter().map(activation).collect::<Result<_>>()?,
        })
    }
}

impl Answers<ModuleCode, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ModuleCode) -> Result<Option<Bytes>> {
        let hash: &[u8] = &asked.hash;
        let row =
            self.db.opt("SELECT code FROM module WHERE name = $1 AND hash = $2", &[&asked.name, &hash])?;
        row.map(|row| blob(&row, 0).map(Bytes::copy_from_slice)).transpose()
    }
}

impl Answers<PushModule, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &PushModule) -> Result<std::result::Result<(), TooManyModules>> {
        let PushModule { name, hash, code, now } = asked;
        let (hash, code): (&[u8], &[u8]) = (hash, code);
        let others = self.db.one("SELECT count(DISTINCT name) FROM module WHERE name != $1", &[name])?;
        if number(&others, 0)? >= MODULES_MAX {
            return Ok(Err(TooManyModules));
        }
        self.run(
            "INSERT INTO module (name, hash, pushed, code) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
            &[name, &hash, &int(now.0), &code],
        )?;
        self.run(
            "DELETE FROM module WHERE name = $1 AND hash IN (
                 SELECT hash FROM module m WHERE name = $1 AND hash != $2 AND NOT EXISTS (
                     SELECT 1 FROM module_activation a WHERE a.name = $1 AND m.hash IN (a.hash, a.base))
                 ORDER BY pushed, hash
                 LIMIT greatest(0, (SELECT count(*) FROM module WHERE name = $1) - $3))",
            &[name, &hash, &i64::from(MODULE_VERSIONS_MAX)],
        )?;
        Ok(Ok(()))
    }
}

impl Answers<ActivateModule, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ActivateModule) -> Result<std::result::Result<(), Missing>> {
        let Activation { version, base, node, domain, percent, is_shadow, on_failure, since } =
            &asked.activation;
        for of in [Some(version), base.as_ref()].into_iter().flatten() {
            let hash: &[u8] = &of.hash;
            let found =
                self.db.opt("SELECT 1 FROM module WHERE name = $1 AND hash = $2", &[&asked.name, &hash])?;
            if found.is_none() {
                return Ok(Err(Missing));
            }
        }
        let hash: &[u8] = &version.hash;
        let base_hash: Option<&[u8]> = base.as_ref().map(|base| &base.hash[..]);
        let base_config = base.as_ref().map_or("", |base| &*base.config);
        self.run(
            "INSERT INTO module_activation
                 (name, hash, config, base, base_config, domain, percent, shadow, closed, since, node)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
             ON CONFLICT (name) DO UPDATE SET hash = excluded.hash, config = excluded.config, base = excluded.base,
                 base_config = excluded.base_config, domain = excluded.domain, percent = excluded.percent,
                 shadow = excluded.shadow, closed = excluded.closed, since = excluded.since, node = excluded.node",
            &[
                &asked.name,
                &hash,
                &version.config,
                &base_hash,
                &base_config,
                domain,
                &i64::from(*percent),
                is_shadow,
                &(*on_failure == OnFailure::Closed),
                &int(since.0),
                node,
            ],
        )?;
        Ok(Ok(()))
    }
}

impl Answers<DeactivateModule, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &DeactivateModule) -> Result<()> {
        self.run("DELETE FROM module_activation WHERE name = $1", &[&asked.name]).map(drop)
    }
}

impl Answers<RemoveModule, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &RemoveModule) -> Result<std::result::Result<(), ModuleIsActive>> {
        if self.db.opt("SELECT 1 FROM module_activation WHERE name = $1", &[&asked.name])?.is_some() {
            return Ok(Err(ModuleIsActive));
        }
        self.run("DELETE FROM module WHERE name = $1", &[&asked.name])?;
        Ok(Ok(()))
    }
}

fn version(row: &Row) -> Result<PushedModule> {
    Ok(PushedModule {
        name: text(row, 0)?,
        hash: hash(blob(row, 1)?)?,
        code_bytes: uint(row, 2)?,
        pushed: ms(row, 3)?,
    })
}

fn activation(row: &Row) -> Result<(Box<str>, Activation)> {
    let base = match row.try_get::<_, Option<&[u8]>>(3)? {
        Some(base) => Some(Configured { hash: hash(base)?, config: text(row, 4)? }),
        None => None,
    };
    let activation = Activation {
        version: Configured { hash: hash(blob(row, 1)?)?, config: text(row, 2)? },
        base,
        node: opt_text(row, 10)?,
        domain: opt_text(row, 5)?,
        percent: u8::try_from(number(row, 6)?).map_err(|_| Error::Corrupt("the share of a module"))?,
        is_shadow: row.try_get(7)?,
        on_failure: if row.try_get(8)? { OnFailure::Closed } else { OnFailure::Open },
        since: ms(row, 9)?,
    };
    Ok((text(row, 0)?, activation))
}

fn hash(bytes: &[u8]) -> Result<ModuleHash> {
    bytes.try_into().map_err(|_| Error::Corrupt("the hash of a module"))
}
