//! What a room's home asked the store for, and what it does with the answer.

use super::asker::Asker;
use super::occupants::OccupantId;
use crate::command::{ReplyTo, RoomPhoto};
use crate::message::{RoomOp, RoomSeat};
use crate::model::{
    ArchiveId, PhotoHash, RoomAffiliation, RoomConfig, RoomFact, RoomMember, RoomRecord, RoomSubject,
};
use crate::session::mam::Query;
use bytes::Bytes;
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::Stanza;
use std::sync::Arc;

/// What the store was asked for.
#[derive(Debug)]
pub(super) enum Step {
    /// The record.
    Load,
    /// What was said last, for somebody who enters.
    History { record: Arc<RoomRecord>, entering: Box<RoomOp> },
    /// To create it.
    Create(Creator),
    /// To keep a message, which is then said; what others are told of that, if a feature wants to know.
    Keep { said: Box<Stanza>, asker: Asker, fact: Option<Box<RoomFact>> },
    /// To change something.
    Change { record: Arc<RoomRecord>, change: Change, asker: Asker },
    /// To remove it, because nobody is in it any more.
    Desert(Arc<RoomRecord>),
    /// A page of the archive.
    Page(Box<Reading>),
    /// A message that is to be moderated.
    Moderating(Box<Moderating>),
    /// A message that its sender retracts.
    Retracting(Box<Retracting>),
    /// To replace it by what is left of it.
    Retracted(Box<Retracted>),
    /// The vCard of an occupant.
    Vcard(Box<Stanza>),
    /// That of the room.
    OwnVcard(Box<Stanza>),
    /// That of the room, whose avatar is to be another one.
    Avatar { record: Arc<RoomRecord>, photo: Option<Box<RoomPhoto>>, asker: Asker },
    /// The ends of the archive.
    Ends(Box<Stanza>),
    /// Who is not to be added to a room.
    Adding(Box<Adding>),
    /// To keep what the room says of itself.
    Noted,
}

/// Who creates a room.
#[derive(Debug)]
pub(super) enum Creator {
    /// Whoever enters it first, by this presence.
    Client { seat: RoomSeat, presence: Box<Stanza> },
    /// A command.
    Command(ReplyTo),
    /// Whoever wants a room of MUC Light.
    Light(NewRoom),
}

impl Creator {
    /// The account that creates it, unless it is a command.
    pub(super) fn account(&self) -> Option<BareJid> {
        match self {
            Creator::Client { presence, .. } => presence.from.as_ref().map(Jid::bare),
            Creator::Command(_) => None,
            Creator::Light(new) => Some(new.creator.clone()),
        }
    }
}

/// A change of a room under way.
#[derive(Debug)]
pub(super) enum Change {
    Subject(Option<Box<RoomSubject>>, Box<Stanza>),
    Configure(Box<RoomConfig>),
    Vcard { xml: Bytes, photos: Box<[PhotoHash]> },
    Members { changes: Vec<RoomMember>, by: Option<Box<str>> },
    Destroy { reason: Option<String>, venue: Option<String>, password: Option<String> },
    Moderate { id: ArchiveId, left: Box<Stanza>, told: Box<Stanza> },
    EraseArchive,
}

/// A page that is being read.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) seat: RoomSeat,
    pub(super) request: Stanza,
    pub(super) query: Query,
}

impl Reading {
    /// Whether messages were asked for by their numbers.
    pub(super) fn is_by_ids(&self) -> bool {
        !self.query.ids.is_empty()
    }
}

/// A message that is about to be moderated.
#[derive(Debug)]
pub(super) struct Moderating {
    pub(super) record: Arc<RoomRecord>,
    pub(super) id: ArchiveId,
    pub(super) reason: Option<String>,
    /// The occupant who does it: its address in the room, and its id.
    pub(super) by: Option<(Jid, OccupantId)>,
    pub(super) asker: Asker,
}

/// A message that its sender is about to retract.
#[derive(Debug)]
pub(super) struct Retracting {
    pub(super) record: Arc<RoomRecord>,
    pub(super) id: ArchiveId,
    /// By what.
    pub(super) said: Stanza,
    /// The account that says it.
    pub(super) sender: BareJid,
    pub(super) asker: Asker,
}

/// A message that is being retracted.
#[derive(Debug)]
pub(super) struct Retracted {
    pub(super) of: Retracting,
    /// What is left of it.
    pub(super) left: Stanza,
}

/// Accounts that are to be added, if they let themselves be.
#[derive(Debug)]
pub(super) enum Adding {
    /// To a room that is there, with other changes.
    ToRoom { record: Arc<RoomRecord>, wanted: Vec<(BareJid, RoomAffiliation)>, asker: Asker },
    /// To one that is created with them.
    ToNewRoom(NewRoom),
    /// To one that is there and not of MUC Light: all of them, or none.
    AsMembers {
        record: Arc<RoomRecord>,
        changes: Vec<RoomMember>,
        /// The nick of whoever adds them.
        by: Option<Box<str>>,
        asker: Asker,
    },
}

/// A room that is to be created.
#[derive(Debug)]
pub(super) struct NewRoom {
    pub(super) stanza: Box<Stanza>,
    pub(super) creator: BareJid,
    pub(super) config: RoomConfig,
    pub(super) others: Vec<(BareJid, RoomAffiliation)>,
}
