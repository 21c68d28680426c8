//! API keys: made, listed, removed; and what the key in hand may do.

use crate::app::App;
use crate::auth::{Admin, AnyScope, Granted, key as text};
use crate::extract::{JsonBody, Named, Params};
use crate::problem::{Code, Problem};
use crate::values::schema;
use crate::values::text::fits;
use crate::values::time::{Time, now};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use carillon_core::model::{ApiKey, KeyId, Scope, Scopes, UnixMs};
use carillon_core::ports::Missing;
use carillon_core::ports::store::keys::{
    CreateKey, CreateKeyAnswer, DeleteKey, ExpireKey, Keys, NODE_KEYS_MAX,
};
use ipnet::IpNet;
use std::net::IpAddr;

/// A key to be made.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyBody {
    /// Its name.
    #[schema(min_length = 1, max_length = 256)]
    name: String,
    /// The domain it is bound to. Left out: the whole node, or the domain of the key that makes it.
    #[serde(default)]
    domain: Option<String>,
    /// Its scopes.
    #[schema(value_type = Vec<schema::Scope>, min_items = 1)]
    scopes: Vec<Scope>,
    /// When it expires. Left out: never, or with the key that makes it.
    #[serde(default)]
    expires_at: Option<Time>,
    /// The networks from which it may be used, as the node sees them: behind a proxy, the proxy's. Left out or empty: from anywhere.
    #[serde(default)]
    #[schema(max_items = 32, example = json!(["192.0.2.0/24", "2001:db8::1/128"]))]
    networks: Vec<String>,
    /// Names of which the certificate that the client shows must have one (`https.client_ca`): `dns:`, `uri:`, `email:` or `ip:` with a name of its
    /// subjectAltName, `cn:` with the common name of its subject, `sha256:` with the SHA-256 of the certificate. Left out or empty: it need not show one.
    #[serde(default)]
    #[schema(max_items = 32, example = json!(["dns:backend.example.org", "cn:shop"]))]
    certificates: Vec<String>,
}

/// A key, without its text.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct KeyView {
    /// Its number.
    id: u32,
    /// Its name.
    name: String,
    /// The domain it is bound to; none for the whole node.
    domain: Option<String>,
    /// Its scopes.
    #[schema(value_type = Vec<schema::Scope>)]
    scopes: Vec<Scope>,
    /// When it was made.
    created_at: Time,
    /// When it expires, or since when it is expired; none where it never does.
    expires_at: Option<Time>,
    /// The networks from which it may be used; empty for any.
    networks: Vec<String>,
    /// Names of which the client's certificate must have one; empty where it need not show one.
    certificates: Vec<String>,
    /// When it was last used, to an hour; none if it was not since the node notes that.
    used_at: Option<Time>,
}

/// A new key.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct KeyCreated {
    /// The key's text: shown now and never again.
    #[schema(example = "crl_0pX3…")]
    key: String,
    /// The key without its secret.
    #[serde(flatten)]
    view: KeyView,
}

/// The keys of the node, or of the domain of the key that asks.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct KeyList {
    /// The keys.
    keys: Vec<KeyView>,
}

/// The API key of the request, and where it acts.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct OwnKey {
    /// The key without its secret.
    #[serde(flatten)]
    view: KeyView,
    /// The domain it acts in when a request names none.
    default_domain: String,
}

/// Read the API key of the request
#[utoipa::path(
    get, path = "/v1/key", operation_id = "getOwnKey", tag = "keys",
    responses((status = 200, description = "What the key may do, and where", body = OwnKey), schema::Problems)
)]
pub(crate) async fn own(key: Granted<AnyScope>, State(app): State<App>) -> Result<Json<OwnKey>, Problem> {
    let default_domain = match key.key.domain {
        Some(_) => key.domain(&app, None)?.name.to_string(),
        None => app.options.default_domain.clone(),
    };
    Ok(Json(OwnKey { view: KeyView::of(&app, &key.key), default_domain }))
}

/// List API keys
#[utoipa::path(
    get, path = "/v1/admin/keys", operation_id = "listKeys", tag = "admin",
    responses((status = 200, description = "The keys that the key reaches", body = KeyList), schema::Problems)
)]
pub(crate) async fn list(key: Granted<Admin>, State(app): State<App>) -> Result<Json<KeyList>, Problem> {
    let keys = reached(&app, &key).await?;
    Ok(Json(KeyList { keys: keys.iter().map(|key| KeyView::of(&app, key)).collect() }))
}

/// Read an API key
#[utoipa::path(
    get, path = "/v1/admin/keys/{id}", operation_id = "getKey", tag = "admin",
    params(("id" = u32, Path, description = "The key's number")),
    responses((status = 200, description = "The key without its secret", body = KeyView), schema::Problems)
)]
pub(crate) async fn get(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(id): Named<u32>,
) -> Result<Json<KeyView>, Problem> {
    let keys = reached(&app, &key).await?;
    let found = keys.iter().find(|known| known.id.0 == id).ok_or_else(|| unknown(KeyId(id)))?;
    Ok(Json(KeyView::of(&app, found)))
}

/// Create an API key
///
/// A domain has as many as its policy's `keys_max` allows, expired ones among them. A key that expires makes keys that expire no later.
#[utoipa::path(
    post, path = "/v1/admin/keys", operation_id = "createKey", tag = "admin", request_body = KeyBody,
    responses((status = 201, description = "The new key", body = KeyCreated), schema::Problems)
)]
pub(crate) async fn create(
    key: Granted<Admin>,
    State(app): State<App>,
    JsonBody { value: body, .. }: JsonBody<KeyBody>,
) -> Result<(StatusCode, Json<KeyCreated>), Problem> {
    if !fits(&body.name, 1..=256) {
        let detail = "`name` has 1 to 256 bytes, none of them a control character";
        return Err(Problem::new(Code::InvalidValue, detail).at("/name"));
    }
    if body.scopes.is_empty() {
        return Err(Problem::new(Code::InvalidValue, "a key has at least one scope").at("/scopes"));
    }
    let domain = match &body.domain {
        Some(name) => Some(key.reach(&app, name).map_err(|problem| problem.at("/domain"))?.id),
        None => key.key.domain,
    };
    let expires = expiry(&key.key, body.expires_at.map(|Time(at)| at))?;
    let (networks, certificates) = (networks(&body.networks)?, certificates(&body.certificates)?);
    let (text, hash) = text::generate();
    let scopes = Scopes::of(&body.scopes);
    let ask = CreateKey {
        hash,
        name: body.name.into(),
        domain,
        scopes,
        expires,
        networks,
        certificates,
        node_keys_max: NODE_KEYS_MAX,
        now: now(),
    };
    made(&app, text, ask).await
}

/// Has a key made, whose text this is.
async fn made(app: &App, text: String, ask: CreateKey) -> Result<(StatusCode, Json<KeyCreated>), Problem> {
    let domain = ask.domain;
    match app.ask(ask).await? {
        CreateKeyAnswer::Created(made) => {
            let created = KeyCreated { key: text, view: KeyView::of(app, &made) };
            Ok((StatusCode::CREATED, Json(created)))
        }
        CreateKeyAnswer::NoDomain => {
            Err(Problem::new(Code::UnknownDomain, "the domain has just been deleted").at("/domain"))
        }
        CreateKeyAnswer::Full => {
            let detail = match domain {
                Some(_) => {
                    "the domain has as many keys as its policy's `keys_max` allows; delete one first".into()
                }
                None => format!("the node has {NODE_KEYS_MAX} keys of no domain; delete one first"),
            };
            Err(Problem::new(Code::TooManyKeys, detail))
        }
        CreateKeyAnswer::Exists => {
            Err(Problem::new(Code::Internal, "two keys have the same digest; try again"))
        }
    }
}

/// When a key expires that `maker` makes.
fn expiry(maker: &ApiKey, wanted: Option<UnixMs>) -> Result<Option<UnixMs>, Problem> {
    let wrong = |detail: String| Err(Problem::new(Code::InvalidValue, detail).at("/expires_at"));
    match (wanted, maker.expires) {
        (Some(at), _) if at <= now() => {
            wrong(format!("`expires_at` is in the past: it is {} now", now().to_xmpp()))
        }
        (Some(at), Some(last)) if at > last => {
            wrong(format!("the key that makes it expires at {}, and it may not later", last.to_xmpp()))
        }
        (wanted, last) => Ok(wanted.or(last)),
    }
}

/// The networks of a key, as the store keeps them.
fn networks(said: &[String]) -> Result<Box<[Box<str>]>, Problem> {
    if said.len() > NETWORKS_MAX {
        let detail = format!("a key has at most {NETWORKS_MAX} networks");
        return Err(Problem::new(Code::InvalidValue, detail).at("/networks"));
    }
    let network = |(at, text): (usize, &String)| {
        let network = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        network.map(|network| network.trunc().to_string().into()).map_err(|_| {
            let detail = format!("`{text}` is no address and no network such as 192.0.2.0/24");
            Problem::new(Code::InvalidValue, detail).at(format!("/networks/{at}"))
        })
    };
    said.iter().enumerate().map(network).collect()
}

const NETWORKS_MAX: usize = 32;

/// The names of certificates of a key, as the store keeps them and as those of a certificate are written.
fn certificates(said: &[String]) -> Result<Box<[Box<str>]>, Problem> {
    if said.len() > CERTIFICATES_MAX {
        let detail = format!("a key has at most {CERTIFICATES_MAX} names of certificates");
        return Err(Problem::new(Code::InvalidValue, detail).at("/certificates"));
    }
    let name = |(at, text): (usize, &String)| {
        certificate_name(text).map(String::into_boxed_str).ok_or_else(|| {
            let detail = format!(
                "`{text}` is no name of a certificate: `dns:`, `uri:`, `email:`, `ip:`, `cn:` or `sha256:` and what follows, at most {NAME_BYTES_MAX} bytes"
            );
            Problem::new(Code::InvalidValue, detail).at(format!("/certificates/{at}"))
        })
    };
    said.iter().enumerate().map(name).collect()
}

/// The name of a certificate as it is compared.
fn certificate_name(text: &str) -> Option<String> {
    let (kind, name) = text.split_once(':').filter(|_| fits(text, 1..=NAME_BYTES_MAX))?;
    let is_hash = |name: &str| name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    match kind {
        _ if name.is_empty() => None,
        "dns" => Some(text.to_ascii_lowercase()),
        "sha256" if is_hash(name) => Some(text.to_ascii_lowercase()),
        "ip" => name.parse::<IpAddr>().ok().map(|address| format!("ip:{address}")),
        "uri" | "email" | "cn" => Some(text.to_owned()),
        _ => None,
    }
}

const CERTIFICATES_MAX: usize = 32;
const NAME_BYTES_MAX: usize = 512;

/// How a key is rotated.
#[derive(Debug, Default, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RotateBody {
    /// For how many milliseconds the old key still counts.
    #[schema(minimum = 0, maximum = 2_592_000_000_u64, default = 86_400_000)]
    overlap_ms: Option<u64>,
}

/// Rotate an API key
///
/// Makes another key with the name, domain, scopes, networks and expiry of this one, which expires after `overlap_ms` (a day), or when it would have. It
/// takes a place among the domain's `keys_max` until it is deleted.
#[utoipa::path(
    post, path = "/v1/admin/keys/{id}/rotate", operation_id = "rotateKey", tag = "admin", request_body = RotateBody,
    params(("id" = u32, Path, description = "The key's number")),
    responses((status = 201, description = "The new key", body = KeyCreated), schema::Problems)
)]
pub(crate) async fn rotate(
    key: Granted<Admin>,
    State(app): State<App>,
    Named(id): Named<u32>,
    JsonBody { value: body, .. }: JsonBody<RotateBody>,
) -> Result<(StatusCode, Json<KeyCreated>), Problem> {
    let id = KeyId(id);
    let overlap_ms = body.overlap_ms.unwrap_or(OVERLAP_MS);
    if overlap_ms > OVERLAP_MS_MAX {
        let detail = format!("`overlap_ms` is at most {OVERLAP_MS_MAX}");
        return Err(Problem::new(Code::InvalidValue, detail).at("/overlap_ms"));
    }
    let keys = reached(&app, &key).await?;
    let old = keys.into_iter().find(|known| known.id == id).ok_or_else(|| unknown(id))?;
    let now = now();
    if old.is_expired(now) {
        let detail = format!("key {id} has expired; make another one");
        return Err(Problem::new(Code::InvalidParameter, detail));
    }
    let (text, hash) = text::generate();
    let maker = key.key.expires;
    let ask = CreateKey {
        hash,
        name: old.name,
        domain: old.domain,
        scopes: old.scopes,
        // What an expiring key makes expires no later than it.
        expires: old.expires.into_iter().chain(maker).min(),
        networks: old.networks,
        certificates: old.certificates,
        node_keys_max: NODE_KEYS_MAX,
        now,
    };
    let created = made(&app, text, ask).await?;
    // Should this fail, both count, and whoever asked is told so by the error.
    let ends = now.plus(overlap_ms);
    let expires = Some(old.expires.map_or(ends, |already| already.min(ends)));
    app.ask(ExpireKey { id, expires }).await?.map_err(|Missing| unknown(id))?;
    app.keys().changed(id);
    Ok(created)
}

/// A day, and thirty.
const OVERLAP_MS: u64 = 24 * 60 * 60 * 1000;
const OVERLAP_MS_MAX: u64 = 30 * OVERLAP_MS;

/// What is said with the removal of a key.
#[derive(Debug, Default, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RemoveQuery {
    /// Whether it may be the last key with scope `admin` that reaches the whole node.
    #[serde(default)]
    last: bool,
}

/// Delete an API key
///
/// At once on this node, within five seconds on others; its event streams end. The last key with scope `admin` that reaches
/// the whole node is removed only with `last=true`. At its next start a node whose `admin.key` was removed makes another.
#[utoipa::path(
    delete, path = "/v1/admin/keys/{id}", operation_id = "deleteKey", tag = "admin",
    params(RemoveQuery, ("id" = u32, Path, description = "The key's number")),
    responses((status = 204, description = "It is gone"), schema::Problems)
)]
pub(crate) async fn delete(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<RemoveQuery>,
    Named(id): Named<u32>,
) -> Result<StatusCode, Problem> {
    let id = KeyId(id);
    let keys = reached(&app, &key).await?;
    let Some(found) = keys.iter().find(|known| known.id == id) else { return Err(unknown(id)) };
    let others = keys.iter().filter(|known| known.id != id);
    if is_admin(found) && !query.last && !others.into_iter().any(is_admin) {
        let detail = format!(
            "key {id} is the last with scope `admin` that reaches the whole node; `last=true` removes it all the same"
        );
        return Err(Problem::new(Code::LastAdminKey, detail));
    }
    app.ask(DeleteKey { id }).await?.map_err(|Missing| unknown(id))?;
    app.keys().forget(id);
    Ok(StatusCode::NO_CONTENT)
}

fn unknown(id: KeyId) -> Problem {
    Problem::new(Code::UnknownKeyId, format!("there is no key {id}"))
}

/// Whether a key administers the whole node, and goes on doing so.
fn is_admin(key: &ApiKey) -> bool {
    key.domain.is_none() && key.expires.is_none() && key.scopes.iter().any(|scope| scope == Scope::Admin)
}

async fn reached(app: &App, key: &Granted<Admin>) -> Result<Vec<ApiKey>, Problem> {
    app.ask(Keys { domain: key.key.domain }).await
}

impl KeyView {
    fn of(app: &App, key: &ApiKey) -> KeyView {
        KeyView {
            id: key.id.0,
            name: key.name.to_string(),
            domain: key.domain.map(|id| app.domain_name(id).to_string()),
            scopes: key.scopes.iter().collect(),
            created_at: Time(key.created),
            expires_at: key.expires.map(Time),
            networks: key.networks.iter().map(ToString::to_string).collect(),
            certificates: key.certificates.iter().map(ToString::to_string).collect(),
            used_at: key.used.map(Time),
        }
    }
}
