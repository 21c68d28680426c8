//! Where to connect, for clients that know only a domain (XEP-0156).

use crate::app::App;
use crate::values::schema;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use carillon_server::host_meta;

/// Links of a host, as RFC 6415 §3 writes them in JSON.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "it describes what `host_meta` writes")]
pub(crate) struct HostMeta {
    /// The links.
    links: Vec<Link>,
}

/// A link.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "it describes what `host_meta` writes")]
pub(crate) struct Link {
    /// The relation of the linked resource.
    rel: &'static str,
    /// Its URL.
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
    ([(header::CONTENT_TYPE, host_meta::XRD), ANY_ORIGIN], host_meta::xrd(url(&app)))
}

/// Find the WebSocket endpoint
///
/// As JSON (XEP-0156).
#[utoipa::path(
    get, path = "/.well-known/host-meta.json", operation_id = "getHostMetaJson", tag = "operation",
    responses((status = 200, description = "Links", body = HostMeta), schema::Problems)
)]
pub(crate) async fn json(State(app): State<App>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, host_meta::JSON), ANY_ORIGIN], host_meta::json(url(&app)))
}

fn url(app: &App) -> Option<&str> {
    app.options.endpoints.websocket_url.as_deref()
}

/// Web clients look this up from pages of any origin (XEP-0156 §3).
const ANY_ORIGIN: (header::HeaderName, &str) = (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
