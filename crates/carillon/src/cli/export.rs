//! `carillon account export`: all that a node keeps of an account.

use super::client::Client;
use super::failure::Failure;
use super::output::Output;
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// An archive of millions of messages takes minutes.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

/// Writes the lines to a file, or prints them.
pub(super) fn run(
    client: &Client,
    account: &str,
    file: Option<&Path>,
    output: &mut Output<'_>,
) -> Result<(), Failure> {
    let Some(path) = file else {
        return lines(client, account, &mut |line| output.text(&format!("{line}\n"))).map(drop);
    };
    // Nobody else is to read it, and nothing that is there is written over.
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let opened = opened.map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
    let mut file = BufWriter::new(opened);
    let records = lines(client, account, &mut |line| Ok(writeln!(file, "{line}")?))?;
    file.flush()?;
    let said = format!("wrote {records} records to {}", path.display());
    output.done(&said, &json!({ "records": records, "file": path.display().to_string() }))
}

/// Gives each line to `take`; how many records there were.
fn lines(
    client: &Client,
    account: &str,
    take: &mut dyn FnMut(&Value) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let mut end = None;
    client.each_line(&format!("{account}/export"), PATIENCE, &mut |line| {
        match line["kind"].as_str() {
            Some("end") => end = line["records"].as_u64(),
            Some("error") => {
                let detail = line["detail"].as_str().unwrap_or_default();
                return Err(Failure::Refused(format!("the export is not whole: {detail}")));
            }
            _ => {}
        }
        take(line)
    })?;
    end.ok_or_else(|| Failure::Refused("the export is not whole: the node's answer ended early".to_owned()))
}
