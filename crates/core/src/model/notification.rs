//! Notifications: what a provider sends to one account, and the trace each leaves.

use super::{DomainId, KeyId, NotificationId, Opened, PushRequest, UnixMs};
use bytes::Bytes;
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::xml::writer::Writer;
use std::sync::Arc;

/// When a notification is to be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Audience {
    /// Only while someone is using the device: presence available without `away` or `xa`, and not inactive (XEP-0352).
    Active,
    /// While the device is connected, also when it sleeps.
    Connected,
    /// Always: kept in the store while the device is away.
    Always,
}

crate::form! { enum Audience { 0 = Active, 1 = Connected, 2 = Always } }

/// Which of an account's waiting notifications goes first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// Delivered after all others.
    Low,
    /// Delivered in the order of acceptance, between high and low.
    #[default]
    Normal,
    /// Delivered before all others.
    High,
}

crate::form! { enum Priority { 0 = Low, 1 = Normal, 2 = High } }

/// What a notification carries. Cheap to clone: the store and the session share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A JSON text, delivered in a XEP-0335 `<json/>` container.
    Json(Arc<str>),
    /// One XML element in a namespace of its own, as UTF-8, already checked.
    Xml(Bytes),
    /// A push to an endpoint of this server as a push service: an IQ request to one client of the account, and to no other.
    Request(Arc<PushRequest>),
}

crate::form! { enum Payload { 0 = Json(text), 1 = Xml(element), 2 = Request(request) } }

impl Payload {
    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Payload::Json(json) => json.len(),
            Payload::Xml(xml) => xml.len(),
            Payload::Request(request) => request.element.len(),
        }
    }

    /// Whether a client with this resource is given it.
    pub fn is_for(&self, resource: Option<&str>) -> bool {
        match self {
            Payload::Json(_) | Payload::Xml(_) => true,
            Payload::Request(request) => resource == Some(&*request.resource),
        }
    }

    /// Appends it as XML: JSON in its container (XEP-0335), XML as it is.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Payload::Json(json) => {
                Writer::new(out).start_in("json", ns::JSON).close_start().text(json).end("json");
            }
            Payload::Xml(xml) => out.extend_from_slice(xml),
            Payload::Request(request) => out.extend_from_slice(&request.element),
        }
    }
}

/// A notification on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Its id.
    pub id: NotificationId,
    /// The domain of its target.
    pub domain: DomainId,
    /// Its target.
    pub to: BareJid,
    /// Its audience.
    pub audience: Audience,
    /// Its priority among what waits for the account.
    pub priority: Priority,
    /// When it expires: at most 30 days after `accepted`.
    pub expires: Option<UnixMs>,
    /// A newer one with the same key replaces an undelivered older one. 1 to 64 bytes.
    pub collapse_key: Option<Arc<str>>,
    /// The API key that sent it, if one did.
    pub key: Option<KeyId>,
    /// What it carries.
    pub payload: Payload,
    /// When the server took it from its sender.
    pub accepted: UnixMs,
    /// When it is to be delivered, if the sender wants that later (`send_at`).
    pub send_at: Option<UnixMs>,
}

crate::form! {
    struct Notification {
        id, domain, to, audience, priority, expires, collapse_key, key, payload, accepted, send_at,
    }
}

impl Notification {
    /// Whether the store keeps it until it ends. Others are given to who is there, and their traces are in memory.
    pub fn is_kept(&self) -> bool {
        self.audience == Audience::Always || self.send_at.is_some()
    }

    /// Whether its time has come.
    pub fn is_due(&self, now: UnixMs) -> bool {
        self.send_at.is_none_or(|at| at <= now)
    }
}

/// How far a notification has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NotificationState {
    /// Waits for its `send_at`.
    Scheduled,
    /// Accepted; it is not yet decided what becomes of it.
    Accepted,
    /// Committed to the store, waits for the device.
    Stored,
    /// Given to a connection, not yet acknowledged.
    Sent,
    /// The device has it.
    Acknowledged,
    /// Its `ttl` ended before it was acknowledged.
    Expired,
    /// A newer one with its `collapse_key` took its place.
    Replaced,
    /// The sender cancelled it.
    Cancelled,
    /// Neither delivered nor kept, for a [`DropReason`].
    Dropped,
    /// It has ended, and its link was followed ([`Trace::shown`]).
    Opened,
}

crate::form! {
    enum NotificationState {
        0 = Scheduled,
        1 = Accepted,
        2 = Stored,
        3 = Sent,
        4 = Acknowledged,
        5 = Expired,
        6 = Replaced,
        7 = Cancelled,
        8 = Dropped,
        9 = Opened,
    }
}

impl NotificationState {
    /// Every state, in the order in which they are declared.
    pub const ALL: [NotificationState; 10] = [
        NotificationState::Scheduled,
        NotificationState::Accepted,
        NotificationState::Stored,
        NotificationState::Sent,
        NotificationState::Acknowledged,
        NotificationState::Expired,
        NotificationState::Replaced,
        NotificationState::Cancelled,
        NotificationState::Dropped,
        NotificationState::Opened,
    ];

    /// Whether nothing follows it.
    pub fn is_end(self) -> bool {
        use NotificationState::{
            Accepted, Acknowledged, Cancelled, Dropped, Expired, Opened, Replaced, Scheduled, Sent, Stored,
        };
        match self {
            Acknowledged | Expired | Replaced | Cancelled | Dropped | Opened => true,
            Scheduled | Accepted | Stored | Sent => false,
        }
    }
}

/// Who says that the device has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AcknowledgedBy {
    /// The client's XEP-0198 count.
    StreamManagement,
    /// The client's XEP-0184 receipt.
    Receipt,
    /// The peer's TCP acknowledged its bytes, for a client that does neither.
    Socket,
    /// Its link was followed before any of these.
    Link,
}

crate::form! { enum AcknowledgedBy { 0 = StreamManagement, 1 = Receipt, 2 = Socket, 3 = Link } }

/// Some of the states that a notification may reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct States(u16);

crate::form! { struct States(bits) }

impl States {
    /// No state.
    pub const NONE: States = States(0);
    /// Every state.
    pub const ALL: States = States(u16::MAX);
    /// The states that nothing follows.
    pub const ENDS: States = States(
        1 << NotificationState::Acknowledged as u16
            | 1 << NotificationState::Expired as u16
            | 1 << NotificationState::Replaced as u16
            | 1 << NotificationState::Cancelled as u16
            | 1 << NotificationState::Dropped as u16
            | 1 << NotificationState::Opened as u16,
    );

    /// Whether a state is in the set.
    pub fn contains(self, state: NotificationState) -> bool {
        self.0 & States::from(state).0 != 0
    }

    /// Whether the two sets have a state in common.
    pub fn intersects(self, others: States) -> bool {
        self.0 & others.0 != 0
    }

    /// The states of the set, in the order in which they are declared.
    pub fn iter(self) -> impl Iterator<Item = NotificationState> {
        NotificationState::ALL.into_iter().filter(move |state| self.contains(*state))
    }

    /// The union of both sets.
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
    /// The audience was `active` or `connected`, and the account had no session.
    NotConnected,
    /// The audience was `active`, and no session of the account was active.
    NotActive,
    /// The connection ended before it was acknowledged, and the audience does not keep it.
    ConnectionLost,
    /// The account's waiting notifications reached their bound, and this was the oldest of the lowest priority. Or the audience does
    /// not keep it, and the device leaves as many unacknowledged as it may.
    QueueFull,
    /// The account was deleted.
    DeviceDeleted,
    /// A module of the operator's refused it before it was stored.
    Module,
}

crate::form! {
    enum DropReason {
        0 = UnknownDevice,
        1 = NotConnected,
        2 = NotActive,
        3 = ConnectionLost,
        4 = QueueFull,
        5 = DeviceDeleted,
        6 = Module,
    }
}

/// The trace of a notification: what became of it, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The notification.
    pub id: NotificationId,
    /// Its target.
    pub to: BareJid,
    /// Its audience.
    pub audience: Audience,
    /// Its priority.
    pub priority: Priority,
    /// How far it has come.
    pub state: NotificationState,
    /// When it was accepted.
    pub accepted: UnixMs,
    /// When it expires.
    pub expires: Option<UnixMs>,
    /// A newer one with the same key replaces it while it is undelivered.
    pub collapse_key: Option<Arc<str>>,
    /// The API key that sent it, if one did.
    pub key: Option<KeyId>,
    /// The time that the sender wanted it delivered at (`send_at`).
    pub send_at: Option<UnixMs>,
    /// When it was committed to the store.
    pub stored: Option<UnixMs>,
    /// When it was last given to a connection.
    pub sent: Option<UnixMs>,
    /// When it reached its last state.
    pub ended: Option<UnixMs>,
    /// Who acknowledged it.
    pub acknowledged_by: Option<AcknowledgedBy>,
    /// Why it was dropped.
    pub reason: Option<DropReason>,
    /// When its link was followed, and with what. Only the store knows.
    pub opened: Option<Opened>,
}

crate::form! {
    struct Trace {
        id,
        to,
        audience,
        priority,
        state,
        accepted,
        expires,
        collapse_key,
        key,
        send_at,
        stored,
        sent,
        ended,
        acknowledged_by,
        reason,
        opened: since(4),
    }
}

impl Trace {
    /// Whether the store keeps the notification until it ends ([`Notification::is_kept`]).
    pub fn is_kept(&self) -> bool {
        self.audience == Audience::Always || self.send_at.is_some()
    }

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
            opened: None,
        }
    }

    /// The state that it is shown with: once its link was followed, that.
    pub fn shown(&self) -> NotificationState {
        if self.opened.is_some() { NotificationState::Opened } else { self.state }
    }
}
