//! Copies an account's messages to its other sessions.

use crate::hook::{Feature, Hooks};

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "carbons",
    about: "Copies an account's messages to its other sessions.",
    specs: &[],
    server_features: &[],
    account_features: &[],
    inline_features: &[],
    hooks: Hooks::NONE,
};

/// Whether a session wants copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It does not.
    #[default]
    Off,
    /// It does.
    On,
}
