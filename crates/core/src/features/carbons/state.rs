//! What is known of a session.

/// Whether a session wants copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It does not.
    #[default]
    Off,
    /// It does.
    On,
}
