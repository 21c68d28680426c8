//! What is known of a session.

use super::queue::Queue;

/// The counts of a session whose client enabled stream management, and what it has not acknowledged.
#[derive(Debug, Default)]
pub struct State {
    /// Stanzas received since it was enabled, modulo 2^32.
    pub(super) received: u32,
    /// What was sent since and is not acknowledged.
    pub(super) queue: Queue,
    /// Whether an `<r/>` is unanswered.
    pub(super) asked: bool,
}
