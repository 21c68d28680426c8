//! What is asked of a room from outside, and what becomes of it.

use super::Outcome;
use crate::error::StanzaError;
use crate::model::{ArchiveId, RoomAffiliation, RoomConfig, RoomRecord, RoomRole};
use crate::ports::{Fault, Missing};
use bytes::Bytes;
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::{Condition, Payload};
use std::sync::Arc;

/// Something that is asked of a room, by a provider that may do everything in the room's domain.
#[derive(Clone, Debug)]
pub enum RoomRequest {
    /// Create it, with nobody listed; fails when it is there → [`RoomOutcome::Record`].
    Create { config: Box<RoomConfig> },
    /// Its record → [`RoomOutcome::Record`].
    Describe,
    /// Change its configuration, if that is still `before` → [`RoomOutcome::Record`].
    Configure { before: Box<RoomConfig>, after: Box<RoomConfig> },
    /// Remove it with its members and its archive → [`RoomOutcome::Done`].
    Destroy { reason: Option<String>, venue: Option<String> },
    /// Change what it has of accounts → [`RoomOutcome::Done`].
    SetMembers { changes: Vec<RoomMemberChange> },
    /// Those who are in it, in the order of their nicks, those after `after` → [`RoomOutcome::Occupants`].
    Occupants { after: Option<Box<str>>, max: u16 },
    /// Change what an occupant may do; with [`RoomRole::None`] it leaves → [`RoomOutcome::Done`].
    SetRole { nick: Box<str>, role: RoomRole, reason: Option<String> },
    /// Say something to all, in the name of an account or of the room → [`RoomOutcome::Said`].
    Say { id: Option<Box<str>>, speaker: Option<RoomSpeaker>, payload: Payload },
    /// Retract what somebody said (XEP-0425) → [`RoomOutcome::Done`].
    Moderate { id: ArchiveId, reason: Option<String> },
    /// Empty its archive → [`RoomOutcome::Done`].
    EraseArchive,
    /// Give it an avatar in place of the one that it has, or none; the rest of its vCard stays → [`RoomOutcome::Record`].
    SetAvatar { photo: Option<Box<RoomPhoto>> },
}

crate::form! {
    enum RoomRequest {
        0 = Create { config },
        1 = Describe,
        2 = Configure { before, after },
        3 = Destroy { reason, venue },
        4 = SetMembers { changes },
        5 = Occupants { after, max },
        6 = SetRole { nick, role, reason },
        7 = Say { id, speaker, payload },
        8 = Moderate { id, reason },
        9 = EraseArchive,
        10 = SetAvatar { photo },
    }
}

impl RoomRequest {
    /// Bytes that it takes in memory, as far as somebody chose them.
    pub fn bytes(&self) -> usize {
        match self {
            RoomRequest::SetMembers { changes } => changes.iter().map(RoomMemberChange::bytes).sum(),
            RoomRequest::Say { payload, .. } => payload.bytes().len(),
            RoomRequest::SetAvatar { photo } => photo.as_ref().map_or(0, |photo| photo.bytes.len()),
            RoomRequest::Create { .. }
            | RoomRequest::Describe
            | RoomRequest::Configure { .. }
            | RoomRequest::Destroy { .. }
            | RoomRequest::Occupants { .. }
            | RoomRequest::SetRole { .. }
            | RoomRequest::Moderate { .. }
            | RoomRequest::EraseArchive => 0,
        }
    }
}

/// What a room is to have of an account. What is none stays as it is.
#[derive(Clone, Debug)]
pub struct RoomMemberChange {
    /// The account.
    pub jid: BareJid,
    /// Its affiliation.
    pub affiliation: Option<RoomAffiliation>,
    /// The nick that is reserved for it; empty for none.
    pub nick: Option<Box<str>>,
    /// Why it has this affiliation.
    pub reason: Option<Box<str>>,
}

crate::form! { struct RoomMemberChange { jid, affiliation, nick, reason } }

impl RoomMemberChange {
    /// Bytes that it takes in memory.
    pub fn bytes(&self) -> usize {
        let text = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| text.len());
        size_of::<RoomMemberChange>() + self.jid.as_str().len() + text(&self.nick) + text(&self.reason)
    }
}

/// An image (XEP-0054 `PHOTO`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomPhoto {
    /// Its media type, such as `image/png`.
    pub media_type: Box<str>,
    /// Its bytes.
    pub bytes: Bytes,
}

crate::form! { struct RoomPhoto { media_type, bytes } }

/// In whose name something is said in a room.
#[derive(Clone, Debug)]
pub struct RoomSpeaker {
    /// The account.
    pub account: BareJid,
    /// Its nick: by default that which is reserved for it, or the local part of its address.
    pub nick: Option<Box<str>>,
}

crate::form! { struct RoomSpeaker { account, nick } }

/// What became of a [`RoomRequest`].
#[derive(Clone, Debug)]
pub enum RoomOutcome {
    /// Done.
    Done,
    /// The room's record, and how many are in it.
    Record { record: Arc<RoomRecord>, occupants: u32 },
    /// Who is in it.
    Occupants(Vec<RoomOccupant>),
    /// It was said; its number in the archive, if it is there.
    Said(Option<ArchiveId>),
}

crate::form! {
    enum RoomOutcome { 0 = Done, 1 = Record { record, occupants }, 2 = Occupants(occupants), 3 = Said(id) }
}

/// Somebody who is in a room.
#[derive(Clone, Debug)]
pub struct RoomOccupant {
    /// Its nick.
    pub nick: Box<str>,
    /// What its account is to the room for good.
    pub affiliation: RoomAffiliation,
    /// What it may do while it is in the room.
    pub role: RoomRole,
    /// The addresses of its clients.
    pub clients: Vec<Jid>,
}

crate::form! { struct RoomOccupant { nick, affiliation, role, clients } }

/// Why something is not done with a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomRefusal {
    /// There is no such room.
    NotFound,
    /// There is a room of that name already.
    Exists,
    /// Nobody in the room has this nick.
    NoOccupant,
    /// There is no such message in the room's archive.
    NoMessage,
    /// Somebody else has this nick.
    NickTaken,
    /// This is no nick.
    NoNick,
    /// The room would list more accounts than it may.
    TooManyMembers,
    /// An owner owns, or an account is a member of, as many rooms as it may.
    TooManyRooms,
    /// The domain has as many rooms as its policy allows.
    DomainFull,
    /// Accounts of the domain may not create rooms.
    MayNotCreate,
    /// The configuration is another one by now.
    Changed,
    /// A room of its kind has no such affiliation, or no such configuration.
    Unsuited,
    /// Its vCard would be larger than it may be.
    TooLarge,
    /// Too much waits for the room.
    Crowded,
    /// The store could not do it.
    Fault(Fault),
}

crate::form! {
    enum RoomRefusal {
        0 = NotFound,
        1 = Exists,
        2 = NoOccupant,
        3 = NoMessage,
        4 = NickTaken,
        5 = NoNick,
        6 = TooManyMembers,
        7 = TooManyRooms,
        8 = Changed,
        9 = Crowded,
        10 = Fault(fault),
        11 = Unsuited,
        12 = DomainFull,
        13 = MayNotCreate,
        14 = TooLarge,
    }
}

impl RoomRefusal {
    /// For a command.
    pub(crate) fn outcome(self) -> Outcome {
        match self {
            RoomRefusal::Fault(fault) => fault.into(),
            refusal => Outcome::Room(Err(refusal)),
        }
    }
}

impl From<Fault> for RoomRefusal {
    fn from(fault: Fault) -> RoomRefusal {
        RoomRefusal::Fault(fault)
    }
}

impl From<Missing> for RoomRefusal {
    fn from(Missing: Missing) -> RoomRefusal {
        RoomRefusal::NotFound
    }
}

impl From<RoomRefusal> for StanzaError {
    fn from(refusal: RoomRefusal) -> StanzaError {
        let (condition, text) = match refusal {
            RoomRefusal::NotFound | RoomRefusal::NoMessage => (Condition::ItemNotFound, ""),
            RoomRefusal::NoOccupant => (Condition::ItemNotFound, "nobody has this nick"),
            RoomRefusal::Exists | RoomRefusal::Changed => (Condition::Conflict, ""),
            RoomRefusal::NickTaken => (Condition::Conflict, "somebody else has this nick"),
            RoomRefusal::NoNick => (Condition::JidMalformed, "a nick is needed"),
            RoomRefusal::TooManyMembers => {
                (Condition::ResourceConstraint, "the room has as many members as it may")
            }
            RoomRefusal::TooManyRooms => (Condition::ResourceConstraint, "an owner owns too many rooms"),
            RoomRefusal::DomainFull => {
                (Condition::ResourceConstraint, "the domain has as many rooms as it may")
            }
            // XEP-0045 §10.1.1.
            RoomRefusal::MayNotCreate => {
                (Condition::NotAllowed, "accounts of this domain do not create rooms")
            }
            RoomRefusal::Unsuited => (Condition::NotAcceptable, ""),
            RoomRefusal::TooLarge => (Condition::NotAcceptable, "the vCard of the room would be too large"),
            RoomRefusal::Crowded => (Condition::ResourceConstraint, "too much waits for this room"),
            RoomRefusal::Fault(Fault::Unknown) => {
                (Condition::InternalServerError, "it is unknown whether this was done")
            }
            RoomRefusal::Fault(_) => {
                (Condition::InternalServerError, "the store cannot do it now; try again later")
            }
        };
        let error = StanzaError::new(condition);
        if text.is_empty() { error } else { error.with_text(text) }
    }
}
