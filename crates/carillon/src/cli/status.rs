//! `carillon status`: the figures of a node.

use super::failure::Failure;
use super::remote::Remote;
use std::io::Write;

/// What `carillon status` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
}

/// The figures that say how the node is, first; what is counted, after.
const ORDER: &[&str] = &[
    "version",
    "ready",
    "uptime_ms",
    "shards",
    "connections",
    "sessions",
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
];

/// Prints the figures.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let status = args.remote.client()?.get("/v1/admin/status")?;
    args.remote.output(out).record(&status, ORDER)
}
