//! Pushes: apps are told, by push services, that something waits for their account.
//!
//! What is to be pushed is in the store, put there with what it tells. The `sender` claims what is due, has requests made and commits what came of them;
//! `words` are the templates that domains set, `gone` ends the registrations of apps that are gone, `gateway` is the push services as they are seen from here, `rules` decides what an answer means, `message` is
//! what an app is told, `encrypt` and `crate::push_settings::vapid` how Web Push carries it. `apns` and `fcm` speak to the push services of makers of devices by `http2`, for those of
//! `crate::push_settings::apps`.

pub(crate) mod api;
mod apns;
mod encrypt;
mod fcm;
mod figures;
mod gateway;
mod gone;
mod http2;
mod message;
mod rules;
mod sender;
mod services;
pub(crate) mod words;

pub(crate) use figures::Figures;
pub(crate) use sender::run;

use crate::app::App;
use crate::options::Options;
use crate::problem::Problem;
use crate::push_settings::templates::PushTemplates;
use crate::push_settings::vapid::Tokens;
use crate::values::time::now;
use crate::webhooks::{self, Call, Client};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use carillon_core::model::{AppService, Domain, Push, PushChannel, PushShown, WebPushKeys, WebhookSecret};
use figures::Counters;
use message::{Rendered, Showing};
use rules::Came;
use services::Services;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use tokio::sync::watch;

/// What the sender and the routes of registrations share.
pub(crate) struct Pushes {
    client: Arc<Client>,
    tokens: Tokens,
    services: Services,
    counters: Counters,
    /// The most that a push tells of what waits.
    most: PushShown,
    /// The words in which devices show it, the newest.
    templates: watch::Receiver<PushTemplates>,
    /// And those that domains have set.
    words: words::Words,
}

impl App {
    /// What wakes apps.
    pub(crate) fn pushes(&self) -> &Pushes {
        self.part()
    }
}

impl Pushes {
    pub(crate) fn new(options: &Options) -> Pushes {
        let settings = &options.settings.push;
        let subject = match &*settings.vapid_subject {
            "" => format!("mailto:postmaster@{}", options.default_domain),
            subject => subject.to_owned(),
        };
        let client = Client::of_pushes(settings, options.webhook_roots.clone(), gateway::UNDER_WAY_MAX);
        Pushes {
            client: Arc::new(client),
            tokens: Tokens::new(options.vapid.clone(), subject),
            services: Services::new(options),
            counters: Counters::default(),
            most: settings.shown,
            templates: options.push_templates.clone(),
            words: words::Words::default(),
        }
    }

    /// The key by which push services know this server, in base64url.
    pub(crate) fn vapid(&self) -> String {
        self.tokens.public()
    }

    /// Checks a URL as far as that can be done without asking for its host's address.
    pub(crate) fn check_url(&self, url: &str) -> Result<(), Problem> {
        self.client.check(url)
    }

    /// The push service of an app that accounts of `domain` may use.
    pub(crate) fn app(&self, name: &str, domain: &str) -> Option<AppService> {
        self.services.of(name, domain)
    }

    /// What was counted.
    pub(crate) fn figures(&self) -> Figures {
        self.counters.figures()
    }

    /// How much a push of an account of `domain` may tell, if that is there, and in which words.
    fn showing(&self, push: &Push, domain: Option<&Domain>) -> Showing {
        let own = domain.and_then(|domain| self.words.of(domain, push.registration.channel.kind()));
        let template = own.or_else(|| self.templates.borrow().of(push.registration.account.domain()));
        Showing { most: self.most, template, rendered: Rendered::default() }
    }

    /// Sends a push; what came of it, and whether its push service works.
    async fn send(&self, push: &Push, showing: &Showing) -> (Came, bool) {
        let (came, works) = match &push.registration.channel {
            PushChannel::App(device) => self.services.send(push, device, showing).await,
            PushChannel::WebPush(keys) => match self.web_push(push, keys, showing) {
                Ok(call) => self.call(push, call).await,
                Err(error) => (Came::Refused(error.to_string().into()), true),
            },
            PushChannel::Webhook { url, secret } => {
                self.call(push, self.webhook(push, url, &secret.0, showing)).await
            }
        };
        self.counters.request(&came);
        (came, works)
    }

    async fn call(&self, push: &Push, call: Call) -> (Came, bool) {
        match self.client.call(call).await {
            Ok((status, said, retry_after)) => {
                let came = Came::of(&push.registration.channel, status, said, retry_after);
                (came, Came::is_answer(Some(status)))
            }
            Err(error) => (Came::Failed(error, None), Came::is_answer(None)),
        }
    }

    /// RFC 8030 §5, with the encryption of RFC 8291 and the token of RFC 8292.
    fn web_push(&self, push: &Push, keys: &WebPushKeys, showing: &Showing) -> Result<Call, encrypt::BadKey> {
        let now = now();
        let body = encrypt::encrypt(&message::plaintext(push, showing), &keys.p256dh, &keys.auth.0)?;
        let mut headers = vec![
            ("content-type", "application/octet-stream".to_owned()),
            ("content-encoding", "aes128gcm".to_owned()),
            ("ttl", message::ttl(push, now).to_string()),
            ("urgency", message::urgency(push).to_owned()),
            ("authorization", self.tokens.authorization(gateway::origin(&keys.endpoint), now)),
        ];
        if message::collapses(push) {
            headers.push(("topic", topic(push)));
        }
        Ok(Call { url: keys.endpoint.clone(), headers, body })
    }

    fn webhook(&self, push: &Push, url: &str, secret: &[u8], showing: &Showing) -> Call {
        let body = message::plaintext(push, showing);
        let secret = WebhookSecret(secret.into());
        // The same each time that the same is told: a receiver may know it by that.
        let id = format!("push_{}_{}", push.id, push.version);
        let mut headers = webhooks::headers(&secret, &id, now().0 / 1000, &body);
        headers.push(("ttl", message::ttl(push, now()).to_string()));
        headers.push(("urgency", message::urgency(push).to_owned()));
        if message::collapses(push) {
            headers.push(("topic", topic(push)));
        }
        Call { url: url.into(), headers, body }
    }
}

/// RFC 8030 §5.4: at most 32 characters of base64url. It tells the push service nothing of what it stands for.
fn topic(push: &Push) -> String {
    let registration = &push.registration;
    let digest = Sha256::new()
        .chain_update(registration.id.0.to_be_bytes())
        .chain_update(registration.account.as_str())
        .chain_update([0])
        .chain_update(&*push.topic)
        .finalize();
    URL_SAFE_NO_PAD.encode(&digest[..24])
}

/// What a push service says of itself, as far as it can be shown to people.
fn printable(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(120).collect()
}
