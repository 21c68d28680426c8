//! The event log as the core sees it: what happens to connections, notifications and items, each as one [`Entry`] of the
//! shard's [`Journal`].
//!
//! An entry is noted at the one place where the thing is decided, and is kept encoded in the journal until the server takes
//! all entries at once. A kind that is not wanted costs the test of a bit: its entry is not even built. Noting an entry
//! allocates nothing once the journal's buffer has grown.

mod journal;
mod kind;
mod record;
#[cfg(test)]
mod tests;

pub use journal::Journal;
pub use kind::{Field, Kind, Kinds, Shape};
pub use record::{Record, Records, Value, records};

use crate::model::{
    AcknowledgedBy, Audience, DropReason, NotificationId, NotificationState, Priority, Trace, Transport,
};
use std::net::IpAddr;

/// Something that happened. What it borrows is copied when it is noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// A shard begins.
    Start,
    /// A shard shuts down.
    Stop,
    /// A connection was accepted, and its TLS agreed on where TLS comes first.
    Connect {
        /// The client's address.
        address: IpAddr,
        /// What carries its stanzas.
        transport: Transport,
    },
    /// A session was bound.
    Login {
        /// Its full JID.
        jid: &'a str,
        /// The client's address.
        address: IpAddr,
        /// What carries its stanzas.
        transport: Transport,
    },
    /// A login failed.
    LoginFailure {
        /// The account, when a proof was wrong.
        account: Option<&'a str>,
        /// The client's address.
        address: IpAddr,
        /// The SASL condition (RFC 6120 §6.5).
        reason: &'static str,
    },
    /// A session ended, or a connection that never had one.
    Disconnect {
        /// The session's full JID.
        jid: Option<&'a str>,
        /// The client's address.
        address: IpAddr,
        /// What ended it.
        reason: Leave,
        /// Milliseconds since the session was bound.
        after_ms: u64,
    },
    /// A client resumed a session over a new connection.
    Resume {
        /// The session's full JID.
        jid: &'a str,
        /// The client's address.
        address: IpAddr,
        /// What carries its stanzas.
        transport: Transport,
    },
    /// A notification was taken from its sender; for one that is kept, it is committed.
    Accept {
        /// The notification.
        id: NotificationId,
        /// Its target.
        to: &'a str,
        /// Its audience.
        audience: Audience,
        /// Its priority.
        priority: Priority,
    },
    /// A notification was given to a connection.
    Deliver {
        /// The notification.
        id: NotificationId,
        /// The session's full JID.
        to: &'a str,
        /// Milliseconds since it was accepted.
        after_ms: u64,
    },
    /// A session acknowledged a notification.
    Acknowledge {
        /// The notification.
        id: NotificationId,
        /// The session's full JID.
        to: &'a str,
        /// How it was acknowledged.
        by: AcknowledgedBy,
        /// Milliseconds since it was given to the connection.
        after_ms: u64,
    },
    /// A notification ended without being acknowledged.
    Drop {
        /// The notification.
        id: NotificationId,
        /// Its target.
        to: &'a str,
        /// Its last state.
        state: NotificationState,
        /// The reason, for a dropped one.
        reason: Option<DropReason>,
    },
    /// An item was published.
    Publish {
        /// The topic's domain.
        domain: &'a str,
        /// The topic's name.
        topic: &'a str,
        /// The item's id.
        item: &'a str,
    },
    /// An item was given to a connection.
    Item {
        /// The topic's name.
        topic: &'a str,
        /// The item's id.
        item: &'a str,
        /// The session's full JID.
        to: &'a str,
        /// Milliseconds since it was published.
        after_ms: u64,
    },
    /// A match is over.
    MatchEnded {
        /// The match.
        id: &'a str,
        /// The queue that made it.
        queue: &'a str,
        /// Why it is over.
        reason: &'static str,
        /// How many ticks it had.
        ticks: u32,
        /// What most clients say came of it.
        outcome: &'a str,
    },
    /// A room was created.
    RoomCreated {
        /// Its address.
        room: &'a str,
        /// The account that created it; none for a provider.
        by: Option<&'a str>,
    },
    /// A room was removed.
    RoomDestroyed {
        /// Its address.
        room: &'a str,
        /// Why.
        reason: &'static str,
        /// The account that removed it; none for a provider, and where nobody did.
        by: Option<&'a str>,
    },
    /// Somebody had an occupant leave a room.
    RoomRemoved {
        /// The room's address.
        room: &'a str,
        /// The account of the occupant.
        account: &'a str,
        /// Why.
        reason: &'static str,
        /// The nick of who did it; none for a provider.
        by: Option<&'a str>,
    },
}

/// Why a connection or session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// The client closed its stream.
    Closed,
    /// The connection was lost.
    Lost,
    /// The client ended it with a stream error.
    ClientError,
    /// The server ended it, with this stream error.
    Error(carillon_wire::stream::Condition),
    /// It ended before any session was bound.
    Unbound,
    /// The connection was lost, and the session waits for its client to resume it.
    Parked,
    /// The client did not resume it in time.
    NotResumed,
}

impl Leave {
    /// The text for the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Leave::Closed => "closed",
            Leave::Lost => "lost",
            Leave::ClientError => "client-error",
            Leave::Error(condition) => condition.as_str(),
            Leave::Unbound => "unbound",
            Leave::Parked => "parked",
            Leave::NotResumed => "not-resumed",
        }
    }
}

impl<'a> Entry<'a> {
    /// The end of a notification that nobody acknowledged.
    pub fn dropped(trace: &'a Trace) -> Entry<'a> {
        Entry::Drop { id: trace.id, to: trace.to.as_str(), state: trace.state, reason: trace.reason }
    }

    /// What kind of thing happened.
    pub fn kind(&self) -> Kind {
        match self {
            Entry::Start => Kind::Start,
            Entry::Stop => Kind::Stop,
            Entry::Connect { .. } => Kind::Connect,
            Entry::Login { .. } => Kind::Login,
            Entry::LoginFailure { .. } => Kind::LoginFailure,
            Entry::Disconnect { .. } => Kind::Disconnect,
            Entry::Resume { .. } => Kind::Resume,
            Entry::Accept { .. } => Kind::Accept,
            Entry::Deliver { .. } => Kind::Deliver,
            Entry::Acknowledge { .. } => Kind::Acknowledge,
            Entry::Drop { .. } => Kind::Drop,
            Entry::Publish { .. } => Kind::Publish,
            Entry::Item { .. } => Kind::Item,
            Entry::MatchEnded { .. } => Kind::MatchEnded,
            Entry::RoomCreated { .. } => Kind::RoomCreated,
            Entry::RoomDestroyed { .. } => Kind::RoomDestroyed,
            Entry::RoomRemoved { .. } => Kind::RoomRemoved,
        }
    }
}

/// When it is worth delivering, as in the API.
pub fn audience_word(audience: Audience) -> &'static str {
    match audience {
        Audience::Active => "active",
        Audience::Connected => "connected",
        Audience::Always => "always",
    }
}

/// Its priority, as in the API.
pub fn priority_word(priority: Priority) -> &'static str {
    match priority {
        Priority::Low => "low",
        Priority::Normal => "normal",
        Priority::High => "high",
    }
}

/// By what it was acknowledged, as in the API.
pub fn acknowledger_word(by: AcknowledgedBy) -> &'static str {
    match by {
        AcknowledgedBy::StreamManagement => "stream-management",
        AcknowledgedBy::Receipt => "receipt",
        AcknowledgedBy::Socket => "socket",
        AcknowledgedBy::Link => "link",
    }
}

/// The reason where there is one, or else the state.
pub fn end_word(state: NotificationState, reason: Option<DropReason>) -> &'static str {
    match reason {
        Some(DropReason::UnknownDevice) => "unknown-device",
        Some(DropReason::NotConnected) => "not-connected",
        Some(DropReason::NotActive) => "not-active",
        Some(DropReason::ConnectionLost) => "connection-lost",
        Some(DropReason::QueueFull) => "queue-full",
        Some(DropReason::DeviceDeleted) => "device-deleted",
        Some(DropReason::Module) => "module",
        None => match state {
            NotificationState::Scheduled => "scheduled",
            NotificationState::Accepted => "accepted",
            NotificationState::Stored => "stored",
            NotificationState::Sent => "sent",
            NotificationState::Acknowledged => "acknowledged",
            NotificationState::Expired => "expired",
            NotificationState::Replaced => "replaced",
            NotificationState::Cancelled => "cancelled",
            NotificationState::Dropped => "dropped",
            NotificationState::Opened => "opened",
        },
    }
}
