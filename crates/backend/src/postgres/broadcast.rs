//! Broadcasts, and which accounts have acknowledged them.

use super::column::{Id, blob, code, int, ms, notification_id, opt_int, short, uint};
use super::connection::Connection;
use super::error::{Error, Result};
use super::lookup;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::rows::broadcast as row;
use crate::rows::page::Room;
use carillon_core::model::{
    self, AccountId, BroadcastEnd, BroadcastProgress, BroadcastReport, DomainId, NotificationId, UnixMs,
};
use carillon_core::ports::Part;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::broadcasts::{
    AccountEnd, Broadcast, BroadcastEndOf, Broadcasts, ChangeBroadcast, ChangeBroadcastAnswer,
    ChangedBroadcasts, CountAccounts, CreateBroadcast, CreateBroadcastAnswer, EndBroadcasts, EndedBroadcasts,
};
use tokio_postgres::Row;

/// What [`report`] reads.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT b.form, b.acknowledged,
                 (SELECT coalesce(sum(given), 0)::bigint FROM broadcast_given WHERE broadcast = b.seq)
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
        let rows = self.db.query(
            select!("WHERE b.domain = $1 AND b.id < $2 ORDER BY b.id DESC LIMIT $3"),
            &[&i64::from(asked.domain.0), &Id::from(asked.before), &i64::from(asked.limit)],
        )?;
        rows.iter().map(report).collect()
    }
}

impl Answers<ChangedBroadcasts, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ChangedBroadcasts) -> Result<Part<model::Broadcast>> {
        let rows = self.db.query(
            "SELECT form FROM broadcast WHERE revision > $1 AND (open OR NOT $2) ORDER BY revision LIMIT $3",
            &[&int(asked.after), &asked.only_open, &(i64::from(asked.page.entries) + 1)],
        )?;
        let (mut entries, mut room) = (Vec::new(), Room::new(asked.page));
        for row in &rows {
            // What a later version made, this one does not give.
            let Some(broadcast) = row::read(blob(row, 0)?) else { continue };
            if !room.takes(broadcast.payload.bytes()) {
                return Ok(Part { entries, more: true });
            }
            entries.push(broadcast);
        }
        Ok(Part { more: !entries.is_empty() && rows.len() > usize::from(asked.page.entries), entries })
    }
}

impl Answers<EndedBroadcasts, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &EndedBroadcasts) -> Result<Vec<(NotificationId, AccountId)>> {
        let ids: Vec<Id> = asked.broadcasts.iter().map(|id| Id::from(*id)).collect();
        let accounts: Vec<i64> = asked.accounts.iter().map(|account| int(account.0)).collect();
        let rows = self.db.query(
            "SELECT b.id, e.account FROM broadcast b JOIN broadcast_end e ON e.broadcast = b.seq
             WHERE b.id = ANY ($1::uuid[]) AND e.account = ANY ($2::bigint[])",
            &[&ids, &accounts],
        )?;
        rows.iter().map(|row| Ok((notification_id(row, 0)?, AccountId(uint(row, 1)?)))).collect()
    }
}

impl Answers<BroadcastEndOf, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &BroadcastEndOf) -> Result<Option<BroadcastEnd>> {
        let row = self.db.opt(
            "SELECT e.at, e.by FROM broadcast b JOIN broadcast_end e ON e.broadcast = b.seq
             WHERE b.id = $1 AND e.account = $2",
            &[&Id::from(asked.id), &int(asked.account.0)],
        )?;
        row.map(|row| Ok(BroadcastEnd { at: ms(&row, 0)?, by: code(&row, 1)? })).transpose()
    }
}

impl Answers<CountAccounts, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &CountAccounts) -> Result<u64> {
        let sql = "SELECT count(*) FROM account WHERE domain = $1";
        uint(&self.db.one(sql, &[&i64::from(asked.domain.0)])?, 0)
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
        let domain = i64::from(broadcast.domain.0);
        let row = self.db.one(
            "SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM broadcast WHERE domain = $1 AND open",
            &[&domain],
        )?;
        if uint(&row, 0)? >= u64::from(bounds.open) {
            return Ok(CreateBroadcastAnswer::TooMany);
        }
        if uint(&row, 1)? + broadcast.bytes() as u64 > bounds.bytes {
            return Ok(CreateBroadcastAnswer::Full);
        }
        let created = model::Broadcast { revision: next_revision(self)?, ..(**broadcast).clone() };
        self.run(
            "INSERT INTO broadcast (id, domain, open, expires, revision, bytes, form) VALUES ($1, $2, true, $3, $4, $5, $6)",
            &[
                &Id::from(created.id),
                &domain,
                &int(created.expires.0),
                &int(created.revision),
                &row::bytes(&created),
                &row::form(&created),
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
        let mut rest = &asked.ends[..];
        while let Some(first) = rest.first() {
            // Those of one broadcast come together.
            let count = rest.iter().take_while(|end| end.id == first.id).count().min(TOGETHER);
            let (ends, others) = rest.split_at(count);
            end_all(self, first.id, ends)?;
            rest = others;
        }
        for given in &asked.given {
            self.run(
                "INSERT INTO broadcast_given (broadcast, counter, given) SELECT seq, $2, $3 FROM broadcast WHERE id = $1
                 ON CONFLICT (broadcast, counter) DO UPDATE SET given = greatest(broadcast_given.given, excluded.given)",
                &[&Id::from(given.id), &row::counter(given.counter), &int(given.given)],
            )?;
        }
        Ok(())
    }
}

/// Ends of one broadcast.
fn end_all(write: &Transaction<'_>, id: NotificationId, ends: &[AccountEnd]) -> Result<()> {
    let accounts: Vec<i64> = ends.iter().map(|end| int(end.account.0)).collect();
    let at: Vec<i64> = ends.iter().map(|end| int(end.at.0)).collect();
    let by: Vec<i16> = ends.iter().map(|end| short(end.by)).collect();
    write.run(
        "WITH made AS (
             INSERT INTO broadcast_end (broadcast, account, at, by)
             SELECT b.seq, a.id, e.at, e.by
             FROM broadcast b, unnest($2::bigint[], $3::bigint[], $4::smallint[]) AS e (account, at, by)
             JOIN account a ON a.id = e.account
             WHERE b.id = $1 AND b.open
             ON CONFLICT DO NOTHING RETURNING 1)
         UPDATE broadcast SET acknowledged = acknowledged + (SELECT count(*) FROM made)
         WHERE id = $1 AND EXISTS (SELECT 1 FROM made)",
        &[&Id::from(id), &accounts, &at, &by],
    )?;
    Ok(())
}

/// Ends those whose time is over, removes what is kept of the accounts of those that have ended, and forgets those that ended before `forget`: at
/// most `max` of each.
pub(super) fn sweep(write: &Transaction<'_>, now: UnixMs, forget: UnixMs, max: u32) -> Result<()> {
    let most = i64::from(max);
    let over = write.db.query(
        "SELECT seq, form FROM broadcast WHERE open AND expires <= $1 ORDER BY expires LIMIT $2",
        &[&int(now.0), &most],
    )?;
    for over in &over {
        match row::read(blob(over, 1)?) {
            Some(broadcast) => put(write, &row::finished(broadcast, next_revision(write)?))?,
            // A later version made it: it is over nevertheless.
            None => {
                let seq: i64 = over.try_get(0)?;
                write.run("UPDATE broadcast SET open = false, ended = expires WHERE seq = $1", &[&seq])?;
            }
        }
    }
    if let Some(seq) = with_ends(write.db)? {
        let gone = write.run(
            "DELETE FROM broadcast_end WHERE broadcast = $1
             AND account IN (SELECT account FROM broadcast_end WHERE broadcast = $1 LIMIT $2)",
            &[&seq, &most],
        )?;
        if gone < u64::from(max) {
            write.run("UPDATE broadcast SET has_ends = false WHERE seq = $1", &[&seq])?;
        }
    }
    if has_old(write.db, forget)? {
        write.run(
            "WITH old AS (DELETE FROM broadcast WHERE seq IN
                 (SELECT seq FROM broadcast WHERE ended < $1 AND NOT has_ends ORDER BY ended LIMIT $2) RETURNING seq)
             DELETE FROM broadcast_given WHERE broadcast IN (SELECT seq FROM old)",
            &[&int(forget.0), &most],
        )?;
    }
    Ok(())
}

/// Whether a sweep leaves anything to the next one.
pub(super) fn has_more(db: &Connection, now: UnixMs, forget: UnixMs) -> Result<bool> {
    let row =
        db.one("SELECT EXISTS (SELECT 1 FROM broadcast WHERE open AND expires <= $1)", &[&int(now.0)])?;
    Ok(row.try_get(0)? || with_ends(db)?.is_some() || has_old(db, forget)?)
}

fn has_old(db: &Connection, forget: UnixMs) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM broadcast WHERE ended < $1 AND NOT has_ends)";
    Ok(db.one(sql, &[&int(forget.0)])?.try_get(0)?)
}

/// One that has ended, and of whose accounts something is kept.
fn with_ends(db: &Connection) -> Result<Option<i64>> {
    let row = db.opt("SELECT seq FROM broadcast WHERE has_ends AND NOT open LIMIT 1", &[])?;
    row.map(|row| Ok(row.try_get(0)?)).transpose()
}

/// Keeps what a broadcast was changed to.
fn put(write: &Transaction<'_>, changed: &model::Broadcast) -> Result<()> {
    write.run(
        "UPDATE broadcast SET open = $2, ended = $3, revision = $4, form = $5 WHERE id = $1",
        &[
            &Id::from(changed.id),
            &changed.is_open(),
            &opt_int(changed.ended),
            &int(changed.revision),
            &row::form(changed),
        ],
    )?;
    Ok(())
}

fn next_revision(write: &Transaction<'_>) -> Result<u64> {
    uint(&write.returning_one("UPDATE broadcast_revision SET newest = newest + 1 RETURNING newest", &[])?, 0)
}

fn find(db: &Connection, domain: DomainId, id: NotificationId) -> Result<Option<BroadcastReport>> {
    let row = db.opt(select!("WHERE b.id = $2 AND b.domain = $1"), &[&i64::from(domain.0), &Id::from(id)])?;
    row.as_ref().map(report).transpose()
}

fn report(row: &Row) -> Result<BroadcastReport> {
    let progress = BroadcastProgress { acknowledged: uint(row, 1)?, given: uint(row, 2)? };
    Ok(BroadcastReport { broadcast: broadcast(row, 0)?, progress })
}

fn broadcast(row: &Row, column: usize) -> Result<model::Broadcast> {
    row::read(blob(row, column)?).ok_or(Error::Corrupt("no broadcast that this version reads"))
}

/// Ends that are written by one statement.
const TOGETHER: usize = 500;
