//! Players speak in their rooms, each message when it is due, whatever became of earlier ones. All occupants hear it, its speaker too.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Instant;

use carillon_wire::stanza::{Kind, MessageType, Stanza};

use super::executor::{Executor, Next};
use super::in_flight::InFlight;
use crate::client::{SendOutcome, stanzas};
use crate::plan::Speak;
use crate::worker::arrivals::Arrivals;
use crate::worker::context::ActionContext;
use crate::worker::mark::{self, Mark, Marks};
use crate::worker::player_states::PlayerStates;
use crate::worker::rooms::{RoomNumber, RoomPlan};
use crate::worker::schedule::{Due, Schedule};
use crate::worker::setup::Setup;
use crate::worker::step::StepStart;

/// What the players of one thread say.
pub(super) struct SpeakInRooms {
    marks: Marks,
    phase: u32,
    rooms: RoomPlan,
    /// Whether they are rooms of MUC Light.
    is_light: bool,
    /// Whether all players are in one room: its messages go to all, as items do.
    is_one_room: bool,
    payload_bytes: usize,
    schedule: Schedule,
    /// Messages tried so far; determines who speaks, and where.
    turns: usize,
    in_flight: InFlight,
    /// What has been heard, by listener, room and speaker.
    arrivals: HashMap<(usize, RoomNumber, usize), Arrivals>,
}

/// A message by its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NextMessage {
    from: usize,
    room: RoomNumber,
    /// How many messages the speaker has said in the room before.
    ordinal: u32,
}

impl SpeakInRooms {
    pub(super) fn new(speak: &Speak, step: &StepStart, setup: &Setup, states: &PlayerStates) -> Self {
        Self {
            marks: Marks::of(&setup.job.test),
            phase: step.position.phase,
            rooms: RoomPlan::new(speak.rooms, setup.job.total),
            is_light: speak.rooms.light,
            is_one_room: speak.rooms.occupants >= setup.job.total,
            payload_bytes: speak.payload_bytes,
            schedule: Schedule::new(&speak.rate, setup.share(&states.numbers), step.at),
            turns: 0,
            in_flight: InFlight::new(step.at + speak.span.0),
            arrivals: HashMap::new(),
        }
    }

    /// Says the message that was due at `due`.
    fn say(&mut self, due: Instant, context: &mut ActionContext<'_>) {
        let NextMessage { from, room, .. } = turn(self.turns, &context.states.numbers, &self.rooms);
        let item = u32::try_from(self.turns).unwrap_or(u32::MAX).min(mark::UNTRACKED);
        self.turns += 1;
        let Some(to) = context.setup.room(&room.name(), self.is_light) else { return };
        let mark =
            Mark { number: mark::number(self.phase, item), due_unix_ns: context.setup.clock.unix_ns(due) };
        let mut message = stanzas::message(to, &self.marks.text(mark, self.payload_bytes));
        message.kind = Kind::Message(MessageType::Groupchat);
        match context.network.send(from, &message) {
            SendOutcome::Sent => {
                context.sent(due);
                self.rooms.occupants(room).for_each(|_| self.in_flight.sent());
            }
            SendOutcome::NoSession => context.recorder.error("speak: the speaker is not in session"),
            SendOutcome::Full => context.recorder.error("speak: the server does not acknowledge enough"),
        }
    }

    /// Whether a message is heard for the first time.
    fn is_new(&mut self, number: usize, item: u32, context: &ActionContext<'_>) -> bool {
        if item == mark::UNTRACKED {
            return true;
        }
        let NextMessage { from, room, ordinal } = turn(item as usize, &context.states.numbers, &self.rooms);
        self.arrivals.entry((number, room, from)).or_default().count(ordinal, context.recorder)
    }
}

impl Executor for SpeakInRooms {
    fn tick(&mut self, context: &mut ActionContext<'_>) -> Next {
        loop {
            match self.schedule.take_before(self.in_flight.until(), context.now) {
                Due::Now(due) => self.say(due, context),
                Due::At(due) => return Next::At(Some(due)),
                Due::Never => break,
            }
        }
        self.in_flight.finish(context)
    }

    fn stanza(&mut self, number: usize, stanza: &Stanza, context: &mut ActionContext<'_>) {
        match stanza.kind {
            Kind::Message(MessageType::Groupchat) => {}
            Kind::Message(MessageType::Error) => {
                return match stanzas::error(stanza) {
                    Some(error) => context.recorder.refused("speak", &error),
                    None => context.recorder.error("speak: an error without a condition"),
                };
            }
            _ => return,
        }
        let Some(mark) = self.marks.find(stanza.payload.bytes()) else { return };
        let (phase, item) = mark::phase_and_item(mark.number);
        if phase != self.phase || !self.is_new(number, item, context) {
            return;
        }
        self.in_flight.arrived();
        let due = context.setup.clock.instant(mark.due_unix_ns);
        match self.is_one_room && item != mark::UNTRACKED {
            true => context.delivered_item(number, mark.number, due),
            false => context.delivered(number, due),
        }
    }
}

/// Who speaks where in a turn: all players in turn, each in all its rooms in turn.
fn turn(turn: usize, numbers: &Range<usize>, rooms: &RoomPlan) -> NextMessage {
    let count = numbers.len().max(1);
    let (from, round) = (numbers.start + turn % count, turn / count);
    let room = rooms.of(from, round % rooms.per_player());
    let ordinal = u32::try_from(round / rooms.per_player()).unwrap_or(u32::MAX);
    NextMessage { from, room, ordinal }
}
