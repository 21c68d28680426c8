//! The routes of the hosts of links.

use super::cache::Lead;
use super::create::{LinkBody, Made, Maker, create};
use super::hosts::At;
use super::redirect::{self, Followed};
use super::{files, page, short_url};
use crate::app::App;
use crate::auth::{Granted, Links as LinksScope};
use crate::extract::parse;
use crate::problem::{Code, Problem};
use crate::values::schema;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Extension, FromRequestParts, Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use carillon_core::model::Domain;
use std::sync::Arc;
use std::time::Instant;

/// What the hosts of links serve.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/", get(index).post(make))
        .route("/robots.txt", get(robots))
        .route("/apple-app-site-association", get(files::apple))
        .route("/.well-known/apple-app-site-association", get(files::apple))
        .route("/.well-known/assetlinks.json", get(files::android))
        .route("/{code}", get(follow))
        .fallback(nothing)
        .method_not_allowed_fallback(wrong_method)
}

/// The page on which people shorten a URL
#[utoipa::path(
    get, path = "/", operation_id = "linkPage",
    responses((status = 200, description = "The page", body = String, content_type = "text/html"))
)]
pub(super) async fn index(State(app): State<App>) -> Response {
    page::index(app.options.settings.links.public, &page::Form::default(), StatusCode::OK)
}

/// What a link leads to is for search engines, and the link is not.
async fn robots() -> Response {
    ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], "User-agent: *\nDisallow: /\n").into_response()
}

async fn nothing() -> Response {
    page::unknown()
}

async fn wrong_method() -> Problem {
    Problem::new(Code::WrongMethod, "links are followed with GET, and made with POST at `/`")
}

/// Follow a link
///
/// Behind the code of a notification's link stand a dot and 22 characters for its recipient: who follows it has opened the notification.
#[utoipa::path(
    get, path = "/{code}", operation_id = "followLink",
    params(("code" = String, Path, description = "The link's code")),
    responses(
        (status = 308, description = "It leads to `Location`", headers(("location" = String))),
        (status = 307, description = "It leads there now; the link may change", headers(("location" = String))),
        (status = 404, description = "There is no such link", body = String, content_type = "text/html"),
        (status = 410, description = "It is taken down, or its time is over", body = String, content_type = "text/html"),
        schema::Problems
    )
)]
pub(super) async fn follow(
    State(app): State<App>,
    Extension(at): Extension<At>,
    Path(path): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let Some(code) = path.strip_suffix('+') {
        return preview(&app, &at, code).await;
    }
    redirect::ask(&app, &at.host, Followed::read(&path), &method, &headers).await
}

/// See where a link leads
///
/// Nobody goes there, and nothing is opened.
#[utoipa::path(
    get, path = "/{code}+", operation_id = "previewLink",
    params(("code" = String, Path, description = "The link's code")),
    responses(
        (status = 200, description = "Where it leads", body = String, content_type = "text/html"),
        (status = 404, description = "There is no such link", body = String, content_type = "text/html"),
        (status = 410, description = "It is taken down, or its time is over", body = String, content_type = "text/html"),
        schema::Problems
    )
)]
pub(super) async fn preview(app: &App, at: &At, path: &str) -> Result<Response, Problem> {
    let Followed { code, .. } = Followed::read(path);
    let now = crate::values::time::now();
    let entry = redirect::known(app, &at.host, code, now).await?;
    Ok(match &entry.lead {
        Lead::To { expires, .. } if expires.is_some_and(|at| at <= now) => page::gone(),
        Lead::To { location, created, .. } => {
            let url = location.to_str().unwrap_or_default();
            page::preview(&format!("{}/{code}", at.host.origin), url, *created)
        }
        Lead::Removed => page::gone(),
        Lead::Unknown => page::unknown(),
    })
}

/// What is answered to who makes a link here.
#[derive(serde::Serialize, utoipa::ToSchema)]
pub(super) struct MadeView {
    /// Its code.
    code: String,
    /// The short URL.
    short_url: String,
    /// Where it leads, in its normal form.
    url: String,
}

/// Make a link
///
/// Of a JSON body, answered in JSON, or of the page's form, answered with the page. It takes a key with scope `links`, or the setting `links.public`.
#[utoipa::path(
    post, path = "/", operation_id = "makeLink", security((), ("key" = [])),
    request_body(content((LinkBody = "application/json"), (page::Form = "application/x-www-form-urlencoded"))),
    responses(
        (status = 201, description = "The new link", content((MadeView = "application/json"), (String = "text/html"))),
        (status = 200, description = "The link that is there already", content((MadeView = "application/json"), (String = "text/html"))),
        schema::Problems
    )
)]
pub(super) async fn make(State(app): State<App>, Extension(at): Extension<At>, request: Request) -> Response {
    let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_form = content_type.is_some_and(|value| value.starts_with("application/x-www-form-urlencoded"));
    let is_json = content_type.is_some_and(|value| value.starts_with("application/json"));
    if request.uri().query().is_some() {
        return Problem::new(Code::UnknownParameter, "there are no parameters here").into_response();
    }
    if !is_form && !is_json {
        let detail = "send `Content-Type: application/json`, or the page's form";
        return Problem::new(Code::WrongContentType, detail).into_response();
    }
    if is_form {
        make_of_form(&app, &at, request).await
    } else {
        make_of_json(&app, &at, request).await.into_response()
    }
}

async fn make_of_json(app: &App, at: &At, request: Request) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let bytes = read(body).await?;
    let domain = domain(app, at)?;
    let maker = match parts.headers.contains_key(header::AUTHORIZATION) || !app.options.settings.links.public
    {
        true => {
            let key = Granted::<LinksScope>::from_request_parts(&mut parts, app).await?;
            Maker::Key(key.reach(app, &domain.name).map(|_| key.key.id)?)
        }
        false => public(app, at)?,
    };
    let body: LinkBody = parse(&bytes)?;
    let Made { link, is_new } = create(app, &domain, &allowed(body, maker)?, maker).await?;
    let short_url = short_url(&at.host, &link);
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let location = HeaderValue::from_str(&short_url).expect("hosts and codes are ASCII");
    let view = MadeView { code: link.code.into(), short_url, url: link.url.into() };
    Ok((status, [(header::LOCATION, location)], axum::Json(view)).into_response())
}

async fn make_of_form(app: &App, at: &At, request: Request) -> Response {
    let is_public = app.options.settings.links.public;
    let (mut parts, body) = request.into_parts();
    let mut form = match read(body).await.and_then(|bytes| page::Form::read(&bytes)) {
        Ok(form) => form,
        Err(problem) => return page::failed(is_public, &page::Form::default(), &problem),
    };
    let key = std::mem::take(&mut form.key);
    let made = async {
        let domain = domain(app, at)?;
        let maker = if key.is_empty() && is_public {
            public(app, at)?
        } else {
            let value = HeaderValue::from_str(&format!("Bearer {key}"))
                .map_err(|_| Problem::new(Code::UnknownKey, "that is not a key"))?;
            parts.headers.insert(header::AUTHORIZATION, value);
            let key = Granted::<LinksScope>::from_request_parts(&mut parts, app).await?;
            Maker::Key(key.reach(app, &domain.name).map(|_| key.key.id)?)
        };
        let code = Some(form.code.clone()).filter(|code| !code.is_empty());
        let body = LinkBody { url: form.url.clone(), code, ..LinkBody::default() };
        create(app, &domain, &allowed(body, maker)?, maker).await
    };
    match made.await {
        Ok(Made { link, is_new }) => page::made(&short_url(&at.host, &link), &link, is_new),
        Err(problem) => page::failed(is_public, &form, &problem),
    }
}

/// What somebody without a key may ask for: a URL, and nothing else.
fn allowed(body: LinkBody, maker: Maker) -> Result<LinkBody, Problem> {
    let asks_for_more = body.code.is_some() || body.expires_at.is_some() || body.may_change.is_some();
    if matches!(maker, Maker::Public) && asks_for_more {
        return Err(Problem::new(Code::MissingKey, "without a key only `url` can be chosen"));
    }
    Ok(body)
}

/// Lets somebody without a key make a link, if there were not too many from that address.
fn public(app: &App, at: &At) -> Result<Maker, Problem> {
    let per_minute = app.options.settings.links.public_per_minute;
    match app.links().senders.allow(at.client, per_minute, Instant::now()) {
        Ok(()) => Ok(Maker::Public),
        Err(seconds) => {
            let detail = format!("from one address {per_minute} links can be made per minute");
            Err(Problem::new(Code::TooManyRequests, detail).retry_after(seconds))
        }
    }
}

fn domain(app: &App, at: &At) -> Result<Arc<Domain>, Problem> {
    let name = &at.host.domain;
    app.domain(name)
        .ok_or_else(|| Problem::new(Code::UnknownDomain, format!("the node has no domain `{name}`")))
}

/// Larger than any body here has to be.
const BODY_BYTES_MAX: usize = 16 * 1024;

async fn read(body: axum::body::Body) -> Result<Bytes, Problem> {
    let reading = axum::body::to_bytes(body, BODY_BYTES_MAX);
    match tokio::time::timeout(std::time::Duration::from_secs(10), reading).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => {
            Err(Problem::new(Code::TooLarge, format!("a body may have at most {BODY_BYTES_MAX} bytes")))
        }
        Err(_) => Err(Problem::new(Code::SlowBody, "the body did not arrive in time")),
    }
}
