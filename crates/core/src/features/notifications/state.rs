//! What is known of a session: its notifications on their way.

use crate::model::{Audience, Mono, NotificationId, UnixMs};
use crate::shard::Reading;

/// A session's notifications on their way.
#[derive(Debug, Default)]
pub struct State(pub(super) Option<Box<Progress>>);

#[derive(Debug, Default)]
pub(super) struct Progress {
    /// How far the session is with what the store holds for it.
    pub(super) reading: Reading,
    /// Given to the connection and not yet acknowledged, oldest first.
    pub(super) in_flight: Vec<InFlight>,
    /// Bytes of all that were given since this began.
    pub(super) given: u64,
    /// Whether a timer runs that looks for receipts that did not come.
    pub(super) timed: bool,
}

/// A notification given to the connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    pub(super) id: NotificationId,
    pub(super) audience: Audience,
    pub(super) sent: UnixMs,
    /// When, by the clock of timers.
    pub(super) at: Mono,
    /// [`Progress::given`] with this one.
    pub(super) end: u64,
    /// Whether stream management counts it.
    pub(super) managed: bool,
}

impl State {
    /// Takes note of what a login read: whether any wait.
    pub(super) fn take_login(&mut self, waits: bool) {
        if waits {
            self.look_again();
        }
    }

    /// Takes note that the store may hold one that the session was not given.
    pub(super) fn look_again(&mut self) {
        self.progress().reading.more = true;
    }

    /// How many are given and not acknowledged.
    pub(super) fn unacknowledged(&self) -> usize {
        self.0.as_ref().map_or(0, |progress| progress.in_flight.len())
    }

    /// The oldest that only a receipt or the socket can acknowledge.
    pub(super) fn unmanaged(&self) -> Option<&InFlight> {
        self.0.as_ref()?.in_flight.iter().find(|entry| !entry.managed)
    }

    /// Whether older ones are still to come from the store, so that newer ones must wait behind them there.
    pub(super) fn is_behind(&self) -> bool {
        self.0.as_ref().is_some_and(|progress| progress.reading.is_behind())
    }

    pub(super) fn progress(&mut self) -> &mut Progress {
        self.0.get_or_insert_default()
    }

    /// Drops the box when it holds nothing: an idle session keeps none.
    pub(super) fn tidy(&mut self) {
        let idle = |p: &Progress| !p.reading.is_behind() && p.in_flight.is_empty() && !p.timed;
        if self.0.as_deref().is_some_and(idle) {
            self.0 = None;
        }
    }
}
