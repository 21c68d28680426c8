//! The newest messages of all archives, in memory: those behind the fold, and for a while those before it.

use super::super::column::{int, uint};
use super::{Fold, TailEntry, list};
use carillon_core::model::EntryKind;
use rusqlite::{Connection, Result};
use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The tail, which the writer and the readers share.
#[derive(Default)]
pub(in super::super) struct Tail {
    inner: Mutex<Inner>,
    made: Condvar,
}

#[derive(Default)]
struct Inner {
    /// By account, in the order of their numbers.
    accounts: HashMap<i64, Vec<TailEntry>>,
    entries: usize,
    /// Those that are in no list yet, in the order of their messages.
    unlisted: VecDeque<(i64, TailEntry)>,
    /// Whether the messages that were there when the store was opened are in it.
    state: TailState,
    /// Everything up to this one may be gone from it.
    dropped: u64,
    /// A fold that has ended, and when: what it covers is dropped once no reader can have a snapshot from before.
    ended: Option<(u64, Instant)>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum TailState {
    #[default]
    Making,
    Whole,
    /// They could not be read.
    Failed,
}

/// How much was read to make a tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Made {
    pub(in super::super) lists: usize,
    pub(in super::super) messages: usize,
}

/// For how long a snapshot can be in use.
const SNAPSHOT_MAX: Duration = Duration::from_secs(10);

impl Tail {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the entries behind the fold up to `newest`, which were there when the store was opened. What has come since is there. None if
    /// that failed.
    pub(in super::super) fn make(&self, db: &Connection, newest: u64) -> Option<Made> {
        let found = behind_fold(db, newest);
        let made = found.as_ref().ok().map(|found| found.made);
        let mut inner = self.lock();
        inner.state = match found {
            Ok(Found { accounts, mut unlisted, made: _ }) => {
                unlisted.append(&mut inner.unlisted);
                inner.unlisted = unlisted;
                for (account, mut entries) in accounts {
                    inner.entries += entries.len();
                    let newer = inner.accounts.entry(account).or_default();
                    entries.append(newer);
                    *newer = entries;
                }
                TailState::Whole
            }
            Err(e) => {
                tracing::error!(error = %e, "the newest archived messages could not be read");
                TailState::Failed
            }
        };
        self.made.notify_all();
        made
    }

    /// Adds messages that were committed, in their order.
    pub(in super::super) fn add(&self, archived: Vec<(i64, TailEntry)>) {
        if archived.is_empty() {
            return;
        }
        let mut inner = self.lock();
        inner.entries += archived.len();
        inner.unlisted.extend(&archived);
        for (account, entry) in archived {
            inner.accounts.entry(account).or_default().push(entry);
        }
    }

    /// The first entries that are in no list, if there are so many; one more where a message would be separated.
    pub(in super::super) fn unlisted(&self, count: usize) -> Option<Vec<(i64, TailEntry)>> {
        let inner = self.lock();
        let all = &inner.unlisted;
        if inner.state != TailState::Whole || all.len() < count {
            return None;
        }
        let seq = |at: usize| all.get(at).map(|(_, entry)| entry.seq);
        let count = if seq(count - 1) == seq(count) { count + 1 } else { count };
        Some(all.range(..count).copied().collect())
    }

    /// So many of them are in a list that is committed.
    pub(in super::super) fn listed(&self, count: usize) {
        if count > 0 {
            let mut inner = self.lock();
            inner.unlisted.drain(..count);
            inner.unlisted.shrink_to(2 * list::LIST);
        }
    }

    /// How many entries there are; none while not all of them are here.
    pub(in super::super) fn entries(&self) -> Option<usize> {
        let inner = self.lock();
        (inner.state == TailState::Whole && inner.ended.is_none()).then_some(inner.entries)
    }

    /// The entries of an account behind `after`, up to `to`. Waits until they are all here. None if some of them were never read, or were dropped
    /// because they are in the tables.
    pub(in super::super) fn of(&self, account: i64, after: u64, to: u64) -> Option<Vec<TailEntry>> {
        let mut inner = self.lock();
        while inner.state == TailState::Making {
            inner = self.made.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        if inner.state == TailState::Failed || inner.dropped > after {
            return None;
        }
        let entries = inner.accounts.get(&account).map_or(&[][..], |entries| between(entries, after, to));
        Some(entries.to_vec())
    }

    /// Those of some conversations behind `after`, for the writer, which does not wait for them.
    pub(in super::super) fn now(
        &self,
        account: i64,
        after: u64,
        is_wanted: impl Fn(u32) -> bool,
    ) -> Option<Vec<TailEntry>> {
        let inner = self.lock();
        if inner.state != TailState::Whole {
            return None;
        }
        let entries = inner.accounts.get(&account).map_or(&[][..], |all| between(all, after, u64::MAX));
        Some(entries.iter().filter(|entry| is_wanted(entry.peer)).copied().collect())
    }

    /// The accounts that have an entry up to `to`, sorted.
    pub(in super::super) fn accounts(&self, to: u64) -> Vec<i64> {
        let inner = self.lock();
        let has =
            |(_, entries): &(&i64, &Vec<TailEntry>)| entries.first().is_some_and(|entry| entry.seq <= to);
        let mut accounts: Vec<i64> = inner.accounts.iter().filter(has).map(|(account, _)| *account).collect();
        accounts.sort_unstable();
        accounts
    }

    /// A commit has folded something. Drops what was folded so long ago that every reader knows of it.
    pub(in super::super) fn folded(&self, before: Fold, after: Fold) {
        let mut inner = self.lock();
        if after.folded > before.folded {
            inner.ended = Some((after.folded, Instant::now()));
        }
        let Some((to, at)) = inner.ended else { return };
        if at.elapsed() < SNAPSHOT_MAX {
            return;
        }
        inner.ended = None;
        inner.dropped = to;
        let mut left = 0;
        inner.accounts.retain(|_, entries| {
            let first = entries.partition_point(|entry| entry.seq <= to);
            if first > 0 {
                *entries = entries.split_off(first);
            }
            left += entries.len();
            !entries.is_empty()
        });
        inner.entries = left;
        inner.accounts.shrink_to_fit();
    }
}

/// The part of an account's entries behind `after`, up to `to`.
fn between(entries: &[TailEntry], after: u64, to: u64) -> &[TailEntry] {
    let first = entries.partition_point(|entry| entry.seq <= after);
    let end = entries.partition_point(|entry| entry.seq <= to);
    entries.get(first..end).unwrap_or_default()
}

/// The entries behind the fold.
struct Found {
    accounts: HashMap<i64, Vec<TailEntry>>,
    unlisted: VecDeque<(i64, TailEntry)>,
    made: Made,
}

/// The entries behind the fold up to `newest`: those in lists, and those of the messages behind the last list.
fn behind_fold(db: &Connection, newest: u64) -> Result<Found> {
    let mut accounts: HashMap<i64, Vec<TailEntry>> = HashMap::new();
    let (mut unlisted, mut messages) = (VecDeque::new(), 0);
    let (listed, lists) = list::read(db, Fold::find(db)?.folded, newest, |account, entry| {
        accounts.entry(account).or_default().push(entry);
    })?;
    let mut query = db.prepare(
        "SELECT seq, sender, sender_peer, recipient, recipient_peer, length(stanza), contents FROM archive_message
         WHERE seq > ?1 AND seq <= ?2 ORDER BY seq",
    )?;
    let mut rows = query.query([int(listed), int(newest)])?;
    while let Some(row) = rows.next()? {
        messages += 1;
        let (seq, bytes) = (uint(row, 0)?, row.get::<_, u32>(5)? as usize);
        let [sent, received] = kinds(row.get(6)?);
        let sender = row.get::<_, Option<i64>>(1)?.zip(row.get::<_, Option<u32>>(2)?);
        let recipient = row.get::<_, Option<i64>>(3)?.zip(row.get::<_, Option<u32>>(4)?);
        let is_note = sender.map(|(account, _)| account) == recipient.map(|(account, _)| account);
        for (side, kind) in [(sender, sent), (recipient.filter(|_| !is_note), received)] {
            if let Some((account, peer)) = side {
                let entry = TailEntry::new(seq, peer, bytes, kind);
                accounts.entry(account).or_default().push(entry);
                unlisted.push_back((account, entry));
            }
        }
    }
    Ok(Found { accounts, unlisted, made: Made { lists, messages } })
}

/// What a message is to its sender and to its recipient: `contents` is what its row says.
fn kinds(contents: i64) -> [EntryKind; 2] {
    match contents {
        0 => [EntryKind::Other; 2],
        1 => [EntryKind::Sent, EntryKind::Received],
        // It was not noted, and is as good as read.
        _ => [EntryKind::Sent; 2],
    }
}
