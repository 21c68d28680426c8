//! Moving the newest messages into the tables by which they are found.

use super::super::archive_tail::{Fold, Tail, TailEntry};
use super::super::column::int;
use super::super::transaction::Transaction;
use super::inbox;

use crate::rows::code::Code;
use rusqlite::{Result, params};

/// The tail is folded when it has so many entries, or one for so many messages there are, if that is more.
const ENTRIES_MIN: usize = 32 * 1024;
const MESSAGES_PER_ENTRY: u64 = 8;
/// But at the latest when it has so many: 16 bytes each.
const ENTRIES_MAX: usize = 1024 * 1024;

/// Entries that are folded with a commit: so many for each that it adds, and some.
const SLICE_PER_ENTRY: usize = 2;
const SLICE_MIN: usize = 256;
/// With a commit that waits for it.
const SLICE_WANTED: usize = 4096;

/// The fold with which a commit goes on: one is begun when the tail is long.
fn begun(fold: Fold, tail: &Tail, newest: u64, wants_fold: bool) -> Option<Fold> {
    // While the tail is not whole nobody knows what there is to fold.
    let entries = tail.entries()?;
    if fold.folding > 0 {
        return Some(fold);
    }
    let wanted = usize::try_from(newest / MESSAGES_PER_ENTRY).unwrap_or(usize::MAX);
    let min = if wants_fold { 1 } else { wanted.clamp(ENTRIES_MIN, ENTRIES_MAX) };
    (entries >= min && newest > fold.folded).then_some(Fold { folding: newest, account: 0, seq: 0, ..fold })
}

/// The accounts of a fold, while it lasts: the writer's. Made again when it is lost.
#[derive(Default)]
pub(in super::super) struct Plan {
    folding: u64,
    accounts: Vec<i64>,
}

/// Whether there are messages that are not in the tables.
pub(in super::super) fn is_behind(fold: Fold, tail: &Tail) -> bool {
    tail.entries().is_some_and(|entries| fold.folding > 0 || entries > 0)
}

/// Folds a slice, if there is something to fold. To be called before the commit.
pub(in super::super) fn slice(write: &mut Transaction<'_>, plan: &mut Plan) -> Result<()> {
    let before = write.fold;
    // What this transaction adds is not in the tail yet.
    let added = write.archived.len();
    let newest = write.archived.first().map_or(write.newest_message.seq, |(_, entry)| entry.seq - 1);
    let Some(fold) = begun(before, write.tail, newest, write.wants_fold) else { return Ok(()) };
    let least = if write.wants_fold { SLICE_WANTED } else { SLICE_MIN };
    let after = advance(write, fold, plan, least + SLICE_PER_ENTRY * added)?;
    write.run(
        "UPDATE archive_fold SET folded = ?1, folding = ?2, account = ?3, seq = ?4",
        params![int(after.folded), int(after.folding), after.account, int(after.seq)],
    )?;
    write.fold = after;
    Ok(())
}

fn advance(write: &Transaction<'_>, mut fold: Fold, plan: &mut Plan, mut budget: usize) -> Result<Fold> {
    if plan.folding != fold.folding {
        *plan = Plan { folding: fold.folding, accounts: write.tail.accounts(fold.folding) };
    }
    let next = plan.accounts.partition_point(|account| *account < fold.account);
    for account in &plan.accounts[next..] {
        let Some(mut entries) = write.tail.of(*account, fold.of(*account), fold.folding) else {
            return Ok(fold);
        };
        let is_whole = entries.len() <= budget;
        entries.truncate(budget);
        budget -= entries.len();
        add(write, *account, &mut entries)?;
        if !is_whole {
            fold = Fold {
                account: *account,
                seq: entries.iter().map(|e| e.seq).max().unwrap_or(fold.seq),
                ..fold
            };
            return Ok(fold);
        }
        fold = Fold { account: account + 1, seq: 0, ..fold };
        if budget == 0 {
            return Ok(fold);
        }
    }
    Ok(Fold { folded: fold.folding, ..Fold::default() })
}

/// Puts entries of an account into the tables.
fn add(write: &Transaction<'_>, account: i64, entries: &mut [TailEntry]) -> Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    let mut insert = write
        .db
        .prepare_cached("INSERT OR IGNORE INTO archive_entry (account, seq, peer) VALUES (?1, ?2, ?3)")?;
    for TailEntry { seq, peer, .. } in &*entries {
        insert.execute(params![account, int(*seq), peer])?;
    }
    entries.sort_unstable_by_key(|entry| (entry.peer, entry.seq));
    let mut insert = write.db.prepare_cached(
        "INSERT OR IGNORE INTO archive_conversation (account, peer, seq, kind) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for entry in &*entries {
        insert.execute(params![account, entry.peer, int(entry.seq), entry.kind().code()])?;
    }
    inbox::fold(write, account, entries)?;
    let bytes: u64 = entries.iter().map(|entry| u64::from(entry.bytes())).sum();
    write.run(
        "INSERT INTO archive (account, messages, bytes) VALUES (?1, ?2, ?3)
         ON CONFLICT (account) DO UPDATE SET messages = messages + ?2, bytes = bytes + ?3",
        params![account, entries.len() as i64, int(bytes)],
    )?;
    Ok(())
}
