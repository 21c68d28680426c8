//! What rooms give to those on this shard, on its way to them.
//!
//! What is for a few, and behind nothing else of its room, is given at once. The rest waits in the room's queue and is given slice by slice
//! ([`super::walks`]), as is what comes behind it, be it for all of the room or for one client, and answers to requests: so each sees one order.

use super::PendingFanout;
use super::walks::{FanOut, Walks};
use crate::message::{RoomEvent, RoomStanza};
use crate::settings::Fanout;
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::{Kind, Stanza};
use std::ops::Range;
use std::sync::Arc;

/// What rooms give on this shard and have not given yet.
#[derive(Debug, Default)]
pub struct RoomWalks {
    walks: Walks<QueuedDelivery>,
}

/// Something of a room that waits.
#[derive(Clone, Debug)]
struct QueuedDelivery {
    room: BareJid,
    given: RoomDelivery,
}

/// What a room gives.
#[derive(Clone, Debug)]
enum RoomDelivery {
    Event(Arc<RoomEvent>),
    /// The answer to a request.
    Answer(Arc<Stanza>),
}

/// What becomes of something that a room gives.
#[derive(Debug)]
pub enum RoomArrival<T> {
    /// It is given now.
    Now(T),
    /// It waits.
    Waits,
    /// It waits, and the shard has just fallen behind with the room.
    Behind(BareJid),
}

/// Some of what a room gives, to some of those who are given it.
#[derive(Debug)]
pub struct RoomSlice<'a> {
    /// What the room gives.
    pub event: &'a RoomEvent,
    /// Which of its deliveries ([`RoomEvent::deliveries`]).
    deliveries: Range<usize>,
}

/// A part of a walk over those who are given something by a room.
#[derive(Debug)]
pub struct RoomPart {
    given: RoomDelivery,
    deliveries: Range<usize>,
    /// The room with which the shard has just caught up.
    pub caught_up: Option<BareJid>,
}

impl RoomWalks {
    /// A room gives something.
    pub fn arrive(&mut self, event: Box<RoomEvent>, bounds: &Fanout) -> RoomArrival<Box<RoomEvent>> {
        let is_little = event.deliveries() <= bounds.slice;
        let Some(room) = event.room().filter(|room| !is_little || self.walks.waits(room.bare_str())) else {
            return RoomArrival::Now(event);
        };
        let room = room.bare();
        self.wait(room, RoomDelivery::Event(Arc::from(event)), bounds)
    }

    /// Somebody answers an account. The answer of a room to a request (an IQ) waits behind what the room gave before.
    pub fn arrive_answer(&mut self, answer: Stanza, bounds: &Fanout) -> RoomArrival<Stanza> {
        // A message that is refused is acknowledged at once, and its error comes no later than that.
        let is_awaited = matches!(answer.kind, Kind::Iq(_));
        let from = answer.from.as_ref().filter(|from| is_awaited && self.walks.waits(from.bare_str()));
        let room = from.map(Jid::bare);
        match room {
            Some(room) => self.wait(room, RoomDelivery::Answer(Arc::new(answer)), bounds),
            None => RoomArrival::Now(answer),
        }
    }

    fn wait<T>(&mut self, room: BareJid, given: RoomDelivery, bounds: &Fanout) -> RoomArrival<T> {
        match self.walks.push(QueuedDelivery { room: room.clone(), given }, bounds) {
            true => RoomArrival::Behind(room),
            false => RoomArrival::Waits,
        }
    }

    /// The next deliveries, at most `max`; none when nothing waits.
    pub fn next(&mut self, max: usize, bounds: &Fanout) -> Option<RoomPart> {
        let part = self.walks.next(max, bounds)?;
        Some(RoomPart { given: part.of.given, deliveries: part.range, caught_up: part.caught_up })
    }

    /// Whether something waits.
    pub fn is_walking(&self) -> bool {
        !self.walks.is_empty()
    }

    /// Deliveries that are still to be made.
    pub fn backlog(&self) -> PendingFanout {
        self.walks.backlog()
    }

    /// Gives back what a burst made it grow to.
    pub fn tidy(&mut self) {
        self.walks.tidy();
    }
}

impl FanOut for QueuedDelivery {
    type Line = BareJid;

    fn line(&self) -> BareJid {
        self.room.clone()
    }

    fn deliveries(&self) -> usize {
        match &self.given {
            RoomDelivery::Event(event) => event.deliveries(),
            RoomDelivery::Answer(_) => 1,
        }
    }

    fn bytes(&self) -> usize {
        let of = match &self.given {
            RoomDelivery::Event(event) => size_of::<RoomEvent>() + event.memory_bytes(),
            RoomDelivery::Answer(answer) => size_of::<Stanza>() + answer.memory_bytes(),
        };
        size_of::<QueuedDelivery>() + of
    }
}

impl RoomPart {
    /// What is given, and to whom; none if it is an answer.
    pub fn slice(&self) -> Option<RoomSlice<'_>> {
        match &self.given {
            RoomDelivery::Event(event) => Some(RoomSlice { event, deliveries: self.deliveries.clone() }),
            RoomDelivery::Answer(_) => None,
        }
    }

    /// The answer to a request, if it is one.
    pub fn into_answer(self) -> Option<Stanza> {
        match self.given {
            RoomDelivery::Event(_) => None,
            RoomDelivery::Answer(answer) => Some(Arc::unwrap_or_clone(answer)),
        }
    }

    /// How many deliveries it has.
    pub fn len(&self) -> usize {
        self.deliveries.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.deliveries.is_empty()
    }
}

impl<'a> RoomSlice<'a> {
    /// All of something that a room gives.
    pub fn whole(event: &'a RoomEvent) -> RoomSlice<'a> {
        RoomSlice { event, deliveries: 0..event.deliveries() }
    }

    /// The recipients of this slice, by their places in the list of all of them: for each the stanzas that it is given now, and whether these are its first.
    pub fn recipients(&self) -> impl Iterator<Item = (usize, &'a [RoomStanza], bool)> + use<'a> {
        let (event, end) = (self.event, self.deliveries.end);
        let (each, mut next) = (event.stanzas.len(), self.deliveries.start);
        std::iter::from_fn(move || {
            if next >= end || each == 0 {
                return None;
            }
            let (recipient, from) = (next / each, next % each);
            let to = each.min(from + end - next);
            next += to - from;
            Some((recipient, event.stanzas.get(from..to)?, from == 0))
        })
    }
}

#[cfg(test)]
mod tests;
