//! Asks whether the other end is still there.

use crate::hook::{Feature, Hooks};

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "ping",
    about: "Asks whether the other end is still there.",
    specs: &[],
    server_features: &[],
    account_features: &[],
    inline_features: &[],
    hooks: Hooks::NONE,
};
