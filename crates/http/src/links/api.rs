//! Links in the API.

use super::create::{LinkBody, Made, Maker, checked_url, create, host};
use super::{Host, bounds, short_url};
use crate::app::App;
use crate::auth::{Granted, Links as LinksScope};
use crate::extract::{
    DomainQuery, Format, JsonBody, Line, LineStream, Named, Params, content_type, limit, parse,
};
use crate::problem::{Code, Problem};
use crate::values::schema;
use crate::values::time::{Time, now};
use axum::Json;
use axum::body::Body;
use axum::extract::{FromRequest, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use carillon_core::model::{Domain, KeyId, Link, LinkId, UnixMs};
use carillon_core::ports::store::links::{self, ChangeLink, ChangeLinkAnswer, Links, LinksAnswer};
use futures_util::stream::{self, StreamExt};
use serde::{Deserialize, Deserializer};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

/// A short link.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct LinkView {
    /// Its code.
    #[schema(example = "3kTMd9xQ")]
    code: String,
    /// The short URL.
    #[schema(example = "https://go.example.com/3kTMd9xQ")]
    short_url: String,
    /// Where it leads, in its normal form.
    url: String,
    /// Whether its URL may be changed.
    may_change: bool,
    /// When it was made.
    created_at: Time,
    /// When it stops, or stopped, leading anywhere; none where it never does.
    expires_at: Option<Time>,
    /// Since when it is taken down; none where it is not.
    removed_at: Option<Time>,
    /// The number of the API key that made it; none where somebody without a key did.
    key: Option<u32>,
    /// How often it was followed, some seconds ago at the latest.
    clicks: u64,
    /// When it was followed last.
    last_click_at: Option<Time>,
}

impl LinkView {
    fn of(host: &Host, link: &Link) -> LinkView {
        LinkView {
            code: link.code.to_string(),
            short_url: short_url(host, link),
            url: link.url.to_string(),
            may_change: link.may_change,
            created_at: Time(link.created),
            expires_at: link.expires.map(Time),
            removed_at: link.removed.map(Time),
            key: link.key.map(|key| key.0),
            clicks: link.clicks,
            last_click_at: link.last_click.map(Time),
        }
    }
}

/// What became of a line.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct LinkLine {
    /// The line's number, counted from 1.
    line: u64,
    /// The link.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    link: Option<LinkView>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Problem>)]
    error: Option<Problem>,
}

/// Make a short link
///
/// The same URL gives the same link: `201` when it is new, `200` when it is there already. As NDJSON, each line is such a body; for each
/// a line comes back, in the same order, and the stream may go on for ever.
#[utoipa::path(
    post, path = "/v1/links", operation_id = "createLink", tag = "links", params(DomainQuery),
    request_body(content((LinkBody = "application/json"), (LinkBody = "application/x-ndjson"))),
    responses(
        (status = 201, description = "The new link", body = LinkView),
        (status = 200, description = "The link that is there already; for NDJSON, a result for each line", content((LinkView = "application/json"), (LinkLine = "application/x-ndjson"))),
        schema::Problems
    )
)]
pub(crate) async fn make(
    key: Granted<LinksScope>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    request: Request,
) -> Result<Response, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    host(&app, &domain)?;
    if content_type(request.headers(), &[Format::Ndjson]).is_ok() {
        return Ok(make_many(app, domain, key.key.id, request.into_body()));
    }
    let JsonBody { value: body, .. } = JsonBody::<LinkBody>::from_request(request, &app).await?;
    let Made { link, is_new } = create(&app, &domain, &body, Maker::Key(key.key.id)).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(LinkView::of(host(&app, &domain)?, &link))).into_response())
}

/// Lines whose links are made at once.
const LINES_AT_ONCE: usize = 256;

fn make_many(app: App, domain: Arc<Domain>, key: KeyId, body: Body) -> Response {
    let settings = &app.options.settings;
    let timeout = Duration::from_millis(settings.read_timeout_ms);
    let lines = LineStream::new(body, settings.batch_line_bytes_max, timeout);
    let lines = stream::unfold(lines, |mut lines| async move { Some((lines.next().await?, lines)) });
    let results =
        lines.map(move |line| make_line(app.clone(), domain.clone(), key, line)).buffered(LINES_AT_ONCE);
    let body = Body::from_stream(results.map(Ok::<Bytes, Infallible>));
    ([(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response()
}

async fn make_line(app: App, domain: Arc<Domain>, key: KeyId, Line { number, text }: Line) -> Bytes {
    let made = async {
        let body: LinkBody = parse(&text?)?;
        let made = create(&app, &domain, &body, Maker::Key(key)).await?;
        Ok(LinkView::of(host(&app, &domain)?, &made.link))
    };
    let (link, error) = match made.await {
        Ok(link) => (Some(link), None),
        Err(problem) => (None, Some(problem)),
    };
    let line = LinkLine { line: number, link, error };
    let mut bytes = serde_json::to_vec(&line).expect("texts, times and numbers");
    bytes.push(b'\n');
    bytes.into()
}

/// Which links to list.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LinksQuery {
    /// The domain to act in, for a key of the whole node; by default the node's first.
    domain: Option<String>,
    /// Only links whose code or URL contains this.
    search: Option<String>,
    /// Only links after this one in the list: the `next` of the page before.
    after: Option<u64>,
    /// How many, 1 to 1000.
    limit: Option<u16>,
}

/// Links of a domain.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct LinkList {
    /// Newest first.
    links: Vec<LinkView>,
    /// The value of `after` for the next page; none when there are no more.
    next: Option<String>,
}

/// List short links
///
/// Newest first. A search may end before the end: then `next` says where to go on, even with fewer links than `limit`.
#[utoipa::path(
    get, path = "/v1/links", operation_id = "listLinks", tag = "links", params(LinksQuery),
    responses((status = 200, description = "The links", body = LinkList), schema::Problems)
)]
pub(crate) async fn list(
    key: Granted<LinksScope>,
    State(app): State<App>,
    Params(query): Params<LinksQuery>,
) -> Result<Json<LinkList>, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    let host = host(&app, &domain)?;
    let asked = Links {
        domain: domain.id,
        search: query.search.unwrap_or_default().into(),
        before: LinkId(query.after.unwrap_or(u64::MAX >> 1)),
        limit: limit(query.limit)?,
    };
    let LinksAnswer { links, next } = app.ask(asked).await?;
    Ok(Json(LinkList {
        links: links.iter().map(|link| LinkView::of(host, link)).collect(),
        next: next.map(|link| link.0.to_string()),
    }))
}

/// Read a short link
#[utoipa::path(
    get, path = "/v1/links/{code}", operation_id = "getLink", tag = "links",
    params(DomainQuery, ("code" = String, Path, description = "The link's code")),
    responses((status = 200, description = "The link", body = LinkView), schema::Problems)
)]
pub(crate) async fn get(
    key: Granted<LinksScope>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(code): Named<String>,
) -> Result<Json<LinkView>, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    let link = find(&app, &domain, &code).await?;
    Ok(Json(LinkView::of(host(&app, &domain)?, &link)))
}

/// What is to be changed of a link.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkChange {
    /// Where it is to lead, for a link with `may_change`.
    #[serde(default)]
    url: Option<String>,
    /// When it stops leading anywhere; `null` for never.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Time>)]
    expires_at: Option<Option<Time>>,
    /// Whether it is taken down.
    #[serde(default)]
    removed: Option<bool>,
}

/// A member that is there, `null` among its values.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Time>>, D::Error> {
    Option::<Time>::deserialize(deserializer).map(Some)
}

/// Change a short link
///
/// At once on this node, within a minute on others. Browsers that followed a link without `may_change` may remember it for a day.
#[utoipa::path(
    patch, path = "/v1/links/{code}", operation_id = "updateLink", tag = "links",
    request_body(content = LinkChange, content_type = "application/merge-patch+json"),
    params(DomainQuery, ("code" = String, Path, description = "The link's code")),
    responses((status = 200, description = "The link as it is now", body = LinkView), schema::Problems)
)]
pub(crate) async fn update(
    key: Granted<LinksScope>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(code): Named<String>,
    JsonBody { value: change, .. }: JsonBody<LinkChange>,
) -> Result<Json<LinkView>, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    let known = find(&app, &domain, &code).await?;
    let url = change.url.map(|url| checked_url(&app, &url, Maker::Key(key.key.id))).transpose()?;
    if url.as_deref().is_some_and(|url| *url != *known.url) && !known.may_change {
        let detail = "the link was made without `may_change`: browsers may remember where it leads";
        return Err(Problem::new(Code::InvalidValue, detail).at("/url"));
    }
    let ask = ChangeLink {
        domain: domain.id,
        code: code.into(),
        url: url.map(Into::into),
        expires: change.expires_at.map(|at| at.map(|Time(at)| at)),
        removed: change.removed.map(|removed| removed.then(now)),
        bounds: bounds(&app),
    };
    let link = changed(&app, &domain, ask).await?;
    Ok(Json(LinkView::of(host(&app, &domain)?, &link)))
}

/// Take a short link down
///
/// From now on it is answered with `410 Gone`: at once by this node, within a minute by others. Its URL is not shortened again until it is
/// brought back: `PATCH` with `"removed": false`.
#[utoipa::path(
    delete, path = "/v1/links/{code}", operation_id = "deleteLink", tag = "links",
    params(DomainQuery, ("code" = String, Path, description = "The link's code")),
    responses((status = 204, description = "It is taken down"), schema::Problems)
)]
pub(crate) async fn delete(
    key: Granted<LinksScope>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(code): Named<String>,
) -> Result<StatusCode, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    let removed: Option<Option<UnixMs>> = Some(Some(now()));
    let ask = ChangeLink {
        domain: domain.id,
        code: code.into(),
        url: None,
        expires: None,
        removed,
        bounds: bounds(&app),
    };
    changed(&app, &domain, ask).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn find(app: &App, domain: &Domain, code: &str) -> Result<Link, Problem> {
    let found = app.ask(links::Link { domain: domain.id, code: code.into() }).await?;
    found.map(|link| *link).ok_or_else(|| unknown(domain, code))
}

async fn changed(app: &App, domain: &Domain, ask: ChangeLink) -> Result<Link, Problem> {
    let code = ask.code.clone();
    let answer = app.ask(ask).await;
    // Also when it is not known whether it was done.
    app.links().forget(&domain.name, &code);
    match answer? {
        ChangeLinkAnswer::Link(link) => Ok(*link),
        ChangeLinkAnswer::Missing => Err(unknown(domain, &code)),
        ChangeLinkAnswer::Full => {
            let detail = "the links of the domain take up as much as `links.bytes_per_domain_max` allows";
            Err(Problem::new(Code::TooManyLinks, detail))
        }
    }
}

fn unknown(domain: &Domain, code: &str) -> Problem {
    Problem::new(Code::UnknownLink, format!("the domain `{}` has no link `{code}`", domain.name))
}
