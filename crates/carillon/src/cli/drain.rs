//! `carillon drain`: ends the sessions of a node over a time, and shows how far it has come.

use super::client::Client;
use super::failure::Failure;
use super::remote::Remote;
use crate::config;
use serde_json::{Value, json};
use std::io::Write;
use std::time::Duration;

/// What `carillon drain` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    pace: Pace,
}

/// How a node is drained, and whether the command waits.
#[derive(Debug, clap::Args)]
pub(super) struct Pace {
    /// Over how long sessions end
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time, conflicts_with = "rate")]
    over: u64,
    /// How many sessions end per second, in place of a time for all of them
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Send clients to this host (`<see-other-host/>`); without it they are told that the server shuts down
    #[arg(long, value_name = "HOST[:PORT]")]
    to: Option<String>,
    /// Do not wait for the end
    #[arg(long)]
    no_wait: bool,
    /// Cancel the drain: the node takes sessions again
    #[arg(long, conflicts_with_all = ["over", "rate", "to", "no_wait"])]
    cancel: bool,
}

fn time(text: &str) -> Result<u64, String> {
    config::milliseconds(text).ok_or_else(|| "a time is a number with a unit: 500ms, 60s, 5m".to_owned())
}

/// Does what is said. While it waits it prints a line per step, one every second at most.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let client = args.remote.client()?;
    drain(&args.remote, &client, PATH, &args.pace, out)
}

/// Drains the node whose drain is at `path`.
pub(super) fn drain(
    remote: &Remote,
    client: &Client,
    path: &str,
    pace: &Pace,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if pace.cancel {
        let gone = client.delete(path)?;
        return remote.output(out).done("the node takes sessions", &gone);
    }
    let mut body = match pace.rate {
        Some(count) => json!({"rate": count}),
        None => json!({"over_ms": pace.over}),
    };
    if let (Some(to), Some(body)) = (&pace.to, body.as_object_mut()) {
        body.insert("to".into(), to.as_str().into());
    }
    let begun = client.put(path, &body)?;
    if pace.no_wait {
        return remote.output(out).done(&sentence(&begun), &begun);
    }
    wait(remote, client, path, begun, out)
}

fn wait(
    remote: &Remote,
    client: &Client,
    path: &str,
    mut progress: Value,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut said = None;
    loop {
        let sentence = sentence(&progress);
        // A line per step: the last clients may take their time.
        if said.as_ref() != Some(&sentence) {
            match remote.is_json() {
                // An object per line, for programs.
                true => writeln!(out, "{progress}")?,
                false => writeln!(out, "{sentence}")?,
            }
            out.flush()?;
            said = Some(sentence);
        }
        match progress["state"].as_str() {
            Some("draining") => {}
            Some("drained") => return Ok(()),
            _ => return Err(Failure::Refused("the drain was cancelled".to_owned())),
        }
        let left = Duration::from_millis(progress["ends_in_ms"].as_u64().unwrap_or_default());
        std::thread::sleep(left.clamp(SOON, SECOND));
        progress = client.get(path)?;
    }
}

/// How far it has come, for people.
fn sentence(progress: &Value) -> String {
    let number = |name: &str| progress[name].as_u64().unwrap_or_default();
    let (total, left) = (number("total"), number("left"));
    match progress["state"].as_str() {
        Some("drained") => format!("drained: none of {total} left"),
        _ => format!("{left} of {total} left, {} s to go", number("ends_in_ms").div_ceil(1000)),
    }
}

const PATH: &str = "/v1/admin/drain";
const SECOND: Duration = Duration::from_secs(1);
/// The least time between two questions, when the last sessions are about to go.
const SOON: Duration = Duration::from_millis(100);
