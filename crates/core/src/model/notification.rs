//! Notifications: what a provider sends to one account, and the trace each leaves.

use super::{DomainId, KeyId, NotificationId, UnixMs};
use bytes::Bytes;
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::xml::writer::Writer;
use std::sync::Arc;

/// When a notification is worth delivering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Audience {
    /// Only while someone is using the device: presence available without `away` or `xa`, and not inactive (XEP-0352).
    Active,
    /// While the device is connected, also when it sleeps.
    Connected,
    /// Also kept for when it returns.
    Always,
}

/// Which of an account's waiting notifications goes first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// After all others.
    Low,
    /// In between.
    #[default]
    Normal,
    /// Before all others.
    High,
}

/// What a notification carries. Cheap to clone: the store and the session share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A JSON text, delivered in a XEP-0335 `<json/>` container.
    Json(Arc<str>),
    /// One XML element in a namespace of its own, as UTF-8, already checked.
    Xml(Bytes),
}

impl Payload {
    /// Appends it as XML: JSON in its container (XEP-0335), XML as it is.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Payload::Json(json) => {
                Writer::new(out).start_in("json", ns::JSON).close_start().text(json).end("json");
            }
            Payload::Xml(xml) => out.extend_from_slice(xml),
        }
    }
}

/// A notification on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Its name for good.
    pub id: NotificationId,
    /// The domain of its target.
    pub domain: DomainId,
    /// Its target.
    pub to: BareJid,
    /// When it is worth delivering.
    pub audience: Audience,
    /// Which goes first.
    pub priority: Priority,
    /// When it stops being worth delivering. At the latest 30 days after `accepted`.
    pub expires: Option<UnixMs>,
    /// A newer one with the same key replaces an undelivered older one. 1 to 64 bytes.
    pub collapse_key: Option<Arc<str>>,
    /// The API key that sent it, if one did.
    pub key: Option<KeyId>,
    /// What it carries.
    pub payload: Payload,
    /// When the server took it from its sender.
    pub accepted: UnixMs,
    /// When it is due, if the sender wants it later.
    pub send_at: Option<UnixMs>,
}

/// How far a notification has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NotificationState {
    /// Waits for its `send_at`.
    Scheduled,
    /// Taken, and being decided on.
    Accepted,
    /// Committed to the store, waits for the device.
    Stored,
    /// Given to a connection, not yet acknowledged.
    Sent,
    /// The device has it.
    Acknowledged,
    /// Its `ttl` ran out first.
    Expired,
    /// A newer one with its `collapse_key` took its place.
    Replaced,
    /// The sender took it back.
    Cancelled,
    /// Not delivered and not kept; the reason says why.
    Dropped,
}

/// Who says that the device has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AcknowledgedBy {
    /// The client's XEP-0198 count.
    StreamManagement,
    /// The client's XEP-0184 receipt.
    Receipt,
    /// The server's socket took it, from a client that does neither.
    Socket,
}

/// Some of the states that a notification may reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct States(u16);

impl States {
    /// None of them.
    pub const NONE: States = States(0);
    /// All of them.
    pub const ALL: States = States(u16::MAX);

    /// Whether a state is among them.
    pub fn contains(self, state: NotificationState) -> bool {
        self.0 & States::from(state).0 != 0
    }

    /// Whether one of them is among others.
    pub fn intersects(self, others: States) -> bool {
        self.0 & others.0 != 0
    }

    /// These and others.
    #[must_use]
    pub fn with(self, others: States) -> States {
        States(self.0 | others.0)
    }
}

impl From<NotificationState> for States {
    fn from(state: NotificationState) -> States {
        States(1 << state as u16)
    }
}

/// Why a notification was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DropReason {
    /// No such account in the domain.
    UnknownDevice,
    /// `active` or `connected`, and no session was there.
    NotConnected,
    /// `active`, and every session was asleep.
    NotActive,
    /// The connection ended before it was acknowledged, and the audience does not keep it.
    ConnectionLost,
    /// The account's waiting notifications reached their bound, and this was the oldest of the lowest priority.
    QueueFull,
    /// The account was deleted.
    DeviceDeleted,
}

/// The trace of a notification: what became of it, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The notification.
    pub id: NotificationId,
    /// Its target.
    pub to: BareJid,
    /// When it was worth delivering.
    pub audience: Audience,
    /// Which went first.
    pub priority: Priority,
    /// How far it has come.
    pub state: NotificationState,
    /// When it was taken from its sender.
    pub accepted: UnixMs,
    /// When it stops being worth delivering.
    pub expires: Option<UnixMs>,
    /// A newer one with the same key replaces it while it is undelivered.
    pub collapse_key: Option<Arc<str>>,
    /// The API key that sent it, if one did.
    pub key: Option<KeyId>,
    /// When it was, or is to be, due.
    pub send_at: Option<UnixMs>,
    /// When it was committed to the store.
    pub stored: Option<UnixMs>,
    /// When a connection last took it.
    pub sent: Option<UnixMs>,
    /// When it reached its last state.
    pub ended: Option<UnixMs>,
    /// Who acknowledged it.
    pub acknowledged_by: Option<AcknowledgedBy>,
    /// Why it was dropped.
    pub reason: Option<DropReason>,
}

impl Trace {
    /// The trace of a notification that was just accepted.
    pub fn of(notification: &Notification) -> Trace {
        Trace {
            id: notification.id,
            to: notification.to.clone(),
            audience: notification.audience,
            priority: notification.priority,
            state: NotificationState::Accepted,
            accepted: notification.accepted,
            expires: notification.expires,
            collapse_key: notification.collapse_key.clone(),
            key: notification.key,
            send_at: notification.send_at,
            stored: None,
            sent: None,
            ended: None,
            acknowledged_by: None,
            reason: None,
        }
    }
}
