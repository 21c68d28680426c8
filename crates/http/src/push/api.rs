//! Registrations for push: made for apps that have no session, listed with how they fare, and ended.

use crate::accounts;
use crate::app::App;
use crate::auth::{AnyScope, Enrol, Granted};
use crate::extract::{JsonBody, Named, Params, limit};
use crate::problem::{Code, Problem};
use crate::values::time::{Time, now};
use crate::webhooks::{new_secret, read_secret, write_secret};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use carillon_core::model::{
    AppToken, PUSH_ROOMS_MAX, PushChannel, PushRegistration, PushSecret, PushShown, PushWakes,
    ROOM_LISTENERS_MAX, RegistrationId, RoomKind, WakesOn, WebPushKeys, WebhookSecret,
};
use carillon_core::ports::store::push::{
    DisablePush, EnablePush, EnablePushAnswer, FindRegistration, ListRegistrations,
};
use carillon_wire::jid::BareJid;

/// The key by which push services know this server.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct PushKey {
    /// The public key in base64url (RFC 8292), which browsers want as `applicationServerKey`.
    vapid: String,
}

/// A registration to be made. It has one of `web_push`, `app` and `webhook`.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RegistrationBody {
    /// The account: its bare JID or local part.
    account: String,
    /// The app's own name for it, 1 to 1024 bytes. What has the same name is replaced.
    #[schema(min_length = 1, max_length = 1024)]
    node: String,
    /// How much a push tells: `nothing` of what waits, its `sender` (the default), or the `whole`.
    #[serde(default)]
    #[schema(value_type = Option<crate::values::schema::PushShown>)]
    shown: Option<PushShown>,
    /// What wakes the app: some of `notifications`, `messages` and `mentions` in rooms; by default all.
    #[serde(default)]
    #[schema(value_type = Option<Vec<crate::values::schema::WakesOn>>)]
    wakes: Option<Vec<WakesOn>>,
    /// Rooms that list the account, by their addresses: every message of them wakes the app.
    #[serde(default)]
    #[schema(max_items = 100)]
    rooms: Vec<String>,
    /// A subscription of Web Push, as `PushSubscription.toJSON()` gives it.
    #[serde(default)]
    web_push: Option<SubscriptionBody>,
    /// An app on a device, for APNs or FCM.
    #[serde(default)]
    app: Option<AppBody>,
    /// A URL that is given pushes as Standard Webhooks has it.
    #[serde(default)]
    webhook: Option<HookBody>,
}

/// A subscription of Web Push.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
pub(crate) struct SubscriptionBody {
    /// The URL of the subscription.
    #[schema(max_length = 2048, format = "uri")]
    endpoint: String,
    /// What pushes are encrypted with.
    keys: KeysBody,
}

/// An app on a device.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AppBody {
    /// The name by which the operator has set up the app: `push.apps.NAME`.
    name: String,
    /// What the push service gave to the app: of APNs in hexadecimal, of FCM as it is.
    #[schema(max_length = 4096)]
    token: String,
}

/// What pushes are encrypted with (RFC 8291), in base64url.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
pub(crate) struct KeysBody {
    /// The public key of the app.
    p256dh: String,
    /// The authentication secret of the app.
    auth: String,
}

/// A URL that is given pushes.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HookBody {
    /// Where requests go.
    #[schema(max_length = 2048, format = "uri")]
    url: String,
    /// What requests are signed with: `whsec_` and the base64 of 24 to 64 bytes. By default the node makes one.
    #[serde(default)]
    secret: Option<String>,
}

/// A registration, and how it fares.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct RegistrationView {
    /// Its number.
    id: u64,
    /// The bare JID of its account.
    account: String,
    /// The app's own name for it.
    node: String,
    /// How pushes get there: `web_push`, `apns`, `fcm` or `webhook`.
    channel: &'static str,
    /// The push service, or the URL of the webhook without its path: the rest is a secret of the app. Of APNs and FCM it is the name of the app.
    service: String,
    /// How much a push tells.
    #[schema(value_type = crate::values::schema::PushShown)]
    shown: PushShown,
    /// What wakes the app.
    #[schema(value_type = Vec<crate::values::schema::WakesOn>)]
    wakes: Vec<WakesOn>,
    /// Rooms of which every message wakes the app.
    rooms: Vec<String>,
    /// Whether the last push was taken: `ok`, or `failing`. Pushes are tried again either way.
    state: &'static str,
    /// When it was made, or made anew.
    created_at: Time,
    /// When a push was last taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pushed_at: Option<Time>,
    /// Requests that failed since then.
    failures: u32,
    /// The last one that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<PushError>,
}

/// Why a push was not taken, and when.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct PushError {
    /// When.
    at: Time,
    /// Why, for people.
    error: String,
}

/// A registration, with the secret of its webhook if the node made that.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct RegistrationAndSecret {
    /// What requests are signed with: shown now and never again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "whsec_MfKQ9r8G…")]
    secret: Option<String>,
    /// The registration.
    #[serde(flatten)]
    view: RegistrationView,
}

/// A page of registrations.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct RegistrationPage {
    /// By their numbers.
    registrations: Vec<RegistrationView>,
    /// What to give as `after` for the next page; none on the last.
    next: Option<String>,
}

/// Which registrations.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RegistrationsQuery {
    /// Only those of this account: its bare JID or local part.
    account: Option<String>,
    /// The domain; by default the key's, or the node's first.
    domain: Option<String>,
    /// Where the page begins: `next` of the one before.
    after: Option<u64>,
    /// How many, 1 to 1000.
    limit: Option<u16>,
}

/// Read the key for push services
///
/// With it browsers subscribe: `pushManager.subscribe({ applicationServerKey })`.
#[utoipa::path(
    get, path = "/v1/push/key", operation_id = "getPushKey", tag = "push",
    responses((status = 200, description = "The public key", body = PushKey), crate::values::schema::Problems)
)]
pub(crate) async fn key(_: Granted<AnyScope>, State(app): State<App>) -> Json<PushKey> {
    Json(PushKey { vapid: app.pushes().vapid() })
}

/// List registrations for push
#[utoipa::path(
    get, path = "/v1/push/registrations", operation_id = "listRegistrations", tag = "push", params(RegistrationsQuery),
    responses((status = 200, description = "Registrations, and how they fare", body = RegistrationPage), crate::values::schema::Problems)
)]
pub(crate) async fn list(
    key: Granted<Enrol>,
    State(app): State<App>,
    Params(query): Params<RegistrationsQuery>,
) -> Result<Json<RegistrationPage>, Problem> {
    let (domain, account) = match &query.account {
        Some(account) => {
            let (domain, jid) = accounts::find(&key, &app, account, query.domain.as_deref())?;
            (domain, jid.local().map(Box::from))
        }
        None => (key.domain(&app, query.domain.as_deref())?, None),
    };
    let after = RegistrationId(query.after.unwrap_or(0));
    let ask = ListRegistrations { domain: Some(domain.id), account, after, max: limit(query.limit)? };
    let found = app.ask(ask).await?;
    let next = found.entries.last().filter(|_| found.more).map(|last| last.id.to_string());
    Ok(Json(RegistrationPage { registrations: found.entries.iter().map(view).collect(), next }))
}

/// Register an app for push
///
/// For apps that have no session of their own; those that have one register over XMPP (XEP-0357). From then on the app is told when something
/// waits for the account and no session takes it: see `docs/book/push.md`. What has the same `node` is replaced.
#[utoipa::path(
    post, path = "/v1/push/registrations", operation_id = "createRegistration", tag = "push", request_body = RegistrationBody,
    responses((status = 201, description = "The registration", body = RegistrationAndSecret), crate::values::schema::Problems)
)]
pub(crate) async fn create(
    key: Granted<Enrol>,
    State(app): State<App>,
    JsonBody { value: body, .. }: JsonBody<RegistrationBody>,
) -> Result<(StatusCode, Json<RegistrationAndSecret>), Problem> {
    let (domain, account) =
        accounts::find(&key, &app, &body.account, None).map_err(|problem| problem.at("/account"))?;
    if !(1..=NODE_BYTES_MAX).contains(&body.node.len()) {
        return Err(invalid("`node` has 1 to 1024 bytes", "/node"));
    }
    let (channel, secret) = match (body.web_push, body.app, body.webhook) {
        (Some(subscription), None, None) => (web_push(&app, subscription)?, None),
        (None, Some(device), None) => (device_app(&app, &domain.name, device)?, None),
        (None, None, Some(hook)) => webhook(&app, hook)?,
        _ => return Err(invalid("one of `web_push`, `app` and `webhook`", "/web_push")),
    };
    let per_account_max = app.options.core.push.per_account_max;
    let enable = EnablePush {
        domain: domain.id,
        local: account.local().unwrap_or_default().into(),
        node: body.node.into(),
        channel,
        shown: body.shown.unwrap_or_default(),
        wakes: body.wakes.map_or_else(PushWakes::default, PushWakes::from_iter),
        rooms: rooms(&domain.name, &body.rooms)?,
        now: now(),
        per_account_max,
        per_room_max: ROOM_LISTENERS_MAX,
    };
    match app.ask(enable).await? {
        EnablePushAnswer::Enabled(made) => {
            let secret = secret.as_ref().map(write_secret);
            Ok((StatusCode::CREATED, Json(RegistrationAndSecret { secret, view: view(&made) })))
        }
        EnablePushAnswer::TooMany => {
            let detail = format!("an account has at most {per_account_max} registrations");
            Err(Problem::new(Code::TooManyRegistrations, detail))
        }
        EnablePushAnswer::NotInRoom(at) => {
            Err(Problem::new(Code::InvalidValue, "the room does not list the account")
                .at(format!("/rooms/{at}")))
        }
        EnablePushAnswer::RoomFull(at) => {
            let detail = format!("{ROOM_LISTENERS_MAX} apps want every message of the room, and no more may");
            Err(Problem::new(Code::TooManyRegistrations, detail).at(format!("/rooms/{at}")))
        }
        EnablePushAnswer::NoAccount => {
            Err(Problem::new(Code::UnknownAccount, format!("there is no account `{account}`")).at("/account"))
        }
    }
}

/// Read a registration for push
#[utoipa::path(
    get, path = "/v1/push/registrations/{id}", operation_id = "getRegistration", tag = "push",
    params(("id" = u64, Path, description = "The registration's number")),
    responses((status = 200, description = "The registration, and how it fares", body = RegistrationView), crate::values::schema::Problems)
)]
pub(crate) async fn get(
    key: Granted<Enrol>,
    State(app): State<App>,
    Named(id): Named<u64>,
) -> Result<Json<RegistrationView>, Problem> {
    Ok(Json(view(&find(&app, &key, id).await?)))
}

/// End a registration for push
///
/// With the pushes that wait. One that is under way is not taken back.
#[utoipa::path(
    delete, path = "/v1/push/registrations/{id}", operation_id = "deleteRegistration", tag = "push",
    params(("id" = u64, Path, description = "The registration's number")),
    responses((status = 204, description = "It is gone"), crate::values::schema::Problems)
)]
pub(crate) async fn delete(
    key: Granted<Enrol>,
    State(app): State<App>,
    Named(id): Named<u64>,
) -> Result<StatusCode, Problem> {
    let PushRegistration { domain, account, node, .. } = find(&app, &key, id).await?;
    let local = account.local().unwrap_or_default().into();
    app.ask(DisablePush { domain, local, node: Some(node) }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The registration of this number, if the key reaches it.
async fn find(app: &App, key: &Granted<Enrol>, id: u64) -> Result<PushRegistration, Problem> {
    let found = app.ask(FindRegistration { id: RegistrationId(id) }).await?;
    let reached = found.filter(|found| key.key.domain.is_none_or(|domain| domain == found.domain));
    let unknown = || Problem::new(Code::UnknownRegistration, format!("there is no registration {id}"));
    reached.map(|found| *found).ok_or_else(unknown)
}

/// Rooms of a domain, by their addresses.
fn rooms(domain: &str, addresses: &[String]) -> Result<Vec<(RoomKind, Box<str>)>, Problem> {
    if addresses.len() > PUSH_ROOMS_MAX {
        return Err(invalid("at most 100 rooms", "/rooms"));
    }
    let room = |(at, address): (usize, &String)| {
        let room = BareJid::new(address).ok();
        let kind = room.as_ref().and_then(|room| RoomKind::of_host(room.domain()));
        let kind = kind.filter(|(_, of)| *of == domain).map(|(kind, _)| kind);
        let name = room.as_ref().and_then(BareJid::local).map(Box::from);
        kind.zip(name).ok_or_else(|| {
            let detail = format!("`{address}` is not the address of a room of the account's domain");
            Problem::new(Code::InvalidValue, detail).at(format!("/rooms/{at}"))
        })
    };
    addresses.iter().enumerate().map(room).collect()
}

fn web_push(app: &App, subscription: SubscriptionBody) -> Result<PushChannel, Problem> {
    let SubscriptionBody { endpoint, keys } = subscription;
    app.pushes().check_url(&endpoint).map_err(|problem| problem.at("/web_push/endpoint"))?;
    let decode = |text: &str| BASE64.decode(text.replace('+', "-").replace('/', "_")).ok();
    let p256dh = decode(&keys.p256dh).and_then(|key| key.try_into().ok()).filter(super::encrypt::is_point);
    let detail = "`p256dh` is an uncompressed point of the curve P-256, in base64url";
    let p256dh = p256dh.ok_or_else(|| invalid(detail, "/web_push/keys/p256dh"))?;
    let auth = decode(&keys.auth).filter(|auth| auth.len() == 16);
    let auth = auth.ok_or_else(|| invalid("`auth` is 16 bytes, in base64url", "/web_push/keys/auth"))?;
    Ok(PushChannel::WebPush(WebPushKeys { endpoint: endpoint.into(), p256dh, auth: PushSecret(auth.into()) }))
}

fn device_app(app: &App, domain: &str, device: AppBody) -> Result<PushChannel, Problem> {
    let service = app.pushes().app(&device.name, domain);
    let service = service.ok_or_else(|| invalid("the domain has no app of this name", "/app/name"))?;
    let detail = "what the push service gave to the app: of APNs 64 to 200 hexadecimal digits";
    let token = service.token(&device.token).ok_or_else(|| invalid(detail, "/app/token"))?;
    Ok(PushChannel::App(AppToken { service, app: device.name.into(), token }))
}

/// The channel, and its secret if that is new.
fn webhook(app: &App, hook: HookBody) -> Result<(PushChannel, Option<WebhookSecret>), Problem> {
    app.pushes().check_url(&hook.url).map_err(|problem| problem.at("/webhook/url"))?;
    let given = hook.secret.as_deref().map(|secret| {
        let detail = "a secret is `whsec_` and the base64 of 24 to 64 bytes";
        read_secret(secret).ok_or_else(|| Problem::new(Code::InvalidSecret, detail).at("/webhook/secret"))
    });
    let (secret, made) = match given.transpose()? {
        Some(secret) => (secret, None),
        None => {
            let secret = new_secret();
            (secret.clone(), Some(secret))
        }
    };
    Ok((PushChannel::Webhook { url: hook.url.into(), secret: PushSecret(secret.0) }, made))
}

fn invalid(detail: &'static str, at: &'static str) -> Problem {
    Problem::new(Code::InvalidValue, detail).at(at)
}

pub(crate) fn view(registration: &PushRegistration) -> RegistrationView {
    let PushRegistration { id, account, node, channel, shown, wakes, rooms, created, health, .. } =
        registration;
    RegistrationView {
        id: id.0,
        account: account.to_string(),
        node: node.to_string(),
        channel: channel.kind().as_str(),
        service: match channel {
            PushChannel::WebPush(keys) => super::gateway::origin(&keys.endpoint).to_owned(),
            PushChannel::App(device) => device.app.to_string(),
            PushChannel::Webhook { url, .. } => super::gateway::origin(url).to_owned(),
        },
        shown: *shown,
        wakes: wakes.iter().collect(),
        rooms: rooms.iter().map(ToString::to_string).collect(),
        state: if health.failures == 0 { "ok" } else { "failing" },
        created_at: Time(*created),
        pushed_at: health.pushed.map(Time),
        failures: health.failures,
        last_error: health
            .last_failure
            .as_ref()
            .map(|failure| PushError { at: Time(failure.at), error: failure.error.to_string() }),
    }
}

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The longest name of a registration.
const NODE_BYTES_MAX: usize = 1024;
