//! JSON containers (XEP-0335): what providers send as JSON travels in one, and clients may send them to each other.

use crate::session::hook::{Feature, Hooks, Spec};
use carillon_wire::ns;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "json",
    about: "Carries the JSON that providers send.",
    specs: &[Spec {
        id: "XEP-0335",
        title: "JSON Containers",
        version: "0.1.1",
        coverage: "Payload of notifications and topic items; passes between clients as any payload.",
    }],
    server_features: &[ns::JSON],
    hooks: Hooks::NONE,
    ..Feature::NONE
};
