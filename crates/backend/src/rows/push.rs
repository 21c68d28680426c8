//! How pushes get to apps, as columns.

use carillon_core::model::{AppService, AppToken, PushChannel, PushSecret, WebPushKeys};

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
        match channel {
            PushChannel::WebPush(keys) => {
                Channel { kind: WEB_PUSH, url: &keys.endpoint, key: &keys.p256dh, secret: &keys.auth.0 }
            }
            PushChannel::Webhook { url, secret } => {
                Channel { kind: WEBHOOK, url, key: &[], secret: &secret.0 }
            }
            PushChannel::App(device) => {
                let kind = match device.service {
                    AppService::Apns => APNS,
                    AppService::Fcm => FCM,
                };
                Channel { kind, url: &device.app, key: &[], secret: &device.token.0 }
            }
        }
    }

    /// The channel of these columns, if it is one.
    pub(crate) fn read(&self) -> Option<PushChannel> {
        let secret = PushSecret(self.secret.into());
        let app = |service, token| Some(PushChannel::App(AppToken { service, app: self.url.into(), token }));
        match self.kind {
            WEB_PUSH => {
                let p256dh = self.key.try_into().ok()?;
                Some(PushChannel::WebPush(WebPushKeys { endpoint: self.url.into(), p256dh, auth: secret }))
            }
            WEBHOOK => Some(PushChannel::Webhook { url: self.url.into(), secret }),
            APNS => app(AppService::Apns, secret),
            FCM => app(AppService::Fcm, secret),
            _ => None,
        }
    }
}

const WEB_PUSH: i64 = 0;
const WEBHOOK: i64 = 1;
const APNS: i64 = 2;
const FCM: i64 = 3;
