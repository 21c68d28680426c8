//! Error answers of the orchestrator (RFC 9457).

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// An error answer.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    title: &'static str,
    detail: String,
}

impl Problem {
    /// The request is invalid.
    pub(super) fn request(detail: impl Into<String>) -> Self {
        Self {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            title: "The request is invalid",
            detail: detail.into(),
        }
    }

    /// The body is not JSON.
    pub(super) fn not_json(error: &serde_json::Error) -> Self {
        Self { status: StatusCode::BAD_REQUEST, title: "The body cannot be read", detail: error.to_string() }
    }

    /// The resource does not exist.
    pub(super) fn missing(detail: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, title: "Not found", detail: detail.into() }
    }

    /// The queue or the number of workers is at its limit.
    pub(super) fn full(detail: impl Into<String>) -> Self {
        Self { status: StatusCode::TOO_MANY_REQUESTS, title: "Too many", detail: detail.into() }
    }

    /// The key is missing or wrong.
    pub(super) fn key() -> Self {
        let detail = "Send the orchestrator's key as Authorization: Bearer KEY.".to_owned();
        Self { status: StatusCode::UNAUTHORIZED, title: "The key is missing or invalid", detail }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({
            "type": "about:blank",
            "title": self.title,
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        (self.status, [(header::CONTENT_TYPE, "application/problem+json")], body.to_string()).into_response()
    }
}
