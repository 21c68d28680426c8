//! Players enter rooms (XEP-0045): the first occupant of each makes it, then the others enter. A room of MUC Light is made with all its occupants.

use std::collections::VecDeque;

use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Kind, PresenceType, Stanza};
use carillon_wire::xml::Element;

use super::executor::{Executor, Loss, Next};
use crate::client::{SendOutcome, stanzas};
use crate::plan::Rooms;
use crate::worker::context::ActionContext;
use crate::worker::player_states::PlayerStates;
use crate::worker::recorder::Count;
use crate::worker::rooms::{RoomNumber, RoomPlan};
use crate::worker::setup::Setup;
use crate::worker::step::StepStart;

/// Players of one thread who are entering rooms at the same time.
const IN_FLIGHT_MAX: usize = 64;
/// The namespace of creations in MUC Light.
const CREATE: &str = ns::MUCLIGHT_CREATE;
/// The id of a configuration: each player has one in flight.
const ID: &str = "room";

/// The players of one thread who enter rooms.
pub(super) struct EnterRooms {
    /// Whether the rooms are made in this step.
    makes: bool,
    /// Who is in which of them.
    plan: RoomPlan,
    /// Whether they are rooms of MUC Light.
    is_light: bool,
    /// The rooms that each player has yet to enter.
    waiting: VecDeque<(usize, Vec<RoomNumber>)>,
    /// The same of those who are entering one.
    entering: Vec<(usize, Vec<RoomNumber>)>,
}

impl EnterRooms {
    pub(super) fn new(plan: Rooms, step: &StepStart, setup: &Setup, states: &PlayerStates) -> Self {
        let is_light = plan.light;
        let plan = RoomPlan::new(plan, setup.job.total);
        let makes = step.position.step == 1;
        let rooms = |player: usize| {
            let all = (0..plan.per_player()).map(|division| plan.of(player, division));
            all.filter(|room| (plan.occupants(*room).next() == Some(player)) == makes).collect()
        };
        Self {
            makes,
            plan,
            is_light,
            waiting: states.members().map(|player| (player, rooms(player))).collect(),
            entering: Vec::new(),
        }
    }

    /// Lets a player enter its next room.
    fn enter(&mut self, player: usize, rooms: Vec<RoomNumber>, context: &mut ActionContext<'_>) {
        let Some(room) = rooms.last() else { return };
        if self.is_light {
            return self.enter_light(player, *room, rooms, context);
        }
        let Some(to) = context.setup.occupant(&room.name(), player) else { return };
        let entry = Element::new("x", ns::MUC)
            .with_child(Element::new("history", ns::MUC).with_attr("maxstanzas", "0"));
        let presence = Stanza::presence(PresenceType::Available).with_to(to).with_payload(entry);
        match context.network.send(player, &presence) {
            SendOutcome::Sent => self.entering.push((player, rooms)),
            _ => context.recorder.error("enter-rooms: the player is not in session"),
        }
    }

    /// The same for a room of MUC Light: who does not make it need do nothing.
    fn enter_light(
        &mut self,
        player: usize,
        room: RoomNumber,
        rooms: Vec<RoomNumber>,
        context: &mut ActionContext<'_>,
    ) {
        if !self.makes {
            return self.next(player, rooms, context);
        }
        let Some(to) = context.setup.room(&room.name(), true) else { return };
        let mut occupants = Element::new("occupants", CREATE);
        for other in self.plan.occupants(room).filter(|other| *other != player) {
            let account = context.setup.player(other);
            let user = Element::new("user", CREATE).with_attr("affiliation", "member");
            occupants.push(user.with_text(account.as_str()));
        }
        let query = Element::new("query", CREATE).with_child(occupants);
        let request = Stanza::iq(IqType::Set).with_to(to).with_id(ID).with_payload(query);
        match context.network.send(player, &request) {
            SendOutcome::Sent => self.entering.push((player, rooms)),
            _ => context.recorder.error("enter-rooms: the player is not in session"),
        }
    }

    /// A player is in its room; one that made it accepts it as it is.
    fn entered(&mut self, player: usize, context: &mut ActionContext<'_>) {
        let at = self.entering.iter().position(|(entering, _)| *entering == player);
        let Some((_, rooms)) = at.map(|at| self.entering.swap_remove(at)) else { return };
        let room = rooms.last().and_then(|room| context.setup.room(&room.name(), false));
        if self.makes
            && let Some(room) = room
        {
            let form = Element::new("x", ns::DATA_FORMS).with_attr("type", "submit");
            let query = Element::new("query", ns::MUC_OWNER).with_child(form);
            let request = Stanza::iq(IqType::Set).with_to(room).with_id(ID).with_payload(query);
            context.network.send(player, &request);
            return self.entering.push((player, rooms));
        }
        self.next(player, rooms, context);
    }

    fn next(&mut self, player: usize, mut rooms: Vec<RoomNumber>, context: &mut ActionContext<'_>) {
        rooms.pop();
        context.recorder.count(Count::Entered);
        self.enter(player, rooms, context);
    }
}

impl Executor for EnterRooms {
    fn tick(&mut self, context: &mut ActionContext<'_>) -> Next {
        while self.entering.len() < IN_FLIGHT_MAX
            && let Some((player, rooms)) = self.waiting.pop_front()
        {
            self.enter(player, rooms, context);
        }
        if self.entering.is_empty() && self.waiting.is_empty() { Next::Done } else { Next::At(None) }
    }

    fn stanza(&mut self, number: usize, stanza: &Stanza, context: &mut ActionContext<'_>) {
        if stanzas::is_response(stanza, ID) {
            // A room that is there already has the same occupants.
            if let Some(error) = stanzas::error(stanza).filter(|error| error.condition != Condition::Conflict)
            {
                context.recorder.refused("enter-rooms", &error);
            }
            let at = self.entering.iter().position(|(entering, _)| *entering == number);
            if let Some((_, rooms)) = at.map(|at| self.entering.swap_remove(at)) {
                self.next(number, rooms, context);
            }
            return;
        }
        match stanza.kind {
            Kind::Presence(PresenceType::Error) => {
                if let Some(error) = stanzas::error(stanza) {
                    context.recorder.refused("enter-rooms", &error);
                }
                self.entering.retain(|(entering, _)| *entering != number);
            }
            // One's own presence says so (XEP-0045 §7.2.2).
            Kind::Presence(PresenceType::Available) if is_own(stanza) => self.entered(number, context),
            _ => {}
        }
    }

    fn lost(&mut self, number: usize, _context: &mut ActionContext<'_>) -> Loss {
        self.entering.retain(|(entering, _)| *entering != number);
        self.waiting.retain(|(waiting, _)| *waiting != number);
        Loss::Final
    }
}

/// Whether a room tells a client of itself.
fn is_own(presence: &Stanza) -> bool {
    let Some(x) = presence.payload.find("x", ns::MUC_USER) else { return false };
    x.element().children().any(|child| child.name() == "status" && child.attr("code") == Some("110"))
}
