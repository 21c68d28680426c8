//! Errors as clients see them: RFC 9457 `application/problem+json`.

mod codes;
mod fault;

pub use codes::Code;

use crate::request_id;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::fmt;
use std::sync::Arc;

/// An error on its way to a client.
#[derive(Clone, PartialEq, Eq)]
pub struct Problem(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    code: Code,
    detail: String,
    pointer: Option<String>,
    state: Option<&'static str>,
    reason: Option<&'static str>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    /// A problem of `code`; `detail` says what is wrong with this very request.
    pub fn new(code: Code, detail: impl Into<String>) -> Problem {
        Problem(Box::new(Inner {
            code,
            detail: detail.into(),
            pointer: None,
            state: None,
            reason: None,
            headers: Vec::new(),
        }))
    }

    /// The same, about the member of the body at this JSON pointer (RFC 6901).
    pub fn at(mut self, pointer: impl Into<String>) -> Problem {
        self.0.pointer = Some(pointer.into());
        self
    }

    /// The same, with how far the notification has come.
    pub(crate) fn with_state(mut self, state: &'static str) -> Problem {
        self.0.state = Some(state);
        self
    }

    /// The same, with why a message was refused.
    pub(crate) fn because(mut self, reason: &'static str) -> Problem {
        self.0.reason = Some(reason);
        self
    }

    /// The same, with a response header.
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Problem {
        self.0.headers.push((name, value));
        self
    }

    /// The same, with `Retry-After` in seconds.
    pub(crate) fn retry_after(self, seconds: u32) -> Problem {
        self.with_header(header::RETRY_AFTER, HeaderValue::from(seconds))
    }

    /// The same, for who publishes too fast to a topic: nothing more is taken for so many seconds. Also as the header `RateLimit`
    /// (draft-ietf-httpapi-ratelimit-headers), which clients know.
    pub(crate) fn too_fast(self, seconds: u32) -> Problem {
        let value = format!("\"topic\";r=0;t={seconds}");
        let value = HeaderValue::from_str(&value).expect("a word and numbers are ASCII");
        self.retry_after(seconds).with_header(HeaderName::from_static("ratelimit"), value)
    }

    /// The code, which keeps its meaning.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// What is wrong with this very request.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The member of the body it is about.
    pub fn pointer(&self) -> Option<&str> {
        self.0.pointer.as_deref()
    }

    /// The headers of its response.
    pub(crate) fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.0.headers
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.0.code.status()
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let code = self.0.code;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", &format_args!("urn:carillon:problem:{}", code.as_str()))?;
        map.serialize_entry("code", code.as_str())?;
        map.serialize_entry("title", code.title())?;
        map.serialize_entry("status", &code.status().as_u16())?;
        map.serialize_entry("detail", &self.0.detail)?;
        if let Some(pointer) = &self.0.pointer {
            map.serialize_entry("pointer", pointer)?;
        }
        if let Some(state) = self.0.state {
            map.serialize_entry("state", state)?;
        }
        if let Some(reason) = self.0.reason {
            map.serialize_entry("reason", reason)?;
        }
        map.end()
    }
}

/// A problem as the answer to a request.
#[derive(serde::Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    problem: &'a Problem,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "text")]
    request_id: Option<Arc<str>>,
}

fn text<S: Serializer>(id: &Option<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
    id.as_deref().serialize(serializer)
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let answer = Answer { problem: &self, request_id: request_id::current() };
        let body = serde_json::to_vec(&answer).expect("a problem is strings and a number");
        let mut response =
            (self.status(), [(header::CONTENT_TYPE, "application/problem+json")], body).into_response();
        response.extensions_mut().insert(self.0.code);
        response.headers_mut().extend(self.0.headers);
        response
    }
}

impl fmt::Debug for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code.as_str(), self.0.detail)?;
        self.0.pointer.as_ref().map_or(Ok(()), |pointer| write!(f, " (at {pointer:?})"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_problem_json() {
        let problem = Problem::new(Code::UnknownField, "no field `too`").at("/too");
        assert_eq!(
            serde_json::to_string(&problem).unwrap(),
            r#"{"type":"urn:carillon:problem:unknown-field","code":"unknown-field","title":"Unknown field","status":400,"detail":"no field `too`","pointer":"/too"}"#
        );
        let response = problem.into_response();
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/problem+json");
    }

    #[test]
    fn headers_travel_with_it() {
        let response = Problem::new(Code::InProgress, "wait").retry_after(60).into_response();
        assert_eq!(response.headers()[header::RETRY_AFTER], "60");
        let too_fast = Problem::new(Code::TooFast, "slow down").too_fast(2).into_response();
        assert_eq!(too_fast.headers()[header::RETRY_AFTER], "2");
        assert_eq!(too_fast.headers()["ratelimit"], "\"topic\";r=0;t=2");
    }
}
