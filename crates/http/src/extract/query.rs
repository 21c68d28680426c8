//! Query parameters.

use super::words::plain;
use crate::problem::{Code, Problem};
use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

/// The query's parameters; one that `T` does not know is refused.
pub(crate) struct Params<T>(pub(crate) T);

/// The query of a route that knows only the domain.
#[derive(Debug, Default, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DomainQuery {
    /// The domain to act in, for a key of the whole node; by default the node's first.
    pub(crate) domain: Option<String>,
}

/// Selects a page.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// The domain to act in, for a key of the whole node; by default the node's first.
    pub(crate) domain: Option<String>,
    /// Only what comes after this: `next` of the page before.
    pub(crate) after: Option<String>,
    /// Number of entries in a page, at most.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    pub(crate) limit: Option<u16>,
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Params<T>, Problem> {
        Query::<T>::try_from_uri(&parts.uri).map(|Query(value)| Params(value)).map_err(|rejection| {
            let text = rejection.body_text();
            let detail = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
            let unknown = detail.contains("unknown field");
            let code = if unknown { Code::UnknownParameter } else { Code::InvalidParameter };
            // The parameter's name comes first, where the fault is in its value.
            let detail = match detail.split_once(": ") {
                Some(("limit", _)) => out_of_page(),
                Some((name, fault)) if !detail.starts_with("invalid ") => {
                    format!("`{name}`: {}", plain(fault))
                }
                _ => plain(detail),
            };
            Problem::new(code, detail)
        })
    }
}

/// How many a page holds: 100 when not said, never over 1000.
pub(crate) fn limit(asked: Option<u16>) -> Result<u16, Problem> {
    match asked.unwrap_or(PAGE) {
        n @ 1..=PAGE_MAX => Ok(n),
        _ => Err(Problem::new(Code::InvalidParameter, out_of_page())),
    }
}

/// Cuts what is over the page; whether there was something.
pub(crate) fn cut<T>(rows: &mut Vec<T>, limit: u16) -> bool {
    let more = rows.len() > usize::from(limit);
    rows.truncate(usize::from(limit));
    more
}

/// What to say of a `limit` that is none, whatever is wrong with it.
fn out_of_page() -> String {
    format!("`limit` is an integer from 1 to {PAGE_MAX}")
}

const PAGE: u16 = 100;
const PAGE_MAX: u16 = 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    async fn read(uri: &str) -> Result<Option<String>, Code> {
        let (mut parts, ()) = Request::get(uri).body(()).unwrap().into_parts();
        let params = Params::<DomainQuery>::from_request_parts(&mut parts, &()).await;
        params.map(|Params(q)| q.domain).map_err(|p| p.code())
    }

    #[tokio::test]
    async fn unknown_parameters_are_refused() {
        assert_eq!(read("/x").await, Ok(None));
        assert_eq!(read("/x?domain=a.example").await, Ok(Some("a.example".into())));
        assert_eq!(read("/x?dom=a").await, Err(Code::UnknownParameter));
        assert_eq!(read("/x?domain=a&domain=b").await, Err(Code::InvalidParameter));
    }

    #[test]
    fn pages_are_bounded() {
        assert_eq!(limit(None).ok(), Some(100));
        assert_eq!(limit(Some(1000)).ok(), Some(1000));
        assert!(limit(Some(0)).is_err() && limit(Some(1001)).is_err());
    }
}
