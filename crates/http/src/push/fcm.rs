//! Firebase Cloud Messaging, version 1: requests, and what its answers mean.

use super::http2::{Http2, Request, Response, Trusts};
use super::message::{self, Showing};
use super::rules::Came;
use crate::options::WebhookRoots;
use crate::outgoing::origin::Origin;
use crate::push_settings::apps::{Credentials, PushApp, ServiceAccount};
use crate::push_settings::jwt;
use crate::values::time::now;
use carillon_core::model::{AppToken, Push, UnixMs};
use hyper::Uri;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// An app at FCM.
pub(super) struct Fcm {
    app: Arc<PushApp>,
    http: Http2,
    /// Where access is granted.
    grants: Http2,
    grants_path: String,
    granted: Mutex<Granted>,
}

/// What was last granted, and what came of asking since.
#[derive(Default)]
struct Granted {
    access: Option<Access>,
    /// What comes of pushes until then, since nothing is granted.
    refused: Option<(UnixMs, Came, bool)>,
}

/// What proves to FCM who sends.
#[derive(Clone)]
struct Access {
    token: Arc<str>,
    /// From then on another one is asked for.
    renewed_at: UnixMs,
}

/// What an answer means.
#[derive(Debug, PartialEq, Eq)]
enum Meaning {
    Came(Came),
    /// The access has ended.
    NoAccess(Box<str>),
}

impl Fcm {
    pub(super) fn new(app: Arc<PushApp>, roots: &WebhookRoots, timeout: Duration) -> Result<Fcm, String> {
        let Credentials::Fcm(account) = &app.credentials else {
            return Err("it has no service account".to_owned());
        };
        let trusts = || Trusts { roots: roots.clone(), certificate: None };
        let http = Http2::new(Origin::of(app.settings.url())?, trusts(), timeout);
        let grants = Http2::new(Origin::of(&account.token_uri)?, trusts(), timeout);
        let uri: Uri = account.token_uri.parse().map_err(|_| "`token_uri` is no URL".to_owned())?;
        Ok(Fcm { grants_path: uri.path().to_owned(), app, http, grants, granted: Mutex::default() })
    }

    /// Sends a push; what came of it, and whether FCM works.
    pub(super) async fn send(&self, push: &Push, device: &AppToken, showing: &Showing) -> (Came, bool) {
        let Credentials::Fcm(account) = &self.app.credentials else {
            return (Came::Failed("the app has no service account".into(), None), true);
        };
        let body = body(push, device, showing, now());
        let (mut used, mut reason) = (None::<Arc<str>>, Box::<str>::default());
        for _ in 0..2 {
            let access = match self.access(account, used.as_deref()).await {
                Ok(access) => access,
                Err(failed) => return failed,
            };
            let request = Request {
                path: format!("/v1/projects/{}/messages:send", account.project),
                headers: vec![
                    ("authorization", format!("Bearer {access}")),
                    ("content-type", "application/json".to_owned()),
                ],
                body: body.clone(),
            };
            let response = match self.http.post(&request).await {
                Ok(response) => response,
                Err(error) => return (Came::Failed(error, None), false),
            };
            let works = Came::is_answer(Some(response.status));
            match meaning(&response) {
                Meaning::Came(came) => return (came, works),
                Meaning::NoAccess(said) => (used, reason) = (Some(access), said),
            }
        }
        (Came::Failed(reason, None), true)
    }

    /// The access to send with: asked for once, however many wait for it, and again when it ends or `used` was not taken. If none is granted: what came of the
    /// push.
    async fn access(&self, account: &ServiceAccount, used: Option<&str>) -> Result<Arc<str>, (Came, bool)> {
        let mut granted = self.granted.lock().await;
        let at = now();
        if let Some(access) = &granted.access
            && access.renewed_at > at
            && used.is_none_or(|used| *access.token != *used)
        {
            return Ok(access.token.clone());
        }
        if let Some((until, came, works)) = &granted.refused
            && *until > at
        {
            return Err((came.clone(), *works));
        }
        granted.access = None;
        match self.ask_for_access(account, at).await {
            Ok(access) => Ok(granted.access.insert(access).token.clone()),
            Err((came, works)) => {
                granted.refused = Some((now().plus(REFUSED_MS), came.clone(), works));
                Err((came, works))
            }
        }
    }

    async fn ask_for_access(&self, account: &ServiceAccount, at: UnixMs) -> Result<Access, (Came, bool)> {
        match self.grants.post(&grant_request(account, &self.grants_path, at)).await {
            Ok(response) => grant(&response, at),
            Err(error) => Err((Came::Failed(format!("no access: {error}").into(), None), false)),
        }
    }
}

/// RFC 7523 §2.1: the service account asks for access by a token that it has signed.
fn grant_request(account: &ServiceAccount, path: &str, now: UnixMs) -> Request {
    let at = now.0 / 1000;
    let claims = json!({ "iss": account.email, "scope": SCOPE, "aud": account.token_uri, "iat": at, "exp": at + 3600 });
    let assertion = jwt::rs256(&account.key, &json!({ "kid": account.key_id }), &claims);
    // Neither has characters that a form would have to escape, but for the colons.
    let body =
        format!("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion={assertion}");
    let headers = vec![("content-type", "application/x-www-form-urlencoded".to_owned())];
    Request { path: path.to_owned(), headers, body: body.into_bytes() }
}

/// The access that was granted (RFC 6749 §5.1), or what came of the push since none was.
fn grant(response: &Response, now: UnixMs) -> Result<Access, (Came, bool)> {
    let said: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    match (response.status, said["access_token"].as_str()) {
        (200, Some(token)) if token.bytes().all(|byte| byte.is_ascii_graphic()) => {
            let seconds = said["expires_in"].as_u64().unwrap_or(3600).min(86_400);
            let kept = (seconds * 1000).saturating_sub(ACCESS_MARGIN_MS).max(1000);
            Ok(Access { token: token.into(), renewed_at: now.plus(kept) })
        }
        (status, _) => {
            let error = super::printable(said["error"].as_str().unwrap_or_default());
            let text = format!("no access: {status} {error}");
            Err((Came::Failed(text.trim_end().into(), response.retry_after), Came::is_answer(Some(status))))
        }
    }
}

fn body(push: &Push, device: &AppToken, showing: &Showing, now: UnixMs) -> Vec<u8> {
    // The app shows it: FCM has no more than names and texts, and reserves some of the names that are in it.
    let data = message::within(push, showing, DATA_MAX - DATA.len(), message::write);
    let mut android = json!({
        "priority": if message::urgency(push) == "high" { "HIGH" } else { "NORMAL" },
        "ttl": format!("{}s", message::ttl(push, now)),
    });
    if message::collapses(push) {
        android["collapse_key"] = super::topic(push).into();
    }
    let token = String::from_utf8_lossy(&device.token.0);
    let mut data_of = serde_json::Map::new();
    data_of.insert(DATA.to_owned(), String::from_utf8_lossy(&data).into());
    let message = json!({ "message": { "token": token, "data": data_of, "android": android } });
    serde_json::to_vec(&message).expect("it is plain data")
}

fn meaning(response: &Response) -> Meaning {
    let said: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let error = &said["error"];
    let details = error["details"].as_array().map(Vec::as_slice).unwrap_or_default();
    let code = details.iter().find_map(|detail| detail["errorCode"].as_str());
    let code = code.or_else(|| error["status"].as_str()).unwrap_or_default();
    let text: Box<str> = format!("{} {}", response.status, super::printable(code)).trim_end().into();
    let mut violations = details.iter().filter_map(|detail| detail["fieldViolations"].as_array()).flatten();
    let is_token = violations.any(|violation| violation["field"] == "message.token");
    Meaning::Came(match (response.status, code) {
        (200, _) => Came::Taken,
        (404, "UNREGISTERED") => Came::Gone,
        (400, "INVALID_ARGUMENT" | "INVALID_REGISTRATION") if is_token => Came::Gone,
        (400 | 413, _) => Came::Refused(text),
        // What FCM needs for other push services is not mended by other access.
        (401, "THIRD_PARTY_AUTH_ERROR") => Came::Failed(text, None),
        (401, _) => return Meaning::NoAccess(text),
        // FCM asks for a minute where it does not say how long.
        (429, _) => Came::Failed(text, response.retry_after.or(Some(QUOTA_PAUSE))),
        _ => Came::Failed(text, response.retry_after),
    })
}

/// What an app finds in `data`: JSON, as Web Push and webhooks have it.
const DATA: &str = "carillon";
/// What names and texts of `data` may have, in bytes.
const DATA_MAX: usize = 4096;
const SCOPE: &str = "https://www.googleapis.com/auth/firebase.messaging";
/// How long before its end an access is not used any more, in milliseconds.
const ACCESS_MARGIN_MS: u64 = 5 * 60_000;
const QUOTA_PAUSE: Duration = Duration::from_secs(60);
/// How long access is not asked for again after it was not granted, in milliseconds: whoever waited for it hears the same.
const REFUSED_MS: u64 = 1000;

#[cfg(test)]
mod tests {
    use super::super::message::tests::{push, said};
    use super::*;
    use carillon_core::model::{AppService, PushSecret, PushShown};

    const NOW: UnixMs = UnixMs(1_795_167_000_000);

    fn device() -> AppToken {
        AppToken { service: AppService::Fcm, app: "chat".into(), token: PushSecret((*b"t:1").into()) }
    }

    #[test]
    fn requests_say_what_the_push_wants() {
        let short = push(1, "https://unused.example/", said("hi"));
        let sent: Value =
            serde_json::from_slice(&body(&short, &device(), &PushShown::Whole.into(), NOW)).expect("JSON");
        let message = &sent["message"];
        assert_eq!((&message["token"], &message["android"]["priority"]), (&json!("t:1"), &json!("HIGH")));
        assert_eq!(message["android"]["ttl"], "2419200s");
        assert!(message["android"]["collapse_key"].is_string());
        let told: Value =
            serde_json::from_str(message["data"]["carillon"].as_str().expect("a text")).expect("JSON");
        assert_eq!((&told["body"], &told["from"]), (&json!("hi"), &json!("bob@d.example")));
        let long = push(1, "https://unused.example/", said(&"\"x\"".repeat(5000)));
        let sent: Value =
            serde_json::from_slice(&body(&long, &device(), &PushShown::Whole.into(), NOW)).expect("JSON");
        let data = sent["message"]["data"]["carillon"].as_str().expect("a text");
        assert!((3900..=4096 - DATA.len()).contains(&data.len()), "{}", data.len());
    }

    #[test]
    fn answers_mean_what_fcm_says() {
        let of = |status, error: Value| {
            let body = json!({ "error": error }).to_string().into_bytes();
            meaning(&Response { status, retry_after: None, body })
        };
        let code = |code: &str| json!({ "status": "X", "details": [{ "errorCode": code }] });
        let field = |field: &str| json!({ "status": "INVALID_ARGUMENT", "details": [{ "fieldViolations": [{ "field": field }] }] });
        assert_eq!(of(200, Value::Null), Meaning::Came(Came::Taken));
        assert_eq!(of(404, code("UNREGISTERED")), Meaning::Came(Came::Gone));
        assert_eq!(
            of(404, json!({ "status": "NOT_FOUND" })),
            Meaning::Came(Came::Failed("404 NOT_FOUND".into(), None))
        );
        assert_eq!(of(400, field("message.token")), Meaning::Came(Came::Gone));
        let refused = Meaning::Came(Came::Refused("400 INVALID_ARGUMENT".into()));
        assert_eq!(of(400, field("message.data")), refused);
        assert_eq!(
            of(401, json!({ "status": "UNAUTHENTICATED" })),
            Meaning::NoAccess("401 UNAUTHENTICATED".into())
        );
        assert!(matches!(of(401, code("THIRD_PARTY_AUTH_ERROR")), Meaning::Came(Came::Failed(..))));
        assert_eq!(
            of(429, code("QUOTA_EXCEEDED")),
            Meaning::Came(Came::Failed("429 QUOTA_EXCEEDED".into(), Some(QUOTA_PAUSE)))
        );
        assert_eq!(of(503, code("UNAVAILABLE")), Meaning::Came(Came::Failed("503 UNAVAILABLE".into(), None)));
    }

    #[test]
    fn access_is_used_until_shortly_before_it_ends() {
        let answer =
            |status, body: Value| Response { status, retry_after: None, body: body.to_string().into_bytes() };
        let granted = grant(&answer(200, json!({ "access_token": "a", "expires_in": 3600 })), NOW);
        let granted = granted.unwrap_or_else(|(came, _)| panic!("{came:?}"));
        assert_eq!((&*granted.token, granted.renewed_at), ("a", NOW.plus(55 * 60_000)));
        let Err((came, works)) = grant(&answer(400, json!({ "error": "invalid_grant" })), NOW) else {
            panic!("none is granted")
        };
        assert_eq!((came, works), (Came::Failed("no access: 400 invalid_grant".into(), None), true));
        assert!(grant(&answer(200, json!({ "access_token": "a b" })), NOW).is_err());
    }
}
