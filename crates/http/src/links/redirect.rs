//! `GET /{code}`: where a link leads.

use super::cache::{CachedLink, Key, Lead};
use super::code::TOKEN_LEN;
use super::headers::{NO_INDEX, NO_REFERRER, ROBOTS};
use super::{Host, agent, count, page};
use crate::app::App;
use crate::problem::Problem;
use crate::values::time::now;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use carillon_core::model::{DomainId, Link, LinkId, UnixMs};
use carillon_core::ports::store::links;
use std::sync::Arc;

/// A path as the code of a link, and what stands for a notification behind it.
#[derive(Clone, Copy)]
pub(super) struct Followed<'a> {
    pub(super) code: &'a str,
    pub(super) token: Option<&'a [u8; TOKEN_LEN]>,
}

impl<'a> Followed<'a> {
    /// What a path without its first `/` names.
    pub(super) fn read(path: &'a str) -> Followed<'a> {
        match path.rsplit_once('.').map(|(code, token)| (code, token.as_bytes().try_into())) {
            Some((code, Ok(token))) => Followed { code, token: Some(token) },
            _ => Followed { code: path, token: None },
        }
    }
}

/// The answer to a request for a link that is in memory.
pub(super) fn at_once(
    app: &App,
    host: &Host,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
) -> Option<Response> {
    if *method != Method::GET && *method != Method::HEAD {
        return None;
    }
    let followed = Followed::read(path.strip_prefix('/')?);
    let key = Key::new(host.number, followed.code.as_bytes())?;
    let now = now();
    let entry = app.links().cache.find(&key, now)?;
    count(&app.links().figures.hits);
    Some(answer(app, &entry, followed, method, headers, now))
}

/// The answer to a request for a link, after the store was asked.
pub(super) async fn ask(
    app: &App,
    host: &Host,
    followed: Followed<'_>,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let now = now();
    let entry = find(app, host, followed.code, now).await?;
    Ok(answer(app, &entry, followed, method, headers, now))
}

/// Where a code leads, from memory or by the store.
pub(super) async fn known(
    app: &App,
    host: &Host,
    code: &str,
    now: UnixMs,
) -> Result<Arc<CachedLink>, Problem> {
    let entry = Key::new(host.number, code.as_bytes()).and_then(|key| app.links().cache.find(&key, now));
    match entry {
        Some(entry) => {
            count(&app.links().figures.hits);
            Ok(entry)
        }
        None => find(app, host, code, now).await,
    }
}

/// Where a code leads, by the store. Nothing is asked for what cannot be a code.
async fn find(app: &App, host: &Host, code: &str, now: UnixMs) -> Result<Arc<CachedLink>, Problem> {
    let nowhere = |domain| Arc::new(CachedLink::new(domain, LinkId(0), Lead::Unknown, now));
    let (Some(key), true, Some(domain)) =
        (Key::new(host.number, code.as_bytes()), super::code::is_valid(code), app.domain(&host.domain))
    else {
        return Ok(nowhere(DomainId(0)));
    };
    count(&app.links().figures.misses);
    let changes = app.links().cache.changes(&key);
    let found = app.ask(links::Link { domain: domain.id, code: code.into() }).await?;
    let entry = match found {
        Some(link) => Arc::new(CachedLink::new(domain.id, link.id, lead(&link), now)),
        None => nowhere(domain.id),
    };
    app.links().cache.keep(&key, changes, entry.clone());
    Ok(entry)
}

/// Where a link leads.
fn lead(link: &Link) -> Lead {
    if link.removed.is_some() {
        return Lead::Removed;
    }
    // Its URL is ASCII without control characters.
    let Ok(location) = HeaderValue::from_str(&link.url) else { return Lead::Removed };
    let status =
        if link.may_change { StatusCode::TEMPORARY_REDIRECT } else { StatusCode::PERMANENT_REDIRECT };
    Lead::To { location, status, expires: link.expires, created: link.created }
}

fn answer(
    app: &App,
    entry: &Arc<CachedLink>,
    followed: Followed<'_>,
    method: &Method,
    headers: &HeaderMap,
    now: UnixMs,
) -> Response {
    let figures = &app.links().figures;
    match &entry.lead {
        Lead::To { location, status, expires, .. } if expires.is_none_or(|at| at > now) => {
            count(&figures.followed);
            if *method == Method::GET {
                app.links().clicks.note(figures, entry, followed.token, now, || agent::class(headers));
            }
            leads_to(location, *status, *expires, now)
        }
        Lead::To { .. } | Lead::Removed => {
            count(&figures.gone);
            page::gone()
        }
        Lead::Unknown => {
            count(&figures.unknown);
            page::unknown()
        }
    }
}

fn leads_to(location: &HeaderValue, status: StatusCode, expires: Option<UnixMs>, now: UnixMs) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, location.clone());
    headers.insert(header::CACHE_CONTROL, kept(status, expires, now));
    headers.insert(header::REFERRER_POLICY, NO_REFERRER);
    headers.insert(ROBOTS, NO_INDEX);
    response
}

/// How long a browser may follow the link without asking: for a day, or as long as it has. A proxy may not keep it: it would hide clicks, and
/// lead on to what was taken down those who come for the first time.
fn kept(status: StatusCode, expires: Option<UnixMs>, now: UnixMs) -> HeaderValue {
    if status == StatusCode::TEMPORARY_REDIRECT {
        return HeaderValue::from_static("no-store");
    }
    let Some(expires) = expires else { return HeaderValue::from_static("private, max-age=86400") };
    let seconds = (expires.0.saturating_sub(now.0) / 1000).min(86_400);
    HeaderValue::from_str(&format!("private, max-age={seconds}")).expect("a number is ASCII")
}
