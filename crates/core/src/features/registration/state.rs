//! What is known of a session.

/// Whether a session changes its password: one at a time, so that nobody keeps those who derive keys busy alone.
#[derive(Debug, Default)]
pub struct State {
    pub(super) changing: bool,
}
