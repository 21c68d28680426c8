//! Message archives: each message once, and an entry for each side that keeps it, with how the conversation stands in the same commit.

mod inbox;
mod keep;
mod listed;
mod preferences;
mod read;
mod rooms;
mod sweep;

pub(super) use keep::keep_all;

use super::column::uint;
use super::connection::Connection;
use super::error::Result;

/// The highest number that a message was given so far, in any archive. Those that an account gets from now on are higher, for whoever holds
/// its lock.
fn newest(db: &Connection) -> Result<u64> {
    uint(&db.one("SELECT coalesce(pg_sequence_last_value('archive_message_seq_seq'), 0)", &[])?, 0)
}

/// Up to which message an archive was erased.
fn erased(db: &Connection, account: i64) -> Result<u64> {
    let row = db.opt("SELECT erased FROM archive WHERE account = $1", &[&account])?;
    Ok(row.map(|row| uint(&row, 0)).transpose()?.unwrap_or(0))
}

/// The number of a conversation, if there is one.
fn conversation(db: &Connection, account: i64, with: &str) -> Result<Option<i64>> {
    let row = db.opt("SELECT id FROM archive_peer WHERE account = $1 AND jid = $2", &[&account, &with])?;
    row.map(|row| Ok(row.try_get(0)?)).transpose()
}
