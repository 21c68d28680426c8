//! Players and their contacts subscribe to each other's presence (RFC 6121 §3), by means that every server has.
//!
//! Nobody waits for what a contact does: all that are not subscribed to a contact ask for it, then all approve, then all look
//! at their rosters. Approvals before requests would need pre-approval, which not every server has.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use carillon_wire::stanza::{PresenceType, Stanza};

use super::executor::{Executor, Loss, Next};
use crate::client::{SendOutcome, stanzas};
use crate::plan::Contacts;
use crate::worker::context::ActionContext;
use crate::worker::player_states::PlayerStates;
use crate::worker::recorder::Count;
use crate::worker::ring::Ring;
use crate::worker::setup::Setup;

/// Players of one thread who wait for an answer at the same time.
const IN_FLIGHT_MAX: usize = 64;
/// How often what is still missing is asked for again.
const ROUNDS_MAX: u32 = 5;
/// The time that a server has to write rosters before they are looked at again.
const SETTLE_TIME: Duration = Duration::from_millis(500);
/// The id of a request: each player has one in flight.
const ID: &str = "befriend";

/// Makes the rosters of one thread's players.
pub(super) struct Befriend {
    ring: Ring,
    stage: Stage,
    /// How often the rosters were looked at.
    rounds: u32,
    /// When the stage begins.
    not_before: Option<Instant>,
    /// Players whose turn in this stage is to come.
    waiting: VecDeque<usize>,
    in_flight: usize,
    first: usize,
    lacking: Vec<Vec<Lacking>>,
    mutual: u64,
}

/// What all players do at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Look,
    Ask,
    Approve,
    Over,
}

/// What a player's roster lacks about a contact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lacking {
    contact: usize,
    /// The player is not subscribed to the contact.
    to: bool,
    /// The contact is not subscribed to the player.
    from: bool,
}

impl Befriend {
    pub(super) fn new(plan: Contacts, setup: &Setup, states: &PlayerStates) -> Self {
        Self {
            ring: Ring::new(plan, setup.job.total),
            stage: Stage::Look,
            rounds: 0,
            not_before: None,
            waiting: states.members().collect(),
            in_flight: 0,
            first: states.numbers.start,
            lacking: vec![Vec::new(); states.numbers.len()],
            mutual: 0,
        }
    }

    /// Lets a player do what the stage is about, and ask for something behind which everything before is done.
    fn act(&mut self, number: usize, context: &mut ActionContext<'_>) {
        let (kind, request) = match self.stage {
            Stage::Look => (None, stanzas::roster()),
            Stage::Ask => (Some(PresenceType::Subscribe), stanzas::ping(None)),
            Stage::Approve => (Some(PresenceType::Subscribed), stanzas::ping(None)),
            Stage::Over => return,
        };
        for lacking in &self.lacking[number - self.first] {
            let Some(kind) = kind.filter(|kind| lacking.needs(*kind)) else { continue };
            let contact = context.setup.player(lacking.contact);
            let _ = context.network.send(number, &Stanza::presence(kind).with_to(contact));
        }
        // One that is not in session any more is lost, and not waited for.
        if context.network.send(number, &request.with_id(ID)) == SendOutcome::Sent {
            self.in_flight += 1;
        }
    }

    fn look(&mut self, number: usize, answer: &Stanza, context: &ActionContext<'_>) {
        if let Some(error) = stanzas::error(answer) {
            return context.recorder.refused("roster", &error);
        }
        context.recorder.count(Count::Rosters);
        let wanted = self.ring.contacts(number);
        let mut lacking: Vec<_> = wanted.map(|contact| Lacking { contact, to: true, from: true }).collect();
        for item in stanzas::roster_items(answer) {
            let contact = item.jid.local().and_then(|local| context.setup.number(local));
            let place = contact.and_then(|contact| self.ring.place(number, contact as usize));
            if let Some(lacking) = place.and_then(|place| lacking.get_mut(place)) {
                (lacking.to, lacking.from) = (!item.to, !item.from);
            }
        }
        let all = lacking.len();
        lacking.retain(|lacking| lacking.to || lacking.from);
        self.mutual += (all - lacking.len()) as u64;
        self.lacking[number - self.first] = lacking;
    }

    /// Begins the next stage when everyone is done with this one.
    fn next_stage(&mut self, context: &ActionContext<'_>) {
        self.not_before = None;
        self.stage = match self.stage {
            Stage::Look => self.judge(context),
            Stage::Ask => Stage::Approve,
            Stage::Approve => {
                self.not_before = Some(context.now + SETTLE_TIME);
                self.mutual = 0;
                Stage::Look
            }
            Stage::Over => return,
        };
        let everyone = self.stage == Stage::Look;
        let members = context.states.members();
        self.waiting =
            members.filter(|number| everyone || !self.lacking[number - self.first].is_empty()).collect();
    }

    /// Whether the rosters are as they are to be.
    fn judge(&mut self, context: &ActionContext<'_>) -> Stage {
        let lacking: usize = self.lacking.iter().map(Vec::len).sum();
        self.rounds += 1;
        if lacking > 0 && self.rounds <= ROUNDS_MAX {
            return Stage::Ask;
        }
        context.recorder.add(Count::Contacts, self.mutual);
        context.recorder.add(Count::Missing, lacking as u64);
        Stage::Over
    }
}

impl Lacking {
    fn needs(self, kind: PresenceType) -> bool {
        match kind {
            PresenceType::Subscribe => self.to,
            PresenceType::Subscribed => self.from,
            _ => false,
        }
    }
}

impl Executor for Befriend {
    fn tick(&mut self, context: &mut ActionContext<'_>) -> Next {
        loop {
            if let Some(at) = self.not_before.filter(|at| *at > context.now) {
                return Next::At(Some(at));
            }
            while self.in_flight < IN_FLIGHT_MAX
                && let Some(number) = self.waiting.pop_front()
            {
                self.act(number, context);
            }
            if self.in_flight > 0 {
                return Next::At(None);
            }
            if self.stage == Stage::Over {
                return Next::Done;
            }
            self.next_stage(context);
        }
    }

    fn stanza(&mut self, number: usize, stanza: &Stanza, context: &mut ActionContext<'_>) {
        if !stanzas::is_response(stanza, ID) {
            return;
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        if self.stage == Stage::Look {
            self.look(number, stanza, context);
        }
    }

    fn lost(&mut self, number: usize, _context: &mut ActionContext<'_>) -> Loss {
        let waiting = self.waiting.len();
        self.waiting.retain(|other| *other != number);
        if waiting == self.waiting.len() {
            // If its request was answered already, the stage ends a little early, and the next look mends that.
            self.in_flight = self.in_flight.saturating_sub(1);
        }
        self.lacking[number - self.first].clear();
        Loss::Final
    }
}
