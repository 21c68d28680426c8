//! Who asks, and whether they may. A handler that names [`Granted`] among its arguments is not run without it.

pub(crate) mod acts;
mod cache;
pub(crate) mod key;
pub(crate) mod quota;
pub(crate) mod scram;

pub(crate) use cache::Keys;

use crate::app::App;
use crate::problem::{Code, Problem};
use crate::values::time::now;
use acts::Peer;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use carillon_core::model::{ApiKey, Domain, Scope};
use ipnet::IpNet;
use std::marker::PhantomData;
use std::sync::Arc;

/// Proof that the request came with a key that has scope `S`.
pub(crate) struct Granted<S> {
    /// The key.
    pub(crate) key: ApiKey,
    scope: PhantomData<S>,
}

/// A scope as a type.
pub(crate) trait Needs {
    /// The scope; none where any key will do.
    const SCOPE: Option<Scope>;
}

/// Any key.
pub(crate) struct AnyScope;
/// Scope `send`.
pub(crate) struct Send;
/// Scope `topics`.
pub(crate) struct Topics;
/// Scope `enrol`.
pub(crate) struct Enrol;
/// Scope `admin`.
pub(crate) struct Admin;
/// Scope `chat`.
pub(crate) struct Chat;
/// Scope `links`.
pub(crate) struct Links;
/// Scope `rooms`.
pub(crate) struct Rooms;
/// Scope `matches`.
pub(crate) struct Matches;
/// Scope `broadcast`.
pub(crate) struct Broadcast;
/// Scope `read_messages`.
pub(crate) struct ReadMessages;

impl Needs for AnyScope {
    const SCOPE: Option<Scope> = None;
}
impl Needs for Send {
    const SCOPE: Option<Scope> = Some(Scope::Send);
}
impl Needs for Topics {
    const SCOPE: Option<Scope> = Some(Scope::Topics);
}
impl Needs for Enrol {
    const SCOPE: Option<Scope> = Some(Scope::Enrol);
}
impl Needs for Admin {
    const SCOPE: Option<Scope> = Some(Scope::Admin);
}
impl Needs for Chat {
    const SCOPE: Option<Scope> = Some(Scope::Chat);
}
impl Needs for Links {
    const SCOPE: Option<Scope> = Some(Scope::Links);
}
impl Needs for Rooms {
    const SCOPE: Option<Scope> = Some(Scope::Rooms);
}
impl Needs for Matches {
    const SCOPE: Option<Scope> = Some(Scope::Matches);
}
impl Needs for Broadcast {
    const SCOPE: Option<Scope> = Some(Scope::Broadcast);
}
impl Needs for ReadMessages {
    const SCOPE: Option<Scope> = Some(Scope::ReadMessages);
}

impl<S: Needs> FromRequestParts<App> for Granted<S> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Granted<S>, Problem> {
        let hash = key::hash(bearer(parts)?).ok_or_else(unknown_key)?;
        let key = app.keys().find(app, hash).await?.ok_or_else(unknown_key)?;
        if matches!(S::SCOPE, Some(Scope::Admin | Scope::ReadMessages)) {
            acts::begin(&key);
        }
        let granted = Granted::to(key)?;
        comes_from(&granted.key, parts.extensions.get().copied())?;
        shows(&granted.key, parts.extensions.get())?;
        quota::charge(app, &granted.key)?;
        Ok(granted)
    }
}

impl<S: Needs> Granted<S> {
    /// What this key may do, if it has the scope and has not expired.
    pub(crate) fn to(key: ApiKey) -> Result<Granted<S>, Problem> {
        if let Some(at) = key.expires.filter(|_| key.is_expired(now())) {
            let detail = format!("the key expired at {}", at.to_xmpp());
            return Err(invalid_token(Problem::new(Code::ExpiredKey, detail)));
        }
        match S::SCOPE {
            Some(scope) if !key.scopes.allow(scope) => Err(missing_scope(scope)),
            _ => Ok(Granted { key, scope: PhantomData }),
        }
    }
}

impl<S> Granted<S> {
    /// Refuses a key that lacks a scope, which part of a request takes.
    pub(crate) fn needs(&self, scope: Scope) -> Result<(), Problem> {
        if self.key.scopes.allow(scope) { Ok(()) } else { Err(missing_scope(scope)) }
    }

    /// The domain to act in: the key's own, or the one the request names, or the node's first.
    pub(crate) fn domain(&self, app: &App, named: Option<&str>) -> Result<Arc<Domain>, Problem> {
        let own = self.own_domain(app)?;
        let name = match (named, &own) {
            (Some(name), _) => name,
            (None, Some(own)) => return Ok(own.clone()),
            (None, None) => &app.options.default_domain,
        };
        self.reach(app, name)
    }

    /// The domain of this name, if the key reaches it.
    pub(crate) fn reach(&self, app: &App, name: &str) -> Result<Arc<Domain>, Problem> {
        if let Some(own) = self.own_domain(app)? {
            return if *own.name == *name { Ok(own) } else { Err(other_domain(&own.name)) };
        }
        app.domain(name)
            .ok_or_else(|| Problem::new(Code::UnknownDomain, format!("the node has no domain `{name}`")))
    }

    /// Refuses a key that is bound to a domain.
    pub(crate) fn whole_node(&self) -> Result<(), Problem> {
        match self.key.domain {
            None => Ok(()),
            Some(_) => Err(Problem::new(Code::OtherDomain, "this route needs a key of the whole node")),
        }
    }

    fn own_domain(&self, app: &App) -> Result<Option<Arc<Domain>>, Problem> {
        let Some(id) = self.key.domain else { return Ok(None) };
        // A key goes with its domain; one that is still cached is as good as deleted.
        app.node.domains().numbered(id).cloned().map(Some).ok_or_else(unknown_key)
    }
}

/// Refuses a key from where it may not be used.
fn comes_from(key: &ApiKey, peer: Option<Peer>) -> Result<(), Problem> {
    if key.networks.is_empty() {
        return Ok(());
    }
    let address = peer.and_then(|Peer(address)| address).map(|address| address.to_canonical());
    let mut networks = key.networks.iter().filter_map(|network| network.parse::<IpNet>().ok());
    if address.is_some_and(|address| networks.any(|network| network.contains(&address))) {
        return Ok(());
    }
    let from = address.map_or_else(|| "an unknown address".to_owned(), |address| address.to_string());
    Err(Problem::new(Code::OtherNetwork, format!("the key may not be used from {from}")))
}

/// The names of the certificate that the client of a connection showed, as keys name them; none where it showed none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown(pub(crate) Arc<[String]>);

/// Refuses a key that is bound to certificates to a client that shows another or none.
fn shows(key: &ApiKey, shown: Option<&Shown>) -> Result<(), Problem> {
    if key.certificates.is_empty() {
        return Ok(());
    }
    let names: &[String] = shown.map_or(&[], |Shown(names)| &names[..]);
    if names.iter().any(|name| key.certificates.iter().any(|bound| **bound == **name)) {
        return Ok(());
    }
    let detail = match names {
        [] => "the key is bound to certificates, and the client shows none that is known here".to_owned(),
        names => {
            format!("the key is bound to other certificates; that of the client has {}", names.join(", "))
        }
    };
    Err(Problem::new(Code::OtherCertificate, detail))
}

fn bearer(parts: &Parts) -> Result<&str, Problem> {
    let missing = || {
        let problem = Problem::new(Code::MissingKey, "send `Authorization: Bearer KEY`");
        problem.with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"carillon\""))
    };
    let value = parts.headers.get(header::AUTHORIZATION).ok_or_else(missing)?;
    let (scheme, key) = value.to_str().ok().and_then(|v| v.split_once(' ')).ok_or_else(missing)?;
    if scheme.eq_ignore_ascii_case("bearer") { Ok(key.trim()) } else { Err(missing()) }
}

fn unknown_key() -> Problem {
    invalid_token(Problem::new(Code::UnknownKey, "the key is not one of this node, or was deleted"))
}

/// RFC 6750 §3.1
fn invalid_token(problem: Problem) -> Problem {
    problem.with_header(
        header::WWW_AUTHENTICATE,
        HeaderValue::from_static("Bearer realm=\"carillon\", error=\"invalid_token\""),
    )
}

fn missing_scope(scope: Scope) -> Problem {
    let name = scope.as_str();
    let value = format!("Bearer realm=\"carillon\", error=\"insufficient_scope\", scope=\"{name}\"");
    Problem::new(Code::MissingScope, format!("the key lacks scope `{name}`")).with_header(
        header::WWW_AUTHENTICATE,
        HeaderValue::from_str(&value).expect("the names of scopes are ASCII words"),
    )
}

fn other_domain(own: &str) -> Problem {
    Problem::new(Code::OtherDomain, format!("the key is bound to domain `{own}`"))
}
