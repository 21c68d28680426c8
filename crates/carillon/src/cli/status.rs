//! `carillon status`: the figures of a node.

use super::client::Client;
use super::failure::Failure;
use super::remote::Remote;
use console::Term;
use serde_json::Value;
use std::io::Write;
use std::time::Duration;

/// What `carillon status` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Print the figures repeatedly, with this many seconds in between
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        default_missing_value = "2",
        value_parser = clap::value_parser!(u16).range(1..=3600)
    )]
    watch: Option<u16>,
}

/// The figures that say how the node is, first; what is counted, after.
const ORDER: &[&str] = &[
    "version",
    "ready",
    "uptime_ms",
    "shards",
    "connections",
    "sessions",
    "parked",
    "available",
    "light_sessions",
    "resident_bytes",
    "logins_per_second",
    "deliveries_per_second",
    "delivery_p50_ms",
    "delivery_p99_ms",
    "accepted",
    "refused",
    "handshakes",
    "logins",
    "login_failures",
    "stanzas_in",
    "stanzas_out",
    "bytes_in",
    "bytes_out",
    "published",
    "deliveries",
    "notifications_accepted",
    "notifications_acknowledged",
    "notifications_ended",
    "overflows",
    "common_overflows",
    "out_queue_bytes",
];

/// Prints the figures.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let client = args.remote.client()?;
    let status = client.get(PATH)?;
    let Some(seconds) = args.watch else { return args.remote.output(out).record(&status, ORDER) };
    watch(args, &client, status, Duration::from_secs(seconds.into()), out)
}

/// Prints the figures again and again, until a signal ends the program: on a terminal in the same place, for programs one JSON
/// object per line.
fn watch(
    args: &Args,
    client: &Client,
    first: Value,
    pause: Duration,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let screen = Term::stdout();
    let mut status = Ok(first);
    loop {
        let mut page = Vec::new();
        match &status {
            Ok(status) if args.remote.is_json() => page = format!("{status}\n").into_bytes(),
            Ok(status) => args.remote.output(&mut page).record(status, ORDER)?,
            // The node may come back.
            Err(failure) => eprintln!("carillon: {failure}"),
        }
        if screen.is_term() && !args.remote.is_json() && status.is_ok() {
            screen.clear_screen()?;
        } else if !args.remote.is_json() {
            page.push(b'\n');
        }
        out.write_all(&page)?;
        out.flush()?;
        std::thread::sleep(pause);
        status = client.get(PATH);
    }
}

const PATH: &str = "/v1/admin/status";
