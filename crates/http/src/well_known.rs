//! Where to connect, for clients that know only a domain (XEP-0156).

use crate::app::App;
use crate::schema;
use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;

/// Links of a host, as RFC 6415 §3 writes them in JSON.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct HostMeta {
    /// The links.
    links: Vec<Link>,
}

/// A link.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct Link {
    /// What is there.
    rel: &'static str,
    /// Where.
    href: String,
}

/// Find the WebSocket endpoint
///
/// As XRD (XEP-0156).
#[utoipa::path(
    get, path = "/.well-known/host-meta", operation_id = "getHostMeta", tag = "operation",
    responses((status = 200, description = "XRD", body = String, content_type = "application/xrd+xml"), schema::Problems)
)]
pub(crate) async fn xrd(State(app): State<App>) -> impl IntoResponse {
    let links: String = links(&app)
        .iter()
        .map(|link| format!("  <Link rel='{}' href='{}'/>\n", link.rel, escape(&link.href)))
        .collect();
    let xrd = format!(
        "<?xml version='1.0' encoding='utf-8'?>\n<XRD xmlns='http://docs.oasis-open.org/ns/xri/xrd-1.0'>\n{links}</XRD>\n"
    );
    ([(header::CONTENT_TYPE, "application/xrd+xml"), ANY_ORIGIN], xrd)
}

/// Find the WebSocket endpoint
///
/// As JSON (XEP-0156).
#[utoipa::path(
    get, path = "/.well-known/host-meta.json", operation_id = "getHostMetaJson", tag = "operation",
    responses((status = 200, description = "Links", body = HostMeta), schema::Problems)
)]
pub(crate) async fn json(State(app): State<App>) -> impl IntoResponse {
    ([ANY_ORIGIN], Json(HostMeta { links: links(&app) }))
}

fn links(app: &App) -> Vec<Link> {
    let url = app.options.endpoints.websocket_url.clone();
    url.map(|href| Link { rel: "urn:xmpp:alt-connections:websocket", href }).into_iter().collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('\'', "&apos;").replace('<', "&lt;")
}

/// Web clients look this up from pages of any origin (XEP-0156 §3).
const ANY_ORIGIN: (header::HeaderName, &str) = (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
