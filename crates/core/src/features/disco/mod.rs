//! Tells what the server, an account and a service can do.

use crate::hook::{Feature, Hooks};

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "disco",
    about: "Tells what the server, an account and a service can do.",
    specs: &[],
    server_features: &[],
    account_features: &[],
    inline_features: &[],
    hooks: Hooks::NONE,
};
