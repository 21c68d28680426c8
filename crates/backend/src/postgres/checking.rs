//! `carillon store check` on PostgreSQL.

use super::connection::Connection;
use super::error::{Error, Result};
use super::inspect::{self, inspect};
use super::open_error::OpenError;
use super::options::Options;
use super::schema;
use crate::check::{Checked, Finding, On, RULES};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long one question may take: it may read a whole table.
const ANSWER_MAX: Duration = Duration::from_secs(4 * 3600);

/// Looks for what is wrong with a database and its server. Nodes may use it meanwhile.
///
/// # Errors
/// When it cannot be reached, or has no tables of this server.
pub fn check(options: Options) -> std::result::Result<Checked, OpenError> {
    let mut findings = settings(options.clone())?;
    let patience = options.patience;
    let options = Options { answer_max: ANSWER_MAX, ..options };
    let name = format!("carillon store check {}", std::process::id());
    let mut db = Connection::new(Arc::new(options), name, Arc::default()).map_err(OpenError::Thread)?;
    db.connect(Instant::now().checked_sub(patience))?;
    db.batch(SETTINGS)?;
    db.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
    let schema_version = schema::version(&db)?;
    if schema_version == 0 {
        return Err(OpenError::Empty);
    }
    if schema::is_unfinished(&db)? {
        findings.push(Finding::error(OpenError::Unfinished.to_string()));
    }
    let mut checked = Checked { schema_version, schema_known: schema::VERSION, rules: 0, findings };
    if schema_version < schema::VERSION {
        let what = format!(
            "the schema has version {schema_version}, and rows are looked at in version {}: start a node of this version on it once",
            schema::VERSION
        );
        checked.findings.push(Finding::error(what));
        return Ok(checked);
    }
    checked.findings.extend(tables(&db)?);
    for rule in RULES.iter().filter(|rule| rule.on != On::Sqlite) {
        let row = db.one(&rule.question(), &[])?;
        let rows: i64 = row.try_get(0).map_err(Error::from)?;
        let example: String = row.try_get(1).map_err(Error::from)?;
        checked.findings.extend(rule.finding(rows.unsigned_abs(), example));
        checked.rules += 1;
    }
    db.batch("COMMIT")?;
    Ok(checked)
}

const SETTINGS: &str = "SET enable_seqscan = on; SET random_page_cost = 4; SET idle_in_transaction_session_timeout = 0; SET statement_timeout = 0";

/// What the server is set to that a store does not go well with.
fn settings(options: Options) -> std::result::Result<Vec<Finding>, OpenError> {
    let found = inspect(options)?;
    let finding = |found: &inspect::Finding| {
        let what = format!("{}: {}", found.what(), found.remedy());
        if found.stops() { Finding::error(what) } else { Finding::warning(what) }
    };
    Ok(found.iter().map(finding).collect())
}

/// What the server itself does not rely on, and numbers that it would give again.
fn tables(db: &Connection) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for row in db.query(DEFECTS, &[])? {
        let (what, name): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        findings.push(Finding::error(format!("{what}: {name}")));
    }
    for row in db.query(NUMBERED, &[])? {
        let (table, column): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let sql = format!(
            "SELECT coalesce(max({column}), 0), coalesce(pg_sequence_last_value(pg_get_serial_sequence('{table}', '{column}')::regclass), 0)
             FROM {table}"
        );
        let row = db.one(&sql, &[])?;
        let (newest, given): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        if newest > given {
            let what = format!(
                "{table}.{column} has {newest}, and its sequence stands at {given}: numbers would be given twice"
            );
            findings.push(Finding::error(what));
        }
    }
    Ok(findings)
}

const DEFECTS: &str = "SELECT 'an index is not valid', indexrelid::regclass::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        WHERE NOT i.indisvalid AND c.relnamespace = current_schema()::regnamespace
    UNION ALL SELECT 'a constraint is not validated', conrelid::regclass::text || '.' || conname FROM pg_constraint
        WHERE NOT convalidated AND connamespace = current_schema()::regnamespace
    UNION ALL SELECT 'a trigger is disabled', tgrelid::regclass::text || '.' || tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
        WHERE tgenabled = 'D' AND c.relnamespace = current_schema()::regnamespace";

pub(super) const NUMBERED: &str = "SELECT table_name::text, column_name::text FROM information_schema.columns
    WHERE table_schema = current_schema() AND is_identity = 'YES' ORDER BY 1";
