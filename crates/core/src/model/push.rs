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
    /// What wakes the app.
    pub wakes: PushWakes,
    /// The rooms of which every message wakes it, by their addresses, in order.
    pub rooms: Vec<Box<str>>,
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
    /// An app on a device, by the push service of the device's maker.
    App(AppToken),
}

impl PushChannel {
    /// Which one it is.
    pub fn kind(&self) -> PushKind {
        match self {
            PushChannel::WebPush(_) => PushKind::WebPush,
            PushChannel::Webhook { .. } => PushKind::Webhook,
            PushChannel::App(AppToken { service: AppService::Apns, .. }) => PushKind::Apns,
            PushChannel::App(AppToken { service: AppService::Fcm, .. }) => PushKind::Fcm,
        }
    }

    /// What it takes up, in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            PushChannel::WebPush(keys) => keys.endpoint.len() + keys.p256dh.len() + keys.auth.0.len(),
            PushChannel::Webhook { url, secret } => url.len() + secret.0.len(),
            PushChannel::App(device) => device.app.len() + device.token.0.len(),
        }
    }
}

/// Which way pushes get to an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushKind {
    /// A push service (RFC 8030).
    WebPush,
    /// A URL, as Standard Webhooks has it.
    Webhook,
    /// The Apple Push Notification service.
    Apns,
    /// Firebase Cloud Messaging.
    Fcm,
}

impl PushKind {
    /// Its name, as in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            PushKind::WebPush => "web_push",
            PushKind::Webhook => "webhook",
            PushKind::Apns => AppService::Apns.as_str(),
            PushKind::Fcm => AppService::Fcm.as_str(),
        }
    }
}

/// An app on one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppToken {
    /// The push service.
    pub service: AppService,
    /// The name by which an operator has set up the app, with what proves to the push service whose it is.
    pub app: Box<str>,
    /// What the push service gave to the app on this device.
    pub token: PushSecret,
}

/// A push service of a maker of devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AppService {
    /// The Apple Push Notification service.
    #[default]
    Apns,
    /// Firebase Cloud Messaging, in its version 1.
    Fcm,
}

impl AppService {
    /// Its name, as in settings and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            AppService::Apns => "apns",
            AppService::Fcm => "fcm",
        }
    }

    /// The token of a device as it is kept, if this is one. Those of APNs are hexadecimal, 32 bytes or more; those of FCM are opaque, without characters that a
    /// request would have to escape.
    pub fn token(self, text: &str) -> Option<PushSecret> {
        let is_token = match self {
            AppService::Apns => {
                (64..=APNS_TOKEN_MAX).contains(&text.len())
                    && text.bytes().all(|byte| byte.is_ascii_hexdigit())
            }
            AppService::Fcm => {
                let is_plain =
                    |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b':' | b'.');
                (1..=FCM_TOKEN_MAX).contains(&text.len()) && text.bytes().all(is_plain)
            }
        };
        is_token.then(|| match self {
            AppService::Apns => PushSecret(text.to_ascii_lowercase().into_bytes().into()),
            AppService::Fcm => PushSecret(text.as_bytes().into()),
        })
    }
}

/// The longest tokens, in bytes.
const APNS_TOKEN_MAX: usize = 200;
const FCM_TOKEN_MAX: usize = 4096;

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

/// A kind of what wakes apps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WakesOn {
    /// A notification that waits.
    Notifications,
    /// A chat message that is kept.
    Messages,
    /// A message of a room that mentions the account while it is not there.
    Mentions,
}

impl WakesOn {
    /// All of them.
    pub const ALL: [WakesOn; 3] = [WakesOn::Notifications, WakesOn::Messages, WakesOn::Mentions];

    /// Its name, as in requests and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            WakesOn::Notifications => "notifications",
            WakesOn::Messages => "messages",
            WakesOn::Mentions => "mentions",
        }
    }
}

/// What wakes an app: some of the kinds, by default all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushWakes(u8);

impl PushWakes {
    /// Those of a number that [`PushWakes::bits`] gave.
    pub fn of_bits(bits: u8) -> PushWakes {
        PushWakes(bits & PushWakes::default().0)
    }

    /// As a number.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Whether a kind is among them.
    pub fn contains(self, on: WakesOn) -> bool {
        self.0 & (1 << on as u8) != 0
    }

    /// They, in their order.
    pub fn iter(self) -> impl Iterator<Item = WakesOn> {
        WakesOn::ALL.into_iter().filter(move |on| self.contains(*on))
    }
}

impl Default for PushWakes {
    fn default() -> PushWakes {
        WakesOn::ALL.into_iter().collect()
    }
}

impl FromIterator<WakesOn> for PushWakes {
    fn from_iter<I: IntoIterator<Item = WakesOn>>(kinds: I) -> PushWakes {
        PushWakes(kinds.into_iter().fold(0, |bits, on| bits | (1 << on as u8)))
    }
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

/// Rooms of which a registration may want every message.
pub const PUSH_ROOMS_MAX: usize = 100;
/// Registrations that may want every message of a room: each message of it is a push for each of them.
pub const ROOM_LISTENERS_MAX: u16 = 1000;

/// The topic of pushes about a room.
pub fn room_topic(room: &str) -> Box<str> {
    [ROOM_TOPIC, room].concat().into()
}

/// The address of the room that a topic is about, if it is about one.
pub fn room_of_topic(topic: &str) -> Option<&str> {
    topic.strip_prefix(ROOM_TOPIC)
}

const ROOM_TOPIC: &str = "r:";

impl Push {
    /// The room that it is about, and when that took the message; none if it is about no room.
    pub fn room(&self) -> Option<(BareJid, UnixMs)> {
        let room = BareJid::new(room_of_topic(&self.topic)?).ok()?;
        match self.subject {
            PushSubject::Message { received, .. } => Some((room, received)),
            PushSubject::Notification(_) => None,
        }
    }

    /// What it takes up, in bytes.
    pub fn bytes(&self) -> usize {
        let subject = match &self.subject {
            PushSubject::Message { stanza, .. } => stanza.len(),
            PushSubject::Notification(notification) => notification.payload.bytes(),
        };
        subject + self.topic.len() + self.registration.channel.bytes()
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
    /// It was not tried: a session of the account has what it tells, or a module ends it. If something newer waits under its topic, this is pushed next.
    Over,
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

/// The pushes of a notification to one registration, as its trace has them: the last request, and how many there were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushStep {
    /// The registration. It may have ended since.
    pub registration: RegistrationId,
    /// The name that its app gave it.
    pub node: Box<str>,
    /// How the push got there.
    pub kind: PushKind,
    /// Requests that were made.
    pub requests: u32,
    /// When the last of them was sent.
    pub sent: UnixMs,
    /// When its answer came, or none.
    pub answered: UnixMs,
    /// What came of it.
    pub state: PushState,
    /// Why it was not taken, for people.
    pub reason: Option<Box<str>>,
}

/// What came of the request of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PushState {
    /// The push service took it.
    Taken,
    /// The push service will never take it: it was given up.
    Refused,
    /// It was not taken, and is tried again while the notification waits.
    Failed,
    /// The app is not there any more.
    Gone,
}

impl PushOutcome {
    /// What came of the request, and why it was not taken; none if none was made.
    pub fn state(&self) -> Option<(PushState, Option<&str>)> {
        match self {
            PushOutcome::Taken { .. } => Some((PushState::Taken, None)),
            PushOutcome::Refused { failure, .. } => Some((PushState::Refused, Some(&*failure.error))),
            PushOutcome::Failed { failure, .. } => Some((PushState::Failed, Some(&*failure.error))),
            PushOutcome::Gone => Some((PushState::Gone, None)),
            PushOutcome::Postponed { .. } | PushOutcome::Over => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_as_their_services_make_them() {
        let apns = "A1".repeat(32);
        assert_eq!(AppService::Apns.token(&apns), Some(PushSecret("a1".repeat(32).into_bytes().into())));
        for wrong in ["", "a1", &"g1".repeat(32), &"a1".repeat(101), &format!("{}/", "a".repeat(64))] {
            assert_eq!(AppService::Apns.token(wrong), None, "{wrong}");
        }
        let fcm = "dQw4:APA91b-H_x.y";
        assert_eq!(AppService::Fcm.token(fcm), Some(PushSecret(fcm.as_bytes().into())));
        for wrong in ["", "a b", "a/b", "a\nb", "\u{e9}", &"a".repeat(4097)] {
            assert_eq!(AppService::Fcm.token(wrong), None, "{wrong}");
        }
    }
}
