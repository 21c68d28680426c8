//! What the orchestrator answers when it cannot do what is asked: RFC 9457.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// A refusal.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    title: &'static str,
    detail: String,
}

impl Problem {
    /// The request cannot be read or makes no sense.
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

    /// Nothing is there.
    pub(super) fn missing(detail: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, title: "Not found", detail: detail.into() }
    }

    /// There is too much to do already.
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
