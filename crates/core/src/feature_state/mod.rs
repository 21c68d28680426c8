//! What features keep: of a session ([`PerSession`]), of an account at its home ([`PerAccount`]) and on a shard ([`PerShard`]). Data, and what
//! can be said of it alone: it knows no session and no store. Sessions are made of it, and features are above sessions: so it is a layer of its
//! own, below both ([ADR 65](../../../../docs/adr/0065-what-features-keep-is-below-the-session.md)).
//!
//! Each has a file or a folder of its feature's name, and each field has that name, too. A feature opens its own and no other
//! (`xtask tidy`, features::own_state).

pub mod archive;
pub mod blocking;
pub mod bookmarks;
pub mod caps;
pub mod carbons;
pub mod csi;
pub mod fast;
pub mod last_activity;
pub mod modules;
pub mod muc;
pub mod notifications;
pub mod offline;
pub mod pep;
pub mod ping;
pub mod presence;
pub mod privacy;
pub mod pubsub;
pub mod roster;
pub mod stream_management;

use crate::model::Mono;

/// What each feature knows of one session. Every session has one, so it is small when there is nothing to know.
#[derive(Debug, Default)]
pub struct PerSession {
    /// To whom directed presence was sent.
    pub presence: presence::DirectedPresence,
    /// Whether the session wants carbons.
    pub carbons: carbons::Carbons,
    /// Presence that is held back while the client is inactive.
    pub csi: csi::ClientState,
    /// Counts and unacknowledged stanzas, when the client enabled stream management.
    pub stream_management: Option<Box<stream_management::StreamManagement>>,
    /// Notifications on their way.
    pub notifications: notifications::NotificationsInFlight,
    /// Offline messages on their way.
    pub offline: offline::OfflineInFlight,
    /// When the client was pinged.
    pub ping: ping::Pinged,
    /// Which last items the session was given.
    pub pubsub: pubsub::LastItems,
    /// Whether the session is told of changes of the roster.
    pub roster: roster::RosterInterest,
    /// Whether the session is told of changes of the block list.
    pub blocking: blocking::BlockListInterest,
    /// The rooms that the session is in.
    pub muc: muc::OccupiedRooms,
    /// The privacy list that the session has chosen.
    pub privacy: privacy::ChosenList,
}

/// What each feature knows of an account, at its home: read from the store when it is needed, and dropped when it is not. Small when there is
/// nothing to know.
#[derive(Debug, Default)]
pub struct PerAccount {
    /// Its contacts.
    pub roster: roster::Contacts,
    /// Whom it blocks.
    pub blocking: blocking::Blocked,
    /// Its nodes.
    pub pep: pep::Nodes,
    /// Its privacy lists.
    pub privacy: privacy::Lists,
}

impl PerAccount {
    /// Bytes that it takes beside its own size.
    pub fn bytes(&self) -> usize {
        let PerAccount { roster, blocking, pep, privacy } = self;
        roster.bytes() + blocking.bytes() + pep.bytes() + privacy.bytes()
    }
}

crate::form! {
    struct PerSession {
        presence,
        carbons,
        csi,
        stream_management,
        notifications,
        offline,
        ping,
        pubsub,
        roster: since(2),
        blocking: since(2),
        muc: since(5),
        privacy: since(5),
    }
}

/// What a feature keeps on one shard, beside what it knows of sessions and accounts.
pub trait Shared: Default + std::fmt::Debug {
    /// When it has something to do ([`TickHook`](crate::session::hook::TickHook)), if ever.
    fn due(&self) -> Option<Mono> {
        None
    }

    /// Gives back what a burst made it grow to.
    fn tidy(&mut self) {}
}

/// Makes what features keep on one shard.
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
}
