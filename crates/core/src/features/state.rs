//! What the features know of one session. Data alone: it lies below the session, and the features above it.

use super::*;

/// What each feature knows of one session. Typed, and small when there is nothing to know: it is there for every session.
#[derive(Debug, Default)]
pub struct PerSession {
    /// Who was sent directed presence.
    pub presence: presence::State,
    /// Whether copies are wanted.
    pub carbons: carbons::State,
    /// What is held back while nobody looks.
    pub csi: csi::State,
    /// Counts and what is unacknowledged, when the client enabled it.
    pub stream_management: Option<Box<stream_management::State>>,
    /// Notifications on their way.
    pub notifications: notifications::State,
    /// Offline messages on their way.
    pub offline: offline::State,
    /// When the client was asked for a sign of life.
    pub ping: ping::State,
    /// What was seen of topics.
    pub pubsub: pubsub::State,
}
