//! Parts of the path.

use crate::problem::{Code, Problem};
use axum::extract::FromRequestParts;
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
                Problem::new(Code::InvalidParameter, error.body_text())
            }
            other => Problem::new(Code::Internal, other.body_text()),
        })
    }
}
