//! What the hosts of links serve, as an OpenAPI document of its own: their paths are not those of the API.

use super::{files, routes};
use crate::values::schema;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use std::sync::LazyLock;
use utoipa::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Carillon: hosts of short links",
        description = "What each host in the setting `links.hosts` serves, and nothing else. Links are managed by the API (`/v1/links`).",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    paths(routes::index, routes::make, routes::follow, routes::preview, files::apple, files::android)
)]
struct Document;

static DOCUMENT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut document = Document::openapi();
    let components = document.components.get_or_insert_default();
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme("key", SecurityScheme::Http(scheme));
    components.schemas.insert("Problem".to_owned(), schema::problem());
    serde_json::to_vec(&document).expect("the document is plain data")
});

/// `GET /openapi.json`
pub(super) async fn serve() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], &DOCUMENT[..]).into_response()
}
