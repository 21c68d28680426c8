//! Pages of an archive.

use super::super::archive_tail::{Fold, Newest, Tail, TailEntry};
use super::super::column::{blob, corrupt, int, ms, uint};
use super::super::snapshot::Snapshot;
use crate::rows::page::Room;
use bytes::Bytes;
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::archive::{
    ArchivePage, ArchivePageAnswer, ArchivedMessages, EXAMINED_MAX, ReadArchiveEnds,
};
use carillon_wire::jid::Jid;
use rusqlite::{Connection, Error, OptionalExtension, Result, params};

/// Entries that are looked for at once.
const STEP: usize = 256;

impl Answers<ArchivePage, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ArchivePage) -> Result<ArchivePageAnswer> {
        let Some(archive) = Archive::find(self.db, self.tail, asked.domain, &asked.local)? else {
            return Ok(ArchivePageAnswer::NoAccount);
        };
        let (filter, start) = (&asked.filter, asked.start);
        let (after, before) = match start {
            ArchiveStart::After(id) => (Some(id), None),
            ArchiveStart::Before(id) => (None, Some(id)),
            ArchiveStart::First | ArchiveStart::Last => (None, None),
        };
        for named in [filter.after, filter.before, after, before].into_iter().flatten() {
            if !archive.has(named.0)? {
                return Ok(ArchivePageAnswer::NotFound);
            }
        }
        let mut range = archive.range_in_time(filter)?;
        range.after = [filter.after, after].into_iter().flatten().map(|id| id.0).fold(range.after, u64::max);
        range.before =
            [filter.before, before].into_iter().flatten().map(|id| id.0).fold(range.before, u64::min);
        let conversation = match &filter.with {
            None => None,
            Some(with) => match archive.conversation(with.bare_str())? {
                Some(peer) => Some(peer),
                None => return Ok(whole_page(Vec::new())),
            },
        };
        let full = filter.with.as_ref().filter(|with| !with.is_bare());
        archive.page(range, conversation, full, asked)
    }
}

impl Answers<ArchivedMessages, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ArchivedMessages) -> Result<ArchivePageAnswer> {
        let Some(archive) = Archive::find(self.db, self.tail, asked.domain, &asked.local)? else {
            return Ok(ArchivePageAnswer::NoAccount);
        };
        let mut ids = asked.ids.clone();
        ids.sort();
        ids.dedup();
        let mut messages = Vec::with_capacity(ids.len());
        for id in ids {
            let found = if archive.has(id.0)? { archive.message(id.0)? } else { None };
            let Some(found) = found else { return Ok(ArchivePageAnswer::NotFound) };
            messages.push(found);
        }
        Ok(whole_page(messages))
    }
}

impl Answers<ReadArchiveEnds, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ReadArchiveEnds) -> Result<Option<ArchiveEnds>> {
        let Some(archive) = Archive::find(self.db, self.tail, asked.domain, &asked.local)? else {
            return Ok(None);
        };
        let whole = archive.whole();
        let end = |is_backward| -> Result<Option<(ArchiveId, UnixMs)>> {
            for seq in archive.entries(whole, None, is_backward, STEP)? {
                if let Some(received) = archive.received(seq)? {
                    return Ok(Some((ArchiveId(seq), received)));
                }
            }
            Ok(None)
        };
        Ok(end(false)?.zip(end(true)?).map(|(first, last)| ArchiveEnds { first, last }))
    }
}

/// Nothing follows these.
fn whole_page(messages: Vec<ArchivedMessage>) -> ArchivePageAnswer {
    ArchivePageAnswer::Page { messages, more: false, reached: None }
}

/// Messages between two, without these.
#[derive(Clone, Copy)]
pub(super) struct Range {
    after: u64,
    before: u64,
}

/// An account's archive, as of a snapshot.
pub(super) struct Archive<'a> {
    pub(super) db: &'a Connection,
    tail: &'a Tail,
    pub(super) account: i64,
    /// Up to here its messages are in the tables.
    folded: u64,
    /// The newest message of all.
    pub(super) newest: u64,
    /// Up to here it was erased.
    pub(super) erased: u64,
}

impl<'a> Archive<'a> {
    pub(super) fn find(
        db: &'a Connection,
        tail: &'a Tail,
        domain: DomainId,
        local: &str,
    ) -> Result<Option<Archive<'a>>> {
        let account = db
            .prepare_cached("SELECT id FROM account WHERE domain = ?1 AND local = ?2")?
            .query_row(params![domain.0, local], |row| row.get(0));
        let Some(account) = account.optional()? else { return Ok(None) };
        let erased = super::inbox::erased(db, account)?;
        let (folded, newest) = (Fold::find(db)?.of(account), Newest::find(db)?.seq);
        Ok(Some(Archive { db, tail, account, folded, newest, erased }))
    }

    pub(super) fn whole(&self) -> Range {
        Range { after: self.erased, before: u64::MAX }
    }

    /// The entries in memory, within a range.
    pub(super) fn tail(&self, range: Range) -> Result<Vec<TailEntry>> {
        let (after, to) = (range.after.max(self.folded), range.before.saturating_sub(1).min(self.newest));
        // A reader that asks from before the fold would have to know what was folded since.
        let entries = self.tail.of(self.account, self.folded, to);
        let mut entries = entries.ok_or_else(|| corrupt(0, "the newest archived messages cannot be read"))?;
        entries.retain(|entry| entry.seq > after);
        Ok(entries)
    }

    /// Whether a message is in the archive.
    fn has(&self, seq: u64) -> Result<bool> {
        if seq <= self.erased || seq > self.newest {
            return Ok(false);
        }
        if seq > self.folded {
            let found = self.tail(Range { after: seq - 1, before: seq + 1 })?;
            return Ok(!found.is_empty());
        }
        self.db
            .prepare_cached("SELECT 1 FROM archive_entry WHERE account = ?1 AND seq = ?2")?
            .exists(params![self.account, int(seq)])
    }

    pub(super) fn conversation(&self, with: &str) -> Result<Option<u32>> {
        self.db
            .prepare_cached("SELECT id FROM archive_peer WHERE account = ?1 AND jid = ?2")?
            .query_row(params![self.account, with], |row| row.get(0))
            .optional()
    }

    /// The range of messages that can be of the time that is asked for: times ascend with numbers, nearly always.
    fn range_in_time(&self, filter: &ArchiveFilter) -> Result<Range> {
        let mut range = self.whole();
        if let Some(start) = filter.start {
            range.after = range.after.max(self.first_since(start)?.saturating_sub(1));
        }
        if let Some(end) = filter.end {
            range.before = self.first_since(end.plus(1))?;
        }
        Ok(range)
    }

    /// The first message of all that was received at this time or later, or the number behind the newest.
    pub(super) fn first_since(&self, time: UnixMs) -> Result<u64> {
        let mut query = self.db.prepare_cached(
            "SELECT seq, received FROM archive_message WHERE seq >= ?1 ORDER BY seq LIMIT 1",
        )?;
        let (mut low, mut high) = (1, self.newest + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            let found = query.query_row([int(middle)], |row| Ok((uint(row, 0)?, ms(row, 1)?))).optional()?;
            match found {
                Some((seq, received)) if received < time => low = seq + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    /// The first entries of a range, in the order that is asked for, or the last.
    fn entries(&self, range: Range, peer: Option<u32>, is_backward: bool, max: usize) -> Result<Vec<u64>> {
        let mut newer: Vec<u64> = self
            .tail(range)?
            .iter()
            .filter(|e| peer.is_none_or(|peer| e.peer == peer))
            .map(|e| e.seq)
            .collect();
        if is_backward {
            newer.reverse();
            newer.truncate(max);
            let left = max - newer.len();
            newer.extend(self.folded(range, peer, is_backward, left)?);
            return Ok(newer);
        }
        let mut found = self.folded(range, peer, is_backward, max)?;
        newer.truncate(max - found.len());
        found.extend(newer);
        Ok(found)
    }

    /// Those in the tables.
    fn folded(&self, range: Range, peer: Option<u32>, is_backward: bool, max: usize) -> Result<Vec<u64>> {
        let before = range.before.min(self.folded + 1);
        if max == 0 || range.after + 1 >= before {
            return Ok(Vec::new());
        }
        let sql = match (peer.is_some(), is_backward) {
            (false, false) => {
                "SELECT seq FROM archive_entry WHERE account = ?1 AND seq > ?2 AND seq < ?3 ORDER BY seq LIMIT ?4"
            }
            (false, true) => {
                "SELECT seq FROM archive_entry WHERE account = ?1 AND seq > ?2 AND seq < ?3 ORDER BY seq DESC LIMIT ?4"
            }
            (true, false) => {
                "SELECT seq FROM archive_conversation WHERE account = ?1 AND seq > ?2 AND seq < ?3 AND peer = ?5 ORDER BY seq LIMIT ?4"
            }
            (true, true) => {
                "SELECT seq FROM archive_conversation WHERE account = ?1 AND seq > ?2 AND seq < ?3 AND peer = ?5 ORDER BY seq DESC LIMIT ?4"
            }
        };
        let mut query = self.db.prepare_cached(sql)?;
        let (after, before, max) = (int(range.after), int(before), max as i64);
        let seq = |row: &rusqlite::Row<'_>| uint(row, 0);
        match peer {
            None => query.query_map(params![self.account, after, before, max], seq)?.collect(),
            Some(peer) => query.query_map(params![self.account, after, before, max, peer], seq)?.collect(),
        }
    }

    pub(super) fn received(&self, seq: u64) -> Result<Option<UnixMs>> {
        self.db
            .prepare_cached("SELECT received FROM archive_message WHERE seq = ?1")?
            .query_row([int(seq)], |row| ms(row, 0))
            .optional()
    }

    pub(super) fn message(&self, seq: u64) -> Result<Option<ArchivedMessage>> {
        self.db
            .prepare_cached("SELECT received, stanza FROM archive_message WHERE seq = ?1")?
            .query_row([int(seq)], |row| {
                let stanza = Bytes::copy_from_slice(blob(row, 1)?);
                Ok(ArchivedMessage { id: ArchiveId(seq), received: ms(row, 0)?, stanza })
            })
            .optional()
    }

    fn page(
        &self,
        mut range: Range,
        peer: Option<u32>,
        full: Option<&Jid>,
        asked: &ArchivePage,
    ) -> Result<ArchivePageAnswer> {
        let is_backward = asked.start.is_backward();
        let (mut messages, mut room) = (Vec::new(), Room::new(asked.page));
        let mut examined = 0;
        let (more, reached) = 'page: loop {
            // One more than there is room for says whether more follow.
            let step = if full.is_some() { STEP } else { STEP.min(usize::from(asked.page.entries) + 1) };
            let entries = self.entries(range, peer, is_backward, step)?;
            let Some(last) = entries.last().copied() else { break (false, None) };
            examined += entries.len();
            for seq in entries {
                let Some(message) = self.message(seq)? else { continue };
                let is_wanted = asked.filter.start.is_none_or(|start| message.received >= start)
                    && asked.filter.end.is_none_or(|end| message.received <= end)
                    && full.is_none_or(|full| is_with(&message.stanza, full));
                if !is_wanted {
                    continue;
                }
                if !room.takes(message.stanza.len()) {
                    break 'page (true, None);
                }
                messages.push(message);
            }
            if is_backward {
                range.before = last;
            } else {
                range.after = last;
            }
            if examined >= EXAMINED_MAX {
                break (true, Some(ArchiveId(last)));
            }
        };
        if is_backward {
            messages.reverse();
        }
        Ok(ArchivePageAnswer::Page { messages, more, reached })
    }
}
