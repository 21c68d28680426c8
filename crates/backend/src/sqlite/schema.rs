//! The schema and its versions. A migration is one file that is never changed once it was released.

use super::OpenError;
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

/// Migration `n` leads from version `n` to version `n + 1`.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_initial.sql"),
    include_str!("migrations/0002_revocations.sql"),
    include_str!("migrations/0003_listing.sql"),
];

/// `PRAGMA application_id` of our databases: "CRLN".
const APPLICATION_ID: i32 = 0x4352_4c4e;

/// Brings the database to the latest version, all in one step, or says why it cannot be used.
pub(super) fn migrate(db: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let sqlite = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let found: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(sqlite)?;
    let owner: i32 = db.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(sqlite)?;
    if owner != APPLICATION_ID && !is_empty(db).map_err(sqlite)? {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    let known = MIGRATIONS.len() as u32;
    if found > known {
        return Err(OpenError::Newer { path: path.to_owned(), found, known });
    }
    if found < known {
        upgrade(db, found).map_err(sqlite)?;
        tracing::info!(path = %path.display(), from = found, to = known, "store schema upgraded");
    }
    Ok(())
}

fn upgrade(db: &mut Connection, from: u32) -> rusqlite::Result<()> {
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for sql in &MIGRATIONS[from as usize..] {
        tx.execute_batch(sql)?;
    }
    tx.pragma_update(None, "application_id", APPLICATION_ID)?;
    tx.pragma_update(None, "user_version", MIGRATIONS.len() as u32)?;
    tx.commit()
}

fn is_empty(db: &Connection) -> rusqlite::Result<bool> {
    db.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", [], |row| row.get(0))
}
