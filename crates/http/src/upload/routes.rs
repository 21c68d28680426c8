//! The routes of the host of files.

use super::{delete, get, headers, put};
use crate::app::App;
use crate::problem::{Code, Problem};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing;

/// What the host of files serves.
pub(crate) fn routes() -> Router<App> {
    let file = routing::get(get::get).put(put::put).delete(delete::delete).options(headers::preflight);
    Router::new()
        // A slot says how large a body is.
        .route("/{token}/{name}", file.layer(DefaultBodyLimit::disable()))
        .fallback(nothing)
        .method_not_allowed_fallback(wrong_method)
        .layer(axum::middleware::map_response(headers::open_to_all))
}

async fn nothing() -> Problem {
    Problem::new(Code::UnknownUpload, "files are found at the URL of their slot")
}

async fn wrong_method() -> Problem {
    Problem::new(Code::WrongMethod, "files are put and got at the URL of their slot")
}
