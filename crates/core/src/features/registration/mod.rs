//! In-band registration.

use crate::hook::{Feature, Hooks};

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "registration",
    about: "In-band registration.",
    specs: &[],
    server_features: &[],
    account_features: &[],
    inline_features: &[],
    hooks: Hooks::NONE,
};

/// An account that changes or removes itself, and waits for the store.
#[derive(Debug)]
pub struct Then {}

/// The store answered.
pub fn answered(
    _: Then,
    _: &crate::ports::Answer,
    _: &mut crate::node::Sessions,
    _: &mut crate::node::Cx<'_>,
) {
}
