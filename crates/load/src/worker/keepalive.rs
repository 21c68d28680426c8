//! Keep-alive pings of the light protocol: its server closes connections that stay silent for too long.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::player_states::PlayerStates;
use crate::light;
use crate::swarm::Network;

/// Each player pings once per interval.
const INTERVAL: Duration = Duration::from_secs(20);

/// The pings of one thread's players, one after the other, spread evenly over the interval.
#[derive(Debug)]
pub(super) struct KeepAlive {
    numbers: Range<usize>,
    /// Pings so far; `None` if the protocol needs none.
    sent: Option<u64>,
    since: Option<Instant>,
}

impl KeepAlive {
    /// The pings of the players with these numbers, if their protocol needs any.
    pub(super) fn new(needs_pings: bool, numbers: &Range<usize>) -> Self {
        let sent = (needs_pings && !numbers.is_empty()).then_some(0);
        Self { numbers: numbers.clone(), sent, since: None }
    }

    /// Sends the pings that are due.
    pub(super) fn send_due(&mut self, states: &PlayerStates, now: Instant, network: &mut Network) {
        let Some(sent) = &mut self.sent else { return };
        let since = *self.since.get_or_insert(now);
        let rounds = now.duration_since(since).as_secs_f64() / INTERVAL.as_secs_f64();
        let due = (rounds * self.numbers.len() as f64) as u64;
        while *sent < due {
            let number = self.numbers.start + (*sent % self.numbers.len() as u64) as usize;
            *sent += 1;
            if states.is_in(number) {
                network.with_light_client(number, light::Client::ping);
            }
        }
    }
}
