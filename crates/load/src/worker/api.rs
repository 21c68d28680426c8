//! The part of Carillon's HTTP API that a load test needs. Every call blocks, so separate threads make them.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use serde_json::{Value, json};

use crate::plan::Target;

/// The time limit of an answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The API and its key.
#[derive(Debug)]
pub(super) struct Api {
    agent: ureq::Agent,
    base: String,
    authorization: String,
    domain: String,
}

/// The size of the read buffer for answers of many lines.
const READ_BYTES: usize = 64 * 1024;
/// The most bytes of a refusal that are read.
const PROBLEM_BYTES_MAX: u64 = 16 * 1024;

/// The used members of a receipt. Ids and addresses of a test contain nothing that JSON escapes.
#[derive(serde::Deserialize)]
struct Receipt<'a> {
    id: &'a str,
    to: &'a str,
}

/// The used members of a line of the answer to a batch.
#[derive(serde::Deserialize)]
struct Line<'a> {
    id: Option<&'a str>,
    #[serde(borrow)]
    error: Option<LineError<'a>>,
}

/// Why a line was refused.
#[derive(serde::Deserialize)]
struct LineError<'a> {
    code: &'a str,
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    /// The API refuses it: problem details (RFC 9457), as far as there are any.
    #[error("HTTP {status}{}", words.as_ref().map(|words| format!(" ({words})")).unwrap_or_default())]
    Refused {
        /// The status of the answer.
        status: u16,
        /// The code of the problem, and what is wrong.
        words: Option<String>,
    },
    /// There was no answer, or its end did not come.
    #[error("HTTP: {0}")]
    Network(String),
}

/// The used members of problem details.
#[derive(serde::Deserialize)]
struct ProblemDetails {
    code: Option<String>,
    detail: Option<String>,
}

/// The result of a line of a batch: the notification's id, or the code of the problem.
pub(super) type LineResult = Result<String, String>;

impl Api {
    /// The APIs of a target; none without URL and key.
    pub(super) fn of(target: &Target) -> Vec<Self> {
        target.apis().into_iter().map(|(url, key)| Self::new(url, key, &target.domain)).collect()
    }

    /// The API at a URL.
    pub(super) fn new(url: &str, key: &str, domain: &str) -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_connect(Some(TIMEOUT))
            .timeout_recv_response(Some(TIMEOUT))
            .http_status_as_error(false)
            .build();
        Self {
            agent: config.into(),
            base: url.trim_end_matches('/').to_owned(),
            authorization: format!("Bearer {key}"),
            domain: domain.to_owned(),
        }
    }

    /// Checks that the API answers and accepts the key.
    pub(super) fn check(&self) -> Result<(), CallError> {
        let url = self.url("/v1/topics");
        accepted(self.agent.get(&url).header("authorization", &self.authorization).call()).map(drop)
    }

    /// Creates a topic if it does not exist.
    pub(super) fn create(&self, topic: &str) -> Result<(), CallError> {
        let url = self.url(&format!("/v1/topics/{}", escaped(topic)));
        let request = self.agent.put(&url).header("authorization", &self.authorization);
        accepted(request.send_json(json!({}))).map(drop)
    }

    /// Publishes an item; returns when the server has accepted it.
    pub(super) fn publish(&self, topic: &str, payload: &Value) -> Result<(), CallError> {
        let url = self.url(&format!("/v1/topics/{}/items", escaped(topic)));
        let request = self.agent.post(&url).header("authorization", &self.authorization);
        accepted(request.send_json(json!({ "payload": payload }))).map(drop)
    }

    /// Declares a queue of the matchmaker.
    pub(super) fn declare(&self, queue: &str, config: &Value) -> Result<(), CallError> {
        let url = self.url(&format!("/v1/matchmaking/{}", escaped(queue)));
        let request = self.agent.put(&url).header("authorization", &self.authorization);
        accepted(request.send_json(config)).map(drop)
    }

    /// Enters a ticket with the name of its account. Returns the token of its seat, if it made a match complete.
    pub(super) fn enter(&self, queue: &str, account: &str) -> Result<Option<String>, CallError> {
        let url = self.url(&format!("/v1/matchmaking/{}", escaped(queue)));
        let request = self.agent.post(&url).header("authorization", &self.authorization);
        token(accepted(request.send_json(json!({ "id": account, "account": account })))?)
    }

    /// The token of the seat of a ticket, if there is a match for it.
    pub(super) fn seat(&self, queue: &str, ticket: &str) -> Result<Option<String>, CallError> {
        let url = self.url(&format!("/v1/matchmaking/{}/{}", escaped(queue), escaped(ticket)));
        token(accepted(self.agent.get(&url).header("authorization", &self.authorization).call())?)
    }

    /// Sends a batch of notifications, one per line; returns their results in order.
    pub(super) fn notify(&self, lines: &str) -> Result<Vec<LineResult>, CallError> {
        let request = self.agent.post(&self.url("/v1/notifications/batch"));
        let request = request.header("authorization", &self.authorization);
        let mut response = accepted(request.content_type("application/x-ndjson").send(lines))?;
        let mut reader = BufReader::with_capacity(READ_BYTES, response.body_mut().as_reader());
        let (mut line, mut results) = (String::new(), Vec::new());
        while reader.read_line(&mut line)? > 0 {
            results.push(line_result(&line));
            line.clear();
        }
        Ok(results)
    }

    /// Follows the stream of receipts behind the event `last`, which is moved on: calls `tell` when the stream has begun, and
    /// then with the id and the localpart of each acknowledged notification, until `tell` returns false or the stream ends.
    pub(super) fn receipts(
        &self,
        last: &mut Option<u64>,
        mut tell: impl FnMut(Option<(&str, &str)>) -> bool,
    ) -> Result<(), CallError> {
        let url = format!("{}&state=acknowledged", self.url("/v1/events"));
        let mut request = self.agent.get(&url).header("authorization", &self.authorization);
        if let Some(last) = last {
            request = request.header("last-event-id", last.to_string());
        }
        let mut response = accepted(request.call())?;
        if !tell(None) {
            return Ok(());
        }
        let mut reader = BufReader::with_capacity(READ_BYTES, response.body_mut().as_reader());
        let mut line = String::new();
        while reader.read_line(&mut line)? > 0 {
            if let Some(id) = line.strip_prefix("id:").and_then(|id| id.trim().parse().ok()) {
                *last = Some(id);
            }
            let event =
                line.strip_prefix("data:").and_then(|data| serde_json::from_str::<Receipt>(data).ok());
            // Comments, which keep the stream alive, are an opportunity to stop, too.
            let told =
                event.map_or(("", ""), |Receipt { id, to }| (id, to.split('@').next().unwrap_or_default()));
            if !tell(Some(told)) {
                return Ok(());
            }
            line.clear();
        }
        Ok(())
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}?domain={}", self.base, escaped(&self.domain))
    }
}

impl CallError {
    /// What it is counted by: without the words, which may be different each time.
    pub(super) fn kind(&self) -> String {
        match self {
            Self::Refused { status, .. } => format!("HTTP {status}"),
            Self::Network(why) => format!("HTTP: {why}"),
        }
    }

    /// What the API says.
    pub(super) fn words(&self) -> Option<&str> {
        match self {
            Self::Refused { words, .. } => words.as_deref(),
            Self::Network(_) => None,
        }
    }
}

impl From<std::io::Error> for CallError {
    fn from(error: std::io::Error) -> Self {
        Self::Network(error.kind().to_string())
    }
}

/// An answer that is no refusal.
fn accepted(
    answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
) -> Result<ureq::http::Response<ureq::Body>, CallError> {
    let mut answer = answer.map_err(|error| match error {
        ureq::Error::Io(error) => error.into(),
        other => CallError::Network(other.to_string()),
    })?;
    if answer.status().is_success() {
        return Ok(answer);
    }
    let text = answer.body_mut().with_config().limit(PROBLEM_BYTES_MAX).read_to_string().unwrap_or_default();
    Err(CallError::Refused { status: answer.status().as_u16(), words: problem_words(&text) })
}

/// The token of a ticket's seat.
fn token(mut answer: ureq::http::Response<ureq::Body>) -> Result<Option<String>, CallError> {
    let ticket: Value =
        answer.body_mut().read_json().map_err(|error| CallError::Network(error.to_string()))?;
    Ok(ticket["seating"]["token"].as_str().map(str::to_owned))
}

fn problem_words(text: &str) -> Option<String> {
    let ProblemDetails { code, detail } = serde_json::from_str(text).ok()?;
    let words: Vec<_> = [code, detail].into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(": "))
}

fn line_result(line: &str) -> LineResult {
    match serde_json::from_str(line) {
        Ok(Line { id: Some(id), .. }) => Ok(id.to_owned()),
        Ok(Line { error: Some(error), .. }) => Err(error.code.to_owned()),
        Ok(Line { id: None, error: None }) | Err(_) => Err("invalid answer".to_owned()),
    }
}

/// Percent-encodes a part of a path or query (RFC 3986 §2.1).
fn escaped(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::new(), |mut escaped, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
        escaped
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        assert_eq!(escaped("a.b-c_d~9"), "a.b-c_d~9");
        assert_eq!(escaped("a b/ü"), "a%20b%2F%C3%BC");
    }

    #[test]
    fn refusals_are_told_in_the_words_of_the_api() {
        let problem =
            r#"{"type":"x","title":"Forbidden","status":403,"code":"forbidden","detail":"no scope"}"#;
        let error = CallError::Refused { status: 403, words: problem_words(problem) };
        assert_eq!(error.to_string(), "HTTP 403 (forbidden: no scope)");
        assert_eq!((error.kind().as_str(), error.words()), ("HTTP 403", Some("forbidden: no scope")));
        assert_eq!(problem_words("<html>"), None);
    }

    #[test]
    fn lines_of_a_batch_tell_ids_or_codes() {
        assert_eq!(line_result(r#"{"line":1,"id":"x","state":"stored"}"#), Ok("x".to_owned()));
        assert_eq!(
            line_result(r#"{"line":1,"error":{"code":"unknown-device"}}"#),
            Err("unknown-device".to_owned())
        );
        assert!(line_result("nonsense").is_err());
    }
}
