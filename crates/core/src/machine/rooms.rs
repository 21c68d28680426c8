//! What rooms give to those on this shard: at once, or slice by slice.

use super::Turn;
use crate::form;
use crate::message::{RoomEvent, RoomOp, ShardMessage};
use crate::model::RoomKind;
use crate::shard::{RoomArrival, RoomPart, RoomSlice};
use carillon_wire::jid::BareJid;
use carillon_wire::stanza::Stanza;

/// The first version of the form that has [`RoomOp::Pace`]: nodes that read no newer one do not know it.
const PACE_SINCE: u16 = 5;

impl Turn<'_> {
    /// A room gives something to some who are here.
    pub(super) fn room_gives(&mut self, event: Box<RoomEvent>) {
        match self.cx.shard.room_walks.arrive(event, &self.cx.shard.settings.fanout) {
            RoomArrival::Now(event) => self.give_of_room(&RoomSlice::whole(&event)),
            RoomArrival::Waits => self.cx.count_backlog(),
            RoomArrival::Behind(room) => {
                self.cx.count_backlog();
                self.tell_room(&room, true);
            }
        }
    }

    /// Somebody answers an account: after what it gave before, if it is a room.
    pub(super) fn answer_of_room(&mut self, answer: Stanza) {
        match self.cx.shard.room_walks.arrive_answer(answer, &self.cx.shard.settings.fanout) {
            RoomArrival::Now(answer) => self.reply(answer),
            RoomArrival::Waits => self.cx.count_backlog(),
            RoomArrival::Behind(room) => {
                self.cx.count_backlog();
                self.tell_room(&room, true);
            }
        }
    }

    /// Gives the next part of what waits, at most so many deliveries. How many it has; none when nothing waits.
    pub(super) fn give_next_of_rooms(&mut self, max: usize) -> Option<usize> {
        let part = self.cx.shard.room_walks.next(max, &self.cx.shard.settings.fanout)?;
        let given = part.len();
        self.give_part(part);
        Some(given)
    }

    /// Gives all that waits, before sessions leave the shard: what their rooms have said goes with them.
    pub(super) fn give_rest_of_rooms(&mut self) {
        while self.give_next_of_rooms(usize::MAX).is_some() {}
    }

    fn give_part(&mut self, mut part: RoomPart) {
        let caught_up = part.caught_up.take();
        if let Some(slice) = part.slice() {
            self.give_of_room(&slice);
        } else if let Some(answer) = part.into_answer() {
            self.reply(answer);
        }
        self.work();
        if let Some(room) = &caught_up {
            self.tell_room(room, false);
        }
    }

    fn give_of_room(&mut self, slice: &RoomSlice<'_>) {
        for hook in &self.cx.pipeline.room {
            hook(slice, self.sessions, &mut self.cx);
        }
    }

    /// Tells a room whether this shard keeps up with it.
    fn tell_room(&mut self, room: &BareJid, is_behind: bool) {
        let kind = RoomKind::of_host(room.domain());
        let domain = kind.and_then(|(kind, domain)| Some((kind, self.cx.shard.domains.named(domain)?.id)));
        let (Some((kind, domain)), Some(name)) = (domain, room.local()) else { return };
        let (at, place) = (self.cx.shard.directory.home(room.as_str()), self.cx.shard.place);
        if at.node == place.node || form::spoken() >= PACE_SINCE {
            let op = RoomOp::Pace { place, is_behind };
            self.cx.post(at, ShardMessage::Room { domain, kind, name: name.into(), op });
        }
    }
}
