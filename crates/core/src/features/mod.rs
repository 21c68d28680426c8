//! The features: one folder each, all of the same shape. `mod.rs` declares and decides, `xml.rs` parses and prints, `*.chat` converses. What a
//! feature keeps is in [`feature_state`](crate::feature_state), in a file or folder of the feature's name.
//!
//! THE ORDER is here, too: every hook runs in the order of [`ORDER`]; there are no priorities anywhere else.

pub mod amp;
pub mod archive;
pub mod blocking;
pub mod bookmarks;
pub mod caps;
pub mod carbons;
pub mod commands;
pub mod csi;
pub mod disco;
pub mod fast;
pub mod inbox;
pub mod invitations;
pub mod json;
pub mod last_activity;
pub mod matchmaking;
pub mod modules;
pub mod muc;
pub mod muclight;
pub mod notifications;
pub mod offline;
pub mod pep;
pub mod ping;
pub mod presence;
pub mod privacy;
pub mod private;
pub mod pubsub;
pub mod push;
pub mod receipts;
pub mod registration;
pub mod roster;
pub mod session_establishment;
pub mod stanza_ids;
pub mod stream_limits;
pub mod stream_management;
pub mod time;
pub mod upload;
pub mod vcard;
pub mod version;
pub mod web_push;

use crate::session::hook::{Feature, taken_twice};

/// All features, in the order in which their hooks run.
pub const ORDER: &[&Feature] = &[
    // Counts what came in before anything may refuse it, and what goes out after everything has let it pass.
    &stream_management::FEATURE,
    // Its hooks are called before all others, by name.
    &modules::FEATURE,
    // Stamps ids before anything copies or keeps a message.
    &stanza_ids::FEATURE,
    // What waits for a session follows its initial presence in this order: offline messages, notifications, last items.
    // The services take what is addressed to them before it would be routed.
    &offline::FEATURE,
    &notifications::FEATURE,
    &pubsub::FEATURE,
    &muc::FEATURE,
    &muclight::FEATURE,
    // Refuses rules before anything copies their message.
    &amp::FEATURE,
    // Hears of changes of the block list, which its default list begins with, before blocking takes them.
    &privacy::FEATURE,
    // Before those who give what it lets pass.
    &blocking::FEATURE,
    // Knows what clients want before they are given it.
    &caps::FEATURE,
    // Hears of items before pep tells them.
    &bookmarks::FEATURE,
    // Before those that describe an account without its nodes.
    &pep::FEATURE,
    // What has come and passes.
    &archive::FEATURE,
    // Answers about the archive.
    &inbox::FEATURE,
    // Takes requests for subscriptions with a token before the roster would store them as any other.
    &invitations::FEATURE,
    // Takes what is said about subscriptions before presence would refuse it.
    &roster::FEATURE,
    &presence::FEATURE,
    // Copies what was sent, when everything else has let it pass.
    &carbons::FEATURE,
    &receipts::FEATURE,
    // Last on the way out: what it holds back was otherwise decided.
    &csi::FEATURE,
    &ping::FEATURE,
    // Before authentication: the one is offered inline with SASL2, the other beside SASL.
    &fast::FEATURE,
    &registration::FEATURE,
    &session_establishment::FEATURE,
    &json::FEATURE,
    &commands::FEATURE,
    &private::FEATURE,
    &vcard::FEATURE,
    &upload::FEATURE,
    &matchmaking::FEATURE,
    &push::FEATURE,
    &web_push::FEATURE,
    &version::FEATURE,
    &time::FEATURE,
    // Notes an end of presence that everything else has been told of.
    &last_activity::FEATURE,
    &stream_limits::FEATURE,
    // Describes the others.
    &disco::FEATURE,
];

const _: () = assert!(taken_twice(ORDER).is_none(), "a hook that is for one feature has several");
