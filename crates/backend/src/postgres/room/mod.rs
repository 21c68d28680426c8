//! Rooms, and what accounts are to them.

mod archive;
mod inbox;
mod light;
mod sweep;
mod vcard;

use super::column::{blob, code, int, ms, number, short, text, uint, whole_jid};
use super::connection::Connection;
use super::error::{Error, Result};
use super::lookup;
use super::push;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
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
use tokio_postgres::Row;

impl Answers<Room, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Room) -> Result<Option<Box<RoomRecord>>> {
        let found = self.db.opt(
            "SELECT id, domain, name, created, config, subject, kind, version,
                 coalesce((SELECT max(seq) FROM room_message WHERE room = room.id), 0),
                 (SELECT photos FROM room_vcard WHERE room = room.id)
             FROM room WHERE domain = $1 AND kind = $2 AND name = $3",
            &[&i64::from(asked.domain.0), &short(asked.kind), &asked.name],
        )?;
        let Some(row) = found else { return Ok(None) };
        let mut record = record(&row)?;
        let members = self.db.query(
            "SELECT jid, affiliation, nick, reason, since FROM room_member WHERE room = $1 ORDER BY jid",
            &[&i64::from(record.id.0)],
        )?;
        record.members = members.iter().map(member).collect::<Result<_>>()?;
        Ok(Some(Box::new(record)))
    }
}

impl Answers<Rooms, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Rooms) -> Result<Vec<RoomListed>> {
        // No name is empty.
        let after = asked.after.as_deref().unwrap_or_default();
        let sql = match asked.all {
            true => {
                "SELECT name, title, is_found FROM room WHERE domain = $1 AND kind = $4 AND name > $2
                 ORDER BY name LIMIT $3"
            }
            false => {
                "SELECT name, title, is_found FROM room WHERE domain = $1 AND kind = $4 AND name > $2 AND is_found
                 ORDER BY name LIMIT $3"
            }
        };
        let rows = self
            .db
            .query(sql, &[&i64::from(asked.domain.0), &after, &i64::from(asked.limit), &short(asked.kind)])?;
        let listed =
            |row: &Row| Ok(RoomListed { name: text(row, 0)?, title: text(row, 1)?, public: row.try_get(2)? });
        rows.iter().map(listed).collect()
    }
}

impl Answers<RoomsOf, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &RoomsOf) -> Result<Vec<RoomOfAccount>> {
        let after = asked.after.as_deref().unwrap_or_default();
        let rows = self.db.query(
            "SELECT r.name, m.affiliation, r.id, r.title, r.version FROM room_member m JOIN room r ON r.id = m.room
             WHERE m.jid = $2 AND m.affiliation <> $5 AND r.domain = $1 AND r.kind = $6 AND r.name > $3
             ORDER BY r.name LIMIT $4",
            &[
                &i64::from(asked.domain.0),
                &asked.jid.as_str(),
                &after,
                &i64::from(asked.limit),
                &short(RoomAffiliation::None),
                &short(asked.kind),
            ],
        )?;
        let of = |row: &Row| {
            Ok(RoomOfAccount {
                name: text(row, 0)?,
                affiliation: code(row, 1)?,
                id: RoomId(number(row, 2)?),
                title: text(row, 3)?,
                version: number(row, 4)?,
            })
        };
        rows.iter().map(of).collect()
    }
}

impl Answers<CreateRoom, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &CreateRoom) -> Result<CreateRoomAnswer> {
        let CreateRoom { domain, kind, name, config, members, owned_max, rooms_max, now, facts } = asked;
        if owns(self.db, members, *owned_max)? {
            return Ok(CreateRoomAnswer::Full);
        }
        if lookup::domain_name(self.db, *domain)?.is_none() {
            return Ok(CreateRoomAnswer::NoDomain);
        }
        // Counted only where there is a bound: to keep a count would have those who create rooms wait for each other.
        if *rooms_max < u32::MAX && is_full(self.db, *domain, *rooms_max)? {
            return Ok(CreateRoomAnswer::DomainFull);
        }
        let made = self.returning_opt(
            "INSERT INTO room (domain, name, created, title, is_found, config, kind)
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING RETURNING id",
            &[
                &i64::from(domain.0),
                name,
                &int(now.0),
                &&*config.title,
                &is_found(config),
                &encode(config, 0),
                &short(*kind),
            ],
        )?;
        let Some(made) = made else { return Ok(CreateRoomAnswer::Exists) };
        let id = RoomId(number(&made, 0)?);
        set_members(self, id, members)?;
        facts.iter().for_each(|fact| self.note_fact(fact));
        Ok(CreateRoomAnswer::Created(Box::new(created_room(asked, id))))
    }
}

impl Answers<ConfigureRoom, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ConfigureRoom) -> Result<std::result::Result<(), Missing>> {
        let ConfigureRoom { room, config, version, facts } = asked;
        let done = self.change(
            "UPDATE room SET title = $2, is_found = $3, config = $4, version = $5 WHERE id = $1",
            &[
                &i64::from(room.0),
                &&*config.title,
                &is_found(config),
                &encode(config, 0),
                &i64::from(*version),
            ],
        )?;
        Ok(noted(self, done, facts))
    }
}

impl Answers<SetRoomMembers, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &SetRoomMembers) -> Result<std::result::Result<(), Missing>> {
        let (room, version) = (i64::from(asked.room.0), i64::from(asked.version));
        if self.run("UPDATE room SET version = $2 WHERE id = $1", &[&room, &version])? == 0 {
            return Ok(Err(Missing));
        }
        set_members(self, asked.room, &asked.changes)?;
        Ok(noted(self, Ok(()), &asked.facts))
    }
}

impl Answers<SetRoomSubject, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &SetRoomSubject) -> Result<std::result::Result<(), Missing>> {
        let subject = asked.subject.as_deref().map(|subject| encode(subject, 0));
        let room = i64::from(asked.room.0);
        let done = self.change("UPDATE room SET subject = $2 WHERE id = $1", &[&room, &subject])?;
        Ok(noted(self, done, &asked.facts))
    }
}

impl Answers<DestroyRoom, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &DestroyRoom) -> Result<std::result::Result<bool, Missing>> {
        let id = i64::from(asked.room.0);
        if self.db.opt("SELECT 1 FROM room WHERE id = $1", &[&id])?.is_none() {
            return Ok(Err(Missing));
        }
        let more = removal::room(self, asked.room, asked.rows_max as usize)?;
        if !more {
            asked.facts.iter().for_each(|fact| self.note_fact(fact));
        }
        Ok(Ok(more))
    }
}

/// Has what was done told to others; of what was not done nothing is.
fn noted(
    write: &mut Transaction<'_>,
    done: std::result::Result<(), Missing>,
    facts: &[RoomFact],
) -> std::result::Result<(), Missing> {
    if done.is_ok() {
        facts.iter().for_each(|fact| write.note_fact(fact));
    }
    done
}

/// An account is being removed: at most so many rooms lose it, in the order of their numbers; how many. A ban stays. Those of domains that tell who
/// their members are tell it, unless nobody is told.
pub(super) fn leave_all(
    write: &mut Transaction<'_>,
    account: &BareJid,
    told_at: Option<UnixMs>,
    max: i64,
) -> Result<usize> {
    let rows = write.db.query(
        "SELECT m.room, m.affiliation, r.domain, d.name, r.kind, r.name, d.room_events > 0
         FROM room_member m JOIN room r ON r.id = m.room JOIN domain d ON d.id = r.domain
         WHERE m.jid = $1 AND m.affiliation > $2 ORDER BY m.room LIMIT $3",
        &[&account.as_str(), &short(RoomAffiliation::Outcast), &max],
    )?;
    let mut rooms: Vec<i64> = Vec::with_capacity(rows.len());
    for row in &rows {
        rooms.push(row.try_get(0)?);
        let (affiliation, tells): (RoomAffiliation, bool) = (code(row, 1)?, row.try_get(6)?);
        let Some(now) = told_at.filter(|_| tells && affiliation > RoomAffiliation::None) else { continue };
        let (domain, kind): (_, RoomKind) = (DomainId(number(row, 2)?), code(row, 4)?);
        let room = BareJid::new(&kind.address(&text(row, 5)?, &text(row, 3)?));
        let room = room.map_err(|_| Error::Corrupt("not an address"))?;
        write.note_fact(&left(domain, room, account, affiliation, now));
    }
    write.run("DELETE FROM room_member WHERE jid = $1 AND room = ANY ($2)", &[&account.as_str(), &rooms])?;
    Ok(rooms.len())
}

/// Whether a domain has so many rooms. They are counted no further.
fn is_full(db: &Connection, domain: DomainId, max: u32) -> Result<bool> {
    let row = db.one(
        "SELECT (SELECT count(*) FROM (SELECT 1 FROM room WHERE domain = $1 LIMIT $2) AS r) >= $2",
        &[&i64::from(domain.0), &i64::from(max)],
    )?;
    Ok(row.try_get(0)?)
}

/// Whether one of those who are to own a room owns `max` already.
fn owns(db: &Connection, members: &[RoomMember], max: u32) -> Result<bool> {
    let owners = members.iter().filter(|member| member.affiliation == RoomAffiliation::Owner);
    let owners: Vec<&str> = owners.map(|member| member.jid.as_str()).collect();
    let row = db.one(
        "SELECT EXISTS (SELECT 1 FROM unnest($1::text[]) AS owner
             WHERE (SELECT count(*) FROM (
                 SELECT 1 FROM room_member WHERE jid = owner AND affiliation = $2 LIMIT $3) AS owned) >= $3)",
        &[&owners, &short(RoomAffiliation::Owner), &i64::from(max)],
    )?;
    Ok(row.try_get(0)?)
}

/// One statement for those who are to be listed, and one for those who are not.
fn set_members(write: &Transaction<'_>, room: RoomId, changes: &[RoomMember]) -> Result<()> {
    let room = i64::from(room.0);
    let out: Vec<&str> = changes
        .iter()
        .filter(|change| change.is_nothing() || change.affiliation == RoomAffiliation::Outcast)
        .map(|change| change.jid.as_str())
        .collect();
    if !out.is_empty() {
        push::left_room(write, room, &out)?;
    }
    let (gone, listed): (Vec<&RoomMember>, Vec<&RoomMember>) =
        changes.iter().partition(|member| member.is_nothing());
    if !gone.is_empty() {
        let jids: Vec<&str> = gone.iter().map(|member| member.jid.as_str()).collect();
        write.run("DELETE FROM room_member WHERE room = $1 AND jid = ANY ($2)", &[&room, &jids])?;
    }
    if !listed.is_empty() {
        let jids: Vec<&str> = listed.iter().map(|member| member.jid.as_str()).collect();
        let affiliations: Vec<i16> = listed.iter().map(|member| short(member.affiliation)).collect();
        let nicks: Vec<&str> = listed.iter().map(|member| &*member.nick).collect();
        let reasons: Vec<&str> = listed.iter().map(|member| &*member.reason).collect();
        let sinces: Vec<i64> = listed.iter().map(|member| int(member.since.0)).collect();
        // Of several about one account the last counts. Whoever becomes a member has read what was said before.
        write.run(
            "INSERT INTO room_member AS known (room, jid, affiliation, nick, reason, since, read, read_counted)
             SELECT DISTINCT ON (jid) $1::bigint, jid, affiliation, nick, reason, since, since,
                 (SELECT counted FROM room WHERE id = $1)
             FROM unnest($2::text[], $3::smallint[], $4::text[], $5::text[], $6::bigint[]) WITH ORDINALITY
                 AS member (jid, affiliation, nick, reason, since, place)
             ORDER BY jid, place DESC
             ON CONFLICT (room, jid) DO UPDATE SET affiliation = excluded.affiliation, nick = excluded.nick,
             reason = excluded.reason,
             (since, read, read_counted) = (SELECT
                 CASE WHEN was THEN known.since ELSE excluded.since END,
                 CASE WHEN was THEN known.read ELSE excluded.read END,
                 CASE WHEN was THEN known.read_counted ELSE excluded.read_counted END
                 FROM (SELECT known.affiliation >= $7 AND excluded.affiliation >= $7 AS was) AS standing)",
            &[&room, &jids, &affiliations, &nicks, &reasons, &sinces, &short(RoomAffiliation::Member)],
        )?;
    }
    Ok(())
}

fn member(row: &Row) -> Result<RoomMember> {
    Ok(RoomMember {
        jid: whole_jid(row, 0)?,
        affiliation: code(row, 1)?,
        nick: text(row, 2)?,
        reason: text(row, 3)?,
        since: ArchiveId(uint(row, 4)?),
    })
}

fn record(row: &Row) -> Result<RoomRecord> {
    let subject: Option<&[u8]> = row.try_get(5)?;
    Ok(RoomRecord {
        id: RoomId(number(row, 0)?),
        domain: DomainId(number(row, 1)?),
        kind: code(row, 6)?,
        name: text(row, 2)?,
        created: ms(row, 3)?,
        config: form(blob(row, 4)?)?,
        members: Vec::new(),
        subject: subject.map(form).transpose()?.map(Box::new),
        version: number(row, 7)?,
        newest: ArchiveId(uint(row, 8)?),
        photos: vcard::photos(row.try_get(9)?)?,
    })
}

fn form<T: Form>(bytes: &[u8]) -> Result<T> {
    decode(bytes, Clock::default()).map_err(|_| Error::Corrupt("a value has a form that is not known"))
}
