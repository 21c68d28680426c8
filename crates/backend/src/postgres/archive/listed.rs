//! Pages of an inbox: its conversations by index, the newest message first or last.

use super::super::column::{int, ms, number, short, uint, whole_jid};
use super::super::connection::Connection;
use super::super::error::{Error, Result};
use super::super::lookup;
use super::super::snapshot::Snapshot;
use super::read::{Archive, message};
use super::{inbox, rooms};
use crate::rows::inbox::{Conversations, Listed, Source, Span, arrange, folders};
use crate::rows::page::Room;
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::inbox::{InboxPage, ReadInbox};

impl Answers<ReadInbox, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ReadInbox) -> Result<Option<InboxPage>> {
        let Some(archive) = Archive::find(self.db, asked.domain, &asked.local)? else { return Ok(None) };
        let Some(domain) = lookup::domain_name(self.db, asked.domain)? else { return Ok(None) };
        let rooms = rooms::standing(self.db, asked.domain, &format!("{}@{domain}", asked.local))?;
        let rooms: Vec<_> =
            rooms.into_iter().filter_map(|room| room.listed(&asked.filter, &domain)).collect();
        let conversations = Found::of(&archive, &asked.filter)?;
        let mut page = InboxPage { totals: conversations.totals()?, ..InboxPage::default() };
        rooms.iter().for_each(|room| page.totals.add(&room.conversation));
        let listed = arrange(asked, rooms, &conversations)?;
        let mut room = Room::new(asked.page);
        // One more than there is room for says whether more follow.
        'page: for part in listed.chunks(usize::from(asked.page.entries) + 1) {
            for entry in entries(self.db, part)?.into_iter().flatten() {
                if !room.takes(entry.message.stanza.len()) {
                    page.more = true;
                    break 'page;
                }
                page.entries.push(entry);
            }
        }
        if asked.start.is_backward() {
            page.entries.reverse();
        }
        Ok(Some(page))
    }
}

/// Entries with their last messages, in their places; none where there is no such message any more.
fn entries(db: &Connection, part: &[Listed<i64>]) -> Result<Vec<Option<InboxEntry>>> {
    let mut entries: Vec<Option<InboxEntry>> = part.iter().map(|_| None).collect();
    let (mut peers, mut lasts, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for (place, listed) in part.iter().enumerate() {
        let conversation = listed.conversation;
        match &listed.source {
            Source::Peer(peer) => {
                peers.push(*peer);
                lasts.push(int(conversation.last.0));
                places.push(place);
            }
            Source::Room(id, jid) => {
                let message = rooms::message(db, *id, conversation.last)?;
                let entry = message.map(|message| InboxEntry {
                    peer: jid.clone(),
                    conversation,
                    message,
                    is_room: true,
                });
                entries.get_mut(place).into_iter().for_each(|at| at.clone_from(&entry));
            }
        }
    }
    for row in db.query(ENTRIES, &[&peers, &lasts])? {
        let (message, peer, nth) = (message(&row)?, whole_jid(&row, 3)?, uint(&row, 4)? as usize);
        let place = places.get(nth - 1).copied().unwrap_or(usize::MAX);
        if let (Some(at), Some(listed)) = (entries.get_mut(place), part.get(place)) {
            let conversation = listed.conversation;
            *at = Some(InboxEntry { peer, conversation, message, is_room: false });
        }
    }
    Ok(entries)
}

/// With whom conversations are, and their last messages, of those that have one.
const ENTRIES: &str = "SELECT m.seq, m.received, m.stanza, p.jid, r.place
    FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS r (peer, last, place)
    JOIN archive_message m ON m.seq = r.last JOIN archive_peer p ON p.id = r.peer ORDER BY r.place";

/// The conversations of an account that a filter lets through.
struct Found<'a> {
    archive: &'a Archive<'a>,
    filter: &'a InboxFilter,
    /// The messages that are not erased and of the time that is asked for: their numbers nearly always ascend with their times.
    span: Span,
    /// The one that is asked for, if one is; none where there is no such.
    with: Option<Option<i64>>,
    folders: Vec<i16>,
}

/// Conversations of some folders, by an index, as many of each as of all.
macro_rules! page {
    ($also:literal, $order:literal) => {
        concat!(
            "SELECT i.last, i.read, i.unread, i.marked, i.folder, i.moved, i.muted, i.peer, coalesce(m.received, 0)
             FROM unnest($2::smallint[]) AS f (folder) CROSS JOIN LATERAL (
                 SELECT * FROM inbox WHERE account = $1 AND shown = f.folder AND last > $3 AND last < $4 ",
            $also,
            " ORDER BY last ",
            $order,
            " LIMIT $5) AS i
             LEFT JOIN LATERAL (SELECT received FROM archive_message WHERE seq = i.last LIMIT 1) AS m ON true
             ORDER BY i.last ",
            $order,
            " LIMIT $5"
        )
    };
}

/// How many conversations of some folders there are, as far as they are counted.
const COUNT: &str = "SELECT count(*), 0::bigint FROM unnest($2::smallint[]) AS f (folder) CROSS JOIN LATERAL (
        SELECT 1 FROM inbox WHERE account = $1 AND shown = f.folder AND last > $3 AND last < $4 ORDER BY last LIMIT $5) AS i";

/// The same of those with something unread, and how much that is.
const COUNT_UNREAD: &str = "SELECT count(*), coalesce(sum(greatest(i.unread, 1)), 0)::bigint
    FROM unnest($2::smallint[]) AS f (folder) CROSS JOIN LATERAL (
        SELECT unread FROM inbox WHERE account = $1 AND shown = f.folder AND last > $3 AND last < $4 AND (unread > 0 OR marked > 0)
        ORDER BY last LIMIT $5) AS i";

impl<'a> Found<'a> {
    fn of(archive: &'a Archive<'a>, filter: &'a InboxFilter) -> Result<Found<'a>> {
        let of = |with| super::conversation(archive.db, archive.account, with);
        let with = filter.with.as_ref().map(|with| of(with.as_str())).transpose()?;
        let first = filter.start.map_or(Ok(0), |start| archive.first_since(start))?;
        let before = filter.end.map_or(Ok(u64::MAX), |end| archive.first_since(end.plus(1)))?;
        let span = Span { after: archive.erased.max(first.saturating_sub(1)), before };
        let folders = folders(filter).into_iter().map(short).collect();
        Ok(Found { archive, filter, span, with, folders })
    }

    /// The one that is asked for.
    fn one(&self, peer: Option<i64>, span: Span) -> Result<Option<Listed<i64>>> {
        let Some(peer) = peer else { return Ok(None) };
        let Archive { db, account, .. } = *self.archive;
        let conversation = inbox::row(db, account, peer)?;
        let last = conversation.last;
        if !self.filter.takes(&conversation) || !span.has(last.0) {
            return Ok(None);
        }
        let row = db.opt("SELECT received FROM archive_message WHERE seq = $1", &[&int(last.0)])?;
        let received = row.map(|row| ms(&row, 0)).transpose()?.unwrap_or_default();
        let place = InboxPlace { received, is_room: false, last };
        Ok(Some(Listed { place, conversation, source: Source::Peer(peer) }))
    }

    /// What there is in all, as far as it is counted.
    fn totals(&self) -> Result<InboxTotals> {
        let mut totals = InboxTotals::default();
        if let Some(with) = self.with {
            self.one(with, self.span)?.iter().for_each(|one| totals.add(&one.conversation));
            return Ok(totals);
        }
        let (with_unread, unread) = self.counted(COUNT_UNREAD)?;
        let all = if self.filter.is_unread { with_unread } else { self.counted(COUNT)?.0 };
        totals.add_many(all, with_unread, unread);
        Ok(totals)
    }

    fn counted(&self, sql: &str) -> Result<(u32, u64)> {
        let Archive { db, account, .. } = self.archive;
        let (after, before) = (int(self.span.after), int(self.span.before));
        let max = i64::from(CONVERSATIONS_COUNTED_MAX);
        let row = db.one(sql, &[account, &self.folders, &after, &before, &max])?;
        Ok((number(&row, 0)?, uint(&row, 1)?))
    }
}

impl Conversations<i64> for Found<'_> {
    type Error = Error;

    fn part(&self, span: Span, is_ascending: bool, max: usize) -> Result<Vec<Listed<i64>>> {
        let span = self.span.within(span);
        if let Some(with) = self.with {
            return Ok(self.one(with, span)?.into_iter().collect());
        }
        let sql = match (self.filter.is_unread, is_ascending) {
            (false, true) => page!("", "ASC"),
            (false, false) => page!("", "DESC"),
            (true, true) => page!("AND (unread > 0 OR marked > 0)", "ASC"),
            (true, false) => page!("AND (unread > 0 OR marked > 0)", "DESC"),
        };
        let Archive { db, account, .. } = self.archive;
        let (after, before, max) = (int(span.after), int(span.before), max as i64);
        let rows = db.query(sql, &[account, &self.folders, &after, &before, &max])?;
        let listed = |row: &tokio_postgres::Row| {
            let conversation = inbox::conversation(row, 0)?;
            let place = InboxPlace { received: ms(row, 8)?, is_room: false, last: conversation.last };
            Ok(Listed { place, conversation, source: Source::Peer(row.try_get(7)?) })
        };
        rows.iter().map(listed).collect()
    }

    fn first_since(&self, time: UnixMs) -> Result<u64> {
        self.archive.first_since(time)
    }
}
