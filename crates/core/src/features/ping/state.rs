//! What is known of a session.

use crate::model::Mono;

/// When the client was last asked for a sign of life.
#[derive(Debug, Default)]
pub struct State {
    pub(super) asked: Mono,
}
