//! Message receipts (XEP-0184): between clients they pass as any message; to an account that is away a receipt is not worth
//! keeping, and the offline store leaves it out because it has no body. A receipt for a notification is the
//! notifications feature's.

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
