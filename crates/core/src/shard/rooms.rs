//! What a shard counts of rooms.

use super::Reasons;

/// The figures of the rooms whose home a shard is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoomFigures {
    /// Rooms in memory now: those with occupants, and those that were used lately.
    pub rooms: u64,
    /// Occupants of rooms of XEP-0045 now.
    pub occupants: u64,
    /// Rooms that were created.
    pub created: u64,
    /// Rooms that were removed, with those that nobody was in any more; those of a domain that was removed do not count.
    pub destroyed: u64,
    /// Times that a client entered a room.
    pub entered: u64,
    /// Occupants that left because somebody had them leave, by the reason.
    pub removed: Reasons,
    /// Messages that were said to all of a room.
    pub messages: u64,
    /// Pages of rooms' archives that clients read.
    pub archive_pages: u64,
    /// Stanzas of clients that rooms refused, by condition.
    pub refused: Reasons,
}

impl RoomFigures {
    /// Adds the figures of another shard.
    pub fn add(&mut self, other: &RoomFigures) {
        let RoomFigures { rooms, occupants, created, destroyed, entered, removed, messages, .. } = other;
        self.rooms += rooms;
        self.occupants += occupants;
        self.created += created;
        self.destroyed += destroyed;
        self.entered += entered;
        self.removed.add_all(removed);
        self.messages += messages;
        self.archive_pages += other.archive_pages;
        self.refused.add_all(&other.refused);
    }
}
