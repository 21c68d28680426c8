//! What an operator decides about live upgrades.

use super::predecessor::Timeouts;
use std::time::Duration;

/// What an operator decides about live upgrades, in milliseconds. Types and defaults are declared here and nowhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long the new process may take until it has checked everything.
    pub start_timeout_ms: u64,
    /// How long requests and logins that are under way have to end before clients wait.
    pub requests_timeout_ms: u64,
    /// How long clients may wait at most until the new process has everything; then the old one goes on.
    pub pause_timeout_ms: u64,
    /// How long connections under TLS 1.2 go on over the old process.
    pub relay_timeout_ms: u64,
    /// Whether the first process stays for whoever watches it.
    pub stay: bool,
}

impl Options {
    /// How long the steps may take.
    pub fn timeouts(&self) -> Timeouts {
        let ms = Duration::from_millis;
        Timeouts {
            start: ms(self.start_timeout_ms),
            requests: ms(self.requests_timeout_ms),
            pause: ms(self.pause_timeout_ms),
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            start_timeout_ms: 30_000,
            requests_timeout_ms: 2000,
            pause_timeout_ms: 5000,
            relay_timeout_ms: 3_600_000,
            stay: false,
        }
    }
}
