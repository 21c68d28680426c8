//! Players receive notifications. The notifier sends them, and decides when the step is done.

use std::ops::Range;
use std::sync::atomic::Ordering;

use carillon_wire::stanza::{Kind, Stanza};

use super::executor::{Executor, Next};
use crate::worker::arrivals::{Arrival, Arrivals};
use crate::worker::context::ActionContext;
use crate::worker::mark::{Marks, UNTRACKED, phase_and_item};
use crate::worker::player_states::PlayerStates;
use crate::worker::recorder::Count;
use crate::worker::setup::Setup;
use crate::worker::step::StepStart;

/// Counts the notifications of a phase as they arrive.
pub(super) struct ReceiveNotifications {
    marks: Marks,
    phase: u32,
    numbers: Range<usize>,
    /// What each player has received.
    arrivals: Vec<Arrivals>,
}

impl ReceiveNotifications {
    pub(super) fn new(step: &StepStart, setup: &Setup, states: &PlayerStates) -> Self {
        let numbers = states.numbers.clone();
        let arrivals = vec![Arrivals::default(); numbers.len()];
        Self { marks: Marks::of(&setup.job.test), phase: step.position.phase, numbers, arrivals }
    }

    /// Whether a notification arrives for the first time. The notifier's threads do not keep them in order.
    fn is_new(&mut self, number: usize, item: u32, context: &ActionContext<'_>) -> bool {
        let ordinal = item / context.setup.job.count.max(1);
        item == UNTRACKED || self.arrivals[number - self.numbers.start].note(ordinal) != Arrival::Duplicate
    }
}

impl Executor for ReceiveNotifications {
    fn tick(&mut self, _context: &mut ActionContext<'_>) -> Next {
        Next::Done
    }

    fn stanza(&mut self, number: usize, stanza: &Stanza, context: &mut ActionContext<'_>) {
        if !matches!(stanza.kind, Kind::Message(_)) {
            return;
        }
        let mark = self.marks.find(stanza.payload.bytes());
        let Some(mark) = mark else { return };
        let (phase, item) = phase_and_item(mark.number);
        if phase != self.phase {
            return;
        }
        if !self.is_new(number, item, context) {
            return context.recorder.count(Count::Duplicates);
        }
        // Relaxed: nothing else is read because of this count; the notifier only compares it with what it sent.
        context.setup.notified.fetch_add(1, Ordering::Relaxed);
        let due = context.setup.clock.instant(mark.due_unix_ns);
        context.delivered(number, due);
    }
}
