//! Registrations for push, and the pushes that wait.

use super::column::{
    Id, blob, code, int, jid, ms, notification_id, number, opt_ms, opt_text, short, text, uint,
};
use super::connection::Connection;
use super::error::{Error, Result};
use super::notification;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::rows::page::Room;
use crate::rows::push::{Channel, Tells, listened};
use bytes::Bytes;
use carillon_core::model::{
    AccountId, ArchiveId, DomainId, NotificationId, Push, PushFailure, PushHealth, PushId, PushOutcome,
    PushRegistration, PushStep, PushSubject, PushWakes, RegistrationId, RoomAffiliation, RoomId, UnixMs,
    Wake, room_topic,
};
use carillon_core::ports::Part;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::push::{
    ClaimPushes, CommitPushes, DisablePush, EnablePush, EnablePushAnswer, FindRegistration,
    ListRegistrations, NextPush, PushCommit, PushSteps,
};
use carillon_core::ports::store::rooms::RoomWake;
use carillon_wire::jid::BareJid;
use std::sync::Arc;
use tokio_postgres::Row;

/// What [`registration`] reads.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT r.id, a.domain, a.local, d.name, r.name, r.kind, r.url, r.public_key, r.secret, r.shown, r.created, r.pushed,
                 r.failures, r.failed, r.error, r.wakes,
                 (SELECT string_agg(about, E'\\n') FROM push_room WHERE registration = r.id)
             FROM push_registration r JOIN account a ON a.id = r.account JOIN domain d ON d.id = a.domain ",
            $rest
        )
    };
}

impl Answers<FindRegistration, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &FindRegistration) -> Result<Option<Box<PushRegistration>>> {
        find(self.db, asked.id).map(|found| found.map(Box::new))
    }
}

fn find(db: &Connection, id: RegistrationId) -> Result<Option<PushRegistration>> {
    db.opt(select!("WHERE r.id = $1"), &[&int(id.0)])?.map(|row| registration(&row)).transpose()
}

impl Answers<ListRegistrations, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ListRegistrations) -> Result<Part<PushRegistration>> {
        let domain = asked.domain.map(|domain| i64::from(domain.0));
        let rows = self.db.query(
            select!(
                "WHERE r.id > $3 AND ($1::bigint IS NULL OR a.domain = $1) AND ($2::text IS NULL OR a.local = $2)
                 ORDER BY r.id LIMIT $4"
            ),
            &[&domain, &asked.account, &int(asked.after.0), &(i64::from(asked.max) + 1)],
        )?;
        let mut entries: Vec<_> = rows.iter().map(registration).collect::<Result<_>>()?;
        let more = entries.len() > asked.max.into();
        entries.truncate(asked.max.into());
        Ok(Part { entries, more })
    }
}

impl Answers<NextPush, Error> for Snapshot<'_> {
    fn answer(&mut self, _: &NextPush) -> Result<Option<UnixMs>> {
        opt_ms(&self.db.one("SELECT min(due) FROM push", &[])?, 0)
    }
}

impl Answers<PushSteps, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &PushSteps) -> Result<Vec<PushStep>> {
        let rows = self.db.query(
            "SELECT registration, name, kind, requests, sent, answered, state, reason FROM push_step
             WHERE notification = $1 ORDER BY registration",
            &[&Id::from(asked.id)],
        )?;
        let step = |row: &Row| {
            Ok(PushStep {
                registration: RegistrationId(uint(row, 0)?),
                node: text(row, 1)?,
                kind: code(row, 2)?,
                requests: number(row, 3)?,
                sent: ms(row, 4)?,
                answered: ms(row, 5)?,
                state: code(row, 6)?,
                reason: opt_text(row, 7)?,
            })
        };
        rows.iter().map(step).collect()
    }
}

impl Answers<EnablePush, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &EnablePush) -> Result<EnablePushAnswer> {
        let EnablePush { domain, local, node, channel, shown, wakes, now, per_account_max, .. } = asked;
        let account = self.db.opt(
            "SELECT a.id, a.registrations, r.id FROM account a LEFT JOIN push_registration r ON r.account = a.id AND r.name = $3
             WHERE a.domain = $1 AND a.local = $2",
            &[&i64::from(domain.0), local, node],
        )?;
        let Some(row) = account else { return Ok(EnablePushAnswer::NoAccount) };
        let (account, count, same): (i64, u64, Option<i64>) =
            (row.try_get(0)?, uint(&row, 1)?, row.try_get(2)?);
        if same.is_none() && count >= u64::from(*per_account_max) {
            return Ok(EnablePushAnswer::TooMany);
        }
        let rooms = match rooms_wanted(self.db, asked, same)? {
            Ok(rooms) => rooms,
            Err(refused) => return Ok(refused),
        };
        let channel = Channel::of(channel);
        let made = self.returning_one(
            "INSERT INTO push_registration (account, name, kind, url, public_key, secret, shown, created, wakes)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
             ON CONFLICT (account, name) DO UPDATE SET kind = $3, url = $4, public_key = $5, secret = $6, shown = $7, created = $8,
                 wakes = $9, pushed = NULL, failures = 0, failed = NULL, error = NULL
             RETURNING id",
            &[
                &account,
                node,
                &(channel.kind as i16),
                &channel.url,
                &channel.key,
                &channel.secret,
                &short(*shown),
                &int(now.0),
                &i16::from(wakes.bits()),
            ],
        )?;
        let id = uint(&made, 0)?;
        if same.is_some() {
            self.makes_pushes.set(true);
            self.run(
                "UPDATE push SET due = $2, has_failed = false WHERE registration = $1 AND has_failed AND owner IS NULL",
                &[&int(id), &int(now.0)],
            )?;
        }
        if same.is_some() {
            self.run("DELETE FROM push_room WHERE registration = $1", &[&int(id)])?;
        }
        for ListenedRoom { room, jid, about } in rooms {
            self.run(
                "INSERT INTO push_room (room, jid, registration, about) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
                &[&room, &jid, &int(id), &about],
            )?;
        }
        let made = find(self.db, RegistrationId(id))?.ok_or(Error::Corrupt("no registration"))?;
        Ok(EnablePushAnswer::Enabled(Box::new(made)))
    }
}

/// A room of which a registration wants every message, as columns.
struct ListenedRoom {
    room: i64,
    jid: Box<str>,
    about: Box<str>,
}

/// The rooms of which a registration wants every message, if it may: the account is listed there, and there are not too many such registrations beside the
/// one that is replaced.
fn rooms_wanted(
    db: &Connection,
    asked: &EnablePush,
    same: Option<i64>,
) -> Result<std::result::Result<Vec<ListenedRoom>, EnablePushAnswer>> {
    let EnablePush { domain, local, rooms, per_room_max, .. } = asked;
    let mut wanted = Vec::with_capacity(rooms.len());
    for (at, (kind, name)) in rooms.iter().enumerate() {
        let found = db.opt(
            "SELECT r.id, o.jid, d.name, (SELECT count(*) FROM (
                 SELECT 1 FROM push_room WHERE room = r.id AND registration IS DISTINCT FROM $6 LIMIT $7) AS listening)
             FROM domain d JOIN room r ON r.domain = d.id AND r.kind = $2 AND r.name = $3
                 JOIN room_member o ON o.room = r.id AND o.jid = $4::text || '@' || d.name
             WHERE d.id = $1 AND o.affiliation > $5",
            &[
                &i64::from(domain.0),
                &short(*kind),
                name,
                local,
                &short(RoomAffiliation::Outcast),
                &same,
                &i64::from(*per_room_max),
            ],
        )?;
        let Some(row) = found else { return Ok(Err(EnablePushAnswer::NotInRoom(at))) };
        if row.try_get::<_, i64>(3)? >= i64::from(*per_room_max) {
            return Ok(Err(EnablePushAnswer::RoomFull(at)));
        }
        let about = room_topic(&kind.address(name, &text(&row, 2)?));
        wanted.push(ListenedRoom { room: row.try_get(0)?, jid: text(&row, 1)?, about });
    }
    Ok(Ok(wanted))
}

impl Answers<DisablePush, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &DisablePush) -> Result<()> {
        let rows = self.db.query(
            "SELECT r.id FROM account a JOIN push_registration r ON r.account = a.id
             WHERE a.domain = $1 AND a.local = $2 AND ($3::text IS NULL OR r.name = $3)",
            &[&i64::from(asked.domain.0), &asked.local, &asked.node],
        )?;
        rows.iter().try_for_each(|row| end(self, RegistrationId(uint(row, 0)?)))
    }
}

/// Ends a registration, with its pushes.
fn end(write: &Transaction<'_>, id: RegistrationId) -> Result<()> {
    write.run("DELETE FROM push WHERE registration = $1", &[&int(id.0)])?;
    write.run("DELETE FROM push_room WHERE registration = $1", &[&int(id.0)])?;
    write.run("DELETE FROM push_registration WHERE id = $1", &[&int(id.0)])?;
    Ok(())
}

/// Something was stored for an account that has registrations: it is pushed to each of them that wants to be woken by it.
pub(super) fn wake(write: &Transaction<'_>, account: AccountId, wake: &Wake, tells: Tells) -> Result<()> {
    let (message, notification, room_message) = match tells {
        Tells::Message(seq) => (Some(int(seq)), None, None),
        Tells::Notification(id) => (None, Some(Id::from(id)), None),
        Tells::Mention(id) => (None, None, Some(int(id.0))),
    };
    let kind = i16::from(PushWakes::from_iter([tells.kind()]).bits());
    write.makes_pushes.set(true);
    write.run(
        "INSERT INTO push (registration, about, message, notification, room_message, due)
         SELECT id, $2, $3, $4, $5, $6 FROM push_registration WHERE account = $1 AND wakes & $7 <> 0 ORDER BY id
         ON CONFLICT (registration, about) DO UPDATE SET version = push.version + 1, message = $3, notification = $4,
             room_message = $5, due = CASE WHEN push.owner IS NULL AND NOT push.has_failed THEN least(push.due, $6) ELSE push.due END",
        &[&int(account.0), &&*wake.topic, &message, &notification, &room_message, &int(wake.at.0), &kind],
    )?;
    Ok(())
}

/// A message of a room mentions accounts.
pub(super) fn wake_mentioned(write: &Transaction<'_>, id: ArchiveId, woken: &RoomWake) -> Result<()> {
    for local in &woken.mentioned {
        let account = write.db.opt(
            "SELECT id FROM account WHERE domain = $1 AND local = $2 AND registrations > 0",
            &[&i64::from(woken.domain.0), local],
        )?;
        if let Some(row) = account {
            wake(write, AccountId(uint(&row, 0)?), &woken.wake, Tells::Mention(id))?;
        }
    }
    Ok(())
}

/// A message of a room is pushed to the registrations that want every message of it, but for those of its sender. Registrations that another lane is ending are
/// passed over.
pub(super) fn wake_listeners(
    write: &Transaction<'_>,
    room: RoomId,
    sender: &BareJid,
    id: ArchiveId,
    at: UnixMs,
) -> Result<()> {
    let woken = write.run(
        "INSERT INTO push (registration, about, room_message, due)
         SELECT r.id, w.about, $2, $3 FROM push_room w JOIN push_registration r ON r.id = w.registration
             WHERE w.room = $1 AND w.jid <> $4 ORDER BY r.id FOR KEY SHARE OF r SKIP LOCKED
         ON CONFLICT (registration, about) DO UPDATE SET version = push.version + 1, message = NULL, notification = NULL,
             room_message = $2, due = CASE WHEN push.owner IS NULL AND NOT push.has_failed THEN least(push.due, $3) ELSE push.due END",
        &[&i64::from(room.0), &int(id.0), &int(at.0), &sender.as_str()],
    )?;
    if woken > 0 {
        write.makes_pushes.set(true);
    }
    Ok(())
}

/// A room does not list some accounts any more, or has banned them: no message of it wakes them.
pub(super) fn left_room(write: &Transaction<'_>, room: i64, jids: &[&str]) -> Result<()> {
    write.run("DELETE FROM push_room WHERE room = $1 AND jid = ANY ($2)", &[&room, &jids])?;
    Ok(())
}

impl Answers<ClaimPushes, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ClaimPushes) -> Result<Vec<Push>> {
        let ClaimPushes { owner, now, until, held, page } = asked;
        let owner = owner.cast_signed();
        let held: Vec<i64> = held.iter().map(|id| int(id.0)).collect();
        // What another group is changing is passed over.
        let rows = self.db.query(
            "SELECT id, registration, about, version, message, notification, room_message FROM push
             WHERE (due <= $2 OR owner = $1) AND NOT EXISTS (SELECT 1 FROM unnest($3::bigint[]) AS held (id) WHERE held.id = push.id)
             ORDER BY due, id LIMIT $4 FOR NO KEY UPDATE OF push SKIP LOCKED",
            &[&owner, &int(now.0), &held, &i64::from(page.entries)],
        )?;
        let (mut claimed, mut over, mut room) = (Vec::new(), Vec::new(), Room::new(*page));
        for row in &rows {
            let Some(push) = read(self.db, row, *now)? else {
                over.push(row.try_get::<_, i64>(0)?);
                continue;
            };
            if !room.takes(push.bytes()) {
                break;
            }
            claimed.push(push);
        }
        self.run("DELETE FROM push WHERE id = ANY ($1::bigint[])", &[&over])?;
        let ids: Vec<i64> = claimed.iter().map(|push| int(push.id.0)).collect();
        self.run(
            "UPDATE push SET owner = $2, due = $3, claimed_by = $4 WHERE id = ANY ($1::bigint[])",
            &[&ids, &owner, &int(until.0), &self.node.name],
        )?;
        Ok(claimed)
    }
}

/// A push with what it tells, if that still waits.
fn read(db: &Connection, row: &Row, now: UnixMs) -> Result<Option<Push>> {
    let Some(registration) = find(db, RegistrationId(uint(row, 1)?))? else { return Ok(None) };
    let Some(subject) = subject(db, row, &registration.account, now)? else { return Ok(None) };
    let messages = db.opt(
        "SELECT offline FROM account WHERE domain = $1 AND local = $2",
        &[&i64::from(registration.domain.0), &registration.account.local()],
    )?;
    Ok(Some(Push {
        id: PushId(uint(row, 0)?),
        version: uint(row, 3)?,
        topic: text(row, 2)?,
        registration: Arc::new(registration),
        messages: messages.map_or(Ok(0), |row| uint(&row, 0))?,
        subject,
    }))
}

fn subject(db: &Connection, row: &Row, account: &BareJid, now: UnixMs) -> Result<Option<PushSubject>> {
    if let Some(seq) = row.try_get::<_, Option<i64>>(4)? {
        let found = db.opt(
            "SELECT stanza, received FROM offline WHERE seq = $1 AND (expires IS NULL OR expires > $2)",
            &[&seq, &int(now.0)],
        )?;
        let Some(row) = found else { return Ok(None) };
        let stanza = Bytes::copy_from_slice(blob(&row, 0)?);
        return Ok(Some(PushSubject::Message { stanza, received: ms(&row, 1)? }));
    }
    if let Some(seq) = row.try_get::<_, Option<i64>>(6)? {
        return mention(db, seq, account);
    }
    let waiting = notification::waits(db, notification_id(row, 5)?, now)?;
    Ok(waiting.map(|notification| PushSubject::Notification(Arc::new(notification))))
}

/// A message of a room, if the account is listed there and has not read it.
fn mention(db: &Connection, seq: i64, account: &BareJid) -> Result<Option<PushSubject>> {
    let found = db.opt(
        "SELECT m.stanza, m.received FROM room_message m JOIN room r ON r.id = m.room
             JOIN room_member o ON o.room = m.room AND o.jid = $2
         WHERE m.seq = $1 AND m.seq > r.erased AND o.read < m.seq AND o.affiliation > $3",
        &[&seq, &account.as_str(), &short(RoomAffiliation::Outcast)],
    )?;
    let Some(row) = found else { return Ok(None) };
    let stanza = Bytes::copy_from_slice(blob(&row, 0)?);
    Ok(Some(PushSubject::Message { stanza, received: ms(&row, 1)? }))
}

impl Answers<CommitPushes, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &CommitPushes) -> Result<()> {
        asked.pushes.iter().try_for_each(|push| commit(self, asked.owner, asked.now, push))
    }
}

fn commit(write: &Transaction<'_>, owner: u64, now: UnixMs, push: &PushCommit) -> Result<()> {
    let (id, owner) = (int(push.id.0), owner.cast_signed());
    let (due, has_failed) = match &push.outcome {
        PushOutcome::Failed { next, .. } | PushOutcome::Postponed { next } => (*next, true),
        PushOutcome::Taken { .. } | PushOutcome::Over | PushOutcome::Refused { .. } | PushOutcome::Gone => {
            (now, false)
        }
    };
    let is_held = write.run(
        "UPDATE push SET owner = NULL, claimed_by = NULL, due = $3, has_failed = $4 WHERE id = $1 AND owner = $2",
        &[&id, &owner, &int(due.0), &has_failed],
    )?;
    if is_held == 0 {
        return Ok(());
    }
    if let Some((notification, step)) = push.step.as_deref() {
        add_step(write, *notification, step)?;
    }
    match &push.outcome {
        PushOutcome::Gone => {
            let same = write.db.opt(
                "SELECT 1 FROM push_registration WHERE id = $1 AND created = $2",
                &[&int(push.registration.0), &int(push.registered.0)],
            )?;
            return if same.is_some() { end(write, push.registration) } else { Ok(()) };
        }
        PushOutcome::Postponed { .. } | PushOutcome::Over => {}
        PushOutcome::Failed { failures, failure, .. } => note(write, push.registration, *failures, failure)?,
        PushOutcome::Refused { failures, failure } => note(write, push.registration, *failures, failure)?,
        PushOutcome::Taken { at } => {
            write.run(
                "UPDATE push_registration SET pushed = $2, failures = 0, failed = NULL, error = NULL WHERE id = $1",
                &[&int(push.registration.0), &int(at.0)],
            )?;
        }
    }
    if !has_failed {
        write.run("DELETE FROM push WHERE id = $1 AND version = $2", &[&id, &int(push.version)])?;
    }
    Ok(())
}

/// Adds a request to the trace of its notification, unless that is forgotten.
fn add_step(write: &Transaction<'_>, id: NotificationId, step: &PushStep) -> Result<()> {
    write.run(
        "INSERT INTO push_step (notification, registration, name, kind, requests, sent, answered, state, reason)
         SELECT $1::uuid, $2::bigint, $3::text, $4::smallint, $5::bigint, $6::bigint, $7::bigint, $8::smallint, $9::text
         WHERE EXISTS (SELECT 1 FROM notification WHERE id = $1) OR EXISTS (SELECT 1 FROM trace WHERE id = $1)
         ON CONFLICT (notification, registration) DO UPDATE SET name = $3, kind = $4, requests = push_step.requests + $5,
             sent = $6, answered = $7, state = $8, reason = $9",
        &[
            &Id::from(id),
            &int(step.registration.0),
            &step.node,
            &short(step.kind),
            &i64::from(step.requests),
            &int(step.sent.0),
            &int(step.answered.0),
            &short(step.state),
            &step.reason,
        ],
    )?;
    Ok(())
}

/// Notes a request that failed.
fn note(write: &Transaction<'_>, id: RegistrationId, failures: u32, failure: &PushFailure) -> Result<()> {
    write.run(
        "UPDATE push_registration SET failures = $2, failed = $3, error = $4 WHERE id = $1",
        &[&int(id.0), &i64::from(failures), &int(failure.at.0), &&*failure.error],
    )?;
    Ok(())
}

fn registration(row: &Row) -> Result<PushRegistration> {
    let channel = Channel {
        kind: row.try_get::<_, i16>(5)?.into(),
        url: row.try_get(6)?,
        key: blob(row, 7)?,
        secret: blob(row, 8)?,
    };
    let failed = opt_ms(row, 13)?;
    Ok(PushRegistration {
        id: RegistrationId(uint(row, 0)?),
        domain: DomainId(number(row, 1)?),
        account: jid(row, 2, 3)?,
        node: text(row, 4)?,
        channel: channel.read().ok_or(Error::Corrupt("a channel that this version does not know"))?,
        shown: code(row, 9)?,
        wakes: PushWakes::of_bits(u8::try_from(row.try_get::<_, i16>(15)?).unwrap_or_default()),
        rooms: listened(opt_text(row, 16)?),
        created: ms(row, 10)?,
        health: PushHealth {
            pushed: opt_ms(row, 11)?,
            failures: number(row, 12)?,
            last_failure: failed.zip(opt_text(row, 14)?).map(|(at, error)| PushFailure { at, error }),
        },
    })
}
