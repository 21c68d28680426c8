//! Players receive notifications. The notifier sends them, and decides when the step is done.

use std::sync::atomic::Ordering;

use carillon_wire::stanza::{Kind, Stanza};

use super::executor::{Executor, Next};
use crate::worker::context::ActionContext;
use crate::worker::mark::{Marks, phase_and_item};
use crate::worker::setup::Setup;
use crate::worker::step::StepStart;

/// Counts the notifications of a phase as they arrive.
pub(super) struct ReceiveNotifications {
    marks: Marks,
    phase: u32,
}

impl ReceiveNotifications {
    pub(super) fn new(step: &StepStart, setup: &Setup) -> Self {
        Self { marks: Marks::of(&setup.job.test), phase: step.position.phase }
    }
}

impl Executor for ReceiveNotifications {
    fn tick(&mut self, _context: &mut ActionContext<'_>) -> Next {
        Next::Done
    }

    fn stanza(&mut self, _number: usize, stanza: &Stanza, context: &mut ActionContext<'_>) {
        if !matches!(stanza.kind, Kind::Message(_)) {
            return;
        }
        let mark = self.marks.find(stanza.payload.bytes());
        let Some(mark) = mark.filter(|mark| phase_and_item(mark.number).0 == self.phase) else { return };
        // Relaxed: nothing else is read because of this count; the notifier only compares it with what it sent.
        context.setup.notified.fetch_add(1, Ordering::Relaxed);
        let due = context.setup.clock.instant(mark.due_unix_ns);
        context.recorder.delivered(context.now.saturating_duration_since(due));
    }
}
