//! Registrations for push (XEP-0357), and the pushes that are to be sent to them.

use super::{DomainId, Notification, PushId, RegistrationId, UnixMs};
use bytes::Bytes;
use carillon_wire::jid::BareJid;
use std::fmt;
use std::sync::Arc;

/// Where pushes for an account go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushRegistration {
    /// Its number.
    pub id: RegistrationId,
    /// The domain of the account.
    pub domain: DomainId,
    /// The account.
    pub account: BareJid,
    /// The name that its app gave it; an account has no two of the same.
    pub node: Box<str>,
    /// How pushes get to the app.
    pub channel: PushChannel,
    /// What of a message is told.
    pub shown: PushShown,
    /// When it was made, or last made anew.
    pub created: UnixMs,
    /// How it fares.
    pub health: PushHealth,
}

/// How pushes get to an app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushChannel {
    /// A push service (RFC 8030), to which they are encrypted.
    WebPush(WebPushKeys),
    /// A URL that is given them as Standard Webhooks has it.
    Webhook {
        /// The URL.
        url: Box<str>,
        /// What requests are signed with.
        secret: PushSecret,
    },
}

impl PushChannel {
    /// Where requests go.
    pub fn url(&self) -> &str {
        match self {
            PushChannel::WebPush(keys) => &keys.endpoint,
            PushChannel::Webhook { url, .. } => url,
        }
    }
}

/// A subscription of Web Push, as browsers give it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebPushKeys {
    /// The URL of the subscription, which is a secret, too.
    pub endpoint: Box<str>,
    /// The public key of the app (RFC 8291 §3.1): an uncompressed point of P-256.
    pub p256dh: [u8; 65],
    /// The authentication secret of the app (RFC 8291 §3.2).
    pub auth: PushSecret,
}

/// A secret of a registration. Its `Debug` form does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct PushSecret(pub Box<[u8]>);

impl fmt::Debug for PushSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PushSecret({} bytes)", self.0.len())
    }
}

/// How much of what waits a push tells. In this order, from the least.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum PushShown {
    /// That something waits, and how much.
    Nothing,
    /// From whom it is, too.
    #[default]
    Sender,
    /// What it says, too.
    Whole,
}

/// How the pushes of a registration fare.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushHealth {
    /// When one was last taken.
    pub pushed: Option<UnixMs>,
    /// Requests that failed since then.
    pub failures: u32,
    /// The last one that failed.
    pub last_failure: Option<PushFailure>,
}

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushFailure {
    /// When.
    pub at: UnixMs,
    /// Why, for people.
    pub error: Box<str>,
}

/// A push that is to be sent: the newest of what waits under its topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Push {
    /// Its number.
    pub id: PushId,
    /// How often what it tells has changed.
    pub version: u64,
    /// Pushes of the same topic replace each other.
    pub topic: Box<str>,
    /// Where it goes.
    pub registration: Arc<PushRegistration>,
    /// How many chat messages wait for the account.
    pub messages: u64,
    /// What it tells.
    pub subject: PushSubject,
}

impl Push {
    /// What it takes up, in bytes.
    pub fn bytes(&self) -> usize {
        let subject = match &self.subject {
            PushSubject::Message { stanza, .. } => stanza.len(),
            PushSubject::Notification(notification) => notification.payload.bytes(),
        };
        subject + self.topic.len() + self.registration.channel.url().len()
    }
}

/// What a push tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushSubject {
    /// A chat message is kept.
    Message {
        /// The whole of it.
        stanza: Bytes,
        /// When the server took it.
        received: UnixMs,
    },
    /// A notification waits.
    Notification(Arc<Notification>),
}

/// When what is stored wakes its account, if it still waits then; and what of its kind it takes the place of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wake {
    /// The time.
    pub at: UnixMs,
    /// The topic of its push.
    pub topic: Box<str>,
}

crate::form! { struct Wake { at, topic } }

/// What came of a push that was claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushOutcome {
    /// It was taken. If something newer waits under its topic, this is pushed next.
    Taken {
        /// When.
        at: UnixMs,
    },
    /// It is tried again.
    Failed {
        /// When.
        next: UnixMs,
        /// Requests of the registration that have failed since the last success, with this one.
        failures: u32,
        /// Why.
        failure: PushFailure,
    },
    /// It was not tried, since others fail. It is tried then.
    Postponed {
        /// When.
        next: UnixMs,
    },
    /// The push service will never take it: it is given up, and the registration stays.
    Refused {
        /// As of `Failed`.
        failures: u32,
        /// Why.
        failure: PushFailure,
    },
    /// The app is not there any more: the registration ends with all its pushes.
    Gone,
}
