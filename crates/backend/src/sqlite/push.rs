//! Registrations for push, and the pushes that wait.

use super::column::{blob, code, id_blob, int, jid, ms, opt_int, opt_ms, opt_text, text, uint};
use super::notification;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::rows::code::Code;
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
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params};
use std::sync::Arc;

/// What [`registration`] reads.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT r.id, a.domain, a.local, d.name, r.name, r.kind, r.url, r.public_key, r.secret, r.shown, r.created, r.pushed,
                 r.failures, r.failed, r.error, r.wakes,
                 (SELECT group_concat(about, char(10)) FROM push_room WHERE registration = r.id)
             FROM push_registration r CROSS JOIN account a ON a.id = r.account CROSS JOIN domain d ON d.id = a.domain ",
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
    db.prepare_cached(select!("WHERE r.id = ?1"))?.query_row([int(id.0)], registration).optional()
}

impl Answers<ListRegistrations, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ListRegistrations) -> Result<Part<PushRegistration>> {
        let (after, limit) = (int(asked.after.0), i64::from(asked.max) + 1);
        let domain = asked.domain.map(|domain| domain.0);
        let found: Result<Vec<_>> = match &asked.account {
            Some(local) => self
                .db
                .prepare_cached(
                    "SELECT r.id, a.domain, a.local, d.name, r.name, r.kind, r.url, r.public_key, r.secret, r.shown, r.created,
                         r.pushed, r.failures, r.failed, r.error, r.wakes,
                         (SELECT group_concat(about, char(10)) FROM push_room WHERE registration = r.id)
                     FROM account a CROSS JOIN domain d ON d.id = a.domain CROSS JOIN push_registration r ON r.account = a.id
                     WHERE a.domain = ?1 AND a.local = ?2 AND r.id > ?3 ORDER BY r.id LIMIT ?4",
                )?
                .query_map(params![domain, local, after, limit], registration)?
                .collect(),
            None => self
                .db
                .prepare_cached(select!("WHERE r.id > ?2 AND (?1 IS NULL OR a.domain = ?1) ORDER BY r.id LIMIT ?3"))?
                .query_map(params![domain, after, limit], registration)?
                .collect(),
        };
        let mut entries = found?;
        let more = entries.len() > asked.max.into();
        entries.truncate(asked.max.into());
        Ok(Part { entries, more })
    }
}

impl Answers<NextPush, Error> for Snapshot<'_> {
    fn answer(&mut self, _: &NextPush) -> Result<Option<UnixMs>> {
        self.db.prepare_cached("SELECT min(due) FROM push")?.query_row([], |row| opt_ms(row, 0))
    }
}

impl Answers<PushSteps, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &PushSteps) -> Result<Vec<PushStep>> {
        self.db
            .prepare_cached(
                "SELECT registration, name, kind, requests, sent, answered, state, reason FROM push_step
                 WHERE notification = ?1 ORDER BY registration",
            )?
            .query_map([id_blob(asked.id)], |row| {
                Ok(PushStep {
                    registration: RegistrationId(uint(row, 0)?),
                    node: text(row, 1)?,
                    kind: code(row, 2)?,
                    requests: row.get(3)?,
                    sent: ms(row, 4)?,
                    answered: ms(row, 5)?,
                    state: code(row, 6)?,
                    reason: opt_text(row, 7)?,
                })
            })?
            .collect()
    }
}

impl Answers<EnablePush, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &EnablePush) -> Result<EnablePushAnswer> {
        let EnablePush { domain, local, node, channel, shown, wakes, now, per_account_max, .. } = asked;
        let account = self
            .db
            .prepare_cached("SELECT id, registrations FROM account WHERE domain = ?1 AND local = ?2")?
            .query_row(params![domain.0, local], |row| Ok((row.get(0)?, uint(row, 1)?)))
            .optional()?;
        let Some((account, count)): Option<(i64, u64)> = account else {
            return Ok(EnablePushAnswer::NoAccount);
        };
        let same = self
            .db
            .prepare_cached("SELECT id FROM push_registration WHERE account = ?1 AND name = ?2")?
            .query_row(params![account, node], |row| uint(row, 0))
            .optional()?;
        if same.is_none() && count >= u64::from(*per_account_max) {
            return Ok(EnablePushAnswer::TooMany);
        }
        let rooms = match rooms_wanted(self.db, asked, same)? {
            Ok(rooms) => rooms,
            Err(refused) => return Ok(refused),
        };
        let channel = Channel::of(channel);
        self.run(
            "INSERT INTO push_registration (account, name, kind, url, public_key, secret, shown, created, wakes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             ON CONFLICT (account, name) DO UPDATE SET kind = ?3, url = ?4, public_key = ?5, secret = ?6, shown = ?7, created = ?8,
                 wakes = ?9, pushed = NULL, failures = 0, failed = NULL, error = NULL",
            params![
                account,
                node,
                channel.kind,
                channel.url,
                channel.key,
                channel.secret,
                shown.code(),
                int(now.0),
                wakes.bits()
            ],
        )?;
        let id = match same {
            None => self.db.last_insert_rowid().cast_unsigned(),
            Some(id) => {
                self.makes_pushes.set(true);
                self.run(
                    "UPDATE push SET due = ?2, has_failed = 0 WHERE registration = ?1 AND has_failed AND owner IS NULL",
                    params![int(id), int(now.0)],
                )?;
                id
            }
        };
        self.run("DELETE FROM push_room WHERE registration = ?1", [int(id)])?;
        for ListenedRoom { room, jid, about } in rooms {
            self.run(
                "INSERT INTO push_room (room, jid, registration, about) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO NOTHING",
                params![room, jid, int(id), about],
            )?;
        }
        let made = find(self.db, RegistrationId(id))?.ok_or(Error::QueryReturnedNoRows)?;
        Ok(EnablePushAnswer::Enabled(Box::new(made)))
    }
}

/// A room of which a registration wants every message, as columns.
struct ListenedRoom {
    room: u32,
    jid: Box<str>,
    about: Box<str>,
}

/// The rooms of which a registration wants every message, if it may: the account is listed there, and there are not too many such registrations beside the
/// one that is replaced.
fn rooms_wanted(
    db: &Connection,
    asked: &EnablePush,
    same: Option<u64>,
) -> Result<Result<Vec<ListenedRoom>, EnablePushAnswer>> {
    let EnablePush { domain, local, rooms, per_room_max, .. } = asked;
    let mut wanted = Vec::with_capacity(rooms.len());
    for (at, (kind, name)) in rooms.iter().enumerate() {
        let found = db
            .prepare_cached(
                "SELECT r.id, o.jid, d.name FROM domain d CROSS JOIN room r ON r.domain = d.id AND r.kind = ?2 AND r.name = ?3
                     CROSS JOIN room_member o ON o.room = r.id AND o.jid = ?4 || '@' || d.name
                 WHERE d.id = ?1 AND o.affiliation > ?5",
            )?
            .query_row(
                params![domain.0, kind.code(), name, local, RoomAffiliation::Outcast.code()],
                |row| Ok((row.get(0)?, text(row, 1)?, text(row, 2)?)),
            )
            .optional()?;
        let Some((room, jid, domain)): Option<(u32, Box<str>, Box<str>)> = found else {
            return Ok(Err(EnablePushAnswer::NotInRoom(at)));
        };
        let listeners: u16 = db
            .prepare_cached(
                "SELECT count(*) FROM (SELECT 1 FROM push_room WHERE room = ?1 AND registration IS NOT ?2 LIMIT ?3)",
            )?
            .query_row(params![room, same.map(int), per_room_max], |row| row.get(0))?;
        if listeners >= *per_room_max {
            return Ok(Err(EnablePushAnswer::RoomFull(at)));
        }
        wanted.push(ListenedRoom { room, jid, about: room_topic(&kind.address(name, &domain)) });
    }
    Ok(Ok(wanted))
}

impl Answers<DisablePush, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &DisablePush) -> Result<()> {
        let sql = match asked.node {
            Some(_) => {
                "SELECT r.id FROM account a CROSS JOIN push_registration r ON r.account = a.id AND r.name = ?3
                 WHERE a.domain = ?1 AND a.local = ?2"
            }
            None => {
                "SELECT r.id FROM account a CROSS JOIN push_registration r ON r.account = a.id
                 WHERE a.domain = ?1 AND a.local = ?2 AND ?3 IS NULL"
            }
        };
        let ids: Vec<u64> = self
            .db
            .prepare_cached(sql)?
            .query_map(params![asked.domain.0, asked.local, asked.node], |row| uint(row, 0))?
            .collect::<Result<_>>()?;
        ids.into_iter().try_for_each(|id| end(self, RegistrationId(id)))
    }
}

/// Ends a registration, with its pushes.
fn end(write: &Transaction<'_>, id: RegistrationId) -> Result<()> {
    write.run("DELETE FROM push WHERE registration = ?1", [int(id.0)])?;
    write.run("DELETE FROM push_room WHERE registration = ?1", [int(id.0)])?;
    write.run("DELETE FROM push_registration WHERE id = ?1", [int(id.0)])?;
    Ok(())
}

/// Something was stored for an account that has registrations: it is pushed to each of them that wants to be woken by it.
pub(super) fn wake(write: &Transaction<'_>, account: AccountId, wake: &Wake, tells: Tells) -> Result<()> {
    let (message, notification, room_message) = match tells {
        Tells::Message(seq) => (Some(int(seq)), None, None),
        Tells::Notification(id) => (None, Some(id_blob(id)), None),
        Tells::Mention(id) => (None, None, Some(int(id.0))),
    };
    write.makes_pushes.set(true);
    write.run(
        "INSERT INTO push (registration, about, message, notification, room_message, due)
         SELECT id, ?2, ?3, ?4, ?5, ?6 FROM push_registration WHERE account = ?1 AND wakes & ?7 <> 0
         ON CONFLICT (registration, about) DO UPDATE SET version = version + 1, message = ?3, notification = ?4, room_message = ?5,
             due = CASE WHEN owner IS NULL AND NOT has_failed THEN min(due, ?6) ELSE due END",
        params![
            int(account.0),
            wake.topic,
            message,
            notification,
            room_message,
            int(wake.at.0),
            PushWakes::from_iter([tells.kind()]).bits()
        ],
    )?;
    Ok(())
}

/// A message of a room mentions accounts.
pub(super) fn wake_mentioned(write: &Transaction<'_>, id: ArchiveId, woken: &RoomWake) -> Result<()> {
    for local in &woken.mentioned {
        let account = write
            .db
            .prepare_cached("SELECT id FROM account WHERE domain = ?1 AND local = ?2 AND registrations > 0")?
            .query_row(params![woken.domain.0, local], |row| uint(row, 0))
            .optional()?;
        if let Some(account) = account {
            wake(write, AccountId(account), &woken.wake, Tells::Mention(id))?;
        }
    }
    Ok(())
}

/// A message of a room is pushed to the registrations that want every message of it, but for those of its sender.
pub(super) fn wake_listeners(
    write: &Transaction<'_>,
    room: RoomId,
    sender: &BareJid,
    id: ArchiveId,
    at: UnixMs,
) -> Result<()> {
    let woken = write.run(
        "INSERT INTO push (registration, about, room_message, due)
         SELECT registration, about, ?2, ?3 FROM push_room WHERE room = ?1 AND jid <> ?4
         ON CONFLICT (registration, about) DO UPDATE SET version = version + 1, message = NULL, notification = NULL, room_message = ?2,
             due = CASE WHEN owner IS NULL AND NOT has_failed THEN min(due, ?3) ELSE due END",
        params![room.0, int(id.0), int(at.0), sender.as_str()],
    )?;
    if woken > 0 {
        write.makes_pushes.set(true);
    }
    Ok(())
}

/// A room does not list an account any more, or has banned it: no message of it wakes the account.
pub(super) fn left_room(write: &Transaction<'_>, room: u32, jid: &str) -> Result<()> {
    write.run("DELETE FROM push_room WHERE room = ?1 AND jid = ?2", params![room, jid])?;
    Ok(())
}

impl Answers<ClaimPushes, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ClaimPushes) -> Result<Vec<Push>> {
        let ClaimPushes { owner, now, until, held, page } = asked;
        let owner = owner.cast_signed();
        let (mut claimed, mut over, mut room) = (Vec::new(), Vec::new(), Room::new(*page));
        for sql in [CLAIMED, DUE] {
            let mut query = self.db.prepare_cached(sql)?;
            let mut rows = query.query(params![owner, int(now.0)])?;
            while let Some(row) = rows.next()? {
                let id = PushId(uint(row, 0)?);
                if held.binary_search(&id).is_ok() {
                    continue;
                }
                let Some(push) = read(self.db, row, *now)? else {
                    over.push(id);
                    if over.len() >= OVER_MAX {
                        break;
                    }
                    continue;
                };
                if !room.takes(push.bytes()) {
                    break;
                }
                claimed.push(push);
            }
        }
        for id in over {
            self.run("DELETE FROM push WHERE id = ?1", [int(id.0)])?;
        }
        for push in &claimed {
            self.run(
                "UPDATE push SET owner = ?2, due = ?3 WHERE id = ?1",
                params![int(push.id.0), owner, int(until.0)],
            )?;
        }
        Ok(claimed)
    }
}

/// What is over is removed so much at a time.
const OVER_MAX: usize = 1000;

/// Those that are claimed already.
const CLAIMED: &str = "SELECT id, registration, about, version, message, notification, room_message FROM push
    WHERE owner = ?1 AND ?2 IS NOT NULL ORDER BY id";
/// Those that are due, and not claimed by the same owner.
const DUE: &str = "SELECT id, registration, about, version, message, notification, room_message FROM push
    WHERE due <= ?2 AND (owner IS NULL OR owner <> ?1) ORDER BY due, id";

/// A push with what it tells, if that still waits.
fn read(db: &Connection, row: &Row<'_>, now: UnixMs) -> Result<Option<Push>> {
    let Some(registration) = find(db, RegistrationId(uint(row, 1)?))? else { return Ok(None) };
    let Some(subject) = subject(db, row, &registration.account, now)? else { return Ok(None) };
    let messages = db
        .prepare_cached("SELECT offline FROM account WHERE domain = ?1 AND local = ?2")?
        .query_row(params![registration.domain.0, registration.account.local()], |row| uint(row, 0))?;
    Ok(Some(Push {
        id: PushId(uint(row, 0)?),
        version: uint(row, 3)?,
        topic: text(row, 2)?,
        registration: Arc::new(registration),
        messages,
        subject,
    }))
}

fn subject(db: &Connection, row: &Row<'_>, account: &BareJid, now: UnixMs) -> Result<Option<PushSubject>> {
    if let Some(seq) = row.get::<_, Option<i64>>(4)? {
        let message = db
            .prepare_cached("SELECT stanza, received, expires FROM offline WHERE seq = ?1")?
            .query_row([seq], |row| {
                let is_over = opt_ms(row, 2)?.is_some_and(|at| at <= now);
                let stanza = Bytes::copy_from_slice(blob(row, 0)?);
                Ok((!is_over).then_some(PushSubject::Message { stanza, received: ms(row, 1)? }))
            })
            .optional()?;
        return Ok(message.flatten());
    }
    if let Some(seq) = row.get::<_, Option<i64>>(6)? {
        return mention(db, seq, account);
    }
    let Some(id) = row.get::<_, Option<[u8; 16]>>(5)? else { return Ok(None) };
    let waiting = notification::waits(db, NotificationId(u128::from_be_bytes(id)), now)?;
    Ok(waiting.map(|notification| PushSubject::Notification(Arc::new(notification))))
}

/// A message of a room, if the account is listed there and has not read it.
fn mention(db: &Connection, seq: i64, account: &BareJid) -> Result<Option<PushSubject>> {
    db.prepare_cached(
        "SELECT m.stanza, m.received FROM room_message m CROSS JOIN room r ON r.id = m.room
             CROSS JOIN room_member o ON o.room = m.room AND o.jid = ?2
         WHERE m.seq = ?1 AND m.seq > r.erased AND o.read < m.seq AND o.affiliation > ?3",
    )?
    .query_row(params![seq, account.as_str(), RoomAffiliation::Outcast.code()], |row| {
        Ok(PushSubject::Message { stanza: Bytes::copy_from_slice(blob(row, 0)?), received: ms(row, 1)? })
    })
    .optional()
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
        "UPDATE push SET owner = NULL, due = ?3, has_failed = ?4 WHERE id = ?1 AND owner = ?2",
        params![id, owner, int(due.0), has_failed],
    )?;
    if is_held == 0 {
        return Ok(());
    }
    if let Some((notification, step)) = push.step.as_deref() {
        add_step(write, *notification, step)?;
    }
    match &push.outcome {
        PushOutcome::Gone => {
            let is_same = write
                .db
                .prepare_cached("SELECT 1 FROM push_registration WHERE id = ?1 AND created = ?2")?
                .exists(params![int(push.registration.0), int(push.registered.0)])?;
            return if is_same { end(write, push.registration) } else { Ok(()) };
        }
        PushOutcome::Postponed { .. } | PushOutcome::Over => {}
        PushOutcome::Failed { failures, failure, .. } => note(write, push.registration, *failures, failure)?,
        PushOutcome::Refused { failures, failure } => note(write, push.registration, *failures, failure)?,
        PushOutcome::Taken { at } => {
            write.run(
                "UPDATE push_registration SET pushed = ?2, failures = 0, failed = NULL, error = NULL WHERE id = ?1",
                params![int(push.registration.0), int(at.0)],
            )?;
        }
    }
    if !has_failed {
        write.run("DELETE FROM push WHERE id = ?1 AND version = ?2", params![id, int(push.version)])?;
    }
    Ok(())
}

/// Adds a request to the trace of its notification, unless that is forgotten.
fn add_step(write: &Transaction<'_>, id: NotificationId, step: &PushStep) -> Result<()> {
    write.run(
        "INSERT INTO push_step (notification, registration, name, kind, requests, sent, answered, state, reason)
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9
         WHERE EXISTS (SELECT 1 FROM notification WHERE id = ?1) OR EXISTS (SELECT 1 FROM trace WHERE id = ?1)
         ON CONFLICT (notification, registration) DO UPDATE SET name = ?3, kind = ?4, requests = requests + ?5, sent = ?6,
             answered = ?7, state = ?8, reason = ?9",
        params![
            id_blob(id),
            int(step.registration.0),
            step.node,
            step.kind.code(),
            step.requests,
            int(step.sent.0),
            int(step.answered.0),
            step.state.code(),
            step.reason
        ],
    )?;
    Ok(())
}

/// Forgets the pushes of notifications whose traces are forgotten.
pub(super) fn forget_steps(write: &Transaction<'_>, ids: &[NotificationId]) -> Result<()> {
    // Where nobody is pushed to, no trace has any.
    let has_any = write.db.prepare_cached("SELECT 1 FROM push_step LIMIT 1")?.exists([])?;
    for id in ids.iter().filter(|_| has_any) {
        write.run("DELETE FROM push_step WHERE notification = ?1", [id_blob(*id)])?;
    }
    Ok(())
}

/// Notes a request that failed.
fn note(write: &Transaction<'_>, id: RegistrationId, failures: u32, failure: &PushFailure) -> Result<()> {
    write.run(
        "UPDATE push_registration SET failures = ?2, failed = ?3, error = ?4 WHERE id = ?1",
        params![int(id.0), failures, opt_int(Some(failure.at)), failure.error],
    )?;
    Ok(())
}

/// Ends all claims: whoever held them is gone.
pub(super) fn end_claims(db: &Connection) -> Result<()> {
    db.execute("UPDATE push SET owner = NULL, due = 0 WHERE owner IS NOT NULL", [])?;
    Ok(())
}

fn registration(row: &Row<'_>) -> Result<PushRegistration> {
    let channel =
        Channel { kind: row.get(5)?, url: &text(row, 6)?, key: blob(row, 7)?, secret: blob(row, 8)? }.read();
    let failed = opt_ms(row, 13)?;
    Ok(PushRegistration {
        id: RegistrationId(uint(row, 0)?),
        domain: DomainId(row.get(1)?),
        account: jid(row, 2, 3)?,
        node: text(row, 4)?,
        channel: channel
            .ok_or_else(|| super::column::corrupt(5, "a channel that this version does not know"))?,
        shown: code(row, 9)?,
        wakes: PushWakes::of_bits(row.get(15)?),
        rooms: listened(opt_text(row, 16)?),
        created: ms(row, 10)?,
        health: PushHealth {
            pushed: opt_ms(row, 11)?,
            failures: row.get(12)?,
            last_failure: failed.zip(opt_text(row, 14)?).map(|(at, error)| PushFailure { at, error }),
        },
    })
}
