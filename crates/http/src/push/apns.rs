//! The Apple Push Notification service: requests, and what its answers mean.

use super::http2::{Http2, Request, Response, Trusts};
use super::message::{self, Showing, Told};
use super::rules::Came;
use crate::options::WebhookRoots;
use crate::outgoing::origin::Origin;
use crate::push_settings::apps::{ApnsPushType, Credentials, PushApp};
use crate::push_settings::jwt;
use crate::values::time::now;
use carillon_core::model::{AppToken, Push, PushSubject, UnixMs};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// An app at APNs.
pub(super) struct Apns {
    app: Arc<PushApp>,
    http: Http2,
    token: Mutex<ProviderToken>,
}

/// The token by which APNs knows who sends.
#[derive(Debug, Default)]
struct ProviderToken {
    /// The token, and when it was made.
    made: Option<(Arc<str>, UnixMs)>,
    /// When one was last made because APNs did not take the one before.
    renewed: Option<UnixMs>,
}

/// What an answer means.
#[derive(Debug, PartialEq, Eq)]
enum Meaning {
    Came(Came),
    /// The provider's token is too old.
    TokenExpired(Box<str>),
}

impl Apns {
    pub(super) fn new(app: Arc<PushApp>, roots: WebhookRoots, timeout: Duration) -> Result<Apns, String> {
        let origin = Origin::of(app.settings.url())?;
        let certificate = match &app.credentials {
            Credentials::ApnsCertificate(chain, key) => Some((chain.clone(), key.clone_key())),
            _ => None,
        };
        let http = Http2::new(origin, Trusts { roots, certificate }, timeout);
        Ok(Apns { app, http, token: Mutex::default() })
    }

    /// Sends a push; what came of it, and whether APNs works.
    pub(super) async fn send(&self, push: &Push, device: &AppToken, showing: &Showing) -> (Came, bool) {
        let now = now();
        let mut request = self.request(push, device, showing, now);
        let (others, mut reason) = (request.headers.len(), Box::<str>::default());
        for _ in 0..2 {
            let token = self.token(now);
            request.headers.truncate(others);
            request.headers.extend(token.iter().map(|token| ("authorization", format!("bearer {token}"))));
            let response = match self.http.post(&request).await {
                Ok(response) => response,
                Err(error) => return (Came::Failed(error, None), false),
            };
            let works = Came::is_answer(Some(response.status));
            match meaning(&response, push.registration.created) {
                Meaning::Came(came) => return (came, works),
                Meaning::TokenExpired(said) => reason = said,
            }
            if !token.is_some_and(|token| self.renew(&token, now)) {
                break;
            }
        }
        (Came::Failed(reason, None), true)
    }

    fn request(&self, push: &Push, device: &AppToken, showing: &Showing, now: UnixMs) -> Request {
        let settings = &self.app.settings;
        let (push_type, priority_max) = match settings.push_type {
            ApnsPushType::Alert => ("alert", 10),
            // APNs refuses more for pushes that show nothing.
            ApnsPushType::Background => ("background", 5),
        };
        let priority = match message::urgency(push) {
            "high" => 10,
            "low" => 1,
            _ => 5,
        };
        let mut headers = vec![
            ("apns-id", id(push)),
            ("apns-topic", settings.topic.clone()),
            ("apns-push-type", push_type.to_owned()),
            ("apns-priority", priority.min(priority_max).to_string()),
            ("apns-expiration", expiration(push, now).to_string()),
        ];
        if message::collapses(push) {
            headers.push(("apns-collapse-id", super::topic(push)));
        }
        let body = message::within(push, showing, PAYLOAD_MAX, |told| {
            payload(told, settings.push_type, &settings.alert)
        });
        // Tokens are of hexadecimal digits.
        Request { path: format!("/3/device/{}", String::from_utf8_lossy(&device.token.0)), headers, body }
    }

    /// The token to send with; none where a certificate says who sends.
    fn token(&self, now: UnixMs) -> Option<Arc<str>> {
        let Credentials::ApnsToken(_) = &self.app.credentials else { return None };
        let mut present = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((token, made)) = &present.made
            // Another push may have made it a moment after this one began.
            && now.0.abs_diff(made.0) < TOKEN_KEPT_MS
        {
            return Some(token.clone());
        }
        self.sign(&mut present, now)
    }

    /// Makes another token because APNs says that this one is too old: once for all who were told so, and not again before APNs allows it. Whether there
    /// is another one now.
    fn renew(&self, used: &str, now: UnixMs) -> bool {
        let mut present = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        if present.made.as_ref().is_some_and(|(token, _)| **token != *used) {
            return true;
        }
        if present.renewed.is_some_and(|at| now.0.abs_diff(at.0) < TOKEN_RENEWED_MS) {
            return false;
        }
        present.renewed = Some(now);
        self.sign(&mut present, now).is_some()
    }

    fn sign(&self, present: &mut ProviderToken, now: UnixMs) -> Option<Arc<str>> {
        let Credentials::ApnsToken(key) = &self.app.credentials else { return None };
        let settings = &self.app.settings;
        let claims = json!({ "iss": settings.team_id, "iat": now.0 / 1000 });
        let token: Arc<str> = jwt::es256(key, &json!({ "kid": settings.key_id }), &claims).into();
        present.made = Some((token.clone(), now));
        Some(token)
    }
}

/// The payload: what the device shows by itself, and what the app is told.
fn payload(told: &Told<'_>, push_type: ApnsPushType, default: &str) -> Vec<u8> {
    let (mut app, mut aps) = (told.clone(), json!({}));
    match push_type {
        ApnsPushType::Background => aps["content-available"] = 1.into(),
        ApnsPushType::Alert => {
            aps["alert"] = alert(told, default);
            aps["sound"] = "default".into();
            // An extension of the app may show it otherwise, such as what is encrypted.
            aps["mutable-content"] = 1.into();
            if told.kind == "message" {
                aps["badge"] = told.messages.into();
            }
            if let Some(from) = &told.from {
                aps["thread-id"] = from.as_str().into();
            }
            // It is in the alert.
            (app.body, app.alert) = (None, None);
        }
    }
    serde_json::to_vec(&json!({ "aps": aps, "carillon": app })).expect("it is plain data")
}

fn alert(told: &Told<'_>, default: &str) -> Value {
    let text = |name: &str| told.payload.as_ref()?.get(name)?.as_str();
    let (title, body) = match &told.alert {
        Some(worded) => (worded.title.as_deref(), worded.body.as_deref()),
        None => (None, None),
    };
    let title = title.or(told.from.as_deref()).or_else(|| text("title"));
    let body = body.or(told.body.as_deref()).or_else(|| text("body"));
    let mut alert = json!({ "body": body.unwrap_or(default) });
    if let Some(title) = title {
        alert["title"] = title.into();
    }
    alert
}

/// The name of a push at APNs, the same each time that the same is told: a UUID (RFC 9562 §5.8).
fn id(push: &Push) -> String {
    let digest = Sha256::new()
        .chain_update(push.registration.id.0.to_be_bytes())
        .chain_update(push.registration.created.0.to_be_bytes())
        .chain_update(push.id.0.to_be_bytes())
        .chain_update(push.version.to_be_bytes())
        .finalize();
    let mut bytes: [u8; 16] = *digest.first_chunk().expect("16 of 32 bytes");
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex = |part: &[u8]| part.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    [&bytes[..4], &bytes[4..6], &bytes[6..8], &bytes[8..10], &bytes[10..]].map(hex).join("-")
}

/// When APNs need not try any more, in seconds. 0 would have it try once.
fn expiration(push: &Push, now: UnixMs) -> u64 {
    match &push.subject {
        PushSubject::Notification(_) if message::ttl(push, now) == 0 => 0,
        _ => now.0 / 1000 + message::ttl(push, now),
    }
}

fn meaning(response: &Response, registered: UnixMs) -> Meaning {
    let said: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let reason = said["reason"].as_str().unwrap_or_default();
    let text: Box<str> = match reason {
        "" => response.status.to_string().into(),
        reason => format!("{}: {}", response.status, super::printable(reason)).into(),
    };
    Meaning::Came(match (response.status, reason) {
        (200, _) => Came::Taken,
        (403, "ExpiredProviderToken") => return Meaning::TokenExpired(text),
        // The time says when APNs knew that the token was of no app: one that was registered after that is another matter.
        (410, _) => match said["timestamp"].as_u64() {
            Some(known) if known < registered.0 => Came::Failed(text, response.retry_after),
            _ => Came::Gone,
        },
        (400, "BadDeviceToken" | "Unregistered" | "DeviceTokenNotForTopic" | "ExpiredToken") => Came::Gone,
        (413, _)
        | (400, "BadCollapseId" | "BadExpirationDate" | "BadMessageId" | "BadPriority" | "PayloadEmpty") => {
            Came::Refused(text)
        }
        // APNs counts tokens: it may be asked with the same one, later.
        (429, "TooManyProviderTokenUpdates") => {
            Came::Failed(text, response.retry_after.or(Some(TOKEN_PAUSE)))
        }
        _ => Came::Failed(text, response.retry_after),
    })
}

/// The longest payload.
const PAYLOAD_MAX: usize = 4096;
/// For how long a token is used, in milliseconds: APNs takes none that is older than an hour, and no other within 20 minutes.
const TOKEN_KEPT_MS: u64 = 40 * 60_000;
const TOKEN_RENEWED_MS: u64 = 20 * 60_000;
/// How long is waited after tokens that came too soon.
const TOKEN_PAUSE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::super::message::tests::{push, said, worded};
    use super::*;
    use crate::push_settings::apps::tests::apns as settings;
    use crate::push_settings::apps::{PushAppSettings, PushApps};
    use crate::push_settings::jwt::tests::ec_pem;
    use carillon_core::model::{AppService, PushChannel, PushRegistration, PushSecret, PushShown};
    use std::collections::BTreeMap;

    const NOW: UnixMs = UnixMs(1_795_167_000_000);

    fn app(change: impl FnOnce(&mut PushAppSettings)) -> Apns {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key.p8");
        std::fs::write(&path, ec_pem()).expect("written");
        let mut settings = settings(path);
        change(&mut settings);
        let apps = PushApps::load(&BTreeMap::from([("chat".to_owned(), settings)])).expect("it is there");
        let app = apps.named("chat").expect("it is there").clone();
        Apns::new(app, WebhookRoots::default(), Duration::from_secs(1)).expect("a URL")
    }

    fn device() -> AppToken {
        let token = PushSecret("a1".repeat(32).into_bytes().into());
        AppToken { service: AppService::Apns, app: "chat".into(), token }
    }

    fn to_device(body: &str) -> Push {
        let mut push = push(1, "https://unused.example/", said(body));
        let registration =
            PushRegistration { channel: PushChannel::App(device()), ..(*push.registration).clone() };
        push.registration = registration.into();
        push
    }

    fn sent(apns: &Apns, body: &str, shown: PushShown) -> (BTreeMap<&'static str, String>, Value) {
        let request = apns.request(&to_device(body), &device(), &shown.into(), NOW);
        assert_eq!(request.path, format!("/3/device/{}", "a1".repeat(32)));
        assert!(request.body.len() <= PAYLOAD_MAX);
        (request.headers.into_iter().collect(), serde_json::from_slice(&request.body).expect("JSON"))
    }

    #[test]
    fn requests_say_what_the_push_wants() {
        let (headers, body) = sent(&app(|_| {}), "hi", PushShown::Whole);
        let of = |name| headers[name].as_str();
        assert_eq!(
            (of("apns-topic"), of("apns-push-type"), of("apns-priority")),
            ("com.example.chat", "alert", "10")
        );
        assert_eq!(of("apns-expiration"), (NOW.0 / 1000 + 28 * 86_400).to_string());
        assert!(of("apns-collapse-id").len() <= 64);
        assert_eq!(of("apns-id").split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        let expected = json!({
            "alert": { "title": "bob@d.example", "body": "hi" }, "badge": 2, "mutable-content": 1, "sound": "default",
            "thread-id": "bob@d.example",
        });
        assert_eq!(body["aps"], expected);
        assert_eq!(
            (&body["carillon"]["account"], &body["carillon"]["id"]),
            (&json!("alice@d.example"), &json!("7"))
        );
        assert_eq!(body["carillon"].get("body"), None, "it is said once");
    }

    #[test]
    fn no_more_is_told_than_may_be() {
        let (_, body) = sent(&app(|_| {}), "hi", PushShown::Nothing);
        assert_eq!(body["aps"]["alert"], json!({ "body": "New message" }));
        assert!(!body.to_string().contains("bob") && !body.to_string().contains("hi"), "{body}");
        let (_, body) = sent(&app(|_| {}), "hi", PushShown::Sender);
        assert_eq!(body["aps"]["alert"], json!({ "title": "bob@d.example", "body": "New message" }));
        let background = app(|settings| settings.push_type = ApnsPushType::Background);
        let (headers, body) = sent(&background, "hi", PushShown::Whole);
        assert_eq!((&*headers["apns-push-type"], &*headers["apns-priority"]), ("background", "5"));
        assert_eq!(
            (&body["aps"], &body["carillon"]["body"]),
            (&json!({ "content-available": 1 }), &json!("hi"))
        );
    }

    #[test]
    fn a_template_says_what_the_device_shows() {
        let showing = worded(PushShown::Sender, "Message", "{sender} wrote");
        let request = app(|_| {}).request(&to_device("hi"), &device(), &showing, NOW);
        let body: Value = serde_json::from_slice(&request.body).expect("JSON");
        assert_eq!(body["aps"]["alert"], json!({ "title": "Message", "body": "bob@d.example wrote" }));
        assert_eq!(body["carillon"].get("alert"), None, "it is said once");
        // What the template does not know is as without it.
        let request = app(|_| {}).request(
            &to_device("hi"),
            &device(),
            &worded(PushShown::Sender, "{room}", "{body}"),
            NOW,
        );
        let body: Value = serde_json::from_slice(&request.body).expect("JSON");
        assert_eq!(body["aps"]["alert"], json!({ "title": "bob@d.example", "body": "New message" }));
    }

    #[test]
    fn what_is_too_long_is_cut() {
        let long = "\u{1f514} \\ ".repeat(2000);
        let (_, body) = sent(&app(|_| {}), &long, PushShown::Whole);
        let shown = body["aps"]["alert"]["body"].as_str().expect("a text");
        assert!(long.starts_with(shown) && shown.len() > 2000, "{}", shown.len());
        assert_eq!(body["carillon"]["truncated"], true);
    }

    #[test]
    fn a_token_is_used_for_a_while_and_renewed_once() {
        let apns = app(|_| {});
        let first = apns.token(NOW).expect("a token");
        assert_eq!(apns.token(NOW.plus(TOKEN_KEPT_MS - 1)), Some(first.clone()));
        let second = apns.token(NOW.plus(TOKEN_KEPT_MS)).expect("a token");
        assert_ne!(first, second);
        let now = NOW.plus(TOKEN_KEPT_MS + 1000);
        assert!(apns.renew(&first, now), "there is another one already");
        assert_eq!(apns.token(now), Some(second.clone()));
        assert!(apns.renew(&second, now));
        let third = apns.token(now).expect("a token");
        assert_ne!(second, third);
        assert!(!apns.renew(&third, now.plus(TOKEN_RENEWED_MS - 1)), "APNs wants no other so soon");
        assert!(apns.renew(&third, now.plus(TOKEN_RENEWED_MS)));
    }

    #[test]
    fn answers_mean_what_apns_says() {
        let answer = |status, body: &str| {
            let response = Response { status, retry_after: None, body: body.as_bytes().to_vec() };
            meaning(&response, UnixMs(1000))
        };
        let of = |status, reason: &str| match answer(status, &format!("{{\"reason\":\"{reason}\"}}")) {
            Meaning::Came(came) => came,
            Meaning::TokenExpired(_) => panic!("it is about the token"),
        };
        assert_eq!(answer(200, ""), Meaning::Came(Came::Taken));
        for reason in ["BadDeviceToken", "Unregistered", "DeviceTokenNotForTopic"] {
            assert_eq!(of(400, reason), Came::Gone, "{reason}");
        }
        assert_eq!(of(410, "Unregistered"), Came::Gone);
        let gone = |at: u64| answer(410, &format!("{{\"reason\":\"Unregistered\",\"timestamp\":{at}}}"));
        assert_eq!(gone(1000), Meaning::Came(Came::Gone));
        assert_eq!(gone(999), Meaning::Came(Came::Failed("410: Unregistered".into(), None)));
        assert_eq!(
            answer(403, "{\"reason\":\"ExpiredProviderToken\"}"),
            Meaning::TokenExpired("403: ExpiredProviderToken".into())
        );
        assert_eq!(of(403, "InvalidProviderToken"), Came::Failed("403: InvalidProviderToken".into(), None));
        assert_eq!(of(413, "PayloadTooLarge"), Came::Refused("413: PayloadTooLarge".into()));
        assert_eq!(of(429, "TooManyRequests"), Came::Failed("429: TooManyRequests".into(), None));
        let tokens = of(429, "TooManyProviderTokenUpdates");
        assert!(matches!(tokens, Came::Failed(_, Some(TOKEN_PAUSE))), "{tokens:?}");
        assert_eq!(answer(503, "not JSON"), Meaning::Came(Came::Failed("503".into(), None)));
        assert_eq!(
            of(400, "BadTopic"),
            Came::Failed("400: BadTopic".into(), None),
            "an operator can mend it"
        );
    }
}
