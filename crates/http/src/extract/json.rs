//! JSON bodies.

use super::explain::explain;
use crate::app::App;
use crate::problem::{Code, Problem};
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use serde::de::DeserializeOwned;
use std::time::Duration;

/// A body that is JSON of a `T`, with the bytes it was read from.
pub(crate) struct JsonBody<T> {
    /// What it says.
    pub(crate) value: T,
    /// The bytes as they came.
    pub(crate) bytes: Bytes,
}

/// The same for a route whose body may be left out.
pub(crate) struct Optional<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<JsonBody<T>, Problem> {
        let is_json = is_json(request.headers());
        let bytes = read(request, app).await?;
        if !is_json {
            return Err(Problem::new(Code::WrongContentType, "send `Content-Type: application/json`"));
        }
        Ok(JsonBody { value: parse(&bytes)?, bytes })
    }
}

impl<T: DeserializeOwned + Default> FromRequest<App> for Optional<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Optional<T>, Problem> {
        let is_json = is_json(request.headers());
        let bytes = read(request, app).await?;
        match (bytes.is_empty(), is_json) {
            (true, _) => Ok(Optional(T::default())),
            (false, true) => parse(&bytes).map(Optional),
            (false, false) => {
                Err(Problem::new(Code::WrongContentType, "send `Content-Type: application/json`"))
            }
        }
    }
}

/// Reads a JSON text, which must be an object, as a `T`.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let value = serde_json::from_slice(bytes).map_err(|_| explain::<T>(bytes))?;
    // serde also fills a struct from an array, member by member.
    match bytes.iter().find(|c| !c.is_ascii_whitespace()) {
        Some(b'{') => Ok(value),
        _ => Err(Problem::new(Code::WrongType, "the body must be a JSON object").at("")),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(Ok(value)) = headers.get(header::CONTENT_TYPE).map(|v| v.to_str()) else { return false };
    let essence = value.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
        || essence.to_ascii_lowercase().strip_prefix("application/").is_some_and(|s| s.ends_with("+json"))
}

async fn read(request: Request, app: &App) -> Result<Bytes, Problem> {
    let max = app.options.body_bytes_max;
    let too_large = || Problem::new(Code::TooLarge, format!("a body may have at most {max} bytes"));
    let declared = request.headers().get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse().ok());
    if declared.is_some_and(|length: usize| length > max) {
        return Err(too_large());
    }
    let reading = axum::body::to_bytes(Body::new(request.into_body()), max);
    let limit = Duration::from_millis(app.options.read_timeout_ms);
    match tokio::time::timeout(limit, reading).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if error_is_length(&error) => Err(too_large()),
        Ok(Err(_)) => Err(Problem::new(Code::NotJson, "the body broke off")),
        Err(_) => Err(Problem::new(Code::SlowBody, "the body did not arrive in time")),
    }
}

fn error_is_length(error: &axum::Error) -> bool {
    // `to_bytes` gives either the transport's error or http-body-util's `LengthLimitError`, which says just this.
    std::error::Error::source(error).is_some_and(|source| source.to_string() == "length limit exceeded")
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn knows_json_by_its_type() {
        let with = |text: &'static str| {
            is_json(&HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(text))]))
        };
        assert!(with("application/json"));
        assert!(with("Application/JSON; charset=utf-8"));
        assert!(with("application/merge-patch+json"));
        assert!(!with("text/plain"));
        assert!(!with("application/x-www-form-urlencoded"));
        assert!(!is_json(&HeaderMap::new()));
    }

    #[test]
    fn an_array_is_no_record() {
        let read = |body: &str| parse::<carillon_core::model::Policy>(body.as_bytes()).map_err(|p| p.code());
        assert!(read(" {}").is_ok());
        assert_eq!(read("[]"), Err(Code::WrongType));
        assert_eq!(read("[\"multi\"]"), Err(Code::WrongType));
    }

    #[tokio::test]
    async fn tells_a_long_body_from_a_broken_one() {
        let error = axum::body::to_bytes(Body::from("four"), 3).await.unwrap_err();
        assert!(error_is_length(&error));
    }
}
