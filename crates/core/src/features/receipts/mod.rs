//! Message receipts (XEP-0184). Between clients they are messages like any other; for an absent account they are not kept,
//! because they have no body. Receipts for notifications are handled by the notifications feature.

use crate::session::hook::{Feature, Hooks, Spec};

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "receipts",
    about: "Receipts between clients pass unharmed, and are not kept for absent ones.",
    specs: &[Spec {
        id: "XEP-0184",
        title: "Message Delivery Receipts",
        version: "1.4.0",
        coverage: "Passed between clients; acknowledges notifications (see notifications).",
    }],
    hooks: Hooks::NONE,
    ..Feature::NONE
};
