//! The files of apps in the API.

use super::file_rules::check;
use crate::app::App;
use crate::auth::{Admin, Granted};
use crate::extract::{DomainQuery, Named, Params};
use crate::problem::{Code, Problem};
use crate::values::schema;
use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use carillon_core::model::{Domain, LinkFile};
use carillon_core::ports::Missing;
use carillon_core::ports::store::links::{PutLinkFile, ReadLinkFile};
use std::time::Duration;

/// Read the file of an app
#[utoipa::path(
    get, path = "/v1/link-files/{file}", operation_id = "getLinkFile", tag = "links",
    params(DomainQuery, ("file" = String, Path, description = "`apple-app-site-association` or `assetlinks.json`")),
    responses((status = 200, description = "The file as the hosts of the domain serve it", body = serde_json::Value), schema::Problems)
)]
pub(crate) async fn get(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(name): Named<String>,
) -> Result<Response, Problem> {
    let (domain, file) = (key.domain(&app, query.domain.as_deref())?, named(&name)?);
    let body = app.ask(ReadLinkFile { domain: domain.id, file }).await?;
    let body = body.ok_or_else(|| unknown(&domain, file))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// Set the file of an app
///
/// From now on all hosts of the domain serve it, under its name and under `/.well-known/`. It is checked as Apple and Google read it, and
/// has at most 128 KiB.
#[utoipa::path(
    put, path = "/v1/link-files/{file}", operation_id = "putLinkFile", tag = "links",
    params(DomainQuery, ("file" = String, Path, description = "`apple-app-site-association` or `assetlinks.json`")),
    request_body(content = serde_json::Value, content_type = "application/json"),
    responses((status = 204, description = "It is served"), schema::Problems)
)]
pub(crate) async fn put(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(name): Named<String>,
    body: Body,
) -> Result<StatusCode, Problem> {
    let (domain, file) = (key.domain(&app, query.domain.as_deref())?, named(&name)?);
    let reading = axum::body::to_bytes(body, LinkFile::BYTES_MAX);
    let limit = Duration::from_millis(app.options.settings.read_timeout_ms);
    let body = tokio::time::timeout(limit, reading)
        .await
        .map_err(|_| Problem::new(Code::SlowBody, "the body did not arrive in time"))?
        .map_err(|_| {
            Problem::new(Code::TooLarge, format!("the file may have at most {} bytes", LinkFile::BYTES_MAX))
        })?;
    check(file, &body)
        .map_err(|why| Problem::new(Code::InvalidValue, format!("`{}`: {why}", file.name())))?;
    store(&app, &domain, file, Some(body)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Remove the file of an app
#[utoipa::path(
    delete, path = "/v1/link-files/{file}", operation_id = "deleteLinkFile", tag = "links",
    params(DomainQuery, ("file" = String, Path, description = "`apple-app-site-association` or `assetlinks.json`")),
    responses((status = 204, description = "It is not served any more"), schema::Problems)
)]
pub(crate) async fn delete(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(name): Named<String>,
) -> Result<StatusCode, Problem> {
    let (domain, file) = (key.domain(&app, query.domain.as_deref())?, named(&name)?);
    if app.ask(ReadLinkFile { domain: domain.id, file }).await?.is_none() {
        return Err(unknown(&domain, file));
    }
    store(&app, &domain, file, None).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn store(app: &App, domain: &Domain, file: LinkFile, body: Option<Bytes>) -> Result<(), Problem> {
    let answer = app.ask(PutLinkFile { domain: domain.id, file, body }).await;
    app.links().files.forget(domain.id, file);
    answer?.map_err(|Missing| Problem::new(Code::UnknownDomain, "the domain has just been deleted"))
}

fn named(name: &str) -> Result<LinkFile, Problem> {
    LinkFile::named(name).ok_or_else(|| {
        let names = LinkFile::ALL.map(|file| format!("`{}`", file.name())).join(" and ");
        Problem::new(Code::UnknownLinkFile, format!("there are {names}"))
    })
}

fn unknown(domain: &Domain, file: LinkFile) -> Problem {
    Problem::new(Code::UnknownLinkFile, format!("the domain `{}` has no `{}`", domain.name, file.name()))
}
