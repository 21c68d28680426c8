//! Players receive notifications. The notifier sends them, and says when the step is done.

use std::sync::atomic::Ordering;

use carillon_wire::stanza::{Kind, Stanza};

use super::{Act, Next};
use crate::worker::crowd::Crowd;
use crate::worker::hand::Turn;
use crate::worker::mark::{Marks, phase_and_item};
use crate::worker::setting::Setting;

/// Counts notifications of a phase as they arrive.
pub(super) struct Receive {
    marks: Marks,
    phase: u32,
}

impl Receive {
    pub(super) fn new(turn: &Turn, setting: &Setting) -> Self {
        Self { marks: Marks::of(&setting.job.test), phase: turn.position.phase }
    }
}

impl Act for Receive {
    fn tick(&mut self, _crowd: &mut Crowd<'_>) -> Next {
        Next::Done
    }

    fn stanza(&mut self, _number: usize, stanza: &Stanza, crowd: &mut Crowd<'_>) {
        if !matches!(stanza.kind, Kind::Message(_)) {
            return;
        }
        let mark = self.marks.find(stanza.payload.bytes());
        let Some(mark) = mark.filter(|mark| phase_and_item(mark.number).0 == self.phase) else { return };
        // It publishes nothing but itself: the notifier only compares it to what it sent.
        crowd.setting.notified.fetch_add(1, Ordering::Relaxed);
        let due = crowd.setting.clock.instant(mark.due_unix_ns);
        crowd.ledger.delivered(crowd.now.saturating_duration_since(due));
    }
}
