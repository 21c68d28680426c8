//! The features: one folder each, all of the same shape. `mod.rs` declares and decides, `xml.rs` parses and prints, `state.rs` is what it
//! knows of a session or an account, `shared.rs` what it keeps on a shard, `*.chat` converses.
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
pub mod state;
pub mod stream_limits;
pub mod stream_management;
pub mod time;
pub mod upload;
pub mod vcard;
pub mod version;
pub mod web_push;

use crate::model::Mono;
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

/// What a feature keeps on one shard, beside what it knows of sessions and accounts.
pub trait Shared: Default + std::fmt::Debug {
    /// When it has something to do ([`TickHook`](crate::session::hook::TickHook)), if ever.
    fn due(&self) -> Option<Mono> {
        None
    }

    /// Gives back what a burst made it grow to.
    fn tidy(&mut self) {}
}

/// What features keep on one shard. Each field is opened by its feature alone: nobody else sees what its type can do.
macro_rules! per_shard {
    ($($(#[doc = $about:literal])+ $feature:ident: $shared:ty,)*) => {
        /// What each feature keeps on one shard. Each field is opened to its feature alone.
        #[derive(Debug, Default)]
        pub struct PerShard {
            $($(#[doc = $about])+ pub $feature: $shared,)*
        }

        impl PerShard {
            /// When a feature has something to do, if ever.
            pub fn due(&self) -> Option<Mono> {
                [$(self.$feature.due()),*].into_iter().flatten().min()
            }

            /// Gives back what bursts made it grow to.
            pub fn tidy(&mut self) {
                $(self.$feature.tidy();)*
            }
        }
    };
}

per_shard! {
    /// Messages that are being kept in archives, and what waits behind them.
    archive: archive::Archiving,
    /// Accounts that are being told of a list of bookmarks.
    bookmarks: bookmarks::Telling,
    /// What clients can do.
    caps: caps::Capabilities,
    /// How often tokens were used.
    fast: fast::Replays,
    /// When accounts became unavailable.
    last_activity: last_activity::Logouts,
    /// Modules that are active.
    modules: modules::Modules,
    /// Notifications on their way.
    notifications: notifications::Ledger,
    /// Offline messages about which the store is being asked.
    offline: offline::Pending,
    /// Sessions that are being given the last items of nodes.
    pep: pep::LastItems,
    /// Sessions of dead nodes that are being given what they missed of their topics.
    pubsub: pubsub::Missed,
    /// How often subscriptions change.
    roster: roster::Paces,
    /// What clients have not acknowledged.
    stream_management: stream_management::Queued,
}
