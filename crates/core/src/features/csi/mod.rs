//! Holds back what can wait while nobody looks.

use crate::hook::{Feature, Hooks};

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "csi",
    about: "Holds back what can wait while nobody looks.",
    specs: &[],
    server_features: &[],
    account_features: &[],
    inline_features: &[],
    hooks: Hooks::NONE,
};

/// Whether somebody looks at the client.
#[derive(Debug, Default)]
pub enum State {
    /// Somebody may.
    #[default]
    Active,
    /// Nobody does; what was held back.
    Inactive(Box<Held>),
}

impl State {
    /// Whether the client said that nobody looks.
    pub fn is_inactive(&self) -> bool {
        matches!(self, State::Inactive(_))
    }
}

/// What is held back.
#[derive(Debug, Default)]
pub struct Held {}
