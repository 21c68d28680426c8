//! What is known of a session.

/// Whether a session wants copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It wants none.
    #[default]
    Off,
    /// It wants them.
    On,
}
