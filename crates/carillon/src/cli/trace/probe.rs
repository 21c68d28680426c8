//! `carillon trace send`: a probe, and each of its steps.

use crate::cli::failure::Failure;
use crate::cli::output::printable;
use crate::cli::remote::Remote;
use serde_json::{Value, json};
use std::io::Write;

/// What `carillon trace send` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Bare JID or local part of the account
    #[arg(value_name = "JID")]
    account: String,
    /// When it is worth delivering: while someone uses a device, while one is connected, or always, which is committed first
    #[arg(long, default_value = "always", value_parser = ["active", "connected", "always"])]
    audience: String,
    /// How long to wait for its steps, such as 10s, at most 60s; what has not been delivered by then is cancelled
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = super::seconds)]
    timeout: u32,
    /// What it carries
    #[arg(long, value_name = "JSON", value_parser = parsed)]
    payload: Option<Value>,
}

/// Does what is said. That a step did not happen is no failure of the command.
pub(super) fn run(remote: &Remote, args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let Args { account, audience, timeout, payload } = args;
    let mut body = json!({ "to": account, "audience": audience, "timeout": timeout });
    if let Some(payload) = payload {
        body["payload"] = payload.clone();
    }
    let said = remote.client()?.post("/v1/trace/send", &body)?;
    if remote.is_json() {
        writeln!(out, "{said}")?;
        return Ok(());
    }
    write!(out, "{}", text(&said))?;
    Ok(())
}

fn parsed(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Its steps for people, a line each.
fn text(said: &Value) -> String {
    let word = |value: &Value, key: &str| value[key].as_str().map(printable);
    let list = |key: &str| said[key].as_array().cloned().unwrap_or_default();
    let mut lines = vec![format!(
        "{}  to={}  {}",
        word(said, "id").unwrap_or_default(),
        word(said, "to").unwrap_or_default(),
        word(said, "state").unwrap_or_default(),
    )];
    for hop in list("hops") {
        let at = hop["at_us"].as_u64().unwrap_or_default();
        let shard = hop["shard"].as_u64().map(|shard| format!("shard={shard}"));
        let node = word(&hop, "node").map(|node| format!("node={node}"));
        let by = word(&hop, "by").map(|by| format!("by={by}"));
        let parts = [node, shard, word(&hop, "session"), by, word(&hop, "state"), word(&hop, "reason")];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let name = word(&hop, "hop").unwrap_or_default();
        lines.push(format!("{at:>10} µs  {name:13} {}", parts.join("  ")).trim_end().to_owned());
    }
    for hop in list("missing") {
        let (name, reason) =
            (word(&hop, "hop").unwrap_or_default(), word(&hop, "reason").unwrap_or_default());
        lines.push(format!("{:>13}  {name:13} {reason}", "-"));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_steps_are_for_people() {
        let said = json!({
            "id": "01KAG", "to": "a@x", "state": "sent",
            "hops": [
                {"hop": "request", "at_us": 0},
                {"hop": "given", "at_us": 312, "shard": 1, "session": "a@x/r"},
            ],
            "missing": [{"hop": "acknowledged", "reason": "the device did not\u{1b}"}],
        });
        let expected = "01KAG  to=a@x  sent\n         0 µs  request\n       312 µs  given         shard=1  a@x/r\n            -  acknowledged  the device did not\\u{1b}\n";
        assert_eq!(text(&said), expected);
    }
}
