//! The tables, and how they come to be.
//!
//! A migration runs in one transaction, behind a lock that only migrations take. Those that a node of the version before can live with
//! only raise `version`; `min_reader` and `min_writer` say which servers may go on.

use super::connection::Connection;
use super::open_error::OpenError;

/// The migrations, by the number of the version that each makes.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_initial.sql"),
    include_str!("migrations/0002_rooms.sql"),
    include_str!("migrations/0003_invitations.sql"),
    include_str!("migrations/0004_uploads.sql"),
    include_str!("migrations/0005_expiring_messages.sql"),
    include_str!("migrations/0006_room_kinds.sql"),
    include_str!("migrations/0007_invitation_keys.sql"),
    include_str!("migrations/0008_long_ids.sql"),
    include_str!("migrations/0009_members.sql"),
    include_str!("migrations/0010_inbox_pages.sql"),
    include_str!("migrations/0011_broadcasts.sql"),
    include_str!("migrations/0012_modules.sql"),
    include_str!("migrations/0013_push.sql"),
    include_str!("migrations/0014_tenants.sql"),
    include_str!("migrations/0015_cells.sql"),
    include_str!("migrations/0016_room_policy.sql"),
    include_str!("migrations/0017_lease_state.sql"),
    include_str!("migrations/0018_privacy_lists.sql"),
    include_str!("migrations/0019_push_steps.sql"),
    include_str!("migrations/0020_quotas.sql"),
    include_str!("migrations/0021_endpoints.sql"),
    include_str!("migrations/0022_room_events.sql"),
    include_str!("migrations/0023_joins.sql"),
    include_str!("migrations/0024_failed_pushes.sql"),
    include_str!("migrations/0025_removals.sql"),
    include_str!("migrations/0026_room_vcards.sql"),
    include_str!("migrations/0027_push.sql"),
    include_str!("migrations/0028_module_nodes.sql"),
];

/// The version of the schema that this server knows.
pub(super) const VERSION: u32 = MIGRATIONS.len() as u32;

/// What migrations of one database wait for each other with.
const LOCK: i64 = 0x6361_7269_6c6c_6f6e;

/// What nodes share while they open a store, and `moving` has alone.
const ALONE: i64 = 0x6d69_6772_6174_6521;

/// Makes the tables, or brings them up to date, for a node.
pub(super) fn migrate(db: &Connection) -> Result<(), OpenError> {
    make(db, |db| {
        let error = super::error::Error::from;
        let may = db.one("SELECT pg_try_advisory_xact_lock_shared($1)", &[&ALONE])?;
        if !may.try_get::<_, bool>(0).map_err(error)? {
            return Err(OpenError::Alone);
        }
        if is_unfinished(db)? { Err(OpenError::Unfinished) } else { Ok(()) }
    })
}

/// Whether no node opens the store from now on, until this connection ends.
pub(super) fn have_alone(db: &Connection) -> Result<bool, super::error::Error> {
    Ok(db.one("SELECT pg_try_advisory_lock($1)", &[&ALONE])?.try_get(0)?)
}

/// Whether it holds a part of a copy of another store (`carillon store migrate`).
pub(super) fn is_unfinished(db: &Connection) -> Result<bool, super::error::Error> {
    Ok(db.one("SELECT to_regclass('store_migration') IS NOT NULL", &[])?.try_get(0)?)
}

/// Makes the tables, or brings them up to date, unless something is in the way.
pub(super) fn make(
    db: &Connection,
    look: impl FnOnce(&Connection) -> Result<(), OpenError>,
) -> Result<(), OpenError> {
    let encoding: String =
        db.one("SHOW server_encoding", &[])?.try_get(0).map_err(super::error::Error::from)?;
    if encoding != "UTF8" {
        return Err(OpenError::Encoding(encoding));
    }
    db.batch("BEGIN")?;
    db.query("SELECT pg_advisory_xact_lock($1)", &[&LOCK])?;
    look(db)?;
    let version = version(db)?;
    for (sql, number) in MIGRATIONS.iter().zip(1..).skip(version as usize) {
        db.batch(sql)?;
        let number: i32 = number;
        db.run("UPDATE schema SET version = $1", &[&number])?;
        tracing::info!(version = number, "the schema of the store was changed");
    }
    db.batch("COMMIT")?;
    Ok(())
}

/// The version that the schema has; 0 where there is none.
pub(super) fn version(db: &Connection) -> Result<u32, OpenError> {
    let error = super::error::Error::from;
    let found = db.one(
        "SELECT to_regclass('schema') IS NOT NULL AND to_regclass('lane') IS NOT NULL,
             EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = current_schema())",
        &[],
    )?;
    let (is_ours, has_tables): (bool, bool) =
        (found.try_get(0).map_err(error)?, found.try_get(1).map_err(error)?);
    if !is_ours {
        return if has_tables { Err(OpenError::Foreign) } else { Ok(0) };
    }
    let row = db.one("SELECT version, greatest(min_reader, min_writer) FROM schema", &[])?;
    let (version, needed): (i32, i32) = (row.try_get(0).map_err(error)?, row.try_get(1).map_err(error)?);
    let (found, needed) = (version.unsigned_abs(), needed.unsigned_abs());
    if needed > VERSION {
        return Err(OpenError::Newer { found, needed, known: VERSION });
    }
    Ok(found)
}
