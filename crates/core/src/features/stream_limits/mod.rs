//! Tells clients the bounds of a stream.

use crate::hook::{Feature, Hooks};

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "stream_limits",
    about: "Tells clients the bounds of a stream.",
    specs: &[],
    server_features: &[],
    account_features: &[],
    inline_features: &[],
    hooks: Hooks::NONE,
};

/// The bounds before authentication.
pub fn before_auth(_cx: &crate::node::Cx<'_>) -> carillon_wire::xml::Element {
    carillon_wire::xml::Element::new("limits", carillon_wire::ns::STREAM_LIMITS)
}
