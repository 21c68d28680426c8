//! Pages of an archive.

use super::super::column::{blob, int, ms, uint};
use super::super::connection::Connection;
use super::super::error::{Error, Result};
use super::super::lookup;
use super::super::snapshot::Snapshot;
use crate::rows::page::Room;
use bytes::Bytes;
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::archive::{
    ArchivePage, ArchivePageAnswer, ArchivedMessages, EXAMINED_MAX, ReadArchiveEnds,
};
use carillon_wire::jid::Jid;
use tokio_postgres::Row;

/// Messages that are read at once at most.
const STEP: usize = 256;

impl Answers<ArchivePage, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ArchivePage) -> Result<ArchivePageAnswer> {
        let Some(archive) = Archive::find(self.db, asked.domain, &asked.local)? else {
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
        let peer = match &filter.with {
            None => None,
            Some(with) => match super::conversation(self.db, archive.account, with.bare_str())? {
                None => return Ok(whole_page(Vec::new())),
                peer => peer,
            },
        };
        let full = filter.with.as_ref().filter(|with| !with.is_bare());
        archive.page(range, peer, full, asked)
    }
}

impl Answers<ArchivedMessages, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ArchivedMessages) -> Result<ArchivePageAnswer> {
        let Some(archive) = Archive::find(self.db, asked.domain, &asked.local)? else {
            return Ok(ArchivePageAnswer::NoAccount);
        };
        let mut ids: Vec<i64> = asked.ids.iter().map(|id| int(id.0)).collect();
        ids.sort_unstable();
        ids.dedup();
        let rows = self.db.query(
            "SELECT e.seq, m.received, m.stanza FROM archive_entry e JOIN archive_message m ON m.seq = e.seq
             WHERE e.account = $1 AND e.seq = ANY ($2::bigint[]) AND e.seq > $3 ORDER BY e.seq",
            &[&archive.account, &ids, &int(archive.erased)],
        )?;
        if rows.len() < ids.len() {
            return Ok(ArchivePageAnswer::NotFound);
        }
        Ok(whole_page(rows.iter().map(message).collect::<Result<_>>()?))
    }
}

impl Answers<ReadArchiveEnds, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ReadArchiveEnds) -> Result<Option<ArchiveEnds>> {
        let Some(archive) = Archive::find(self.db, asked.domain, &asked.local)? else { return Ok(None) };
        let end = |sql| -> Result<Option<(ArchiveId, UnixMs)>> {
            let row = self.db.opt(sql, &[&archive.account, &int(archive.erased)])?;
            row.map(|row| Ok((ArchiveId(uint(&row, 0)?), ms(&row, 1)?))).transpose()
        };
        Ok(end(FIRST)?.zip(end(LAST)?).map(|(first, last)| ArchiveEnds { first, last }))
    }
}

const FIRST: &str = "SELECT e.seq, m.received FROM archive_entry e JOIN archive_message m ON m.seq = e.seq
    WHERE e.account = $1 AND e.seq > $2 ORDER BY e.seq LIMIT 1";
const LAST: &str = "SELECT e.seq, m.received FROM archive_entry e JOIN archive_message m ON m.seq = e.seq
    WHERE e.account = $1 AND e.seq > $2 ORDER BY e.seq DESC LIMIT 1";

/// Nothing follows these.
fn whole_page(messages: Vec<ArchivedMessage>) -> ArchivePageAnswer {
    ArchivePageAnswer::Page { messages, more: false, reached: None }
}

/// The message whose number, time and stanza are the first columns.
pub(super) fn message(row: &Row) -> Result<ArchivedMessage> {
    let stanza = Bytes::copy_from_slice(blob(row, 2)?);
    Ok(ArchivedMessage { id: ArchiveId(uint(row, 0)?), received: ms(row, 1)?, stanza })
}

/// Messages between two, without these.
#[derive(Clone, Copy)]
struct Range {
    after: u64,
    before: u64,
}

/// An account's archive, as of a snapshot.
pub(super) struct Archive<'a> {
    pub(super) db: &'a Connection,
    pub(super) account: i64,
    /// Up to here it was erased.
    pub(super) erased: u64,
}

/// Entries of an archive in a range of numbers, of one conversation or all.
macro_rules! page {
    ($of:literal, $order:literal) => {
        concat!(
            "SELECT e.seq, m.received, m.stanza FROM archive_entry e JOIN archive_message m ON m.seq = e.seq
             WHERE e.account = $1 AND e.seq > $2 AND e.seq < $3 ",
            $of,
            " ORDER BY e.seq ",
            $order,
            " LIMIT $4"
        )
    };
}

/// The first number from which on an archive's messages were received at `$2` or later, behind those that were erased (`$3`); the one behind its
/// newest if none was. Times ascend with numbers, nearly always, so that each step halves what is left.
const FIRST_SINCE: &str = "WITH RECURSIVE search (low, high) AS (
        SELECT $3::bigint + 1, greatest($3::bigint, (SELECT max(seq) FROM archive_entry WHERE account = $1)) + 1
        UNION ALL
        SELECT CASE WHEN f.received < $2 THEN f.seq + 1 ELSE s.low END,
            CASE WHEN f.received < $2 THEN s.high ELSE s.low + (s.high - s.low) / 2 END
        FROM search s LEFT JOIN LATERAL (
            SELECT e.seq, m.received FROM archive_entry e JOIN archive_message m ON m.seq = e.seq
            WHERE e.account = $1 AND e.seq >= s.low + (s.high - s.low) / 2 ORDER BY e.seq LIMIT 1) f ON true
        WHERE s.low < s.high)
    SELECT low FROM search WHERE low >= high";

impl<'a> Archive<'a> {
    pub(super) fn find(db: &'a Connection, domain: DomainId, local: &str) -> Result<Option<Archive<'a>>> {
        let Some(account) = lookup::account(db, domain, local)? else { return Ok(None) };
        let account = int(account.0);
        Ok(Some(Archive { db, account, erased: super::erased(db, account)? }))
    }

    /// Whether a message is in the archive.
    fn has(&self, seq: u64) -> Result<bool> {
        let sql = "SELECT 1 FROM archive_entry WHERE account = $1 AND seq = $2";
        Ok(seq > self.erased && self.db.opt(sql, &[&self.account, &int(seq)])?.is_some())
    }

    /// The range of messages that can be of the time that is asked for.
    fn range_in_time(&self, filter: &ArchiveFilter) -> Result<Range> {
        let mut range = Range { after: self.erased, before: u64::MAX };
        if let Some(start) = filter.start {
            range.after = range.after.max(self.first_since(start)?.saturating_sub(1));
        }
        if let Some(end) = filter.end {
            range.before = self.first_since(end.plus(1))?;
        }
        Ok(range)
    }

    pub(super) fn first_since(&self, time: UnixMs) -> Result<u64> {
        uint(&self.db.one(FIRST_SINCE, &[&self.account, &int(time.0), &int(self.erased)])?, 0)
    }

    fn entries(&self, range: Range, peer: Option<i64>, is_backward: bool, max: usize) -> Result<Vec<Row>> {
        let (account, after, before, max) = (self.account, int(range.after), int(range.before), max as i64);
        match (peer, is_backward) {
            (None, false) => self.db.query(page!("", "ASC"), &[&account, &after, &before, &max]),
            (None, true) => self.db.query(page!("", "DESC"), &[&account, &after, &before, &max]),
            (Some(peer), false) => {
                self.db.query(page!("AND e.peer = $5", "ASC"), &[&account, &after, &before, &max, &peer])
            }
            (Some(peer), true) => {
                self.db.query(page!("AND e.peer = $5", "DESC"), &[&account, &after, &before, &max, &peer])
            }
        }
    }

    fn page(
        &self,
        mut range: Range,
        peer: Option<i64>,
        full: Option<&Jid>,
        asked: &ArchivePage,
    ) -> Result<ArchivePageAnswer> {
        let is_backward = asked.start.is_backward();
        let (mut messages, mut room) = (Vec::new(), Room::new(asked.page));
        let mut examined = 0;
        let (more, reached) = 'page: loop {
            // One more than there is room for says whether more follow.
            let step = if full.is_some() { STEP } else { STEP.min(usize::from(asked.page.entries) + 1) };
            let rows = self.entries(range, peer, is_backward, step)?;
            let Some(last) = rows.last().map(|row| uint(row, 0)).transpose()? else { break (false, None) };
            examined += rows.len();
            for row in &rows {
                let (received, stanza) = (ms(row, 1)?, blob(row, 2)?);
                let is_wanted = asked.filter.start.is_none_or(|start| received >= start)
                    && asked.filter.end.is_none_or(|end| received <= end)
                    && full.is_none_or(|full| is_with(stanza, full));
                if !is_wanted {
                    continue;
                }
                if !room.takes(stanza.len()) {
                    break 'page (true, None);
                }
                messages.push(message(row)?);
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
