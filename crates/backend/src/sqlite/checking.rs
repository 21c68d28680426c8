//! `carillon store check` on SQLite.

use super::{OpenError, Options, file, schema};
use crate::check::{Checked, Finding, On, RULES};
use rusqlite::{Connection, Result};
use std::path::Path;

/// What SQLite says of damage, at most: further ones follow from these.
const DAMAGES_MAX: u32 = 20;

/// Looks for what is wrong with a database. A node may have it open meanwhile.
///
/// # Errors
/// When it cannot be read as a database of this server.
pub fn check_store(path: &Path) -> std::result::Result<Checked, OpenError> {
    if !path.exists() {
        return Err(OpenError::file(path, std::io::ErrorKind::NotFound.into()));
    }
    let sqlite = |e| OpenError::of(path, e);
    let db = file::connect_reader(&Options::new(path)).map_err(sqlite)?;
    let schema_version = schema::version(&db, path)?;
    let mut checked = Checked { schema_version, schema_known: schema::SCHEMA, ..Checked::default() };
    // One snapshot for all.
    db.execute_batch("BEGIN").map_err(sqlite)?;
    checked.findings = damages(&db).map_err(sqlite)?;
    if schema::is_unfinished(&db).map_err(sqlite)? {
        checked.findings.push(Finding::error(OpenError::Unfinished { path: path.to_owned() }.to_string()));
    }
    if schema_version < schema::SCHEMA {
        let what = format!(
            "the schema has version {schema_version}, and rows are looked at in version {}: start a node of this version on it once",
            schema::SCHEMA
        );
        checked.findings.push(Finding::error(what));
        return Ok(checked);
    }
    checked.findings.extend(dangling(&db).map_err(sqlite)?);
    for rule in RULES.iter().filter(|rule| rule.on != On::Postgres) {
        let found = db.query_row(&rule.question(), [], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)));
        let (rows, example) = found.map_err(sqlite)?;
        checked.findings.extend(rule.finding(rows.unsigned_abs(), example));
        checked.rules += 1;
    }
    Ok(checked)
}

/// What SQLite finds in its own pages.
fn damages(db: &Connection) -> Result<Vec<Finding>> {
    let mut query = db.prepare(&format!("PRAGMA integrity_check({DAMAGES_MAX})"))?;
    let said = query.query_map([], |row| row.get::<_, String>(0))?;
    let said: Vec<String> = said.collect::<Result<_>>()?;
    let damages = said.into_iter().filter(|what| what != "ok");
    Ok(damages.map(|what| Finding::error(format!("damage: {}", what.replace('\n', "; ")))).collect())
}

/// Rows that refer to none, by their tables.
fn dangling(db: &Connection) -> Result<Vec<Finding>> {
    let mut query =
        db.prepare("SELECT \"table\", parent, count(*) FROM pragma_foreign_key_check GROUP BY 1, 2")?;
    let found = query.query_map([], |row| {
        let (table, parent): (String, String) = (row.get(0)?, row.get(1)?);
        let rows = row.get::<_, i64>(2)?.unsigned_abs();
        Ok(Finding { rows, ..Finding::error(format!("rows of {table} that refer to none of {parent}")) })
    })?;
    found.collect()
}
