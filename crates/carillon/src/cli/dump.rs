//! `carillon dump`: the flight recorders of a node.

use super::client::Query;
use super::failure::Failure;
use super::output::Column;
use super::remote::Remote;
use serde_json::Value;
use std::io::Write;

/// What `carillon dump` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Number of entries of each shard
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=4096))]
    last: u16,
}

const COLUMNS: &[Column] =
    &[("SHARD", "shard"), ("AT", "at_ms"), ("KIND", "kind"), ("CONNECTION", "connection"), ("SIZE", "size")];

/// Does what is said.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let query = Query::of("/v1/dump").with("last", &args.last.to_string());
    let shards = args.remote.client()?.rows(&query.0, "shards")?;
    let rows: Vec<Value> = shards.iter().flat_map(rows_of).collect();
    args.remote.output(out).rows(&rows, COLUMNS)
}

/// The entries of a shard, each with its shard.
fn rows_of(shard: &Value) -> Vec<Value> {
    let entries = shard["entries"].as_array().cloned().unwrap_or_default();
    let with_shard = |mut entry: Value| {
        entry["shard"] = shard["shard"].clone();
        entry
    };
    entries.into_iter().map(with_shard).collect()
}
