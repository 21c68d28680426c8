//! The HTTP client for a running node.

use super::failure::Failure;
use crate::web::segment;
use serde::Serialize;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::time::Duration;
use ureq::http::{Request, Response, StatusCode, header};
use ureq::{AsSendBody, Body};

/// A node, and the key it is spoken to with.
pub(super) struct Client {
    agent: ureq::Agent,
    base: String,
    authorization: String,
}

/// How long the node may take to take the connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a request may take as a whole: an import hashes many passwords.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(300);
/// The most rows the API gives in a page.
const PAGE_ROWS: usize = 1000;
/// The largest answer that is read.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

impl Client {
    /// The client for the node at `base`, a URL without a slash at its end.
    pub(super) fn new(base: &str, key: &str) -> Client {
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // A proxy in the environment is for the world outside, not for a node.
            .proxy(None)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(REQUEST_TIMEOUT))
            .user_agent(concat!("carillon/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        Client { agent, base: base.to_owned(), authorization: format!("Bearer {key}") }
    }

    /// What is at `path`.
    pub(super) fn get(&self, path: &str) -> Result<Value, Failure> {
        json(&self.call("GET", path, None, ())?)
    }

    /// Removes what is at `path`.
    pub(super) fn delete(&self, path: &str) -> Result<Value, Failure> {
        json(&self.call("DELETE", path, None, ())?)
    }

    /// Puts `body` at `path`.
    pub(super) fn put(&self, path: &str, body: &impl Serialize) -> Result<Value, Failure> {
        json(&self.call("PUT", path, Some("application/json"), written(body))?)
    }

    /// Puts `body` at `path`, which leaves alone what is there; whether it was not.
    pub(super) fn create(&self, path: &str, body: &impl Serialize) -> Result<(Value, bool), Failure> {
        let response = self.send("PUT", path, Some("application/json"), written(body))?;
        let is_new = response.status() == StatusCode::CREATED;
        Ok((json(&self.answer(response)?)?, is_new))
    }

    /// Changes what is at `path`, as `body` says.
    pub(super) fn patch(&self, path: &str, body: &impl Serialize) -> Result<Value, Failure> {
        json(&self.call("PATCH", path, Some("application/merge-patch+json"), written(body))?)
    }

    /// Posts `body` to `path`.
    pub(super) fn post(&self, path: &str, body: &impl Serialize) -> Result<Value, Failure> {
        json(&self.call("POST", path, Some("application/json"), written(body))?)
    }

    /// Posts a module in WebAssembly to `path`.
    pub(super) fn post_wasm(&self, path: &str, code: &[u8]) -> Result<Value, Failure> {
        json(&self.call("POST", path, Some("application/wasm"), code)?)
    }

    /// Puts an image at `path`.
    pub(super) fn put_image(&self, path: &str, media_type: &str, image: &[u8]) -> Result<Value, Failure> {
        json(&self.call("PUT", path, Some(media_type), image)?)
    }

    /// Posts lines of JSON (NDJSON) to `path`; the answer is lines of JSON, too.
    pub(super) fn post_lines(&self, path: &str, body: &[u8]) -> Result<String, Failure> {
        self.call("POST", path, Some("application/x-ndjson"), body)
    }

    /// Gives each line of JSON (NDJSON) that comes from `path` to `take`, for as long as `patience`.
    pub(super) fn each_line(
        &self,
        path: &str,
        patience: Duration,
        take: &mut dyn FnMut(&Value) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let request = Request::builder()
            .uri(format!("{}{path}", self.base))
            .header(header::AUTHORIZATION, &self.authorization)
            .body(())
            .map_err(|e| Failure::Usage(format!("--url or --key cannot be sent: {e}")))?;
        let request = self.agent.configure_request(request).timeout_global(Some(patience)).build();
        let response = self.agent.run(request).map_err(|e| self.unreachable(&e))?;
        if !response.status().is_success() {
            return self.answer(response).map(|_| ());
        }
        for line in BufReader::new(response.into_body().into_reader()).lines() {
            let line = line.map_err(|e| Failure::Unreachable(format!("the node's answer ended: {e}")))?;
            take(&json(&line)?)?;
        }
        Ok(())
    }

    /// The rows of a list that comes whole.
    pub(super) fn rows(&self, path: &str, rows: &str) -> Result<Vec<Value>, Failure> {
        self.take_rows(&mut self.get(path)?, rows)
    }

    /// The rows of a list that comes in pages: at most `max`.
    pub(super) fn list(&self, path: &str, rows: &str, max: usize) -> Result<Vec<Value>, Failure> {
        let mut all = Vec::new();
        let mut after = None;
        loop {
            let mut query = Query::of(path).with("limit", &PAGE_ROWS.min(max - all.len()).to_string());
            query = after.iter().fold(query, |query, after: &String| query.with("after", after));
            let mut page = self.get(&query.0)?;
            all.extend(self.take_rows(&mut page, rows)?);
            match page.get("next").and_then(Value::as_str) {
                Some(next) if all.len() < max => after = Some(next.to_owned()),
                _ => return Ok(all),
            }
        }
    }

    fn take_rows(&self, page: &mut Value, rows: &str) -> Result<Vec<Value>, Failure> {
        match page.get_mut(rows).map(Value::take) {
            Some(Value::Array(rows)) => Ok(rows),
            _ => Err(self.not_a_node()),
        }
    }

    fn call(
        &self,
        method: &str,
        path: &str,
        content_type: Option<&str>,
        body: impl AsSendBody,
    ) -> Result<String, Failure> {
        self.answer(self.send(method, path, content_type, body)?)
    }

    fn send(
        &self,
        method: &str,
        path: &str,
        content_type: Option<&str>,
        body: impl AsSendBody,
    ) -> Result<Response<Body>, Failure> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(header::AUTHORIZATION, &self.authorization)
            .header(header::ACCEPT, "application/json, application/problem+json");
        if let Some(content_type) = content_type {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        let request =
            request.body(body).map_err(|e| Failure::Usage(format!("--url or --key cannot be sent: {e}")))?;
        self.agent.run(request).map_err(|e| self.unreachable(&e))
    }

    fn answer(&self, mut response: Response<Body>) -> Result<String, Failure> {
        let status = response.status();
        let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).lossy_utf8(true);
        let text = body.read_to_string().map_err(|e| self.unreachable(&e))?;
        if status.is_success() {
            return Ok(text);
        }
        let said = detail(&text).unwrap_or_else(|| status.to_string());
        Err(match status.as_u16() {
            401 => Failure::Refused(format!("{} does not take the key: {said}", self.base)),
            404 if is_problem(&text) => Failure::Missing(said),
            404 => self.not_a_node(),
            _ => Failure::Refused(said),
        })
    }

    fn unreachable(&self, error: &ureq::Error) -> Failure {
        let why = match error {
            ureq::Error::Io(e) => e.to_string(),
            other => other.to_string(),
        };
        Failure::Unreachable(format!("no node answers at {}: {why}", self.base))
    }

    fn not_a_node(&self) -> Failure {
        Failure::Unreachable(format!(
            "what answers at {} is not a Carillon node, or one of another version",
            self.base
        ))
    }
}

fn written(body: &impl Serialize) -> String {
    serde_json::to_string(body).expect("a body has no keys that are not text")
}

/// The JSON of an answer; null when it has no body.
fn json(text: &str) -> Result<Value, Failure> {
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(text)
        .map_err(|e| Failure::Unreachable(format!("the node's answer is not JSON: {e}")))
}

fn is_problem(text: &str) -> bool {
    detail(text).is_some()
}

/// What a problem (RFC 9457) says, with the member of the body it is about.
fn detail(text: &str) -> Option<String> {
    let problem: Value = serde_json::from_str(text).ok()?;
    let detail = problem.get("detail").or_else(|| problem.get("title"))?.as_str()?;
    Some(match problem.get("pointer").and_then(Value::as_str) {
        Some(pointer) if !pointer.is_empty() => format!("{detail} (at {pointer})"),
        _ => detail.to_owned(),
    })
}

/// A path with query parameters.
#[derive(Clone, Debug)]
pub(super) struct Query(pub(super) String);

impl Query {
    /// The path, which may have parameters already.
    pub(super) fn of(path: impl Into<String>) -> Query {
        Query(path.into())
    }

    /// With one more parameter.
    pub(super) fn with(mut self, name: &str, value: &str) -> Query {
        self.0.push(if self.0.contains('?') { '&' } else { '?' });
        self.0.push_str(&format!("{name}={}", segment(value)));
        self
    }

    /// With one more parameter where there is a value.
    pub(super) fn with_some(self, name: &str, value: Option<&str>) -> Query {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_hold_any_name() {
        assert_eq!(segment("news/today?#ä"), "news%2Ftoday%3F%23%C3%A4");
        let query = Query::of("/v1/x").with("a", "b@c").with_some("d", None).with_some("e", Some("&"));
        assert_eq!(query.0, "/v1/x?a=b%40c&e=%26");
    }

    #[test]
    fn problems_are_said_with_their_place() {
        assert_eq!(
            detail(r#"{"title":"T","detail":"no such","pointer":"/to"}"#),
            Some("no such (at /to)".into())
        );
        assert_eq!(detail(r#"{"title":"T"}"#), Some("T".into()));
        assert_eq!(detail("<html>"), None);
    }
}
