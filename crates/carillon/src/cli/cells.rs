//! `carillon cells`: the cells of a front, and moving devices between them.

use super::client::Client;
use super::confirm::confirm;
use super::failure::Failure;
use super::output::{Column, Output, created};
use super::remote::Remote;
use crate::web::segment;
use serde_json::{Map, Value, json};
use std::io::Write;

/// What `carillon cells` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the cells
    List,
    /// Show the cells and the devices that move, or one cell; exit code 1 if a cell does not answer
    Status {
        /// Name of the cell
        cell: Option<String>,
    },
    /// Add a cell
    Add {
        /// Name of the cell: 1 to 32 of a-z, 0-9 and -
        cell: String,
        #[command(flatten)]
        settings: Settings,
    },
    /// Change a cell
    Set {
        /// Name of the cell
        cell: String,
        #[command(flatten)]
        settings: Settings,
    },
    /// Forget a cell that has no devices
    Delete {
        /// Name of the cell
        cell: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Move all devices of a cell to the others; it is given no new ones
    Drain {
        /// Name of the cell
        cell: String,
        /// Devices that may begin to move per second
        #[arg(long)]
        rate: Option<u32>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Have no more devices of a cell begin to move
    Pause {
        /// Name of the cell
        cell: String,
    },
    /// Go on with the drain of a cell
    Resume {
        /// Name of the cell
        cell: String,
    },
    /// End the drain of a cell: its devices stay, and it is given new ones
    Undrain {
        /// Name of the cell
        cell: String,
    },
    /// Move a device to another cell
    Move {
        /// The device: its id, or its bare JID
        device: String,
        /// Name of the cell
        to: String,
    },
}

/// What is said of a cell.
#[derive(Debug, clap::Args)]
struct Settings {
    /// URL of its HTTP API, such as https://eu-1.example.com
    #[arg(long, value_name = "URL")]
    cell_url: Option<String>,
    /// API key of the whole cell with scope admin
    #[arg(long, value_name = "KEY", env = "CARILLON_CELL_KEY", hide_env_values = true)]
    cell_key: Option<String>,
    /// How much of the new devices it is given, compared with the other cells
    #[arg(long)]
    weight: Option<u32>,
    /// Devices that may begin to move per second while it is drained
    #[arg(long)]
    rate: Option<u32>,
    /// Host name that its devices connect to; without it, their domain
    #[arg(long)]
    host: Option<String>,
    /// Port for XMPP over TCP with STARTTLS
    #[arg(long)]
    c2s_port: Option<u16>,
    /// Port for XMPP over direct TLS
    #[arg(long)]
    c2s_tls_port: Option<u16>,
    /// URL for XMPP over WebSocket
    #[arg(long)]
    websocket_url: Option<String>,
}

const COLUMNS: &[Column] = &[
    ("CELL", "cell"),
    ("STATE", "state"),
    ("WEIGHT", "weight"),
    ("DRAIN", "drain"),
    ("DEVICES", "devices"),
    ("HELD", "held"),
    ("MOVED", "moved"),
    ("URL", "url"),
];

const MOVES: &[Column] = &[("DEVICE", "device"), ("FROM", "from"), ("TO", "to"), ("STATE", "state")];

/// What the record of a cell begins with.
const ORDER: &[&str] = &[
    "cell",
    "state",
    "why",
    "away_ms",
    "url",
    "weight",
    "drain",
    "rate",
    "devices",
    "held",
    "held_bytes",
    "moved",
];

/// Does what is said.
pub(super) fn run(args: Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (client, mut output) = (args.remote.client()?, args.remote.output(out));
    match args.command {
        Command::List => output.rows(&client.rows(CELLS, "cells")?, COLUMNS),
        Command::Status { cell: None } => status(&client, &mut output),
        Command::Status { cell: Some(cell) } => {
            let found = client.get(&path(&cell))?;
            output.record(&found, ORDER)?;
            judged(&[found])
        }
        Command::Add { cell, settings } => {
            let (added, is_new) = client.create(&path(&cell), &settings.body(None)?)?;
            output.done(&created("cell", &cell, is_new), &added)
        }
        Command::Set { cell, settings } => {
            let endpoints = client.get(&path(&cell))?["endpoints"].take();
            let changed = client.patch(&path(&cell), &settings.body(Some(endpoints))?)?;
            output.done(&format!("changed {cell}"), &changed)
        }
        Command::Delete { cell, yes } => {
            confirm(yes, &format!("has the front forget the cell {cell}"))?;
            let gone = client.delete(&path(&cell))?;
            output.done(&format!("deleted {cell}"), &gone)
        }
        Command::Drain { cell, rate, yes } => {
            let devices = client.get(&path(&cell))?["devices"].as_u64().unwrap_or_default();
            confirm(
                yes,
                &format!("moves {devices} devices of {cell} to other cells, which ends their sessions"),
            )?;
            let mut body = json!({"drain": "running"});
            if let Some(rate) = rate {
                body["rate"] = rate.into();
            }
            let cell_now = client.patch(&path(&cell), &body)?;
            output.done(&format!("{cell} is drained: see `carillon cells status {cell}`"), &cell_now)
        }
        Command::Pause { cell } => {
            drain(&client, &mut output, &cell, "paused", "no more devices begin to move")
        }
        Command::Resume { cell } => drain(&client, &mut output, &cell, "running", "its devices move"),
        Command::Undrain { cell } => drain(&client, &mut output, &cell, "off", "its devices stay"),
        Command::Move { device, to } => {
            let moving = client.post("/v1/moves", &json!({"device": device, "to": to}))?;
            output.done(&format!("{device} moves to {to}"), &moving)
        }
    }
}

const CELLS: &str = "/v1/cells";

fn path(cell: &str) -> String {
    format!("{CELLS}/{}", segment(cell))
}

fn status(client: &Client, output: &mut Output<'_>) -> Result<(), Failure> {
    let (cells, moves) = (client.rows(CELLS, "cells")?, client.rows("/v1/moves", "moves")?);
    if output.is_json() {
        output.record(&json!({"cells": cells, "moves": moves}), &[])?;
    } else {
        output.rows(&cells, COLUMNS)?;
        if !moves.is_empty() {
            output.text("\n")?;
            output.rows(&moves, MOVES)?;
        }
    }
    judged(&cells)
}

fn drain(
    client: &Client,
    output: &mut Output<'_>,
    cell: &str,
    word: &str,
    said: &str,
) -> Result<(), Failure> {
    let now = client.patch(&path(cell), &json!({"drain": word}))?;
    output.done(&format!("{cell}: {said}"), &now)
}

/// A failure if one of them does not answer.
fn judged(cells: &[Value]) -> Result<(), Failure> {
    let why = |cell: &Value| {
        let why = cell["why"].as_str()?;
        Some(format!("{} is away: {why}", cell["cell"].as_str().unwrap_or_default()))
    };
    let problems: Vec<String> = cells.iter().filter_map(why).collect();
    if problems.is_empty() { Ok(()) } else { Err(Failure::Refused(problems.join("; "))) }
}

impl Settings {
    /// The body of a request; with the endpoints that there are, what changes.
    fn body(self, present: Option<Value>) -> Result<Value, Failure> {
        let is_new = present.is_none();
        let Settings { cell_url, cell_key, weight, rate, host, c2s_port, c2s_tls_port, websocket_url } = self;
        if is_new && (cell_url.is_none() || cell_key.is_none()) {
            return Err(Failure::Usage("a cell needs --cell-url and --cell-key".to_owned()));
        }
        let mut body = named([
            ("url", json!(cell_url)),
            ("key", json!(cell_key)),
            ("weight", json!(weight)),
            ("rate", json!(rate)),
        ]);
        let endpoints = named([
            ("host", json!(host)),
            ("c2s_port", json!(c2s_port)),
            ("c2s_tls_port", json!(c2s_tls_port)),
            ("websocket_url", json!(websocket_url)),
        ]);
        if !endpoints.is_empty() {
            let mut all = present.and_then(|value| value.as_object().cloned()).unwrap_or_default();
            all.extend(endpoints);
            body.insert("endpoints".to_owned(), all.into());
        }
        Ok(body.into())
    }
}

fn named<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tests::{FakeNode, asked, ok};

    #[test]
    fn cells_are_rows_and_one_that_is_away_is_the_failure() {
        let cell = json!({"cell": "a", "state": "away", "why": "refused", "weight": 100, "drain": "off", "devices": 3, "held": 1,
            "moved": 0, "url": "http://a"});
        let moving = json!({"device": "d@x", "from": "b", "to": "a", "state": "copying"});
        let node = FakeNode::new(vec![ok(&json!({"cells": [cell]})), ok(&json!({"moves": [moving]}))]);
        let (text, done) = node.run(&["cells", "status"]);
        assert!(text.contains("away") && text.contains("copying"), "{text}");
        assert_eq!(done, Err((1, "a is away: refused".to_owned())));
        assert_eq!(node.asked(), [asked("GET /v1/cells", ""), asked("GET /v1/moves", "")]);
    }

    #[test]
    fn what_is_not_named_of_a_cell_stays() {
        let present = json!({"cell": "a", "endpoints": {"host": "h", "c2s_port": 5222}});
        let node = FakeNode::new(vec![ok(&present), ok(&json!({}))]);
        assert_eq!(node.run(&["cells", "set", "a", "--weight", "0", "--c2s-tls-port", "5223"]).1, Ok(()));
        let body = r#"{"endpoints":{"c2s_port":5222,"c2s_tls_port":5223,"host":"h"},"weight":0}"#;
        assert_eq!(node.asked(), [asked("GET /v1/cells/a", ""), asked("PATCH /v1/cells/a", body)]);
        let node = FakeNode::new(vec![ok(&json!({"devices": 2})), ok(&json!({}))]);
        assert_eq!(node.run(&["cells", "drain", "a", "--rate", "5", "--yes"]).1, Ok(()));
        assert_eq!(node.asked()[1], asked("PATCH /v1/cells/a", r#"{"drain":"running","rate":5}"#));
    }
}
