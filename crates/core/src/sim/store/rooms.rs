//! Rooms.

use super::{Committed, answers};
use crate::model::{
    ArchiveEnds, ArchiveId, ArchivedMessage, DomainId, RoomAffiliation, RoomId, RoomListed, RoomMember,
    RoomRecord, UnixMs, kept_at,
};
use crate::ports::Missing;
use crate::ports::store::archive::ArchivePageAnswer;
use crate::ports::store::rooms::*;
use carillon_wire::jid::{BareJid, Jid};
use std::collections::BTreeMap;

/// All rooms.
#[derive(Clone, Debug, Default)]
pub(in crate::sim) struct Table {
    rooms: BTreeMap<RoomId, Stored>,
    names: BTreeMap<(DomainId, Box<str>), RoomId>,
}

#[derive(Clone, Debug)]
struct Stored {
    record: RoomRecord,
    /// The archive: who sent each message, and the message.
    archive: BTreeMap<ArchiveId, (Jid, ArchivedMessage)>,
    /// When the newest message was received.
    archived_at: UnixMs,
}

answers! {
    Room => describe;
    Rooms => list;
    RoomsOf => rooms_of;
    RoomArchivePage => page;
    RoomArchivedMessages => messages;
    ReadRoomArchiveEnds => ends;
    ConfigureRoom => configure;
    SetRoomMembers => set_members;
    SetRoomSubject => set_subject;
    ReplaceRoomMessage => replace;
    EraseRoomArchive => erase;
    SweepRoomArchives => sweep;
    CreateRoom => create;
    DestroyRoom => destroy;
    KeepRoomMessage => keep;
}

impl Table {
    fn room(&mut self, room: RoomId) -> Result<&mut Stored, Missing> {
        self.rooms.get_mut(&room).ok_or(Missing)
    }

    /// The rooms of a domain in the order of their names, behind one of them.
    fn after<'a>(&'a self, of: DomainId, after: Option<&'a str>) -> impl Iterator<Item = &'a Stored> {
        let names = self
            .names
            .iter()
            .filter(move |((domain, name), _)| *domain == of && after.is_none_or(|after| **name > *after));
        names.filter_map(|(_, id)| self.rooms.get(id))
    }

    /// An account was removed: no room lists it any more.
    pub(super) fn forget_account(&mut self, jid: &BareJid) {
        for room in self.rooms.values_mut() {
            // A ban stays: deleting the account would be the way around it.
            let is_kept = |of: &RoomMember| of.jid != *jid || of.affiliation == RoomAffiliation::Outcast;
            room.record.members.retain(is_kept);
        }
    }

    /// A domain was removed.
    pub(super) fn forget_domain(&mut self, domain: DomainId) {
        self.names.retain(|(of, _), _| *of != domain);
        self.rooms.retain(|_, room| room.record.domain != domain);
    }
}

fn describe(store: &Committed, asked: &Room) -> Option<Box<RoomRecord>> {
    let table = &store.own.rooms;
    let id = table.names.get(&(asked.domain, asked.name.clone()))?;
    table.rooms.get(id).map(|room| Box::new(room.record.clone()))
}

fn list(store: &Committed, asked: &Rooms) -> Vec<RoomListed> {
    let rooms = store.own.rooms.after(asked.domain, asked.after.as_deref());
    let listed = rooms.map(|Stored { record: RoomRecord { name, config, .. }, .. }| RoomListed {
        name: name.clone(),
        title: config.title.clone().into(),
        public: config.public && !config.locked,
    });
    listed.filter(|room| asked.all || room.public).take(asked.limit.into()).collect()
}

fn rooms_of(store: &Committed, asked: &RoomsOf) -> Vec<(Box<str>, RoomAffiliation)> {
    let rooms = store.own.rooms.after(asked.domain, asked.after.as_deref());
    let of = rooms.filter_map(|Stored { record, .. }| match record.affiliation(asked.jid.as_str()) {
        RoomAffiliation::None => None,
        affiliation => Some((record.name.clone(), affiliation)),
    });
    of.take(asked.limit.into()).collect()
}

fn create(store: &mut Committed, asked: &CreateRoom) -> CreateRoomAnswer {
    let CreateRoom { domain, name, config, members, owned_max, now } = asked;
    let is_owner = |member: &&RoomMember| member.affiliation == RoomAffiliation::Owner;
    let owned = |jid: &BareJid| {
        let rooms = store.own.rooms.rooms.values();
        rooms.filter(|room| room.record.affiliation(jid.as_str()) == RoomAffiliation::Owner).count()
    };
    if members.iter().filter(is_owner).any(|member| owned(&member.jid) >= *owned_max as usize) {
        return CreateRoomAnswer::Full;
    }
    if !store.domains.contains_key(domain) {
        return CreateRoomAnswer::NoDomain;
    }
    if store.own.rooms.names.contains_key(&(*domain, name.clone())) {
        return CreateRoomAnswer::Exists;
    }
    let mut members = members.clone();
    members.sort_by(|a, b| a.jid.as_str().cmp(b.jid.as_str()));
    let record = RoomRecord {
        id: RoomId(store.number()),
        domain: *domain,
        name: name.clone(),
        config: config.clone(),
        members,
        subject: None,
        created: *now,
    };
    let table = &mut store.own.rooms;
    table.names.insert((*domain, name.clone()), record.id);
    let stored = Stored { record: record.clone(), archive: BTreeMap::new(), archived_at: UnixMs(0) };
    table.rooms.insert(record.id, stored);
    CreateRoomAnswer::Created(Box::new(record))
}

fn configure(store: &mut Committed, asked: &ConfigureRoom) -> Result<(), Missing> {
    store.own.rooms.room(asked.room)?.record.config = asked.config.clone();
    Ok(())
}

fn set_members(store: &mut Committed, asked: &SetRoomMembers) -> Result<(), Missing> {
    let record = &mut store.own.rooms.room(asked.room)?.record;
    record.members = record.members_after(&asked.changes);
    Ok(())
}

fn set_subject(store: &mut Committed, asked: &SetRoomSubject) -> Result<(), Missing> {
    store.own.rooms.room(asked.room)?.record.subject = asked.subject.clone();
    Ok(())
}

fn destroy(store: &mut Committed, asked: &DestroyRoom) -> Result<(), Missing> {
    let room = store.own.rooms.rooms.remove(&asked.room).ok_or(Missing)?;
    store.own.rooms.names.remove(&(room.record.domain, room.record.name));
    Ok(())
}

fn keep(store: &mut Committed, asked: &KeepRoomMessage) -> Result<ArchiveId, Missing> {
    let id = ArchiveId(store.number().into());
    let room = store.own.rooms.room(asked.room)?;
    let received = kept_at(asked.received, room.archived_at);
    room.archived_at = received;
    let message = ArchivedMessage { id, received, stanza: asked.stanza.clone() };
    room.archive.insert(id, (asked.sender.to_jid(), message));
    Ok(id)
}

fn page(store: &Committed, asked: &RoomArchivePage) -> ArchivePageAnswer {
    let Some(room) = store.own.rooms.rooms.get(&asked.room) else { return ArchivePageAnswer::NoAccount };
    let all: Vec<_> = room.archive.values().map(|(sender, message)| (sender, message)).collect();
    super::archive::page_of(&all, &asked.filter, asked.start, asked.page)
}

fn messages(store: &Committed, asked: &RoomArchivedMessages) -> ArchivePageAnswer {
    let Some(room) = store.own.rooms.rooms.get(&asked.room) else { return ArchivePageAnswer::NoAccount };
    super::archive::named(&asked.ids, |id| room.archive.get(&id).map(|(_, message)| message))
}

fn ends(store: &Committed, asked: &ReadRoomArchiveEnds) -> Option<ArchiveEnds> {
    let archive = &store.own.rooms.rooms.get(&asked.room)?.archive;
    let of = |(id, (_, message)): (&ArchiveId, &(Jid, ArchivedMessage))| (*id, message.received);
    Some(ArchiveEnds { first: archive.first_key_value().map(of)?, last: archive.last_key_value().map(of)? })
}

fn replace(store: &mut Committed, asked: &ReplaceRoomMessage) -> Result<(), Missing> {
    let room = store.own.rooms.room(asked.room)?;
    let (_, message) = room.archive.get_mut(&asked.id).ok_or(Missing)?;
    message.stanza = asked.stanza.clone();
    Ok(())
}

fn erase(store: &mut Committed, asked: &EraseRoomArchive) -> Result<(), Missing> {
    store.own.rooms.room(asked.room)?.archive.clear();
    Ok(())
}

fn sweep(store: &mut Committed, asked: &SweepRoomArchives) -> SweepRoomArchivesAnswer {
    let mut removed = 0;
    let domains = store.domains.clone();
    for (id, room) in store.own.rooms.rooms.range_mut(RoomId(asked.after.0 + 1)..) {
        let Some(domain) = domains.get(&room.record.domain) else { continue };
        let bounds = domain.policy.archive_bounds();
        while let Some((oldest, (_, message))) = room.archive.first_key_value() {
            let bytes: usize = room.archive.values().map(|(_, message)| message.stanza.len()).sum();
            let is_old = message.received < bounds.cutoff(asked.now);
            if !is_old && !bounds.are_exceeded(room.archive.len() as u64, bytes as u64) {
                break;
            }
            if removed == asked.max {
                return SweepRoomArchivesAnswer { removed, next: Some(RoomId(id.0 - 1)) };
            }
            let oldest = *oldest;
            room.archive.remove(&oldest);
            removed += 1;
        }
    }
    SweepRoomArchivesAnswer { removed, next: None }
}
