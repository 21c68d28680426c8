//! Parts of the path.

use crate::problem::{Code, Problem};
use axum::extract::FromRequestParts;
use axum::extract::path::ErrorKind;
use axum::extract::rejection::PathRejection;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

/// The named parts of the path, percent-decoded.
pub(crate) struct Named<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Named<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Named<T>, Problem> {
        let path = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        path.map(|axum::extract::Path(value)| Named(value)).map_err(|rejection| match rejection {
            PathRejection::FailedToDeserializePathParams(error) => {
                let detail = match error.into_kind() {
                    ErrorKind::ParseErrorAtKey { value, expected_type, .. }
                    | ErrorKind::ParseErrorAtIndex { value, expected_type, .. }
                    | ErrorKind::ParseError { value, expected_type } => {
                        let most = if expected_type == "u64" { u64::MAX } else { u32::MAX.into() };
                        format!("`{value}` in the path is not an integer from 0 to {most}")
                    }
                    ErrorKind::InvalidUtf8InPathParam { .. } => {
                        "a part of the path is not UTF-8 once it is percent-decoded".to_owned()
                    }
                    other => other.to_string(),
                };
                Problem::new(Code::InvalidParameter, detail)
            }
            other => Problem::new(Code::Internal, other.body_text()),
        })
    }
}
