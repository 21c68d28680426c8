//! `carillon audit`: what was done by which key.

use super::client::Query;
use super::failure::Failure;
use super::output::Column;
use super::remote::Remote;
use std::io::Write;

/// Arguments of `carillon audit`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Only what was done by the key of this number, as `carillon key list` shows it
    #[arg(long, value_name = "NUMBER")]
    by: Option<u32>,
    /// Only what has this text in it, such as a path or an account
    #[arg(long, value_name = "TEXT")]
    what: Option<String>,
    /// Only what ended in this way
    #[arg(long, value_parser = ["done", "refused", "failed"])]
    outcome: Option<String>,
    /// The most that are listed, the newest first
    #[arg(long, default_value_t = 100)]
    limit: usize,
}

const COLUMNS: &[Column] = &[
    ("AT", "at"),
    ("KEY", "key_id"),
    ("NAME", "key"),
    ("DOMAIN", "domain"),
    ("FROM", "address"),
    ("WHAT", "what"),
    ("OUTCOME", "outcome"),
    ("REASON", "reason"),
    ("REQUEST", "request_id"),
];

/// Does what is said.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (client, mut output) = (args.remote.client()?, args.remote.output(out));
    let key = args.by.map(|key| key.to_string());
    let query = Query::of("/v1/admin/audit").with_some("key", key.as_deref());
    let path = query.with_some("what", args.what.as_deref()).with_some("outcome", args.outcome.as_deref()).0;
    output.rows(&client.list(&path, "acts", args.limit)?, COLUMNS)
}
