//! Events as they are kept, and the sets of their types.

use super::code::Code;
use carillon_core::form::{Clock, Unreadable, decode, encode};
use carillon_core::model::{
    ArchiveId, ArchivedMessage, DomainId, Event, EventType, EventTypes, RoomAction, RoomAffiliation,
    RoomFact, RoomMemberFact, UnixMs,
};
use carillon_wire::jid::BareJid;

/// A set of types as a number: a bit for each, by its number in the database.
pub(crate) fn bits(types: EventTypes) -> i64 {
    types.iter().fold(0, |bits, kind| bits | 1 << kind.code())
}

/// The types of such a number.
pub(crate) fn types(bits: i64) -> EventTypes {
    let all = EventType::ALL.into_iter().filter(|kind| bits & 1 << kind.code() != 0);
    all.fold(EventTypes::NONE, |types, kind| types.with(kind.into()))
}

/// That a message was said, with the number that the store has given it.
pub(crate) fn said(fact: &RoomFact, id: ArchiveId) -> RoomFact {
    let mut fact = fact.clone();
    if let RoomAction::Message(message) = &mut fact.action {
        message.id = id;
    }
    fact
}

/// The event that a removed account has lost its affiliation to a room.
pub(crate) fn left(
    domain: DomainId,
    room: BareJid,
    account: &BareJid,
    was: RoomAffiliation,
    at: UnixMs,
) -> RoomFact {
    let change = RoomMemberFact { account: account.clone(), was, is: RoomAffiliation::None };
    RoomFact { domain, room, at, by: None, action: RoomAction::Members(vec![change]) }
}

/// What is kept of a fact.
pub(crate) fn fact_bytes(fact: &RoomFact) -> Vec<u8> {
    encode(fact, 0)
}

/// The message that a fact is about, if it tells that one was said.
pub(crate) fn message_of(fact: &RoomFact) -> Option<ArchiveId> {
    match &fact.action {
        RoomAction::Message(message) => Some(message.id),
        _ => None,
    }
}

/// The event of a fact, with the message that it is about while that is in the archive.
pub(crate) fn event(fact: &[u8], message: Option<ArchivedMessage>) -> Result<Event, Unreadable> {
    Ok(Event::Room(Box::new(decode(fact, Clock::default())?), message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_types_round_trip() {
        for set in [EventTypes::NONE, EventTypes::NOTIFICATIONS, EventType::RoomMessage.into()] {
            assert_eq!(types(bits(set)), set);
        }
        assert_eq!(bits(EventTypes::NOTIFICATIONS), 1);
        assert!(EventType::ALL.into_iter().all(|kind| types(bits(EventTypes::ALL)).contains(kind)));
    }
}
