//! The tail in the database, so that a start reads it from a few rows and not from its messages.
//!
//! Entries gather in memory until there are enough for a row, a *list*; then the next commit writes it. So a start reads the lists behind the
//! fold and at most the messages of one that was not full. A list costs a message 48 bytes, which lie one behind the other.

use super::super::column::{corrupt, int};
use super::TailEntry;
use rusqlite::{Connection, Result};

/// Entries of a list, or one more: those of a message are not separated.
pub(in super::super) const LIST: usize = 8192;
/// Gives every entry behind `after` that is in a list up to `newest`, in the order of their messages. Up to which message that is, and how many
/// lists there are.
pub(super) fn read(
    db: &Connection,
    after: u64,
    newest: u64,
    mut found: impl FnMut(i64, TailEntry),
) -> Result<(u64, usize)> {
    let (mut listed, mut lists) = (after, 0);
    let mut query =
        db.prepare("SELECT last, entries FROM archive_list WHERE last > ?1 AND last <= ?2 ORDER BY last")?;
    let mut rows = query.query([int(after), int(newest)])?;
    while let Some(row) = rows.next()? {
        let (last, bytes): (i64, _) = (row.get(0)?, row.get_ref(1)?.as_blob()?);
        let (entries, rest) = bytes.as_chunks::<ENTRY_BYTES>();
        if !rest.is_empty() {
            return Err(corrupt(1, "a list of archived messages is cut off"));
        }
        entries
            .iter()
            .map(decode)
            .filter(|(_, entry)| entry.seq > after)
            .for_each(|(account, entry)| found(account, entry));
        (listed, lists) = (last as u64, lists + 1);
    }
    Ok((listed, lists))
}

/// The bytes of entries: of each the account, and what [`TailEntry::to_bytes`] says.
pub(in super::super) fn encode(entries: &[(i64, TailEntry)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(entries.len() * ENTRY_BYTES);
    for (account, entry) in entries {
        out.extend_from_slice(&account.to_le_bytes());
        out.extend_from_slice(&entry.to_bytes());
    }
    out
}

fn decode(bytes: &[u8; ENTRY_BYTES]) -> (i64, TailEntry) {
    let [a0, a1, a2, a3, a4, a5, a6, a7, entry @ ..] = *bytes;
    (i64::from_le_bytes([a0, a1, a2, a3, a4, a5, a6, a7]), TailEntry::from_bytes(entry))
}

const ENTRY_BYTES: usize = 8 + TailEntry::BYTES;
