//! How pushes get to apps, as columns.

use super::code::Code;
use carillon_core::model::{
    AppService, AppToken, ArchiveId, NotificationId, PushChannel, PushKind, PushSecret, WakesOn, WebPushKeys,
    room_of_topic,
};

/// A channel as columns.
pub(crate) struct Channel<'a> {
    /// Which one it is.
    pub(crate) kind: i64,
    /// Where requests go, or the name of an app that the settings have.
    pub(crate) url: &'a str,
    /// The public key of the app, if it has one.
    pub(crate) key: &'a [u8],
    /// The secret that the app gave, or was given.
    pub(crate) secret: &'a [u8],
}

impl Channel<'_> {
    /// The columns of a channel.
    pub(crate) fn of(channel: &PushChannel) -> Channel<'_> {
        let kind = channel.kind().code();
        match channel {
            PushChannel::WebPush(keys) => {
                Channel { kind, url: &keys.endpoint, key: &keys.p256dh, secret: &keys.auth.0 }
            }
            PushChannel::Webhook { url, secret } => Channel { kind, url, key: &[], secret: &secret.0 },
            PushChannel::App(device) => Channel { kind, url: &device.app, key: &[], secret: &device.token.0 },
        }
    }

    /// The channel of these columns, if it is one.
    pub(crate) fn read(&self) -> Option<PushChannel> {
        let secret = PushSecret(self.secret.into());
        let app = |service, token| Some(PushChannel::App(AppToken { service, app: self.url.into(), token }));
        match PushKind::of(self.kind)? {
            PushKind::WebPush => {
                let p256dh = self.key.try_into().ok()?;
                Some(PushChannel::WebPush(WebPushKeys { endpoint: self.url.into(), p256dh, auth: secret }))
            }
            PushKind::Webhook => Some(PushChannel::Webhook { url: self.url.into(), secret }),
            PushKind::Apns => app(AppService::Apns, secret),
            PushKind::Fcm => app(AppService::Fcm, secret),
        }
    }
}

/// The rooms of the topics that are the lines of a text, in order.
pub(crate) fn listened(topics: Option<Box<str>>) -> Vec<Box<str>> {
    let topics = topics.unwrap_or_default();
    let mut rooms: Vec<Box<str>> = topics.lines().filter_map(room_of_topic).map(Box::from).collect();
    rooms.sort_unstable();
    rooms
}

/// What a push tells.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tells {
    Message(u64),
    Notification(NotificationId),
    /// A message of a room.
    Mention(ArchiveId),
}

impl Tells {
    /// What wakes an app by it.
    pub(crate) fn kind(self) -> WakesOn {
        match self {
            Tells::Message(_) => WakesOn::Messages,
            Tells::Notification(_) => WakesOn::Notifications,
            Tells::Mention(_) => WakesOn::Mentions,
        }
    }
}
