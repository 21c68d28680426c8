//! The rooms that a session is in.

use crate::model::RoomRole;
use carillon_wire::jid::Jid;
use carillon_wire::stanza::Stanza;

/// The rooms that a session is in, or enters.
#[derive(Debug, Default)]
pub struct OccupiedRooms {
    /// No memory for a session that is in none.
    #[expect(clippy::box_collection, reason = "8 bytes of every session instead of 24")]
    pub(crate) rooms: Option<Box<Vec<Joined>>>,
}

crate::form! { struct OccupiedRooms { rooms } }

/// A room that a session is in, or enters.
#[derive(Debug)]
pub(crate) struct Joined {
    /// Its address in the room.
    pub(crate) occupant: Jid,
    /// The presence that it sent there last, for the home of the room when the session goes on in another process.
    pub(crate) presence: Box<Stanza>,
    /// Presences that it had sent there before that one.
    pub(crate) presences: u32,
    /// Its role in the room, once it has said that it is in it.
    pub(crate) role: Option<RoomRole>,
}

crate::form! { struct Joined { occupant, presence, presences, role } }

impl OccupiedRooms {
    /// The room with this bare address.
    pub(crate) fn of(&mut self, room: &str) -> Option<&mut Joined> {
        self.rooms.as_mut()?.iter_mut().find(|joined| joined.occupant.bare_str() == room)
    }

    /// Whether it is in the room with this bare address.
    pub(crate) fn is_in(&self, room: &str) -> bool {
        let mut rooms = self.rooms.iter().flat_map(|rooms| rooms.iter());
        rooms.any(|joined| joined.role.is_some() && joined.occupant.bare_str() == room)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.rooms.as_ref().map_or(0, |rooms| rooms.len())
    }

    /// It enters a room.
    pub(crate) fn enter(&mut self, occupant: Jid, presence: Stanza) {
        let joined = Joined { occupant, presence: Box::new(presence), presences: 0, role: None };
        self.rooms.get_or_insert_default().push(joined);
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
            rooms.retain(is_kept);
            if rooms.is_empty() {
                self.rooms = None;
            }
        }
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
        state.enter(occupant.clone(), Stanza::presence(PresenceType::Available).with_to(occupant));
        state.of("tea@rooms.example.org").unwrap().role = Some(RoomRole::Participant);
        proves("muc", &state);
        assert_eq!(state.len(), 1);
        state.leave("tea@rooms.example.org", 1);
        assert_eq!(state.len(), 1, "it is about another presence");
        state.leave("tea@rooms.example.org", 0);
        assert!(state.rooms.is_none());
    }
}
