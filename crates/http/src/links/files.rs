//! The files that telephones fetch from a host of links: answered from memory, never by a redirect, with an `ETag`.

use super::hosts::At;
use crate::app::App;
use crate::problem::{Code, Problem};
use crate::values::schema;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use carillon_core::model::{DomainId, LinkFile};
use carillon_core::ports::store::links::ReadLinkFile;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Files that were asked for lately: two for each domain that has hosts, at most.
#[derive(Default)]
pub(super) struct Files(Mutex<HashMap<(DomainId, LinkFile), CachedFile>>);

#[derive(Clone)]
struct CachedFile {
    /// The file and its tag; none where the domain has none.
    file: Option<(Bytes, HeaderValue)>,
    until: Instant,
}

/// How long a file is believed that another node may have changed.
const KEPT: Duration = Duration::from_secs(5);

impl Files {
    /// Forgets a file that was changed.
    pub(super) fn forget(&self, domain: DomainId, file: LinkFile) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&(domain, file));
    }

    async fn find(&self, app: &App, domain: DomainId, file: LinkFile) -> Result<CachedFile, Problem> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known().get(&(domain, file)).filter(|known| known.until > Instant::now()) {
            return Ok(known.clone());
        }
        let body = app.ask(ReadLinkFile { domain, file }).await?;
        let found =
            CachedFile { file: body.map(|body| (body.clone(), tag(&body))), until: Instant::now() + KEPT };
        known().insert((domain, file), found.clone());
        Ok(found)
    }
}

/// Fetch the file by which iOS knows the apps of this host
///
/// The same is at `/apple-app-site-association`.
#[utoipa::path(
    get, path = "/.well-known/apple-app-site-association", operation_id = "fetchAppleAppSiteAssociation",
    responses(
        (status = 200, description = "The file", body = serde_json::Value),
        (status = 304, description = "It is as `If-None-Match` says"),
        schema::Problems
    )
)]
pub(super) async fn apple(
    State(app): State<App>,
    Extension(at): Extension<At>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    serve(&app, &at, LinkFile::Apple, &headers).await
}

/// Fetch the file by which Android knows the apps of this host
#[utoipa::path(
    get, path = "/.well-known/assetlinks.json", operation_id = "fetchAssetLinks",
    responses(
        (status = 200, description = "The file", body = serde_json::Value),
        (status = 304, description = "It is as `If-None-Match` says"),
        schema::Problems
    )
)]
pub(super) async fn android(
    State(app): State<App>,
    Extension(at): Extension<At>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    serve(&app, &at, LinkFile::Android, &headers).await
}

async fn serve(app: &App, at: &At, file: LinkFile, headers: &HeaderMap) -> Result<Response, Problem> {
    let missing = || Problem::new(Code::UnknownLinkFile, format!("the domain has no `{}`", file.name()));
    let domain = app.domain(&at.host.domain).ok_or_else(missing)?;
    let CachedFile { file: found, .. } = app.links().files.find(app, domain.id, file).await?;
    let (body, tag) = found.ok_or_else(missing)?;
    let cached = (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    if is_seen(headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag), cached]).into_response());
    }
    let json = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(([json, (header::ETAG, tag), cached], body).into_response())
}

/// Whether one of the tags in `If-None-Match` is this one, `W/` or not, or `*` stands there (RFC 9110 §13.1.2). None of ours has a comma in it.
fn is_seen(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let fields = headers.get_all(header::IF_NONE_MATCH).iter();
    let mut tags =
        fields.flat_map(|field| field.as_bytes().split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    tags.any(|seen| seen == b"*" || seen.strip_prefix(b"W/").unwrap_or(seen) == tag.as_bytes())
}

fn tag(body: &[u8]) -> HeaderValue {
    let hash = Sha256::digest(body);
    let text = hash[..8].iter().fold(String::from("\""), |tag, byte| tag + &format!("{byte:02x}")) + "\"";
    HeaderValue::from_str(&text).expect("hexadecimal digits are ASCII")
}
