//! `carillon trace`: what happens to the sessions of an account, line by line, or to a probe on its way to them.

mod probe;
mod record;
mod text;

use super::client::Query;
use super::failure::Failure;
use super::remote::Remote;
use serde_json::Value;
use std::io::Write;
use std::time::Duration;

/// What `carillon trace` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Bare JID or local part of the account
    #[arg(value_name = "JID")]
    account: Option<String>,
    #[command(flatten)]
    what: What,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Write what happens as a conversation that the tests of the core replay; takes a key with scope trace_payload
    Record(record::Args),
    /// Send a notification and show each of its steps, up to the acknowledgement of the device
    Send(probe::Args),
}

/// What to tell, and how far.
#[derive(Debug, clap::Args)]
struct What {
    /// What to tell, with commas between: in, out, route, store, session
    #[arg(long, value_delimiter = ',', value_parser = ["in", "out", "route", "store", "session"])]
    kinds: Vec<String>,
    /// When to end, such as 60s or 5m, at most 1h
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = seconds)]
    seconds: u32,
    /// After how many entries to end, at most 100000
    #[arg(long, default_value_t = 1000)]
    count: u32,
    /// Entries per second, at most 1000; what exceeds them is counted, and not told
    #[arg(long, value_name = "N/s", default_value = "100/s", value_parser = rate)]
    rate: u32,
    /// Show elements whole; takes a key with scope trace_payload
    #[arg(long)]
    payloads: bool,
}

/// How much longer than the trace its answer may take.
const GRACE: Duration = Duration::from_secs(30);

/// Does what is said.
pub(super) fn run(args: Args, out: &mut dyn Write) -> Result<(), Failure> {
    let Args { remote, account, what, command } = args;
    match command {
        Some(Command::Record(args)) => return record::run(&remote, args, out),
        Some(Command::Send(args)) => return probe::run(&remote, &args, out),
        None => {}
    }
    let account = account.ok_or_else(|| Failure::Usage("name the account: carillon trace JID".to_owned()))?;
    let is_json = remote.is_json();
    follow(&remote, &account, &what, &mut |line| {
        match is_json {
            true => writeln!(out, "{line}")?,
            false => writeln!(out, "{}", text::line(line))?,
        }
        Ok(out.flush()?)
    })
}

/// Gives each line of a trace to `take`.
fn follow(
    remote: &Remote,
    account: &str,
    what: &What,
    take: &mut dyn FnMut(&Value) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut query = Query::of("/v1/trace")
        .with("account", account)
        .with("for", &what.seconds.to_string())
        .with("count", &what.count.to_string())
        .with("rate", &what.rate.to_string());
    if !what.kinds.is_empty() {
        query = query.with("kinds", &what.kinds.join(","));
    }
    if what.payloads {
        query = query.with("payloads", "true");
    }
    let patience = Duration::from_secs(what.seconds.into()) + GRACE;
    let mut has_ended = false;
    remote.client()?.each_line(&query.0, patience, &mut |line| {
        if let Some((node, home)) = other_home(line) {
            eprintln!("carillon: this node is {node}, and the account is at home on {home}: ask that one");
        }
        has_ended |= line["kind"] == "ended";
        take(line)
    })?;
    match has_ended {
        true => Ok(()),
        false => Err(Failure::Unreachable("the node ended the trace before its bounds".into())),
    }
}

/// The node that is seen and the one that the account is at home on, where these differ.
fn other_home(line: &Value) -> Option<(&str, &str)> {
    let (node, home) = (line["node"].as_str()?, line["home"].as_str()?);
    (node != home).then_some((node, home))
}

/// `90s`, `5m`, `1h` or a number of seconds.
fn seconds(text: &str) -> Result<u32, String> {
    let (number, unit) = match text.char_indices().last() {
        Some((at, 's')) => (&text[..at], 1),
        Some((at, 'm')) => (&text[..at], 60),
        Some((at, 'h')) => (&text[..at], 3600),
        _ => (text, 1),
    };
    let wrong = || "a time such as 60s, 5m or 1h".to_owned();
    number.parse::<u32>().ok().and_then(|number| number.checked_mul(unit)).ok_or_else(wrong)
}

/// `100/s` or `100`.
fn rate(text: &str) -> Result<u32, String> {
    text.strip_suffix("/s")
        .unwrap_or(text)
        .parse()
        .map_err(|_| "a number per second such as 100/s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_rates_are_read() {
        assert_eq!(
            [seconds("60s"), seconds("5m"), seconds("1h"), seconds("9")],
            [Ok(60), Ok(300), Ok(3600), Ok(9)]
        );
        assert!(seconds("").is_err() && seconds("m").is_err() && seconds("9999999h").is_err());
        assert_eq!((rate("100/s"), rate("7")), (Ok(100), Ok(7)));
        assert!(rate("/s").is_err());
    }
}
