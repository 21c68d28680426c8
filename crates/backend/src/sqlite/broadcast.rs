//! Broadcasts, and which accounts have acknowledged them.

use super::column::{blob, code, corrupt, id_blob, int, ms, opt_int, uint};
use super::lookup;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::rows::broadcast as row;
use crate::rows::code::Code;
use crate::rows::page::Room;
use carillon_core::model::{
    self, AccountId, BroadcastEnd, BroadcastProgress, BroadcastReport, DomainId, NotificationId, UnixMs,
};
use carillon_core::ports::Part;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::broadcasts::{
    Broadcast, BroadcastEndOf, Broadcasts, ChangeBroadcast, ChangeBroadcastAnswer, ChangedBroadcasts,
    CountAccounts, CreateBroadcast, CreateBroadcastAnswer, EndBroadcasts, EndedBroadcasts,
};
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params};

/// What [`report`] reads.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT b.form, b.acknowledged, (SELECT coalesce(sum(given), 0) FROM broadcast_given WHERE broadcast = b.seq)
             FROM broadcast b ",
            $rest
        )
    };
}

impl Answers<Broadcast, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Broadcast) -> Result<Option<Box<BroadcastReport>>> {
        Ok(find(self.db, asked.domain, asked.id)?.map(Box::new))
    }
}

impl Answers<Broadcasts, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Broadcasts) -> Result<Vec<BroadcastReport>> {
        self.db
            .prepare_cached(select!("WHERE b.domain = ?1 AND b.id < ?2 ORDER BY b.id DESC LIMIT ?3"))?
            .query_map(params![asked.domain.0, id_blob(asked.before), asked.limit], report)?
            .collect()
    }
}

impl Answers<ChangedBroadcasts, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ChangedBroadcasts) -> Result<Part<model::Broadcast>> {
        let mut query = self.db.prepare_cached(
            "SELECT form FROM broadcast WHERE revision > ?1 AND (open OR NOT ?2) ORDER BY revision",
        )?;
        let mut rows = query.query(params![int(asked.after), asked.only_open])?;
        let (mut entries, mut room) = (Vec::new(), Room::new(asked.page));
        while let Some(row) = rows.next()? {
            // What a later version made, this one does not give.
            let Some(broadcast) = row::read(blob(row, 0)?) else { continue };
            if !room.takes(broadcast.payload.bytes()) {
                return Ok(Part { entries, more: true });
            }
            entries.push(broadcast);
        }
        Ok(Part { entries, more: false })
    }
}

impl Answers<EndedBroadcasts, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &EndedBroadcasts) -> Result<Vec<(NotificationId, AccountId)>> {
        let mut ended = Vec::new();
        let mut query =
            self.db.prepare_cached("SELECT 1 FROM broadcast_end WHERE broadcast = ?1 AND account = ?2")?;
        for id in &asked.broadcasts {
            let Some(seq) = seq(self.db, *id)? else { continue };
            for account in &asked.accounts {
                if query.exists(params![seq, int(account.0)])? {
                    ended.push((*id, *account));
                }
            }
        }
        Ok(ended)
    }
}

impl Answers<BroadcastEndOf, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &BroadcastEndOf) -> Result<Option<BroadcastEnd>> {
        let Some(seq) = seq(self.db, asked.id)? else { return Ok(None) };
        self.db
            .prepare_cached("SELECT at, by FROM broadcast_end WHERE broadcast = ?1 AND account = ?2")?
            .query_row(params![seq, int(asked.account.0)], |row| {
                Ok(BroadcastEnd { at: ms(row, 0)?, by: code(row, 1)? })
            })
            .optional()
    }
}

impl Answers<CountAccounts, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &CountAccounts) -> Result<u64> {
        self.db
            .prepare_cached("SELECT count(*) FROM account WHERE domain = ?1")?
            .query_row([asked.domain.0], |row| uint(row, 0))
    }
}

impl Answers<CreateBroadcast, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &CreateBroadcast) -> Result<CreateBroadcastAnswer> {
        let CreateBroadcast { broadcast, bounds } = asked;
        if lookup::domain_name(self.db, broadcast.domain)?.is_none() {
            return Ok(CreateBroadcastAnswer::NoDomain);
        }
        if let Some(known) = find(self.db, broadcast.domain, broadcast.id)? {
            return Ok(CreateBroadcastAnswer::Created(Box::new(known.broadcast)));
        }
        let (open, bytes) = self
            .db
            .prepare_cached(
                "SELECT count(*), coalesce(sum(bytes), 0) FROM broadcast WHERE domain = ?1 AND open",
            )?
            .query_row([broadcast.domain.0], |row| Ok((uint(row, 0)?, uint(row, 1)?)))?;
        if open >= u64::from(bounds.open) {
            return Ok(CreateBroadcastAnswer::TooMany);
        }
        if bytes + broadcast.bytes() as u64 > bounds.bytes {
            return Ok(CreateBroadcastAnswer::Full);
        }
        let created = model::Broadcast { revision: next_revision(self)?, ..(**broadcast).clone() };
        self.run(
            "INSERT INTO broadcast (id, domain, open, expires, revision, bytes, form) VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6)",
            params![
                id_blob(created.id),
                created.domain.0,
                int(created.expires.0),
                int(created.revision),
                row::bytes(&created),
                row::form(&created)
            ],
        )?;
        Ok(CreateBroadcastAnswer::Created(Box::new(created)))
    }
}

impl Answers<ChangeBroadcast, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ChangeBroadcast) -> Result<ChangeBroadcastAnswer> {
        let Some(known) = find(self.db, asked.domain, asked.id)? else {
            return Ok(ChangeBroadcastAnswer::Missing);
        };
        if !known.broadcast.is_open() && !asked.change.is_done(&known.broadcast) {
            return Ok(ChangeBroadcastAnswer::Ended(Box::new(known)));
        }
        let changed = match asked.change.apply(&known.broadcast, asked.now) {
            Some(changed) if known.broadcast.is_open() => {
                let changed = model::Broadcast { revision: next_revision(self)?, ..changed };
                put(self, &changed)?;
                BroadcastReport { broadcast: changed, ..known }
            }
            _ => known,
        };
        Ok(ChangeBroadcastAnswer::Changed(Box::new(changed)))
    }
}

impl Answers<EndBroadcasts, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &EndBroadcasts) -> Result<()> {
        let mut last = None;
        for end in &asked.ends {
            // Those of one broadcast come together.
            let seq = match last {
                Some((id, seq)) if id == end.id => seq,
                _ => open_seq(self.db, end.id)?,
            };
            last = Some((end.id, seq));
            let Some(seq) = seq else { continue };
            let new = self.run(
                "INSERT OR IGNORE INTO broadcast_end (broadcast, account, at, by)
                 SELECT ?1, id, ?3, ?4 FROM account WHERE id = ?2",
                params![seq, int(end.account.0), int(end.at.0), end.by.code()],
            )?;
            if new > 0 {
                self.run("UPDATE broadcast SET acknowledged = acknowledged + 1 WHERE seq = ?1", [seq])?;
            }
        }
        for given in &asked.given {
            self.run(
                "INSERT INTO broadcast_given (broadcast, counter, given) SELECT seq, ?2, ?3 FROM broadcast WHERE id = ?1
                 ON CONFLICT (broadcast, counter) DO UPDATE SET given = max(given, excluded.given)",
                params![id_blob(given.id), row::counter(given.counter), int(given.given)],
            )?;
        }
        Ok(())
    }
}

/// Ends those whose time is over, removes what is kept of the accounts of those that have ended, and forgets those that ended before `forget`: at
/// most `max` of each.
pub(super) fn sweep(write: &mut Transaction<'_>, now: UnixMs, forget: UnixMs, max: u32) -> Result<()> {
    let over = write
        .db
        .prepare_cached(
            "SELECT seq, form FROM broadcast WHERE open AND expires <= ?1 ORDER BY expires LIMIT ?2",
        )?
        .query_map(params![int(now.0), max], |row| Ok((row.get::<_, i64>(0)?, row::read(blob(row, 1)?))))?
        .collect::<Result<Vec<_>>>()?;
    for (seq, broadcast) in over {
        match broadcast {
            Some(broadcast) => put(write, &row::finished(broadcast, next_revision(write)?))?,
            // A later version made it: it is over nevertheless.
            None => {
                write.run("UPDATE broadcast SET open = 0, ended = expires WHERE seq = ?1", [seq])?;
            }
        }
    }
    if let Some(seq) = with_ends(write.db)? {
        let gone = write.run(
            "DELETE FROM broadcast_end WHERE broadcast = ?1
             AND account IN (SELECT account FROM broadcast_end WHERE broadcast = ?1 LIMIT ?2)",
            params![seq, max],
        )?;
        if gone < max as usize {
            write.run("UPDATE broadcast SET has_ends = 0 WHERE seq = ?1", [seq])?;
        }
    }
    if has_old(write.db, forget)? {
        const OLD: &str =
            "SELECT seq FROM broadcast WHERE ended < ?1 AND NOT has_ends ORDER BY ended LIMIT ?2";
        let old: Vec<i64> = write
            .db
            .prepare_cached(OLD)?
            .query_map(params![int(forget.0), max], |row| row.get(0))?
            .collect::<Result<_>>()?;
        for seq in old {
            write.run("DELETE FROM broadcast_given WHERE broadcast = ?1", [seq])?;
            write.run("DELETE FROM broadcast WHERE seq = ?1", [seq])?;
        }
    }
    Ok(())
}

/// Whether a sweep leaves anything to the next one.
pub(super) fn has_more(db: &Connection, now: UnixMs, forget: UnixMs) -> Result<bool> {
    let over: bool = db
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM broadcast WHERE open AND expires <= ?1)")?
        .query_row([int(now.0)], |row| row.get(0))?;
    Ok(over || with_ends(db)?.is_some() || has_old(db, forget)?)
}

fn has_old(db: &Connection, forget: UnixMs) -> Result<bool> {
    db.prepare_cached("SELECT EXISTS (SELECT 1 FROM broadcast WHERE ended < ?1 AND NOT has_ends)")?
        .query_row([int(forget.0)], |row| row.get(0))
}

/// One that has ended, and of whose accounts something is kept.
fn with_ends(db: &Connection) -> Result<Option<i64>> {
    db.prepare_cached("SELECT seq FROM broadcast WHERE has_ends AND NOT open LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()
}

/// Keeps what a broadcast was changed to.
fn put(write: &Transaction<'_>, changed: &model::Broadcast) -> Result<()> {
    write.run(
        "UPDATE broadcast SET open = ?2, ended = ?3, revision = ?4, form = ?5 WHERE id = ?1",
        params![
            id_blob(changed.id),
            changed.is_open(),
            opt_int(changed.ended),
            int(changed.revision),
            row::form(changed)
        ],
    )?;
    Ok(())
}

fn next_revision(write: &Transaction<'_>) -> Result<u64> {
    write
        .db
        .prepare_cached(
            "UPDATE node SET broadcast_revision = broadcast_revision + 1 RETURNING broadcast_revision",
        )?
        .query_row([], |row| uint(row, 0))
}

fn find(db: &Connection, domain: DomainId, id: NotificationId) -> Result<Option<BroadcastReport>> {
    db.prepare_cached(select!("WHERE b.id = ?2 AND b.domain = ?1"))?
        .query_row(params![domain.0, id_blob(id)], report)
        .optional()
}

fn seq(db: &Connection, id: NotificationId) -> Result<Option<i64>> {
    db.prepare_cached("SELECT seq FROM broadcast WHERE id = ?1")?
        .query_row([id_blob(id)], |row| row.get(0))
        .optional()
}

fn open_seq(db: &Connection, id: NotificationId) -> Result<Option<i64>> {
    db.prepare_cached("SELECT seq FROM broadcast WHERE id = ?1 AND open")?
        .query_row([id_blob(id)], |row| row.get(0))
        .optional()
}

fn report(row: &Row<'_>) -> Result<BroadcastReport> {
    let progress = BroadcastProgress { acknowledged: uint(row, 1)?, given: uint(row, 2)? };
    Ok(BroadcastReport { broadcast: broadcast(row, 0)?, progress })
}

fn broadcast(row: &Row<'_>, column: usize) -> Result<model::Broadcast> {
    row::read(blob(row, column)?).ok_or_else(|| corrupt(column, "no broadcast that this version reads"))
}
