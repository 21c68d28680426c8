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
            .build();
        Self {
            agent: config.into(),
            base: url.trim_end_matches('/').to_owned(),
            authorization: format!("Bearer {key}"),
            domain: domain.to_owned(),
        }
    }

    /// Checks that the API answers and accepts the key.
    pub(super) fn check(&self) -> Result<(), ureq::Error> {
        let url = self.url("/v1/topics");
        self.agent.get(&url).header("authorization", &self.authorization).call().map(drop)
    }

    /// Creates a topic if it does not exist.
    pub(super) fn create(&self, topic: &str) -> Result<(), ureq::Error> {
        let url = self.url(&format!("/v1/topics/{}", escaped(topic)));
        let request = self.agent.put(&url).header("authorization", &self.authorization);
        request.send_json(json!({})).map(drop)
    }

    /// Publishes an item; returns when the server has accepted it.
    pub(super) fn publish(&self, topic: &str, payload: &Value) -> Result<(), ureq::Error> {
        let url = self.url(&format!("/v1/topics/{}/items", escaped(topic)));
        let request = self.agent.post(&url).header("authorization", &self.authorization);
        request.send_json(json!({ "payload": payload })).map(drop)
    }

    /// Sends a batch of notifications, one per line; returns their results in order.
    pub(super) fn notify(&self, lines: &str) -> Result<Vec<LineResult>, ureq::Error> {
        let request = self.agent.post(&self.url("/v1/notifications/batch"));
        let request = request.header("authorization", &self.authorization);
        let mut response = request.content_type("application/x-ndjson").send(lines)?;
        let mut reader = BufReader::with_capacity(READ_BYTES, response.body_mut().as_reader());
        let (mut line, mut results) = (String::new(), Vec::new());
        while reader.read_line(&mut line)? > 0 {
            results.push(line_result(&line));
            line.clear();
        }
        Ok(results)
    }

    /// Follows the stream of receipts: calls `tell` when it has begun, and then with the id and the localpart of each
    /// acknowledged notification, until `tell` returns false or the stream ends.
    pub(super) fn receipts(
        &self,
        mut tell: impl FnMut(Option<(&str, &str)>) -> bool,
    ) -> Result<(), ureq::Error> {
        let url = format!("{}&state=acknowledged", self.url("/v1/events"));
        let request = self.agent.get(&url).header("authorization", &self.authorization);
        let mut response = request.call()?;
        if !tell(None) {
            return Ok(());
        }
        let mut reader = BufReader::with_capacity(READ_BYTES, response.body_mut().as_reader());
        let mut line = String::new();
        while reader.read_line(&mut line)? > 0 {
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

/// The kind of an error, by which it is counted.
pub(super) fn kind(error: &ureq::Error) -> String {
    match error {
        ureq::Error::StatusCode(code) => format!("HTTP {code}"),
        ureq::Error::Io(error) => format!("HTTP: {}", error.kind()),
        other => format!("HTTP: {other}"),
    }
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
    fn lines_of_a_batch_tell_ids_or_codes() {
        assert_eq!(line_result(r#"{"line":1,"id":"x","state":"stored"}"#), Ok("x".to_owned()));
        assert_eq!(
            line_result(r#"{"line":1,"error":{"code":"unknown-device"}}"#),
            Err("unknown-device".to_owned())
        );
        assert!(line_result("nonsense").is_err());
    }
}
