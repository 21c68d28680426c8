//! Stream limits (XEP-0478): a client is told how large its stanzas may be and how long it may be silent.

use crate::session::Cx;
use crate::session::hook::{Feature, Hooks, Spec};
use carillon_wire::ns;
use carillon_wire::xml::Element;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "stream_limits",
    about: "Tells clients how large stanzas may be and how long they may be silent.",
    specs: &[Spec {
        id: "XEP-0478",
        title: "Stream Limits Advertisement",
        version: "0.2.0",
        coverage: "max-bytes before and after authentication; idle-seconds after.",
    }],
    hooks: Hooks {
        offer_before_auth: Some(|_, cx, features| features.push(before_auth(cx))),
        offer: Some(|cx, features| features.push(after_auth(cx))),
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// The bounds before authentication.
fn before_auth(cx: &Cx<'_>) -> Element {
    limits(cx.shard.settings.limits.stanza_bytes_before_auth)
}

/// The bounds of a session. A client that is silent for longer is pinged and must answer; without pings there is no such
/// bound.
fn after_auth(cx: &Cx<'_>) -> Element {
    let limits = limits(cx.shard.settings.limits.stanza_bytes);
    match cx.shard.settings.timeouts.ping_idle_ms {
        0 => limits,
        ms => limits
            .with_child(Element::new("idle-seconds", ns::STREAM_LIMITS).with_text((ms / 1000).to_string())),
    }
}

fn limits(bytes: usize) -> Element {
    let max = Element::new("max-bytes", ns::STREAM_LIMITS).with_text(bytes.to_string());
    Element::new("limits", ns::STREAM_LIMITS).with_child(max)
}
