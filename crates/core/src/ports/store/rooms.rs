//! Rooms, their members, and their archives.
//!
//! A write carries the facts of which others are to be told: each is an event ([`Events`](super::notifications::Events)), in the same commit. Of one that is
//! not done there is none.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::archive::ArchivePageAnswer;
use super::question::questions;
use super::{Load, Loads, Missing, Page};
use crate::model::{
    ArchiveEnds, ArchiveFilter, ArchiveId, ArchiveStart, DomainId, PhotoHash, RoomBlock, RoomConfig,
    RoomEntry, RoomFact, RoomId, RoomKind, RoomListed, RoomMember, RoomOfAccount, RoomRecord, RoomSubject,
    UnixMs, Wake,
};
use bytes::Bytes;
use carillon_wire::jid::BareJid;

questions! {
    Rooms,
    reads {
        Room => Option<Box<RoomRecord>>,
        Rooms => Vec<RoomListed>,
        RoomsOf => Vec<RoomOfAccount>,
        RoomRefusers => Vec<BareJid>,
        RoomBlocks => Vec<RoomBlock>,
        RoomArchivePage => ArchivePageAnswer,
        RoomArchivedMessages => ArchivePageAnswer,
        ReadRoomArchiveEnds => Option<ArchiveEnds>,
        ReadRoomVcard => Option<Bytes>,
    }
    writes {
        ConfigureRoom => Result<(), Missing>,
        SetRoomMembers => Result<(), Missing>,
        SetRoomSubject => Result<(), Missing>,
        SetRoomVcard => Result<(), Missing>,
        ReplaceRoomMessage => Result<(), Missing>,
        EraseRoomArchive => Result<(), Missing>,
        SweepRoomArchives => SweepRoomArchivesAnswer,
        ChangeRoomBlocks => ChangeRoomBlocksAnswer,
    }
    once {
        CreateRoom => CreateRoomAnswer,
        DestroyRoom => Result<bool, Missing>,
        KeepRoomMessage => Result<ArchiveId, Missing>,
    }
    loads { SetRoomMembers, SetRoomSubject, SetRoomVcard, ReplaceRoomMessage, CreateRoom, KeepRoomMessage, ChangeRoomBlocks, }
}

/// A room.
#[derive(Clone, Debug)]
pub struct Room {
    pub domain: DomainId,
    pub kind: RoomKind,
    pub name: Box<str>,
}

/// Rooms of a kind in the order of their names, those after `after`, at most `limit`; only those that can be found by everybody, or all.
#[derive(Clone, Debug)]
pub struct Rooms {
    pub domain: DomainId,
    pub kind: RoomKind,
    pub after: Option<Box<str>>,
    pub limit: u16,
    pub all: bool,
}

/// The rooms of a kind in a domain that list an account with an affiliation, in the order of their names, those after `after`, at most `limit`.
#[derive(Clone, Debug)]
pub struct RoomsOf {
    pub domain: DomainId,
    pub kind: RoomKind,
    pub jid: BareJid,
    pub after: Option<Box<str>>,
    pub limit: u16,
}

/// Which of these accounts are not to be added to a room: those that are members of `rooms_max` rooms of this kind, and to one of MUC Light those that block
/// `by`, its domain, the room or the host of such rooms. `by` itself blocks nothing of that.
#[derive(Clone, Debug)]
pub struct RoomRefusers {
    pub domain: DomainId,
    pub kind: RoomKind,
    pub room: BareJid,
    pub by: BareJid,
    pub accounts: Vec<BareJid>,
    pub rooms_max: u32,
}

/// Whom, and what, an account blocks in MUC Light, in their order.
#[derive(Clone, Debug)]
pub struct RoomBlocks {
    pub domain: DomainId,
    pub local: Box<str>,
}

/// Changes that: each entry is there afterwards, or is not. Nothing is changed if there would be more than `max`.
#[derive(Clone, Debug)]
pub struct ChangeRoomBlocks {
    pub domain: DomainId,
    pub local: Box<str>,
    pub changes: Vec<(RoomBlock, bool)>,
    pub max: u32,
}

/// What became of [`ChangeRoomBlocks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeRoomBlocksAnswer {
    /// It is so.
    Changed,
    /// The account would block too many.
    Full,
    /// There is no such account.
    NoAccount,
}

/// Creates a room, unless one of its owners owns `owned_max` rooms already, or the domain has `rooms_max`. `members` as in [`RoomRecord`].
#[derive(Clone, Debug)]
pub struct CreateRoom {
    pub domain: DomainId,
    pub kind: RoomKind,
    pub name: Box<str>,
    pub config: RoomConfig,
    pub members: Vec<RoomMember>,
    pub owned_max: u32,
    pub rooms_max: u32,
    pub now: UnixMs,
    pub facts: Vec<RoomFact>,
}

/// What became of [`CreateRoom`].
#[derive(Clone, Debug)]
pub enum CreateRoomAnswer {
    /// The room was created.
    Created(Box<RoomRecord>),
    /// There is one with this name already.
    Exists,
    /// An owner owns as many rooms as it may.
    Full,
    /// The domain has as many rooms as it may.
    DomainFull,
    /// There is no such domain.
    NoDomain,
}

/// Changes a room's configuration.
#[derive(Clone, Debug)]
pub struct ConfigureRoom {
    pub room: RoomId,
    pub config: RoomConfig,
    pub version: u32,
    pub facts: Vec<RoomFact>,
}

/// Sets what a room has of accounts ([`RoomRecord::members_after`]). The accounts are of the room's domain or of others; that there is such an
/// account is not checked.
#[derive(Clone, Debug)]
pub struct SetRoomMembers {
    pub room: RoomId,
    pub changes: Vec<RoomMember>,
    pub version: u32,
    pub facts: Vec<RoomFact>,
}

/// Sets a room's subject.
#[derive(Clone, Debug)]
pub struct SetRoomSubject {
    pub room: RoomId,
    pub subject: Option<Box<RoomSubject>>,
    pub facts: Vec<RoomFact>,
}

/// What a room tells of itself (XEP-0054); none where it tells nothing, or there is no such room.
#[derive(Clone, Debug)]
pub struct ReadRoomVcard {
    pub room: RoomId,
}

/// Keeps a room's vCard in place of the one before. An empty one is not kept any longer.
#[derive(Clone, Debug)]
pub struct SetRoomVcard {
    pub room: RoomId,
    pub xml: Bytes,
    /// Those of its photos.
    pub photos: Box<[PhotoHash]>,
}

/// Removes a part of a room with its members, its vCard and its archive: all of it, or `rows_max` rows, about. Whether there is more of it: then it is asked again. The facts are those
/// of the last part. What is left of it in between its owners can remove, too.
#[derive(Clone, Debug)]
pub struct DestroyRoom {
    pub room: RoomId,
    pub facts: Vec<RoomFact>,
    pub rows_max: u32,
}

/// What [`DestroyRoom::rows_max`] is, unless there is a reason: other writes wait for some milliseconds.
pub const ROOM_PART_ROWS: u32 = 1024;

/// Keeps a message in a room's archive. Its number is higher than that of every message that was kept in the room before. `sender` is the
/// account that sent it. What it sends as [`RoomEntry::Counted`], and the message that it names as `displayed`, by its number or its id, it has read.
/// The times ascend as those of the archives of accounts do ([`kept_at`](crate::model::kept_at)). It is pushed to those whom it wakes, unless they have
/// read it before, or are not listed by the room any more; and, at `listeners`, to the registrations that want every message of the room, but for those of
/// its sender.
#[derive(Clone, Debug)]
pub struct KeepRoomMessage {
    pub room: RoomId,
    pub received: UnixMs,
    pub sender: BareJid,
    pub stanza: Bytes,
    pub entry: RoomEntry,
    pub displayed: Option<Box<str>>,
    pub wake: Option<Box<RoomWake>>,
    pub listeners: Option<UnixMs>,
    /// That it was said; the store puts in its number.
    pub fact: Option<Box<RoomFact>>,
}

/// Whom a message of a room wakes: accounts of a domain, by their local parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomWake {
    pub domain: DomainId,
    pub mentioned: Vec<Box<str>>,
    pub wake: Wake,
}

/// A page of a room's archive: the messages that the filter lets through, in the order of their numbers, and behind `since`. `with` names the
/// account that sent them, bare, or nobody.
#[derive(Clone, Debug)]
pub struct RoomArchivePage {
    pub room: RoomId,
    pub since: ArchiveId,
    pub filter: ArchiveFilter,
    pub start: ArchiveStart,
    pub page: Page,
}

/// Messages of a room's archive by their numbers, in their order, all of them behind `since`. Not bounded in bytes: whoever asks for many asks
/// more than once.
#[derive(Clone, Debug)]
pub struct RoomArchivedMessages {
    pub room: RoomId,
    pub since: ArchiveId,
    pub ids: Vec<ArchiveId>,
}

/// The oldest and the newest message of a room's archive, of those behind `since`.
#[derive(Clone, Debug)]
pub struct ReadRoomArchiveEnds {
    pub room: RoomId,
    pub since: ArchiveId,
}

/// Replaces a message in a room's archive by what is left of it (XEP-0425 §5).
#[derive(Clone, Debug)]
pub struct ReplaceRoomMessage {
    pub room: RoomId,
    pub id: ArchiveId,
    pub stanza: Bytes,
    pub facts: Vec<RoomFact>,
}

/// Empties a room's archive.
#[derive(Clone, Debug)]
pub struct EraseRoomArchive {
    pub room: RoomId,
}

/// Removes from the archives of rooms what their domains do not keep any longer, or they themselves do not
/// ([`Policy::room_archive_bounds`](crate::model::Policy::room_archive_bounds)): of the rooms after `after`, and at most `max` messages.
#[derive(Clone, Debug)]
pub struct SweepRoomArchives {
    pub now: UnixMs,
    pub after: RoomId,
    pub max: u32,
}

/// What [`SweepRoomArchives`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepRoomArchivesAnswer {
    /// How many messages it removed.
    pub removed: u32,
    /// Where to go on, which may be where it began; none when all archives were looked at.
    pub next: Option<RoomId>,
}

impl Loads for SetRoomMembers {
    fn load(&self) -> Load<'_> {
        let members: usize = self.changes.iter().map(RoomMember::bytes).sum();
        Load { bytes: members + bytes_of(&self.facts), account: None }
    }
}

impl Loads for ChangeRoomBlocks {
    fn load(&self) -> Load<'_> {
        let bytes = self.changes.iter().map(|(block, _)| size_of::<RoomBlock>() + block.jid.as_str().len());
        Load { bytes: bytes.sum(), account: Some((self.domain, &self.local)) }
    }
}

impl Loads for SetRoomSubject {
    fn load(&self) -> Load<'_> {
        let subject = self.subject.as_ref().map_or(0, |subject| subject.stanza.len());
        Load { bytes: subject + bytes_of(&self.facts), account: None }
    }
}

impl Loads for SetRoomVcard {
    fn load(&self) -> Load<'_> {
        Load { bytes: self.xml.len() + size_of_val(&*self.photos), account: None }
    }
}

impl Loads for ReplaceRoomMessage {
    fn load(&self) -> Load<'_> {
        Load { bytes: self.stanza.len(), account: None }
    }
}

impl Loads for CreateRoom {
    fn load(&self) -> Load<'_> {
        let members: usize = self.members.iter().map(RoomMember::bytes).sum();
        Load { bytes: members + bytes_of(&self.facts), account: None }
    }
}

impl Loads for KeepRoomMessage {
    fn load(&self) -> Load<'_> {
        let mentioned = self.wake.iter().flat_map(|wake| &wake.mentioned).map(|local| local.len() + 32);
        let fact = self.fact.as_ref().map_or(0, |fact| fact.bytes());
        Load { bytes: self.stanza.len() + mentioned.sum::<usize>() + fact, account: None }
    }
}

fn bytes_of(facts: &[RoomFact]) -> usize {
    facts.iter().map(RoomFact::bytes).sum()
}
