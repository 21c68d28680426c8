//! What is printed: lines for people, or a JSON object per line for programs.

use super::incoming::Incoming;
use crate::cli::failure::Failure;
use crate::cli::output::printable;
use carillon_core::model::UnixMs;
use serde_json::{Value, json};
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where it is printed to.
pub(super) struct Screen<'a> {
    out: &'a mut dyn Write,
    json: bool,
}

/// A login that succeeded.
pub(super) struct LoggedIn {
    pub(super) jid: String,
    pub(super) mechanism: &'static str,
    pub(super) by_token: bool,
    pub(super) tls: String,
    pub(super) took: Duration,
}

impl<'a> Screen<'a> {
    pub(super) fn new(out: &'a mut dyn Write, json: bool) -> Screen<'a> {
        Screen { out, json }
    }

    /// The device is connected.
    pub(super) fn logged_in(&mut self, login: &LoggedIn) -> Result<(), Failure> {
        let LoggedIn { jid, mechanism, by_token, tls, took } = login;
        let ms = took.as_secs_f64() * 1000.0;
        let by = if *by_token { "token" } else { "password" };
        self.say(
            || format!("{jid} logged in by {by} ({mechanism}, {tls}) after {ms:.0} ms; Ctrl-C ends it"),
            || {
                json!({
                    "event": "connected", "jid": jid, "by": by, "mechanism": mechanism, "tls": tls,
                    "login_ms": (ms * 1000.0).round() / 1000.0,
                })
            },
        )
    }

    /// The account was made.
    pub(super) fn registered(&mut self, jid: &str) -> Result<(), Failure> {
        self.say(|| format!("created the account {jid}"), || json!({"event": "registered", "jid": jid}))
    }

    /// The account follows a topic.
    pub(super) fn subscribed(&mut self, topic: &str) -> Result<(), Failure> {
        self.say(|| format!("subscribed to {topic}"), || json!({"event": "subscribed", "topic": topic}))
    }

    /// The topic has no room for another request now; the next attempt follows.
    pub(super) fn postponed(&mut self, topic: &str, why: &str, pause: Duration) -> Result<(), Failure> {
        let seconds = pause.as_secs();
        self.say(
            || format!("{why}; trying again in {seconds} s"),
            || {
                let pause = pause.as_millis() as u64;
                json!({"event": "postponed", "topic": topic, "reason": why, "retry_in_ms": pause})
            },
        )
    }

    /// The connection is lost; the next attempt follows.
    pub(super) fn lost(&mut self, why: &str, pause: Duration) -> Result<(), Failure> {
        let seconds = pause.as_secs_f64();
        self.say(
            || format!("disconnected: {why}; trying again in {seconds:.1} s"),
            || {
                let pause = pause.as_millis() as u64;
                json!({"event": "disconnected", "reason": why, "retry_in_ms": pause})
            },
        )
    }

    /// It ends because somebody wanted it to.
    pub(super) fn closed(&mut self) -> Result<(), Failure> {
        self.say(|| "closed".to_owned(), || json!({"event": "closed"}))
    }

    /// Something came.
    pub(super) fn incoming(&mut self, incoming: &Incoming) -> Result<(), Failure> {
        if self.json {
            let line = serde_json::to_string(incoming).expect("plain data");
            return self.line(&line);
        }
        let now = UnixMs(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64);
        // The time of day, in UTC as everywhere.
        self.line(&format!("{}  {}", &now.to_xmpp()[11..], printable(&words(incoming))))
    }

    fn say(&mut self, words: impl Fn() -> String, value: impl Fn() -> Value) -> Result<(), Failure> {
        let line = if self.json { value().to_string() } else { printable(&words()) };
        self.line(&line)
    }

    fn line(&mut self, line: &str) -> Result<(), Failure> {
        writeln!(self.out, "{line}")?;
        Ok(self.out.flush()?)
    }
}

/// What came, in words.
fn words(incoming: &Incoming) -> String {
    match incoming {
        Incoming::Notification { id, priority, latency_ms, payload, .. } => {
            let priority = if priority == "normal" { String::new() } else { format!(" ({priority})") };
            let after = latency_ms.map(|ms| format!("  after {}", time(ms))).unwrap_or_default();
            format!("notification{priority}  {}{after}  {id}", payload.text())
        }
        Incoming::Item { topic, id, published, payload } => {
            let when = published.as_ref().map(|at| format!("  published {at}")).unwrap_or_default();
            format!("topic {topic}  {}{when}  {id}", payload.text())
        }
        Incoming::Retracted { topic, id } => format!("topic {topic}  item {id} was retracted"),
        Incoming::Purged { topic } => format!("topic {topic}  all items were removed"),
        Incoming::Deleted { topic } => format!("topic {topic}  was deleted"),
        Incoming::Message { from, body, written } => {
            let when = written.as_ref().map(|at| format!("  written {at}")).unwrap_or_default();
            format!("message from {from}  {body}{when}")
        }
        Incoming::Presence { from, available: true } => format!("presence  {from} is available"),
        Incoming::Presence { from, available: false } => format!("presence  {from} is unavailable"),
        Incoming::Stanza { xml } => xml.clone(),
    }
}

/// A latency: milliseconds while they say something.
fn time(ms: u64) -> String {
    match ms {
        0 => "less than 1 ms".to_owned(),
        1..10_000 => format!("{ms} ms"),
        10_000..600_000 => format!("{} s", ms / 1000),
        _ => format!("{} min", ms / 60_000),
    }
}

#[cfg(test)]
mod tests {
    use super::super::incoming::Carried;
    use super::*;

    #[test]
    fn notifications_say_priority_and_latency_where_they_say_something() {
        let notification = |priority: &str, latency_ms| {
            words(&Incoming::Notification {
                id: "N".to_owned(),
                priority: priority.to_owned(),
                sent: String::new(),
                expires: None,
                collapse_key: None,
                latency_ms,
                payload: Carried::Text("{}".to_owned()),
            })
        };
        assert_eq!(notification("normal", Some(3)), "notification  {}  after 3 ms  N");
        assert_eq!(notification("high", Some(0)), "notification (high)  {}  after less than 1 ms  N");
        assert_eq!(notification("low", Some(61_000)), "notification (low)  {}  after 61 s  N");
        assert_eq!(notification("normal", None), "notification  {}  N");
    }

    #[test]
    fn what_others_wrote_does_not_command_the_terminal() {
        let mut out = Vec::new();
        let message = Incoming::Message {
            from: "bob@localhost".to_owned(),
            body: "\u{1b}[2J".to_owned(),
            written: None,
        };
        Screen::new(&mut out, false).incoming(&message).expect("written");
        let text = String::from_utf8(out).expect("text");
        assert_eq!(&text[8..], &format!("{}  message from bob@localhost  \\u{{1b}}[2J\n", &text[8..13]));
    }
}
