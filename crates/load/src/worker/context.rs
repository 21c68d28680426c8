//! What an action can do with the players of one thread.

use std::time::Instant;

use super::player_states::{PlayerState, PlayerStates};
use super::recorder::{Count, Recorder};
use super::setup::Setup;
use super::watch::Watch;
use crate::plan::Protocol;
use crate::swarm::{Network, Start};

/// What an action works with.
pub(super) struct ActionContext<'a> {
    pub(super) setup: &'a Setup,
    pub(super) recorder: &'a Recorder,
    pub(super) states: &'a mut PlayerStates,
    pub(super) network: &'a mut Network,
    /// What players receive around the event of the test, in its phase.
    pub(super) watch: &'a mut Option<Watch>,
    pub(super) now: Instant,
}

impl ActionContext<'_> {
    /// Logs a player in. The login's latency counts from `due`.
    pub(super) fn log_in(&mut self, number: usize, due: Instant) {
        self.states.set(number, PlayerState::LoggingIn(due));
        let is_new = !self.states.is_known(number);
        let start = match self.setup.job.scenario.players.protocol {
            Protocol::Xmpp => Start::Xmpp(self.setup.options(number, is_new)),
            // Its subscriptions ended with its last connection.
            Protocol::Light => {
                self.states.unsubscribe(number);
                Start::Light
            }
        };
        self.network.connect(number, start);
    }

    /// Lets a player that was cut come back, to resume its stream.
    pub(super) fn return_to_stream(&mut self, number: usize, due: Instant) {
        // The server may not have allowed that its stream is resumed. Then it does not ask for it.
        if !self.network.is_parked(number) {
            self.recorder.not_resumed("not-offered");
        }
        self.log_in(number, due);
    }

    /// Drops a player's connection without closing its stream.
    pub(super) fn drop(&mut self, number: usize) {
        self.states.dropped(number, self.now);
        if self.states.set(number, PlayerState::Out) != PlayerState::Out {
            self.recorder.count(Count::Dropped);
        }
        self.network.abort(number);
    }

    /// A player receives something now that was due at `due`.
    pub(super) fn delivered(&mut self, number: usize, due: Instant) {
        self.recorder.delivered(self.now.saturating_duration_since(due));
        self.watch_delivery(number, due);
    }

    /// The same for an item that goes to all subscribers.
    pub(super) fn delivered_item(&mut self, number: usize, item: u32, due: Instant) {
        self.recorder.delivered_item(item, self.now.saturating_duration_since(due));
        self.watch_delivery(number, due);
    }

    fn watch_delivery(&mut self, number: usize, due: Instant) {
        if let Some(watch) = self.watch {
            watch.delivered(number, due, self.now, self.recorder);
        }
    }

    /// Counts something that is sent now and was due at `due`.
    pub(super) fn sent(&self, due: Instant) {
        self.recorder.sent(self.now.saturating_duration_since(due));
    }
}
