//! `carillon autoscale explain`: says from the decision log why there is as much capacity as there is.

use super::super::failure::Failure;
use super::super::output::{Column, Output};
use super::event::Event;
use carillon_core::model::UnixMs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

/// Arguments of `carillon autoscale explain`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The decision log
    #[arg(default_value = "autoscale.ndjson", value_name = "FILE.ndjson")]
    log: PathBuf,
    /// How many decisions, from the last one back
    #[arg(long, value_name = "N", default_value_t = 20)]
    last: usize,
    /// Only those that changed something, or were to
    #[arg(long)]
    changes: bool,
    /// Only those at or after this time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<UnixMs>,
    /// Print JSON: a list of the decisions with their inputs
    #[arg(long)]
    json: bool,
}

const COLUMNS: &[Column] = &[
    ("AT", "at"),
    ("ACTION", "action"),
    ("GRANTED", "granted"),
    ("UNITS", "units"),
    ("WANTED", "wanted"),
    ("DEMAND", "demand"),
    ("WHY", "why"),
    ("OUTCOME", "outcome"),
];

/// The longest line that is read.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Does what is said.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let mut kept = std::collections::VecDeque::new();
    read(&args.log, |event| {
        let changes = event.action != "hold" || !args.changes;
        let is_late_enough = args.since.is_none_or(|since| UnixMs::from_rfc3339(&event.at) >= Some(since));
        if changes && is_late_enough {
            kept.push_back(event);
            if kept.len() > args.last {
                kept.pop_front();
            }
        }
    })
    .map_err(Failure::Usage)?;
    let mut values: Vec<_> = kept
        .iter()
        .map(|event| serde_json::to_value(event).expect("an event has no keys that are not text"))
        .collect();
    if !args.json {
        for value in &mut values {
            let outcome = match &value["outcome"] {
                serde_json::Value::Object(refused) => {
                    format!("refused: {}", refused["refused"].as_str().unwrap_or_default())
                }
                other => other.as_str().unwrap_or_default().replace('-', " "),
            };
            value["outcome"] = outcome.into();
        }
    }
    Output::new(out, args.json).rows(&values, COLUMNS)
}

fn moment(text: &str) -> Result<UnixMs, String> {
    UnixMs::from_rfc3339(text).ok_or_else(|| "expected a time such as 2026-12-24T18:00:00Z".to_owned())
}

/// Where decisions are that have left the log.
pub(super) fn earlier(log: &Path) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

/// Gives each decision of a log to `take`, the oldest first, earlier ones included.
///
/// # Errors
/// A file cannot be read, or a line is none of a decision log. The last one may be cut: whoever wrote it was ended.
pub(super) fn read(log: &Path, mut take: impl FnMut(Event)) -> Result<(), String> {
    let earlier = earlier(log);
    if earlier.exists() {
        read_file(&earlier, &mut take)?;
    }
    read_file(log, take)
}

fn read_file(log: &Path, mut take: impl FnMut(Event)) -> Result<(), String> {
    let wrong = |why: String| format!("{}: {why}", log.display());
    let file = std::fs::File::open(log).map_err(|error| wrong(error.to_string()))?;
    let mut lines = BufReader::new(file);
    let (mut line, mut number) = (Vec::new(), 0);
    loop {
        line.clear();
        number += 1;
        let mut limited = std::io::Read::take(&mut lines, LINE_BYTES_MAX as u64);
        if limited.read_until(b'\n', &mut line).map_err(|error| wrong(error.to_string()))? == 0 {
            return Ok(());
        }
        match serde_json::from_slice(&line) {
            Ok(event) => take(event),
            Err(_) if line.last() != Some(&b'\n') && line.len() < LINE_BYTES_MAX => return Ok(()),
            Err(error) => return Err(wrong(format!("line {number} is no decision: {error}"))),
        }
    }
}
