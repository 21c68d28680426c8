//! Who is in which room: computed from the players' numbers, so that nobody has to be told.
//!
//! The players of a bucket are divided into rooms once for each room that a player is in, each time in another way. A bucket stays in
//! one thread, which therefore knows who is to hear what.

use crate::plan::Rooms;

/// The rooms of all players.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoomPlan {
    plan: Rooms,
    /// How many players there are in all: rooms of the last bucket may have fewer occupants.
    total: usize,
}

/// A room: its bucket, in which division it is, and which one of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RoomNumber {
    bucket: usize,
    division: usize,
    at: usize,
}

impl RoomPlan {
    /// The rooms by a plan, among this many players.
    pub(super) fn new(plan: Rooms, total: u32) -> Self {
        Self { plan, total: total as usize }
    }

    /// How many rooms a player is in.
    pub(super) fn per_player(&self) -> usize {
        self.plan.rooms as usize
    }

    /// The room that a player is in by a division.
    pub(super) fn of(&self, player: usize, division: usize) -> RoomNumber {
        let (size, block) = (self.plan.bucket as usize, self.block());
        let (bucket, place) = (player / size, player % size);
        let (member, within) = (place / block, place % block);
        let at = (within + block - division * member % block) % block;
        RoomNumber { bucket, division, at }
    }

    /// Its occupants. The first one makes it.
    pub(super) fn occupants(self, room: RoomNumber) -> impl Iterator<Item = usize> {
        let (size, block) = (self.plan.bucket as usize, self.block());
        let place = move |member: usize| member * block + (room.at + room.division * member) % block;
        let all = (0..self.plan.occupants as usize).map(move |member| room.bucket * size + place(member));
        all.filter(move |player| *player < self.total)
    }

    /// How many rooms there are in each division of a bucket.
    fn block(&self) -> usize {
        (self.plan.bucket / self.plan.occupants).max(1) as usize
    }
}

impl RoomNumber {
    /// The local part of its address.
    pub(super) fn name(self) -> String {
        format!("load-{}-{}-{}", self.bucket, self.division, self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_player_is_in_so_many_rooms_each_time_with_others() {
        let plan = RoomPlan::new(Rooms { bucket: 50, occupants: 5, rooms: 10, light: false }, 100);
        for player in 0..100 {
            let rooms = (0..10).map(|division| plan.of(player, division));
            let neighbours = rooms.map(|room| {
                let all: BTreeSet<usize> = plan.occupants(room).collect();
                assert!(all.len() == 5 && all.contains(&player), "{room:?}: {all:?}, {player}");
                all.iter().for_each(|other| assert_eq!(plan.of(*other, room.division), room));
                all
            });
            assert_eq!(neighbours.collect::<BTreeSet<_>>().len(), 10);
        }
    }

    #[test]
    fn the_last_rooms_have_who_is_there() {
        let plan = RoomPlan::new(Rooms { bucket: 10, occupants: 5, rooms: 2, light: false }, 13);
        assert_eq!(plan.occupants(plan.of(12, 0)).collect::<Vec<_>>(), [10, 12]);
    }
}
