//! What is known of a session.

use crate::model::Mono;

/// When the client was last pinged.
#[derive(Debug, Default)]
pub struct State {
    pub(super) asked: Mono,
    /// Whether one of the timers is set.
    pub(super) timer_runs: bool,
}
