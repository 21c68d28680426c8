//! How pushes get to apps, as columns.

use carillon_core::model::{PushChannel, PushSecret, WebPushKeys};

/// A channel as columns.
pub(crate) struct Channel<'a> {
    /// Which one it is.
    pub(crate) kind: i64,
    /// Where requests go.
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
        }
    }

    /// The channel of these columns, if it is one.
    pub(crate) fn read(&self) -> Option<PushChannel> {
        let secret = PushSecret(self.secret.into());
        match self.kind {
            WEB_PUSH => {
                let p256dh = self.key.try_into().ok()?;
                Some(PushChannel::WebPush(WebPushKeys { endpoint: self.url.into(), p256dh, auth: secret }))
            }
            WEBHOOK => Some(PushChannel::Webhook { url: self.url.into(), secret }),
            _ => None,
        }
    }
}

const WEB_PUSH: i64 = 0;
const WEBHOOK: i64 = 1;
