//! Pages of an inbox.
//!
//! What is in the table is found by index, the newest message first or last. Conversations that have messages behind the fold are known from memory; what is
//! noted of them is looked up one by one, as far as a page goes.

use super::super::archive_tail::TailEntry;
use super::super::column::{corrupt, int};
use super::super::lookup;
use super::super::snapshot::Snapshot;
use super::read::Archive;
use super::{inbox, rooms};
use crate::rows::code::Code;
use crate::rows::inbox::{Conversations, Listed, Source, Span, arrange, folders};
use crate::rows::page::Room;
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::inbox::{InboxPage, ReadInbox};
use carillon_wire::jid::BareJid;
use rusqlite::{Connection, Error, Result, params};
use std::collections::HashMap;

impl Answers<ReadInbox, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ReadInbox) -> Result<Option<InboxPage>> {
        let Some(archive) = Archive::find(self.db, self.tail, asked.domain, &asked.local)? else {
            return Ok(None);
        };
        let Some(domain) = lookup::domain_name(self.db, asked.domain)? else { return Ok(None) };
        let rooms = rooms::standing(self.db, asked.domain, &format!("{}@{domain}", asked.local))?;
        let rooms: Vec<_> =
            rooms.into_iter().filter_map(|room| room.listed(&asked.filter, &domain)).collect();
        let conversations = Found::of(&archive, &asked.filter, !rooms.is_empty())?;
        let mut page = InboxPage { totals: conversations.totals()?, ..InboxPage::default() };
        rooms.iter().for_each(|room| page.totals.add(&room.conversation));
        let mut room = Room::new(asked.page);
        for Listed { conversation, source, .. } in arrange(asked, rooms, &conversations)? {
            let (message, peer, is_room) = match source {
                Source::Peer(peer) => (archive.message(conversation.last.0)?, address(self.db, peer)?, false),
                Source::Room(id, jid) => (rooms::message(self.db, id, conversation.last)?, jid, true),
            };
            let Some(message) = message else { continue };
            if !room.takes(message.stanza.len()) {
                page.more = true;
                break;
            }
            page.entries.push(InboxEntry { peer, conversation, message, is_room });
        }
        if asked.start.is_backward() {
            page.entries.reverse();
        }
        Ok(Some(page))
    }
}

/// The conversations of an account that a filter lets through.
struct Found<'a> {
    archive: &'a Archive<'a>,
    filter: &'a InboxFilter,
    /// What is not erased, and of the time that is asked for. Of when a message is says its number, nearly always.
    span: Span,
    /// The one that is asked for, if one is; none where there is no such.
    with: Option<Option<u32>>,
    /// Whether it matters when their newest messages were received. Where there is nothing else, their numbers say which is the newest.
    are_timed: bool,
    /// The messages behind the fold, by conversation, and the newest of each in their order.
    tail: HashMap<u32, Vec<TailEntry>>,
    newest: Vec<(u64, u32)>,
}

/// Conversations of a folder, by an index.
macro_rules! page {
    ($index:literal, $also:literal, $order:literal) => {
        concat!(
            "SELECT last, read, unread, marked, folder, moved, muted, peer FROM inbox INDEXED BY ",
            $index,
            " WHERE account = ?1 AND shown = ?2 AND last > ?3 AND last < ?4 ",
            $also,
            " ",
            $order
        )
    };
}

impl<'a> Found<'a> {
    fn of(archive: &'a Archive<'a>, filter: &'a InboxFilter, are_timed: bool) -> Result<Found<'a>> {
        let with = filter.with.as_ref().map(|with| archive.conversation(with.as_str())).transpose()?;
        let first = filter.start.map_or(Ok(0), |start| archive.first_since(start))?;
        let before = filter.end.map_or(Ok(u64::MAX), |end| archive.first_since(end.plus(1)))?;
        let span = Span { after: archive.erased.max(first.saturating_sub(1)), before };
        let mut tail: HashMap<u32, Vec<TailEntry>> = HashMap::new();
        for entry in archive.tail(archive.whole())? {
            if entry.kind() != EntryKind::Other {
                tail.entry(entry.peer).or_default().push(entry);
            }
        }
        let last = |(peer, entries): (&u32, &Vec<TailEntry>)| entries.last().map(|entry| (entry.seq, *peer));
        let mut newest: Vec<(u64, u32)> = tail.iter().filter_map(last).collect();
        newest.sort_unstable();
        Ok(Found { archive, filter, span, with, are_timed, tail, newest })
    }

    /// How a conversation stands, if it is asked for.
    fn standing(&self, peer: u32, span: Span) -> Result<Option<Conversation>> {
        let mut state = inbox::row(self.archive.db, self.archive.account, peer)?;
        for entry in self.tail.get(&peer).into_iter().flatten() {
            state.add(ArchiveId(entry.seq), entry.kind());
        }
        Ok(Some(state).filter(|state| self.filter.takes(state) && span.has(state.last.0)))
    }

    fn listed(&self, peer: u32, conversation: Conversation) -> Result<Listed<u32>> {
        let last = conversation.last;
        let received = match self.are_timed {
            true => self.archive.received(last.0)?.unwrap_or_default(),
            false => UnixMs(0),
        };
        let place = InboxPlace { received, is_room: false, last };
        Ok(Listed { place, conversation, source: Source::Peer(peer) })
    }

    /// Those with messages behind the fold.
    fn behind_fold(&self, span: Span, is_ascending: bool, max: usize) -> Result<Vec<Listed<u32>>> {
        let mut found = Vec::new();
        let mut newest = self.newest.iter();
        let next = || if is_ascending { newest.next() } else { newest.next_back() };
        for (last, peer) in std::iter::from_fn(next) {
            if found.len() == max {
                break;
            }
            if !span.has(*last) {
                continue;
            }
            if let Some(conversation) = self.standing(*peer, span)? {
                found.push(self.listed(*peer, conversation)?);
            }
        }
        Ok(found)
    }

    /// The others.
    fn folded(&self, span: Span, is_ascending: bool, max: usize) -> Result<Vec<Listed<u32>>> {
        let sql = match (self.filter.is_unread, is_ascending) {
            (false, true) => page!("inbox_shown", "", "ORDER BY last"),
            (false, false) => page!("inbox_shown", "", "ORDER BY last DESC"),
            (true, true) => page!("inbox_unread", "AND (unread > 0 OR marked > 0)", "ORDER BY last"),
            (true, false) => page!("inbox_unread", "AND (unread > 0 OR marked > 0)", "ORDER BY last DESC"),
        };
        let mut query = self.archive.db.prepare_cached(sql)?;
        let mut found = Vec::new();
        for folder in folders(self.filter) {
            let first = found.len();
            let (after, before) = (int(span.after), int(span.before));
            let mut rows = query.query(params![self.archive.account, folder.code(), after, before])?;
            while found.len() < first + max {
                let Some(row) = rows.next()? else { break };
                let peer = row.get(7)?;
                if !self.tail.contains_key(&peer) {
                    found.push(self.listed(peer, inbox::conversation(row)?)?);
                }
            }
        }
        Ok(found)
    }

    /// What there is in all, as far as it is counted.
    fn totals(&self) -> Result<InboxTotals> {
        let mut totals = InboxTotals::default();
        let max = CONVERSATIONS_COUNTED_MAX as usize;
        if let Some(with) = self.with {
            let found = with.map_or(Ok(None), |peer| self.standing(peer, self.span))?;
            found.iter().for_each(|conversation| totals.add(conversation));
            return Ok(totals);
        }
        for (_, peer) in self.newest.iter().rev().filter(|(last, _)| self.span.has(*last)).take(max) {
            self.standing(*peer, self.span)?.iter().for_each(|conversation| totals.add(conversation));
        }
        for folder in folders(self.filter) {
            let InboxTotals { conversations, unread_conversations, .. } = totals;
            let (with_unread, unread) = self.counted(
                "SELECT peer, max(unread, 1) FROM inbox INDEXED BY inbox_unread
                 WHERE account = ?1 AND shown = ?2 AND last > ?3 AND last < ?4 AND (unread > 0 OR marked > 0) LIMIT ?5",
                folder,
                CONVERSATIONS_COUNTED_MAX - unread_conversations,
            )?;
            let all = match self.filter.is_unread {
                true => with_unread,
                false => {
                    let sql = "SELECT peer, 0 FROM inbox INDEXED BY inbox_shown
                         WHERE account = ?1 AND shown = ?2 AND last > ?3 AND last < ?4 LIMIT ?5";
                    self.counted(sql, folder, CONVERSATIONS_COUNTED_MAX - conversations)?.0
                }
            };
            totals.add_many(all, with_unread, unread);
        }
        Ok(totals)
    }

    /// How many rows there are, `max` at most, and the sum of their second column.
    fn counted(&self, sql: &str, folder: Folder, max: u32) -> Result<(u32, u64)> {
        let mut query = self.archive.db.prepare_cached(sql)?;
        let (after, before) = (int(self.span.after), int(self.span.before));
        let mut rows = query.query(params![self.archive.account, folder.code(), after, before, max])?;
        let (mut count, mut sum) = (0, 0);
        while let Some(row) = rows.next()? {
            if !self.tail.contains_key(&row.get(0)?) {
                count += 1;
                sum += u64::from(row.get::<_, u32>(1)?);
            }
        }
        Ok((count, sum))
    }
}

impl Conversations<u32> for Found<'_> {
    type Error = Error;

    fn part(&self, span: Span, is_ascending: bool, max: usize) -> Result<Vec<Listed<u32>>> {
        let span = self.span.within(span);
        if let Some(with) = self.with {
            let Some(peer) = with else { return Ok(Vec::new()) };
            let found = self.standing(peer, span)?.map(|conversation| self.listed(peer, conversation));
            return found.into_iter().collect();
        }
        let mut found = match is_ascending {
            true => self.folded(span, true, max)?,
            false => self.behind_fold(span, false, max)?,
        };
        // Messages behind the fold are newer than all others.
        if found.len() < max {
            found.extend(match is_ascending {
                true => self.behind_fold(span, true, max)?,
                false => self.folded(span, false, max)?,
            });
        }
        found.sort_unstable_by_key(|listed| listed.conversation.last);
        if !is_ascending {
            found.reverse();
        }
        found.truncate(max);
        Ok(found)
    }

    fn first_since(&self, time: UnixMs) -> Result<u64> {
        self.archive.first_since(time)
    }
}

fn address(db: &Connection, peer: u32) -> Result<BareJid> {
    db.prepare_cached("SELECT jid FROM archive_peer WHERE id = ?1")?.query_row([peer], |row| {
        let jid: String = row.get(0)?;
        BareJid::new(&jid).map_err(|_| corrupt(0, "no address"))
    })
}
