//! What the features know of one session, and of one account: data without behaviour, in a layer below the session, while
//! the features are above it.

use super::*;

/// What each feature knows of one session. Every session has one, so it is small when there is nothing to know.
#[derive(Debug, Default)]
pub struct PerSession {
    /// To whom directed presence was sent.
    pub presence: presence::State,
    /// Whether the session wants carbons.
    pub carbons: carbons::State,
    /// Presence that is held back while the client is inactive.
    pub csi: csi::State,
    /// Counts and unacknowledged stanzas, when the client enabled stream management.
    pub stream_management: Option<Box<stream_management::State>>,
    /// Notifications on their way.
    pub notifications: notifications::State,
    /// Offline messages on their way.
    pub offline: offline::State,
    /// When the client was pinged.
    pub ping: ping::State,
    /// Which last items the session was given.
    pub pubsub: pubsub::State,
    /// Whether the session is told of changes of the roster.
    pub roster: roster::State,
    /// Whether the session is told of changes of the block list.
    pub blocking: blocking::State,
    /// The rooms that the session is in.
    pub muc: muc::State,
    /// The privacy list that the session has chosen.
    pub privacy: privacy::State,
}

/// What each feature knows of an account, at its home: read from the store when it is needed, and dropped when it is not. Small when there is
/// nothing to know.
#[derive(Debug, Default)]
pub struct PerAccount {
    /// Its contacts.
    pub roster: roster::Contacts,
    /// Whom it blocks.
    pub blocked: blocking::Blocked,
    /// Its nodes.
    pub nodes: pep::Nodes,
    /// Its privacy lists.
    pub privacy: privacy::Lists,
}

impl PerAccount {
    /// Bytes that it takes beside its own size.
    pub fn bytes(&self) -> usize {
        let PerAccount { roster, blocked, nodes, privacy } = self;
        roster.bytes() + blocked.bytes() + nodes.bytes() + privacy.bytes()
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
