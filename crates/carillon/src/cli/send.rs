//! `carillon send`: one notification, followed to its end if wanted.

use super::client::{Client, Query};
use super::failure::Failure;
use super::output::{Output, align};
use super::remote::Remote;
use crate::web::segment;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// What `carillon send` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Account to notify: a bare JID, or its local part
    to: String,
    /// Payload of the notification: JSON, or - to read it from standard input
    #[arg(long, value_name = "JSON")]
    payload: String,
    /// URL that is shortened for the recipient: the member `link` of the payload; who follows it has opened the notification
    #[arg(long, value_name = "URL")]
    link: Option<String>,
    /// Devices to deliver to: those in use (active), also those asleep (connected), or also those that return later (always)
    #[arg(long, value_parser = ["active", "connected", "always"])]
    audience: Option<String>,
    /// Seconds for which the notification may wait
    #[arg(long, value_name = "SECONDS")]
    ttl: Option<u64>,
    /// Priority among the notifications that wait for the account
    #[arg(long, value_parser = ["low", "normal", "high"])]
    priority: Option<String>,
    /// Key under which a newer notification replaces an older one that is not delivered yet
    #[arg(long, value_name = "KEY")]
    collapse_key: Option<String>,
    /// Domain of the local part; by default that of the node
    #[arg(long)]
    domain: Option<String>,
    /// Wait until the device has acknowledged the notification, and print each state with its time
    #[arg(long)]
    wait: bool,
    /// Largest number of seconds to wait
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "wait")]
    timeout: u64,
}

/// A notification to be sent; the payload goes as it was written.
#[derive(Serialize)]
struct Notification<'a> {
    to: &'a str,
    payload: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audience: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    collapse_key: Option<&'a str>,
}

/// Between two looks at how far it has come: short at first, because most arrive at once.
const LOOKS: [Duration; 4] = [
    Duration::from_millis(20),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
];

/// Sends it.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let payload = json_argument("--payload", &args.payload)?;
    let notification = Notification {
        to: &args.to,
        payload: &payload,
        link: args.link.as_deref(),
        audience: args.audience.as_deref(),
        ttl: args.ttl,
        priority: args.priority.as_deref(),
        collapse_key: args.collapse_key.as_deref(),
    };
    let (client, mut output) = (args.remote.client()?, args.remote.output(out));
    let path = Query::of("/v1/notifications").with_some("domain", args.domain.as_deref());
    let sent = client.post(&path.0, &notification)?;
    let id = text(&sent, "id").to_owned();
    if args.wait {
        return wait(&client, &mut output, &id, Duration::from_secs(args.timeout));
    }
    output.done(&format!("{id}  {}", outcome(&sent)), &sent)
}

/// Follows a notification until nothing more can become of it.
fn wait(client: &Client, output: &mut Output<'_>, id: &str, timeout: Duration) -> Result<(), Failure> {
    let path = format!("/v1/notifications/{}", segment(id));
    let started = Instant::now();
    let mut looks = LOOKS.into_iter();
    let mut printed = Vec::new();
    loop {
        let trace = client.get(&path)?;
        if !output.is_json() {
            report(output, &trace, &mut printed)?;
        }
        let ended = trace.get("ended_at").is_some_and(|at| !at.is_null());
        let late = started.elapsed() >= timeout;
        if output.is_json() && (ended || late) {
            output.record(&trace, &[])?;
        }
        match text(&trace, "state") {
            "acknowledged" | "opened" => return Ok(()),
            _ if ended => {
                return Err(Failure::Refused(format!("{id} was not delivered: {}", outcome(&trace))));
            }
            state if late => {
                let seconds = timeout.as_secs();
                return Err(Failure::Refused(late_words(&trace, id, state, seconds)));
            }
            _ => std::thread::sleep(looks.next().unwrap_or(LOOKS[LOOKS.len() - 1])),
        }
    }
}

/// What to say of a notification that nobody acknowledged in time.
fn late_words(trace: &Value, id: &str, state: &str, seconds: u64) -> String {
    let why = match (state, text(trace, "to")) {
        ("stored", to) => format!("{to} has no active session, and gets it when it has one"),
        ("sent", to) => format!("{to} has not acknowledged it"),
        ("scheduled", _) => "its time has not come".to_owned(),
        _ => return format!("{id} was not delivered after {seconds} s ({state})"),
    };
    format!("{id} was not delivered after {seconds} s ({state}): {why}")
}

/// Prints the steps of `trace` that were not printed before.
fn report(output: &mut Output<'_>, trace: &Value, printed: &mut Vec<Vec<String>>) -> Result<(), Failure> {
    let steps = steps(trace);
    let before = printed.len();
    if steps.len() > before {
        // Aligned with those printed before, of which no word is longer than "acknowledged".
        let all: Vec<Vec<String>> = steps.into_iter().map(pad).collect();
        output.text(&align(&all[before..]))?;
        *printed = all;
    }
    Ok(())
}

fn pad(mut step: Vec<String>) -> Vec<String> {
    step[0] = format!("{:12}", step[0]);
    step
}

/// The states a notification has been in, each with its time and what else is known of it.
fn steps(trace: &Value) -> Vec<Vec<String>> {
    let reached = [
        ("accepted", "accepted_at"),
        ("stored", "stored_at"),
        ("sent", "sent_at"),
        (text(trace, "state"), "ended_at"),
    ];
    let mut steps: Vec<Vec<String>> = reached
        .into_iter()
        .filter(|(_, key)| !text(trace, key).is_empty())
        .map(|(state, key)| vec![state.to_owned(), text(trace, key).to_owned()])
        .collect();
    let ended = !text(trace, "ended_at").is_empty();
    if let (true, Some(last)) = (ended, steps.last_mut()) {
        last.extend(why(trace));
    }
    steps
}

/// A state and what is known of it, in words.
fn outcome(trace: &Value) -> String {
    let state = text(trace, "state");
    why(trace).map_or_else(|| state.to_owned(), |why| format!("{state} {why}"))
}

fn why(trace: &Value) -> Option<String> {
    match (text(trace, "acknowledged_by"), text(trace, "reason")) {
        ("", "") => None,
        ("", reason) => Some(format!("because {reason}")),
        (by, _) => Some(format!("by {by}")),
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The JSON of an option, kept as it is written; `-` stands for standard input.
pub(super) fn json_argument(option: &str, text: &str) -> Result<Box<RawValue>, Failure> {
    let mut owned = text.to_owned();
    if text == "-" {
        owned.clear();
        std::io::stdin()
            .read_to_string(&mut owned)
            .map_err(|e| Failure::Usage(format!("standard input cannot be read: {e}")))?;
    }
    serde_json::from_str::<Box<RawValue>>(owned.trim())
        .map_err(|e| Failure::Usage(format!("{option} is not JSON: {e}; a text needs quotes: '\"hello\"'")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn steps_say_state_time_and_reason() {
        let mut trace = json!({"state": "sent", "accepted_at": "T1", "stored_at": "T2", "sent_at": "T3"});
        assert_eq!(steps(&trace), [["accepted", "T1"], ["stored", "T2"], ["sent", "T3"]]);
        trace["state"] = "acknowledged".into();
        trace["ended_at"] = "T4".into();
        trace["acknowledged_by"] = "receipt".into();
        assert_eq!(steps(&trace)[3], ["acknowledged", "T4", "by receipt"]);
        let dropped =
            json!({"state": "dropped", "accepted_at": "T", "ended_at": "T", "reason": "not-active"});
        assert_eq!(steps(&dropped)[1], ["dropped", "T", "because not-active"]);
        assert_eq!(outcome(&dropped), "dropped because not-active");
    }

    #[test]
    fn a_notification_that_is_late_says_why() {
        let trace = json!({"to": "alice@localhost"});
        assert_eq!(
            late_words(&trace, "N", "stored", 2),
            "N was not delivered after 2 s (stored): alice@localhost has no active session, and gets it when it has one"
        );
        assert_eq!(
            late_words(&trace, "N", "sent", 2),
            "N was not delivered after 2 s (sent): alice@localhost has not acknowledged it"
        );
    }

    #[test]
    fn payloads_are_json_and_stay_as_written() {
        assert_eq!(
            json_argument("--payload", " {\"b\": 1, \"a\":1.0} ").expect("JSON").get(),
            "{\"b\": 1, \"a\":1.0}"
        );
        let failure = json_argument("--payload", "hello").expect_err("not JSON");
        assert_eq!(failure.code(), 2);
        assert_eq!(
            failure.to_string(),
            "--payload is not JSON: expected value at line 1 column 1; a text needs quotes: '\"hello\"'"
        );
    }
}
