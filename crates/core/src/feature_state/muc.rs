//! The rooms that a session is in.

use crate::form::{Form, Malformed, Reader, Writer};
use crate::model::{RoomPresence, RoomRole};
use carillon_wire::jid::Jid;
use carillon_wire::stanza::Stanza;

/// The rooms that a session is in, or enters.
#[derive(Debug, Default)]
pub struct OccupiedRooms {
    /// No memory for a session that is in none.
    rooms: Option<Box<Rooms>>,
}

#[derive(Debug)]
struct Rooms {
    /// The session's address: the sender of its presences.
    client: Option<Jid>,
    joined: Vec<Joined>,
}

/// A room that a session is in, or enters.
#[derive(Debug)]
pub(crate) struct Joined {
    /// Its address in the room.
    pub(crate) occupant: Jid,
    /// The presence that it sent there last, for the home of the room when the session goes on in another process.
    pub(crate) presence: RoomPresence,
    /// Presences that it had sent there before that one.
    pub(crate) presences: u32,
    /// Its role in the room, once it has said that it is in it.
    pub(crate) role: Option<RoomRole>,
}

impl Joined {
    /// The presence that the session sent there last, as it sent it.
    pub(crate) fn sent(&self, client: Option<Jid>) -> Stanza {
        let mut presence = self.presence.stanza();
        (presence.from, presence.to) = (client, Some(self.occupant.clone()));
        presence
    }
}

impl OccupiedRooms {
    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Joined> {
        self.rooms.iter().flat_map(|rooms| rooms.joined.iter())
    }

    /// The same, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Joined> {
        self.rooms.iter_mut().flat_map(|rooms| rooms.joined.iter_mut())
    }

    /// The room with this bare address.
    pub(crate) fn of(&mut self, room: &str) -> Option<&mut Joined> {
        self.iter_mut().find(|joined| joined.occupant.bare_str() == room)
    }

    /// Whether it is in the room with this bare address.
    pub(crate) fn is_in(&self, room: &str) -> bool {
        self.iter().any(|joined| joined.role.is_some() && joined.occupant.bare_str() == room)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.rooms.as_ref().map_or(0, |rooms| rooms.joined.len())
    }

    /// The session at this address enters a room.
    pub(crate) fn enter(&mut self, client: Option<&Jid>, occupant: Jid, presence: RoomPresence) {
        let new = || Box::new(Rooms { client: client.cloned(), joined: Vec::new() });
        let joined = &mut self.rooms.get_or_insert_with(new).joined;
        // A session is in few.
        if joined.len() < EXACT_MAX {
            joined.reserve_exact(1);
        }
        joined.push(Joined { occupant, presence, presences: 0, role: None });
    }

    /// It is not in a room since it sent this presence, and after so many others.
    pub(crate) fn leave(&mut self, room: &str, presences: u32) {
        self.retain(|joined| joined.occupant.bare_str() != room || joined.presences != presences);
    }

    /// Forgets the rooms that it enters or leaves.
    pub(crate) fn forget_unanswered(&mut self) {
        self.retain(|joined| joined.role.is_some());
    }

    fn retain(&mut self, is_kept: impl Fn(&Joined) -> bool) {
        if let Some(rooms) = &mut self.rooms {
            rooms.joined.retain(is_kept);
            match rooms.joined.is_empty() {
                true => self.rooms = None,
                false => rooms.joined.shrink_to(2 * rooms.joined.len()),
            }
        }
    }
}

/// Rooms of a session for which no memory is taken in advance.
const EXACT_MAX: usize = 32;

// A list of rooms, or none; each with the presence as the session sent it.
impl Form for OccupiedRooms {
    fn write(&self, out: &mut Writer) {
        self.rooms.is_some().write(out);
        let Some(Rooms { client, joined }) = self.rooms.as_deref() else { return };
        out.number(joined.len() as u64);
        for joined in joined {
            let Joined { occupant, presence: _, presences, role } = joined;
            occupant.write(out);
            Form::write(&joined.sent(client.clone()), out);
            presences.write(out);
            role.write(out);
        }
    }

    fn read(input: &mut Reader<'_>) -> Result<OccupiedRooms, Malformed> {
        let mut rooms = OccupiedRooms::default();
        if !bool::read(input)? {
            return Ok(rooms);
        }
        for _ in 0..input.count()? {
            let (occupant, sent) = (Jid::read(input)?, input.deeper(Stanza::read)?);
            rooms.enter(sent.from.as_ref(), occupant, RoomPresence::of(&sent));
            let joined = rooms.iter_mut().last();
            let (presences, role) = (u32::read(input)?, Option::read(input)?);
            joined.into_iter().for_each(|joined| (joined.presences, joined.role) = (presences, role));
        }
        Ok(rooms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::testing::proves;
    use carillon_wire::stanza::PresenceType;

    #[test]
    fn its_form() {
        proves("muc, no room", &OccupiedRooms::default());
        let occupant = Jid::new("tea@rooms.example.org/Ann").unwrap();
        let mut state = OccupiedRooms::default();
        let presence = Stanza::presence(PresenceType::Available).with_to(occupant.clone());
        state.enter(None, occupant, RoomPresence::of(&presence));
        state.of("tea@rooms.example.org").unwrap().role = Some(RoomRole::Participant);
        proves("muc", &state);
        assert_eq!(state.len(), 1);
        state.leave("tea@rooms.example.org", 1);
        assert_eq!(state.len(), 1, "it is about another presence");
        state.leave("tea@rooms.example.org", 0);
        assert!(state.rooms.is_none());
    }
}
