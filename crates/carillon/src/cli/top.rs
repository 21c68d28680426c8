//! `carillon top`: the accounts that cost most.

use super::client::Query;
use super::failure::Failure;
use super::output::Column;
use super::remote::Remote;
use std::io::Write;

/// What `carillon top` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// What to sort by: what clients sent (messages, bytes), the time that took (cpu), or what waits for them (queue)
    #[arg(long, default_value = "messages", value_parser = ["cpu", "messages", "bytes", "queue"])]
    by: String,
    /// Number of accounts
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=64))]
    limit: u16,
}

const COLUMNS: &[Column] = &[
    ("ACCOUNT", "account"),
    ("MESSAGES", "messages"),
    ("BYTES", "bytes"),
    ("CPU", "cpu_ms"),
    ("QUEUE", "queue_bytes"),
    ("COUNTED", "counted_ms"),
];

/// Does what is said.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let query = Query::of("/v1/top").with("by", &args.by).with("limit", &args.limit.to_string());
    let accounts = args.remote.client()?.rows(&query.0, "accounts")?;
    args.remote.output(out).rows(&accounts, COLUMNS)
}
