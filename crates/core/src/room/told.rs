//! What operators are told of rooms: figures, and lines of the event log.

use super::occupants::Occupant;
use super::xml::user::{BANNED, KICKED, MEMBERS_ONLY, NO_MEMBER, Said};
use crate::error::StanzaError;
use crate::event::{Entry, Kind};
use crate::session::Cx;
use carillon_wire::jid::BareJid;

/// Why a room was removed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Destroyed {
    /// By request.
    Wanted,
    /// Its last occupant left, and it is not persistent.
    Empty,
}

/// The room was created, by this account or by a provider.
pub(super) fn created(room: &BareJid, by: Option<&BareJid>, cx: &mut Cx<'_>) {
    cx.shard.counters.rooms.created += 1;
    let (room, by) = (room.as_str(), by.map(BareJid::as_str));
    cx.out.journal.note(cx.now.unix, Kind::RoomCreated, || Entry::RoomCreated { room, by });
}

/// The room was removed: by this account, or by a provider or because it was empty.
pub(super) fn destroyed(room: &BareJid, why: Destroyed, by: Option<&BareJid>, cx: &mut Cx<'_>) {
    cx.shard.counters.rooms.destroyed += 1;
    let (room, reason, by) = (room.as_str(), why.as_str(), by.map(BareJid::as_str));
    let entry = || Entry::RoomDestroyed { room, reason, by };
    cx.out.journal.note(cx.now.unix, Kind::RoomDestroyed, entry);
}

/// Somebody has an occupant leave.
pub(super) fn removed(room: &BareJid, occupant: &Occupant, said: &Said<'_>, cx: &mut Cx<'_>) {
    let reason = reason(said.codes);
    cx.shard.counters.rooms.removed.count(reason);
    let (room, account) = (room.as_str(), occupant.account());
    let entry = || Entry::RoomRemoved { room, account, reason, by: said.actor };
    cx.out.journal.note(cx.now.unix, Kind::RoomRemoved, entry);
}

/// A room refuses a stanza of a client.
pub(super) fn count_refusal(error: &StanzaError, cx: &mut Cx<'_>) {
    cx.shard.counters.rooms.refused.count(error.condition.as_str());
}

impl Destroyed {
    fn as_str(self) -> &'static str {
        match self {
            Destroyed::Wanted => "wanted",
            Destroyed::Empty => "empty",
        }
    }
}

/// What the codes of the presence say by which an occupant leaves.
fn reason(codes: &[u16]) -> &'static str {
    match codes {
        codes if codes.contains(&BANNED) => "banned",
        codes if codes.contains(&NO_MEMBER) => "no-member",
        codes if codes.contains(&MEMBERS_ONLY) => "members-only",
        codes => {
            debug_assert!(codes.contains(&KICKED), "there is no other way to have somebody leave");
            "kicked"
        }
    }
}
