//! Rooms, and what accounts are to them.

mod archive;
mod inbox;
mod light;
mod sweep;
mod vcard;

use super::column::{blob, code, corrupt, int, ms, number, text, uint, whole_jid};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use super::{event, lookup, push};
use crate::rows::code::Code;
use crate::rows::event::left;
use crate::rows::remembered::created_room;
use crate::rows::removal;
use crate::rows::room::is_found;
use carillon_core::form::{Clock, Form, decode, encode};
use carillon_core::model::*;
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::rooms::{
    ConfigureRoom, CreateRoom, CreateRoomAnswer, DestroyRoom, Room, Rooms, RoomsOf, SetRoomMembers,
    SetRoomSubject,
};
use carillon_wire::jid::BareJid;
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params};

impl Answers<Room, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Room) -> Result<Option<Box<RoomRecord>>> {
        let mut query = self.db.prepare_cached(
            "SELECT id, domain, name, created, config, subject, kind, version,
                 coalesce((SELECT max(seq) FROM room_message WHERE room = room.id), 0),
                 (SELECT photos FROM room_vcard WHERE room = room.id)
             FROM room WHERE domain = ?1 AND kind = ?2 AND name = ?3",
        )?;
        let found =
            query.query_row(params![asked.domain.0, asked.kind.code(), asked.name], record).optional()?;
        let Some(mut record) = found else { return Ok(None) };
        record.members = self
            .db
            .prepare_cached(
                "SELECT jid, affiliation, nick, reason, since FROM room_member WHERE room = ?1 ORDER BY jid",
            )?
            .query_map([record.id.0], member)?
            .collect::<Result<_>>()?;
        Ok(Some(Box::new(record)))
    }
}

const LIST_ALL: &str = "SELECT name, title, is_found FROM room WHERE domain = ?1 AND kind = ?4 AND name > ?2
     ORDER BY name LIMIT ?3";
const LIST_FOUND: &str =
    "SELECT name, title, is_found FROM room WHERE domain = ?1 AND kind = ?4 AND name > ?2 AND is_found
     ORDER BY name LIMIT ?3";

impl Answers<Rooms, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Rooms) -> Result<Vec<RoomListed>> {
        // No name is empty.
        let after = asked.after.as_deref().unwrap_or_default();
        let mut query = self.db.prepare_cached(if asked.all { LIST_ALL } else { LIST_FOUND })?;
        let asked = params![asked.domain.0, after, asked.limit, asked.kind.code()];
        let rows = query.query_map(asked, |row| {
            Ok(RoomListed { name: text(row, 0)?, title: text(row, 1)?, public: row.get(2)? })
        })?;
        rows.collect()
    }
}

impl Answers<RoomsOf, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &RoomsOf) -> Result<Vec<RoomOfAccount>> {
        let after = asked.after.as_deref().unwrap_or_default();
        let mut query = self.db.prepare_cached(
            "SELECT r.name, m.affiliation, r.id, r.title, r.version FROM room_member m JOIN room r ON r.id = m.room
             WHERE m.jid = ?2 AND m.affiliation <> ?5 AND r.domain = ?1 AND r.kind = ?6 AND r.name > ?3
             ORDER BY r.name LIMIT ?4",
        )?;
        let (none, kind) = (RoomAffiliation::None.code(), asked.kind.code());
        let asked = params![asked.domain.0, asked.jid.as_str(), after, asked.limit, none, kind];
        let rows = query.query_map(asked, |row| {
            Ok(RoomOfAccount {
                name: text(row, 0)?,
                affiliation: code(row, 1)?,
                id: RoomId(row.get(2)?),
                title: text(row, 3)?,
                version: row.get(4)?,
            })
        })?;
        rows.collect()
    }
}

impl Answers<CreateRoom, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &CreateRoom) -> Result<CreateRoomAnswer> {
        let CreateRoom { domain, kind, name, config, members, owned_max, rooms_max, now, facts } = asked;
        for owner in members.iter().filter(|member| member.affiliation == RoomAffiliation::Owner) {
            if owned(self.db, &owner.jid, *owned_max)? >= *owned_max {
                return Ok(CreateRoomAnswer::Full);
            }
        }
        if lookup::domain_name(self.db, *domain)?.is_none() {
            return Ok(CreateRoomAnswer::NoDomain);
        }
        if *rooms_max < u32::MAX && of_domain(self.db, *domain)? >= *rooms_max {
            return Ok(CreateRoomAnswer::DomainFull);
        }
        let made = self.run(
            "INSERT INTO room (domain, name, created, title, is_found, config, kind)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING",
            params![
                domain.0,
                name,
                int(now.0),
                config.title,
                is_found(config),
                encode(config, 0),
                kind.code()
            ],
        )?;
        if made == 0 {
            return Ok(CreateRoomAnswer::Exists);
        }
        let id = RoomId(number(self.db.last_insert_rowid())?);
        set_members(self, id, members)?;
        note_all(self, facts)?;
        Ok(CreateRoomAnswer::Created(Box::new(created_room(asked, id))))
    }
}

impl Answers<ConfigureRoom, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ConfigureRoom) -> Result<Result<(), Missing>> {
        let ConfigureRoom { room, config, version, facts } = asked;
        let done = self.change(
            "UPDATE room SET title = ?2, is_found = ?3, config = ?4, version = ?5 WHERE id = ?1",
            params![room.0, config.title, is_found(config), encode(config, 0), version],
        )?;
        noted(self, done, facts)
    }
}

impl Answers<SetRoomMembers, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &SetRoomMembers) -> Result<Result<(), Missing>> {
        let SetRoomMembers { room, changes, version, facts } = asked;
        if self.run("UPDATE room SET version = ?2 WHERE id = ?1", params![room.0, version])? == 0 {
            return Ok(Err(Missing));
        }
        set_members(self, *room, changes)?;
        noted(self, Ok(()), facts)
    }
}

impl Answers<SetRoomSubject, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &SetRoomSubject) -> Result<Result<(), Missing>> {
        let subject = asked.subject.as_deref().map(|subject| encode(subject, 0));
        let done =
            self.change("UPDATE room SET subject = ?2 WHERE id = ?1", params![asked.room.0, subject])?;
        noted(self, done, &asked.facts)
    }
}

impl Answers<DestroyRoom, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &DestroyRoom) -> Result<Result<bool, Missing>> {
        if !self.db.prepare_cached("SELECT 1 FROM room WHERE id = ?1")?.exists([asked.room.0])? {
            return Ok(Err(Missing));
        }
        let more = removal::room(self, asked.room, asked.rows_max as usize)?;
        if !more {
            note_all(self, &asked.facts)?;
        }
        Ok(Ok(more))
    }
}

/// Has what was done told to others; of what was not done nothing is.
fn noted(
    write: &Transaction<'_>,
    done: Result<(), Missing>,
    facts: &[RoomFact],
) -> Result<Result<(), Missing>> {
    if done.is_ok() {
        note_all(write, facts)?;
    }
    Ok(done)
}

fn note_all(write: &Transaction<'_>, facts: &[RoomFact]) -> Result<()> {
    facts.iter().try_for_each(|fact| event::note(write, fact))
}

/// An account is being removed: at most so many rooms lose it, in the order of their numbers; how many. A ban stays. Those of domains that tell who
/// their members are tell it, unless nobody is told.
pub(super) fn leave_all(
    write: &Transaction<'_>,
    account: &BareJid,
    told_at: Option<UnixMs>,
    max: usize,
) -> Result<usize> {
    let mut query = write.db.prepare_cached(
        "SELECT m.room, m.affiliation, r.domain, d.name, r.kind, r.name, d.room_events > 0
         FROM room_member m JOIN room r ON r.id = m.room JOIN domain d ON d.id = r.domain
         WHERE m.jid = ?1 AND m.affiliation > ?2 ORDER BY m.room LIMIT ?3",
    )?;
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let mut rows = query.query(params![account.as_str(), RoomAffiliation::Outcast.code(), max])?;
    let mut rooms: Vec<u32> = Vec::new();
    while let Some(row) = rows.next()? {
        rooms.push(row.get(0)?);
        let (affiliation, tells): (RoomAffiliation, bool) = (code(row, 1)?, row.get(6)?);
        let Some(now) = told_at.filter(|_| tells && affiliation > RoomAffiliation::None) else { continue };
        let (domain, kind): (_, RoomKind) = (DomainId(row.get(2)?), code(row, 4)?);
        let room = BareJid::new(&kind.address(&text(row, 5)?, &text(row, 3)?));
        let room = room.map_err(|_| corrupt(5, "not an address"))?;
        event::note(write, &left(domain, room, account, affiliation, now))?;
    }
    for room in &rooms {
        write.run("DELETE FROM room_member WHERE room = ?1 AND jid = ?2", params![room, account.as_str()])?;
    }
    Ok(rooms.len())
}

/// How many rooms a domain has.
fn of_domain(db: &Connection, domain: DomainId) -> Result<u32> {
    db.prepare_cached("SELECT rooms FROM domain WHERE id = ?1")?.query_row([domain.0], |row| row.get(0))
}

/// How many rooms an account owns; counted up to `max`, because others may have made it own more.
fn owned(db: &Connection, jid: &BareJid, max: u32) -> Result<u32> {
    db.prepare_cached(
        "SELECT count(*) FROM (SELECT 1 FROM room_member WHERE jid = ?1 AND affiliation = ?2 LIMIT ?3)",
    )?
    .query_row(params![jid.as_str(), RoomAffiliation::Owner.code(), max], |row| row.get(0))
}

fn set_members(write: &Transaction<'_>, room: RoomId, changes: &[RoomMember]) -> Result<()> {
    for change in changes {
        let jid = change.jid.as_str();
        if change.is_nothing() || change.affiliation == RoomAffiliation::Outcast {
            push::left_room(write, room.0, jid)?;
        }
        match change.is_nothing() {
            true => {
                write.run("DELETE FROM room_member WHERE room = ?1 AND jid = ?2", params![room.0, jid])?
            }
            false => write.run(
                // Whoever becomes a member has read what was said before.
                "INSERT INTO room_member (room, jid, affiliation, nick, reason, since, read, read_counted)
                 SELECT id, ?2, ?3, ?4, ?5, ?6, ?6, counted FROM room WHERE id = ?1
                 ON CONFLICT (room, jid) DO UPDATE SET affiliation = excluded.affiliation, nick = excluded.nick,
                 reason = excluded.reason,
                 (since, read, read_counted) = (SELECT
                     CASE WHEN was THEN since ELSE excluded.since END,
                     CASE WHEN was THEN read ELSE excluded.read END,
                     CASE WHEN was THEN read_counted ELSE excluded.read_counted END
                     FROM (SELECT affiliation >= ?7 AND excluded.affiliation >= ?7 AS was))",
                params![
                    room.0,
                    jid,
                    change.affiliation.code(),
                    change.nick,
                    change.reason,
                    int(change.since.0),
                    RoomAffiliation::Member.code()
                ],
            )?,
        };
    }
    Ok(())
}

fn member(row: &Row<'_>) -> Result<RoomMember> {
    Ok(RoomMember {
        jid: whole_jid(row, 0)?,
        affiliation: code(row, 1)?,
        nick: text(row, 2)?,
        reason: text(row, 3)?,
        since: ArchiveId(uint(row, 4)?),
    })
}

fn record(row: &Row<'_>) -> Result<RoomRecord> {
    let subject = row.get_ref(5)?.as_blob_or_null().map_err(|_| corrupt(5, "a subject is no bytes"))?;
    Ok(RoomRecord {
        id: RoomId(row.get(0)?),
        domain: DomainId(row.get(1)?),
        kind: code(row, 6)?,
        name: text(row, 2)?,
        created: ms(row, 3)?,
        config: form(blob(row, 4)?, 4)?,
        members: Vec::new(),
        subject: subject.map(|bytes| form(bytes, 5)).transpose()?.map(Box::new),
        version: row.get(7)?,
        newest: ArchiveId(uint(row, 8)?),
        photos: vcard::photos(row, 9)?,
    })
}

fn form<T: Form>(bytes: &[u8], column: usize) -> Result<T> {
    decode(bytes, Clock::default()).map_err(|_| corrupt(column, "a value has a form that is not known"))
}

#[cfg(test)]
mod tests {
    use super::super::archive_tail::Tail;
    use super::super::snapshot::LastRevisions;
    use super::super::{Options, file, schema};
    use super::*;
    use crate::rows::last::LastItems;
    use rusqlite::StatementStatus::{FullscanStep, Run, Sort, VmStep};
    use std::time::Instant;

    const ROOMS: u32 = 50_000;
    const PAGE: u16 = 100;
    /// Steps of SQLite's machine for a page: they depend on the page alone, not on how many rooms there are or where the page is.
    const STEPS_MAX: i32 = 1200;

    /// A page is one question, of as many rows as it has, wherever it is in the list.
    #[test]
    fn a_page_of_the_list_costs_what_is_on_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options::new(folder.path().join("store.db"));
        let _lock = file::claim(&options.path).expect("it is made");
        let mut db = file::connect_writer(&options).expect("it opens");
        schema::migrate(&mut db, &options.path).expect("it is new");
        db.execute_batch("INSERT INTO domain (id, name, sessions, registration, pubsub_create, sessions_max) VALUES (1, 'd', 0, 0, 0, 0)").expect("a domain");
        // Every tenth can be found.
        db.execute(
            "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1)
             INSERT INTO room (domain, name, created, title, is_found, config, kind)
             SELECT 1, printf('room-%05d', i), 0, 'A room', i % 10 = 0, zeroblob(200), 0 FROM n",
            [ROOMS],
        )
        .expect("rooms");
        let (last, mut revisions) = (LastItems::new(0), LastRevisions::default());
        for (all, sql) in [(true, LIST_ALL), (false, LIST_FOUND)] {
            for after in ["", "room-25000", "room-48900"] {
                let count = |status| db.prepare_cached(sql).expect("it is kept").get_status(status);
                let before = [Run, VmStep].map(count);
                let mut snapshot =
                    Snapshot { db: &db, last: &last, tail: &Tail::default(), revisions: &mut revisions };
                let after = Some(after.into());
                let page = Rooms { domain: DomainId(1), kind: RoomKind::Muc, after, limit: PAGE, all };
                let start = Instant::now();
                let rooms = snapshot.answer(&page).expect("it answers");
                let took = start.elapsed();
                let [runs, steps] = [count(Run) - before[0], count(VmStep) - before[1]];
                println!("a page of {}, after {:?}: {steps} steps, {took:?}", rooms.len(), page.after);
                assert_eq!((rooms.len(), runs), (usize::from(PAGE), 1));
                assert!(steps <= STEPS_MAX, "{steps} steps");
                assert_eq!((count(FullscanStep), count(Sort)), (0, 0), "{sql}");
            }
        }
    }
}
