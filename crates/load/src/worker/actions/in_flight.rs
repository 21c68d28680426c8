//! Messages that were sent and have not arrived: when an exchange of messages ends, and how many are missing then.

use std::time::{Duration, Instant};

use super::executor::Next;
use crate::worker::context::ActionContext;
use crate::worker::recorder::Count;

/// Messages that have not arrived this long after the end of the phase are missing.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(10);

/// The messages in flight in a phase that lasts until a time.
pub(super) struct InFlight {
    until: Instant,
    messages: u64,
    reported: bool,
}

impl InFlight {
    pub(super) fn new(until: Instant) -> Self {
        Self { until, messages: 0, reported: false }
    }

    /// The end of the phase: nothing is sent after it.
    pub(super) fn until(&self) -> Instant {
        self.until
    }

    pub(super) fn sent(&mut self) {
        self.messages += 1;
    }

    pub(super) fn arrived(&mut self) {
        self.messages = self.messages.saturating_sub(1);
    }

    /// Waits for the end of the phase, then for what is in flight, and reports the rest as missing, once.
    pub(super) fn finish(&mut self, context: &ActionContext<'_>) -> Next {
        if context.now < self.until {
            return Next::At(Some(self.until));
        }
        if self.messages > 0 && context.now < self.until + ARRIVAL_TIMEOUT {
            return Next::At(Some(self.until + ARRIVAL_TIMEOUT));
        }
        if !std::mem::replace(&mut self.reported, true) {
            context.recorder.add(Count::Missing, self.messages);
        }
        Next::Done
    }
}
