//! All players wait for the items that one publisher publishes.

use std::ops::Range;
use std::time::{Duration, Instant};

use carillon_wire::stanza::{Kind, Stanza};

use super::executor::{Executor, Loss, Next};
use crate::light::LightEvent;
use crate::plan::{Action, Publish};
use crate::worker::arrivals::{Arrival, Arrivals};
use crate::worker::context::ActionContext;
use crate::worker::mark::{Marks, phase_and_item};
use crate::worker::player_states::PlayerStates;
use crate::worker::recorder::Count;
use crate::worker::schedule::{Schedule, Share};
use crate::worker::setup::Setup;
use crate::worker::step::StepStart;

/// When no item has arrived for this long after the last one was due, the rest is missing.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(30);

/// Counts the items of a step as they arrive.
pub(super) struct ReceiveItems {
    marks: Marks,
    phase: u32,
    /// How many items the step has.
    items: u64,
    /// Players who should receive each item.
    subscribers: u64,
    /// Whether only players who subscribed in this test should receive it.
    subscribed_only: bool,
    numbers: Range<usize>,
    /// What each player has received.
    arrivals: Vec<Arrivals>,
    arrived: u64,
    /// When the last item is due, or when the last one arrived.
    last: Instant,
    reported: bool,
}

impl ReceiveItems {
    pub(super) fn new(publish: &Publish, step: &StepStart, setup: &Setup, states: &PlayerStates) -> Self {
        let phases = &setup.job.scenario.phases[..step.position.phase as usize];
        let subscribes =
            |action: &Action| matches!(action, Action::Subscribe { topic } if *topic == publish.topic);
        let subscribed_only = phases.iter().any(|phase| subscribes(&phase.action));
        let subscribers = states.members().filter(|number| !subscribed_only || states.is_subscribed(*number));
        let items = if publish.rate.is_some() { publish.items } else { 1 };
        Self {
            marks: Marks::of(&setup.job.test),
            phase: step.position.phase,
            items: items.into(),
            subscribers: subscribers.count() as u64,
            subscribed_only,
            numbers: states.numbers.clone(),
            arrivals: vec![Arrivals::default(); states.numbers.len()],
            arrived: 0,
            last: last_due(publish, step),
            reported: false,
        }
    }

    fn is_subscriber(&self, number: usize, context: &ActionContext<'_>) -> bool {
        !self.subscribed_only || context.states.is_subscribed(number)
    }

    fn arrived(&mut self, number: usize, bytes: &[u8], context: &mut ActionContext<'_>) {
        let Some(mark) = self.marks.find(bytes) else { return };
        let (phase, item) = phase_and_item(mark.number);
        if phase != self.phase {
            return;
        }
        match self.arrivals[number - self.numbers.start].note(item) {
            Arrival::InOrder => {}
            Arrival::OutOfOrder => context.recorder.count(Count::OutOfOrder),
            Arrival::Duplicate => return context.recorder.count(Count::Duplicates),
        }
        self.arrived += 1;
        self.last = self.last.max(context.now);
        let due = context.setup.clock.instant(mark.due_unix_ns);
        context.delivered_item(number, mark.number, due);
    }
}

impl Executor for ReceiveItems {
    fn tick(&mut self, context: &mut ActionContext<'_>) -> Next {
        let expected = self.items * self.subscribers;
        let late = context.now.saturating_duration_since(self.last) > ARRIVAL_TIMEOUT;
        if self.arrived < expected && !late {
            return Next::At(None);
        }
        if !std::mem::replace(&mut self.reported, true) {
            context.recorder.add(Count::Missing, expected.saturating_sub(self.arrived));
        }
        Next::Done
    }

    fn stanza(&mut self, number: usize, stanza: &Stanza, context: &mut ActionContext<'_>) {
        if !matches!(stanza.kind, Kind::Message(_)) {
            return;
        }
        self.arrived(number, stanza.payload.bytes(), context);
    }

    fn light(&mut self, number: usize, event: &LightEvent, context: &mut ActionContext<'_>) {
        match event {
            LightEvent::Published(item) => self.arrived(number, item, context),
            LightEvent::Error(code) => context.recorder.error(format!("publish: {code}")),
            _ => {}
        }
    }

    fn ready(&mut self, number: usize, context: &mut ActionContext<'_>) {
        self.subscribers += u64::from(self.is_subscriber(number, context));
    }

    fn lost(&mut self, number: usize, context: &mut ActionContext<'_>) -> Loss {
        self.subscribers = self.subscribers.saturating_sub(self.is_subscriber(number, context).into());
        Loss::Final
    }
}

fn last_due(publish: &Publish, step: &StepStart) -> Instant {
    let Some(rate) = &publish.rate else { return step.at };
    let whole = Share { first: 0, count: 1, total: 1 };
    let schedule = Schedule::new(rate, whole, step.at);
    schedule.at(u64::from(publish.items).saturating_sub(1)).unwrap_or(step.at)
}
