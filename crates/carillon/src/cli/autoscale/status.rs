//! `carillon autoscale status`: what the scalers that hold a lease of a node decided last.

use super::super::failure::Failure;
use super::super::output::Column;
use super::super::remote::Remote;
use super::event::Event;
use serde_json::{Value, json};
use std::io::Write;

/// Arguments of `carillon autoscale status`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
}

const COLUMNS: &[Column] = &[
    ("LEASE", "name"),
    ("HOLDER", "holder"),
    ("UNTIL", "until"),
    ("GRANTED", "granted"),
    ("UNITS", "units"),
    ("LAST DECISION", "said"),
];

/// As many as a node has.
const LIMIT: u32 = 1000;

/// Does what is said.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (client, mut output) = (args.remote.client()?, args.remote.output(out));
    let answer = client.get(&format!("/v1/admin/leases?limit={LIMIT}"))?;
    let leases = answer["leases"].as_array().map_or(&[][..], Vec::as_slice);
    if output.is_json() {
        return output.rows(leases, COLUMNS);
    }
    let rows: Vec<Value> = leases.iter().map(row).collect();
    output.rows(&rows, COLUMNS)
}

/// A lease in a row; a program that is no autoscaler holds one, too.
fn row(lease: &Value) -> Value {
    let mut row = lease.clone();
    if let Ok(event) = serde_json::from_value::<Event>(lease["state"].clone()) {
        (row["granted"], row["units"]) = (json!(event.granted), json!(event.units));
        row["said"] = event.sentence().into();
    }
    row
}
