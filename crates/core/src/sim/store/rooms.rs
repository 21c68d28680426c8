//! Rooms.

use super::push::{self, Tells};
use super::tables::Told;
use super::{Committed, answers};
use crate::model::{
    ArchiveEnds, ArchiveId, ArchivedMessage, Conversation, ConversationChange, Domain, DomainId, Folder,
    InboxEntry, InboxFilter, MARKED_MAX, RoomAction, RoomAffiliation, RoomBlock, RoomEntry, RoomFact,
    RoomHistory, RoomId, RoomKind, RoomListed, RoomMember, RoomMemberFact, RoomOfAccount, RoomRecord, UnixMs,
    has_id, kept_at,
};
use crate::ports::Missing;
use crate::ports::store::archive::ArchivePageAnswer;
use crate::ports::store::rooms::*;
use bytes::Bytes;
use carillon_wire::jid::{BareJid, Jid};
use std::collections::{BTreeMap, BTreeSet};

/// All rooms.
#[derive(Clone, Debug, Default)]
pub(in crate::sim) struct Table {
    rooms: BTreeMap<RoomId, Stored>,
    names: BTreeMap<(DomainId, RoomKind, Box<str>), RoomId>,
    /// Whom, and what, accounts block in MUC Light.
    blocks: BTreeMap<(DomainId, Box<str>), BTreeSet<RoomBlock>>,
}

#[derive(Clone, Debug)]
struct Stored {
    record: RoomRecord,
    /// The archive: who sent each message, and the message.
    archive: BTreeMap<ArchiveId, (Jid, ArchivedMessage)>,
    /// How many messages there were that count with each message.
    counts: BTreeMap<ArchiveId, u64>,
    /// The newest message that inboxes show, and how many count.
    last: ArchiveId,
    counted: u64,
    /// What members have noted of it, and how many they have read that count.
    noted: BTreeMap<BareJid, (Conversation, u64)>,
    /// When the newest message was received.
    archived_at: UnixMs,
    /// What it tells of itself; empty for nothing.
    vcard: Bytes,
}

answers! {
    Room => describe;
    Rooms => list;
    RoomsOf => rooms_of;
    RoomRefusers => refusers;
    RoomBlocks => blocks;
    ChangeRoomBlocks => change_blocks;
    RoomArchivePage => page;
    RoomArchivedMessages => messages;
    ReadRoomArchiveEnds => ends;
    ConfigureRoom => configure;
    SetRoomMembers => set_members;
    SetRoomSubject => set_subject;
    ReadRoomVcard => vcard;
    SetRoomVcard => set_vcard;
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

    /// The rooms of a kind in a domain in the order of their names, behind one of them.
    fn after<'a>(
        &'a self,
        of: (DomainId, RoomKind),
        after: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Stored> {
        let names = self.names.iter().filter(move |((domain, kind, name), _)| {
            (*domain, *kind) == of && after.is_none_or(|after| **name > *after)
        });
        names.filter_map(|(_, id)| self.rooms.get(id))
    }

    /// An account was removed: no room lists it any more.
    pub(super) fn forget_account(&mut self, domain: DomainId, jid: &BareJid) {
        self.blocks.retain(|(of, local), _| *of != domain || Some(&**local) != jid.local());
        for room in self.rooms.values_mut() {
            // A ban stays: deleting the account would be the way around it.
            let is_kept = |of: &RoomMember| of.jid != *jid || of.affiliation == RoomAffiliation::Outcast;
            room.record.members.retain(is_kept);
            room.noted.remove(jid);
        }
    }

    /// What is told when an account is removed: of which rooms, and what.
    pub(super) fn facts_of_leaving(
        &self,
        domains: &BTreeMap<DomainId, Domain>,
        account: &BareJid,
        at: UnixMs,
    ) -> Vec<(RoomId, RoomFact)> {
        let of = self.rooms.values().filter_map(|room| {
            let RoomRecord { id, domain, kind, name, .. } = &room.record;
            let known = domains.get(domain)?;
            let was = room.record.affiliation(account.as_str());
            let members = vec![RoomMemberFact { account: account.clone(), was, is: RoomAffiliation::None }];
            let room = BareJid::new(&kind.address(name, &known.name)).ok()?;
            let action = RoomAction::Members(members);
            let is_told = was > RoomAffiliation::None && known.policy.room_events.tells(&action);
            is_told.then_some((*id, RoomFact { domain: *domain, room, at, by: None, action }))
        });
        of.collect()
    }

    /// How many rooms a domain has.
    pub(super) fn of_domain(&self, domain: DomainId) -> usize {
        self.names.keys().filter(|(of, ..)| *of == domain).count()
    }

    /// A domain was removed.
    pub(super) fn forget_domain(&mut self, domain: DomainId) {
        self.names.retain(|(of, ..), _| *of != domain);
        self.blocks.retain(|(of, _), _| *of != domain);
        self.rooms.retain(|_, room| room.record.domain != domain);
    }
}

/// The rooms in inboxes.
impl Table {
    /// The entries of an account that a filter lets through.
    pub(super) fn entries(&self, account: &BareJid, filter: &InboxFilter) -> Vec<InboxEntry> {
        let rooms = self.rooms.values().filter(|room| room.is_member(account));
        rooms.filter_map(|room| room.entry(account, filter)).collect()
    }

    /// Changes how a room stands for a member; nothing where this is no room.
    pub(super) fn change(
        &mut self,
        account: &BareJid,
        with: &BareJid,
        change: &ConversationChange,
    ) -> Option<Result<Conversation, Missing>> {
        RoomKind::of_host(with.domain()).filter(|(_, domain)| *domain == account.domain())?;
        let room = self.rooms.values_mut().find(|room| room.jid(account) == *with && room.is_member(account));
        let Some(room) = room.filter(|room| room.standing(account).is_there()) else {
            return Some(Err(Missing));
        };
        let (last, counted) = (room.last, room.counted);
        let (noted, read) = room.noted.entry(account.clone()).or_default();
        noted.change(change, last);
        if change.is_read == Some(true) {
            *read = counted;
        }
        Some(Ok(room.standing(account)))
    }

    /// Takes the rooms out of an account's bin; how many.
    pub(super) fn empty_bin(&mut self, account: &BareJid) -> u32 {
        let mut emptied = 0;
        for room in self.rooms.values_mut() {
            let last = room.last;
            if let Some((noted, _)) = room.noted.get_mut(account)
                && noted.folder == Folder::Bin
                && noted.moved >= last
            {
                (noted.folder, noted.moved) = (Folder::Nowhere, last);
                emptied += 1;
            }
        }
        emptied
    }
}

impl Stored {
    fn is_member(&self, account: &BareJid) -> bool {
        self.record.affiliation(account.as_str()) >= RoomAffiliation::Member
    }

    /// The address of the room, for an account of its domain.
    fn jid(&self, account: &BareJid) -> BareJid {
        let address = self.record.kind.address(&self.record.name, account.domain());
        BareJid::new(&address).expect("the address of a room")
    }

    fn standing(&self, account: &BareJid) -> Conversation {
        let (noted, read) = self.noted.get(account).copied().unwrap_or_default();
        Conversation::of_room(noted, self.last, self.counted, read)
    }

    fn entry(&self, account: &BareJid, filter: &InboxFilter) -> Option<InboxEntry> {
        let conversation = self.standing(account);
        let (_, message) = self.archive.get(&self.last)?;
        let is_of_time = filter.start.is_none_or(|start| message.received >= start)
            && filter.end.is_none_or(|end| message.received <= end);
        let config = &self.record.config;
        let is_closed = config.members_only && config.members_history == RoomHistory::SinceMember;
        let since = self.record.member(account.as_str())?.since;
        let peer = self.jid(account);
        let is_it = filter.with.as_ref().is_none_or(|with| *with == peer);
        let is_shown =
            is_of_time && is_it && filter.takes(&conversation) && !(is_closed && self.last <= since);
        is_shown.then(|| InboxEntry { peer, conversation, message: message.clone(), is_room: true })
    }
}

fn describe(store: &Committed, asked: &Room) -> Option<Box<RoomRecord>> {
    let table = &store.own.rooms;
    let id = table.names.get(&(asked.domain, asked.kind, asked.name.clone()))?;
    let room = table.rooms.get(id)?;
    let newest = room.archive.last_key_value().map_or(ArchiveId(0), |(id, _)| *id);
    Some(Box::new(RoomRecord { newest, ..room.record.clone() }))
}

fn list(store: &Committed, asked: &Rooms) -> Vec<RoomListed> {
    let rooms = store.own.rooms.after((asked.domain, asked.kind), asked.after.as_deref());
    let listed = rooms.map(|Stored { record: RoomRecord { name, config, .. }, .. }| RoomListed {
        name: name.clone(),
        title: config.title.clone().into(),
        public: config.public && !config.locked,
    });
    listed.filter(|room| asked.all || room.public).take(asked.limit.into()).collect()
}

fn rooms_of(store: &Committed, asked: &RoomsOf) -> Vec<RoomOfAccount> {
    let rooms = store.own.rooms.after((asked.domain, asked.kind), asked.after.as_deref());
    let of = rooms.filter_map(|Stored { record, .. }| match record.affiliation(asked.jid.as_str()) {
        RoomAffiliation::None => None,
        affiliation => Some(RoomOfAccount {
            id: record.id,
            name: record.name.clone(),
            title: record.config.title.clone().into(),
            version: record.version,
            affiliation,
        }),
    });
    of.take(asked.limit.into()).collect()
}

fn refusers(store: &Committed, asked: &RoomRefusers) -> Vec<BareJid> {
    let table = &store.own.rooms;
    let refuses = |account: &&BareJid| {
        let blocked = table.blocks.get(&(asked.domain, account.local().unwrap_or_default().into()));
        let is_it = |block: &RoomBlock| {
            let of = if block.is_room { &asked.room } else { &asked.by };
            [of.as_str(), of.domain()].contains(&block.jid.as_str())
        };
        let rooms = table.rooms.values().filter(|room| room.record.kind == asked.kind);
        let count = rooms.filter(|room| room.record.affiliation(account.as_str()) >= RoomAffiliation::Member);
        let can_block = asked.kind == RoomKind::MucLight && **account != asked.by;
        let blocks = can_block && blocked.is_some_and(|blocked| blocked.iter().any(is_it));
        blocks || count.count() >= asked.rooms_max as usize
    };
    asked.accounts.iter().filter(refuses).cloned().collect()
}

fn blocks(store: &Committed, asked: &RoomBlocks) -> Vec<RoomBlock> {
    let blocks = store.own.rooms.blocks.get(&(asked.domain, asked.local.clone()));
    blocks.into_iter().flatten().cloned().collect()
}

fn change_blocks(store: &mut Committed, asked: &ChangeRoomBlocks) -> ChangeRoomBlocksAnswer {
    if store.account_mut(asked.domain, &asked.local).is_none() {
        return ChangeRoomBlocksAnswer::NoAccount;
    }
    let known = store.own.rooms.blocks.entry((asked.domain, asked.local.clone())).or_default();
    let mut after = known.clone();
    for (block, is_wanted) in &asked.changes {
        match is_wanted {
            true => after.insert(block.clone()),
            false => after.remove(block),
        };
    }
    if after.len() > asked.max as usize {
        return ChangeRoomBlocksAnswer::Full;
    }
    *known = after;
    ChangeRoomBlocksAnswer::Changed
}

fn create(store: &mut Committed, asked: &CreateRoom) -> CreateRoomAnswer {
    let CreateRoom { domain, kind, name, config, members, owned_max, rooms_max, now, facts } = asked;
    let is_owner = |member: &&RoomMember| member.affiliation == RoomAffiliation::Owner;
    let owned = |jid: &BareJid| {
        let rooms = store.own.rooms.rooms.values();
        rooms.filter(|room| room.record.affiliation(jid.as_str()) == RoomAffiliation::Owner).count()
    };
    if members.iter().filter(is_owner).any(|member| owned(&member.jid) >= *owned_max as usize) {
        return CreateRoomAnswer::Full;
    }
    if store.own.rooms.of_domain(*domain) >= *rooms_max as usize {
        return CreateRoomAnswer::DomainFull;
    }
    if !store.domains.contains_key(domain) {
        return CreateRoomAnswer::NoDomain;
    }
    if store.own.rooms.names.contains_key(&(*domain, *kind, name.clone())) {
        return CreateRoomAnswer::Exists;
    }
    let mut members = members.clone();
    members.sort_by(|a, b| a.jid.as_str().cmp(b.jid.as_str()));
    let record = RoomRecord {
        id: RoomId(store.number()),
        domain: *domain,
        kind: *kind,
        name: name.clone(),
        config: config.clone(),
        members,
        subject: None,
        created: *now,
        version: 0,
        newest: ArchiveId(0),
        photos: Box::default(),
    };
    let table = &mut store.own.rooms;
    table.names.insert((*domain, *kind, name.clone()), record.id);
    let stored = Stored {
        record: record.clone(),
        archive: BTreeMap::new(),
        counts: BTreeMap::new(),
        last: ArchiveId(0),
        counted: 0,
        noted: BTreeMap::new(),
        archived_at: UnixMs(0),
        vcard: Bytes::new(),
    };
    table.rooms.insert(record.id, stored);
    tell(store, record.id, facts);
    CreateRoomAnswer::Created(Box::new(record))
}

fn configure(store: &mut Committed, asked: &ConfigureRoom) -> Result<(), Missing> {
    let record = &mut store.own.rooms.room(asked.room)?.record;
    (record.config, record.version) = (asked.config.clone(), asked.version);
    tell(store, asked.room, &asked.facts);
    Ok(())
}

fn set_members(store: &mut Committed, asked: &SetRoomMembers) -> Result<(), Missing> {
    let room = store.own.rooms.room(asked.room)?;
    let before = room.record.clone();
    room.record.members = before.members_after(&asked.changes);
    room.record.version = asked.version;
    room.noted.retain(|jid, _| room.record.member(jid.as_str()).is_some());
    for member in &room.record.members {
        let is_new = before.member(member.jid.as_str()).is_none_or(|before| !before.is_member());
        if is_new || !member.is_member() {
            let noted = room.noted.entry(member.jid.clone()).or_default();
            (noted.0.read, noted.1) = (member.since, room.counted);
        }
    }
    tell(store, asked.room, &asked.facts);
    Ok(())
}

fn vcard(store: &Committed, asked: &ReadRoomVcard) -> Option<Bytes> {
    let room = store.own.rooms.rooms.get(&asked.room)?;
    Some(room.vcard.clone()).filter(|xml| !xml.is_empty())
}

fn set_vcard(store: &mut Committed, asked: &SetRoomVcard) -> Result<(), Missing> {
    let room = store.own.rooms.room(asked.room)?;
    (room.vcard, room.record.photos) = (asked.xml.clone(), asked.photos.clone());
    Ok(())
}

fn set_subject(store: &mut Committed, asked: &SetRoomSubject) -> Result<(), Missing> {
    store.own.rooms.room(asked.room)?.record.subject = asked.subject.clone();
    tell(store, asked.room, &asked.facts);
    Ok(())
}

fn destroy(store: &mut Committed, asked: &DestroyRoom) -> Result<bool, Missing> {
    let room = store.own.rooms.rooms.remove(&asked.room).ok_or(Missing)?;
    store.own.rooms.names.remove(&(room.record.domain, room.record.kind, room.record.name));
    tell(store, asked.room, &asked.facts);
    Ok(false)
}

fn keep(store: &mut Committed, asked: &KeepRoomMessage) -> Result<ArchiveId, Missing> {
    let id = ArchiveId(store.number().into());
    let room = store.own.rooms.room(asked.room)?;
    let received = kept_at(asked.received, room.archived_at);
    room.archived_at = received;
    let message = ArchivedMessage { id, received, stanza: asked.stanza.clone() };
    room.archive.insert(id, (asked.sender.to_jid(), message));
    if asked.entry != RoomEntry::Other {
        room.last = id;
    }
    let counted = room.counted + u64::from(asked.entry == RoomEntry::Counted);
    room.counted = counted;
    room.counts.insert(id, counted);
    if asked.entry == RoomEntry::Counted {
        room.read(&asked.sender, id, counted);
    }
    if let Some(named) = &asked.displayed {
        room.displayed(&asked.sender, named);
    }
    if let Some(RoomWake { domain, mentioned, wake }) = asked.wake.as_deref() {
        for local in mentioned {
            if let Some(account) = store.account_id(*domain, local) {
                push::wake(store, account, Some(wake), Tells::Mention(asked.room, id));
            }
        }
    }
    if let Some(at) = asked.listeners {
        let RoomRecord { kind, name, domain, .. } = &store.own.rooms.room(asked.room)?.record;
        let of = store.domains.get(domain).map(|domain| domain.name.clone());
        let room = of.map(|of| kind.address(name, &of)).unwrap_or_default();
        push::wake_listeners(store, &room, &asked.sender, at, Tells::Mention(asked.room, id));
    }
    if let Some(fact) = &asked.fact {
        let mut fact = (**fact).clone();
        if let RoomAction::Message(message) = &mut fact.action {
            message.id = id;
        }
        store.tell(Told::Room(asked.room, fact));
    }
    Ok(id)
}

/// Has others told of what was done.
fn tell(store: &mut Committed, room: RoomId, facts: &[RoomFact]) {
    for fact in facts {
        store.tell(Told::Room(room, fact.clone()));
    }
}

impl Table {
    /// A message of a room's archive.
    pub(super) fn archived(&self, room: RoomId, id: ArchiveId) -> Option<ArchivedMessage> {
        self.rooms.get(&room)?.archive.get(&id).map(|(_, message)| message.clone())
    }

    /// Whether the room with this address lists an account of its domain that it has not banned.
    pub(super) fn lists(&self, domain: DomainId, room: &str, account: &BareJid) -> bool {
        let parts = room.split_once('@').and_then(|(name, host)| Some((name, RoomKind::of_host(host)?.0)));
        let id = parts.and_then(|(name, kind)| self.names.get(&(domain, kind, name.into())));
        let record = id.and_then(|id| self.rooms.get(id)).map(|room| &room.record);
        let member = record.and_then(|record| record.member(account.as_str()));
        member.is_some_and(|member| member.affiliation > RoomAffiliation::Outcast)
    }

    /// A message and when it was received, if it is there and a member has not read it.
    pub(super) fn unread(&self, room: RoomId, id: ArchiveId, member: &BareJid) -> Option<(Bytes, UnixMs)> {
        let room = self.rooms.get(&room)?;
        let listed = room.record.member(member.as_str())?;
        let has_read = room.noted.get(member).is_some_and(|(noted, _)| noted.read >= id);
        let (_, message) = room.archive.get(&id)?;
        let is_told = !has_read && listed.affiliation > RoomAffiliation::Outcast;
        is_told.then(|| (message.stanza.clone(), message.received))
    }
}

impl Stored {
    /// A member has read everything up to this message.
    fn read(&mut self, member: &BareJid, id: ArchiveId, counted: u64) {
        if self.record.member(member.as_str()).is_none() {
            return;
        }
        let (noted, read) = self.noted.entry(member.clone()).or_default();
        if noted.read < id {
            (noted.read, noted.marked, *read) = (id, ArchiveId(0), counted);
        }
    }

    fn displayed(&mut self, member: &BareJid, named: &str) {
        let numbered = named.parse().ok().map(ArchiveId).filter(|id| self.archive.contains_key(id));
        let with_id = || {
            let newest = self.archive.iter().rev().take(MARKED_MAX);
            newest.filter(|(_, (_, message))| has_id(&message.stanza, named)).map(|(id, _)| *id).next()
        };
        if let Some(id) = numbered.or_else(with_id) {
            let counted = self.counts.get(&id).copied().unwrap_or_default();
            self.read(member, id, counted);
        }
    }
}

fn page(store: &Committed, asked: &RoomArchivePage) -> ArchivePageAnswer {
    let Some(room) = store.own.rooms.rooms.get(&asked.room) else { return ArchivePageAnswer::NoAccount };
    let since = ArchiveId(asked.since.0 + 1);
    let all: Vec<_> = room.archive.range(since..).map(|(_, (sender, message))| (sender, message)).collect();
    super::archive::page_of(&all, &asked.filter, asked.start, asked.page)
}

fn messages(store: &Committed, asked: &RoomArchivedMessages) -> ArchivePageAnswer {
    let Some(room) = store.own.rooms.rooms.get(&asked.room) else { return ArchivePageAnswer::NoAccount };
    let found =
        |id: ArchiveId| room.archive.get(&id).filter(|_| id > asked.since).map(|(_, message)| message);
    super::archive::named(&asked.ids, found)
}

fn ends(store: &Committed, asked: &ReadRoomArchiveEnds) -> Option<ArchiveEnds> {
    let archive = &store.own.rooms.rooms.get(&asked.room)?.archive;
    let of = |(id, (_, message)): (&ArchiveId, &(Jid, ArchivedMessage))| (*id, message.received);
    let mut all = archive.range(ArchiveId(asked.since.0 + 1)..).map(of);
    let first = all.next()?;
    Some(ArchiveEnds { first, last: all.next_back().unwrap_or(first) })
}

fn replace(store: &mut Committed, asked: &ReplaceRoomMessage) -> Result<(), Missing> {
    let room = store.own.rooms.room(asked.room)?;
    let (_, message) = room.archive.get_mut(&asked.id).ok_or(Missing)?;
    message.stanza = asked.stanza.clone();
    tell(store, asked.room, &asked.facts);
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
        let bounds = domain.policy.room_archive_bounds(room.record.config.archive_days);
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
