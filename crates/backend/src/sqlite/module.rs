//! Modules.

use super::column::{blob, corrupt, int, ms, opt_text, text, uint};
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
use rusqlite::{Error, OptionalExtension, Result, Row, params};

impl Answers<ListModules, Error> for Snapshot<'_> {
    fn answer(&mut self, _: &ListModules) -> Result<ModuleList> {
        let mut query = self.db.prepare_cached(
            "SELECT name, hash, length(code), pushed FROM module ORDER BY name, pushed DESC, hash DESC",
        )?;
        let versions = query.query_map([], version)?.collect::<Result<_>>()?;
        let mut query = self.db.prepare_cached(
            "SELECT name, hash, config, base, base_config, domain, percent, shadow, closed, since, node
             FROM module_activation ORDER BY name",
        )?;
        let activated = query.query_map([], activation)?.collect::<Result<_>>()?;
        Ok(ModuleList { versions, activated })
    }
}

impl Answers<ModuleCode, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ModuleCode) -> Result<Option<Bytes>> {
        let mut query = self.db.prepare_cached("SELECT code FROM module WHERE name = ?1 AND hash = ?2")?;
        let code = |row: &Row<'_>| blob(row, 0).map(Bytes::copy_from_slice);
        query.query_row(params![asked.name, asked.hash], code).optional()
    }
}

impl Answers<PushModule, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &PushModule) -> Result<std::result::Result<(), TooManyModules>> {
        let PushModule { name, hash, code, now } = asked;
        let mut query = self.db.prepare_cached("SELECT count(DISTINCT name) FROM module WHERE name != ?1")?;
        if query.query_row([name], |row| row.get::<_, u32>(0))? >= MODULES_MAX {
            return Ok(Err(TooManyModules));
        }
        self.run(
            "INSERT INTO module (name, hash, pushed, code) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
            params![name, hash, int(now.0), &**code],
        )?;
        self.run(
            "DELETE FROM module WHERE name = ?1 AND hash IN (
                 SELECT hash FROM module WHERE name = ?1 AND hash != ?2 AND NOT EXISTS (
                     SELECT 1 FROM module_activation a WHERE a.name = ?1 AND module.hash IN (a.hash, a.base))
                 ORDER BY pushed, hash
                 LIMIT max(0, (SELECT count(*) FROM module WHERE name = ?1) - ?3))",
            params![name, hash, MODULE_VERSIONS_MAX],
        )?;
        Ok(Ok(()))
    }
}

impl Answers<ActivateModule, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ActivateModule) -> Result<std::result::Result<(), Missing>> {
        let Activation { version, base, node, domain, percent, is_shadow, on_failure, since } =
            &asked.activation;
        for of in [Some(version), base.as_ref()].into_iter().flatten() {
            let mut query = self.db.prepare_cached("SELECT 1 FROM module WHERE name = ?1 AND hash = ?2")?;
            if !query.exists(params![asked.name, of.hash])? {
                return Ok(Err(Missing));
            }
        }
        self.run(
            "INSERT OR REPLACE INTO module_activation
                 (name, hash, config, base, base_config, domain, percent, shadow, closed, since, node)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            params![
                asked.name,
                version.hash,
                version.config,
                base.as_ref().map(|base| base.hash),
                base.as_ref().map_or("", |base| &*base.config),
                domain,
                percent,
                is_shadow,
                *on_failure == OnFailure::Closed,
                int(since.0),
                node
            ],
        )?;
        Ok(Ok(()))
    }
}

impl Answers<DeactivateModule, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &DeactivateModule) -> Result<()> {
        self.run("DELETE FROM module_activation WHERE name = ?1", [&asked.name]).map(drop)
    }
}

impl Answers<RemoveModule, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &RemoveModule) -> Result<std::result::Result<(), ModuleIsActive>> {
        let mut active = self.db.prepare_cached("SELECT 1 FROM module_activation WHERE name = ?1")?;
        if active.exists([&asked.name])? {
            return Ok(Err(ModuleIsActive));
        }
        self.run("DELETE FROM module WHERE name = ?1", [&asked.name])?;
        Ok(Ok(()))
    }
}

fn version(row: &Row<'_>) -> Result<PushedModule> {
    Ok(PushedModule {
        name: text(row, 0)?,
        hash: hash(row, 1)?,
        code_bytes: uint(row, 2)?,
        pushed: ms(row, 3)?,
    })
}

fn activation(row: &Row<'_>) -> Result<(Box<str>, Activation)> {
    let has_base = row.get_ref(3)? != rusqlite::types::ValueRef::Null;
    let base = match has_base {
        true => Some(Configured { hash: hash(row, 3)?, config: text(row, 4)? }),
        false => None,
    };
    let activation = Activation {
        version: Configured { hash: hash(row, 1)?, config: text(row, 2)? },
        base,
        node: opt_text(row, 10)?,
        domain: opt_text(row, 5)?,
        percent: row.get(6)?,
        is_shadow: row.get(7)?,
        on_failure: if row.get(8)? { OnFailure::Closed } else { OnFailure::Open },
        since: ms(row, 9)?,
    };
    Ok((text(row, 0)?, activation))
}

fn hash(row: &Row<'_>, column: usize) -> Result<ModuleHash> {
    blob(row, column)?.try_into().map_err(|_| corrupt(column, "a hash of a module"))
}
