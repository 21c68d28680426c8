//! The orchestrator's API for workers: JSON over HTTP.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::measure::{agent, why};

/// Longer than a request for orders is held open.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The largest answer that is read.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// An orchestrator's API.
#[derive(Clone, Debug)]
pub(super) struct Api {
    agent: ureq::Agent,
    base: String,
    authorization: Option<String>,
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApiError {
    /// There was no answer.
    #[error("{0}")]
    Unreachable(String),
    /// The orchestrator does not know this worker.
    #[error("it does not know this worker")]
    Unknown,
    /// It refuses the request, and says why.
    #[error("{0}")]
    Refused(String),
}

impl Api {
    pub(super) fn new(base: &str, key: Option<&str>) -> Self {
        Self {
            agent: agent(TIMEOUT),
            base: base.trim_end_matches('/').to_owned(),
            authorization: key.map(|key| format!("Bearer {key}")),
        }
    }

    /// Gets the value at a path.
    pub(super) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiError> {
        let mut request = self.agent.get(format!("{}{path}", self.base));
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        answer(request.call())
    }

    /// Posts a value as JSON.
    pub(super) fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, ApiError> {
        let mut request = self.agent.post(format!("{}{path}", self.base));
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        answer(request.send_json(body))
    }
}

fn answer<T: DeserializeOwned>(
    response: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
) -> Result<T, ApiError> {
    let unreachable = |error: ureq::Error| ApiError::Unreachable(why(&error));
    let mut response = response.map_err(unreachable)?;
    let status = response.status();
    let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX);
    let text = body.read_to_string().map_err(unreachable)?;
    match status.as_u16() {
        200..300 => {
            let text = if text.is_empty() { "null" } else { &text };
            serde_json::from_str(text).map_err(|error| ApiError::Refused(format!("its answer: {error}")))
        }
        404 => Err(ApiError::Unknown),
        _ => Err(ApiError::Refused(detail(&text).unwrap_or_else(|| status.to_string()))),
    }
}

/// The detail of a problem (RFC 9457).
fn detail(text: &str) -> Option<String> {
    let problem: serde_json::Value = serde_json::from_str(text).ok()?;
    Some(problem.get("detail")?.as_str()?.to_owned())
}
