//! `carillon cluster`: how a cell is, where things are in it, draining and burying its nodes.

use super::client::Client;
use super::confirm::confirm;
use super::drain;
use super::failure::Failure;
use super::output::{Column, Output};
use super::remote::Remote;
use crate::web::segment;
use serde_json::{Value, json};
use std::io::Write;

/// What `carillon cluster` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show whether all is well, as the node that is asked sees it; exit code 1 if not
    Status,
    /// List the nodes, what each says of itself, and what passed between it and the node that is asked
    Nodes,
    /// Show which node is the home of an account, a topic (TOPIC@pubsub.DOMAIN) or a room (ROOM@rooms.DOMAIN), and where an account's connections
    /// are
    Where {
        /// Its JID
        jid: String,
    },
    /// Give the homes of a node to the others, and end its connections; it takes no new ones
    Drain {
        /// Name or number of the node
        node: String,
        #[command(flatten)]
        pace: drain::Pace,
    },
    /// Bury a node that is dead, without waiting for the others to find out
    ///
    /// Nothing that it has under way is committed from then on; its process ends if it still runs.
    Evict {
        /// Name or number of the node
        node: String,
        /// Why, for the log of the node that is asked
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// Bury it even if it is heard
        #[arg(long)]
        force: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

const NODES: &[Column] = &[
    ("NODE", "node"),
    ("NUMBER", "number"),
    ("STATE", "state"),
    ("HEARD", "beat_age_ms"),
    ("HOMES", "homes"),
    ("READY", "ready"),
    ("DRAIN", "drain"),
    ("CONNECTIONS", "connections"),
    ("RELAYED", "relayed"),
    ("SESSIONS", "sessions"),
    ("CARRIED", "carried"),
    ("POSTED", "posted"),
    ("TAKEN", "taken"),
    ("GAPS", "gaps"),
    ("VERSION", "version"),
];

const SESSIONS: &[Column] = &[("SESSION", "jid"), ("STATE", "state"), ("CONNECTION", "connection")];

/// What the record of a cell begins with.
const ORDER: &[&str] =
    &["well", "problems", "node", "alone", "fenced", "nodes.alive", "nodes.leaving", "nodes.silent"];

/// Does what is said.
pub(super) fn run(args: Args, out: &mut dyn Write) -> Result<(), Failure> {
    let client = args.remote.client()?;
    match args.command {
        Command::Status => status(&client, &mut args.remote.output(out)),
        Command::Nodes => nodes(&client, &mut args.remote.output(out)),
        Command::Where { jid } => locate(&client, &jid, &mut args.remote.output(out)),
        Command::Drain { node, pace } => {
            let path = format!("{NODES_PATH}/{}/drain", segment(&node));
            drain::drain(&args.remote, &client, &path, &pace, out)
        }
        Command::Evict { node, reason, force, yes } => {
            confirm(yes, &format!("buries the node {node}: its process ends if it runs"))?;
            let path = format!("{NODES_PATH}/{}/evict", segment(&node));
            let evicted = client.post(&path, &json!({"force": force, "reason": reason}))?;
            let name = evicted["node"].as_str().unwrap_or(&node);
            let said = match evicted["buried"].as_bool() {
                Some(false) => format!("{name} was dead already"),
                _ => format!("{name} is buried"),
            };
            args.remote.output(out).done(&said, &evicted)
        }
    }
}

/// Prints how the cell is; what is not well is the failure.
fn status(client: &Client, output: &mut Output<'_>) -> Result<(), Failure> {
    let cell = client.get("/v1/cluster")?;
    output.record(&cell, ORDER)?;
    if cell["well"] == true {
        return Ok(());
    }
    let problems = cell["problems"].as_array().into_iter().flatten().filter_map(Value::as_str);
    Err(Failure::Refused(format!("not all is well: {}", problems.collect::<Vec<_>>().join("; "))))
}

fn nodes(client: &Client, output: &mut Output<'_>) -> Result<(), Failure> {
    let answer = client.get(NODES_PATH)?;
    let nodes = answer["nodes"].as_array().cloned().unwrap_or_default();
    if output.is_json() {
        return output.rows(&nodes, NODES);
    }
    let rows: Vec<Value> = nodes.iter().map(row).collect();
    output.rows(&rows, NODES)
}

/// A node in a row: what it says of itself beside what is seen of it.
fn row(node: &Value) -> Value {
    let mut row = node.clone();
    let Some(members) = row.as_object_mut() else { return row };
    for said in ["ready", "connections", "relayed", "sessions", "carried", "version"] {
        members.insert(said.into(), node["report"][said].clone());
    }
    let drain = &node["report"]["drain"];
    let word = match drain["state"].as_str() {
        Some("draining") => json!(format!("{} left", drain["left"])),
        Some("drained") => json!("drained"),
        _ => Value::Null,
    };
    members.insert("drain".into(), word);
    let homes = node["homes"].as_f64().unwrap_or_default();
    members.insert("homes".into(), json!(format!("{:.0} %", homes * 100.0)));
    row
}

fn locate(client: &Client, jid: &str, output: &mut Output<'_>) -> Result<(), Failure> {
    let mut place = client.get(&format!("/v1/cluster/where/{}", segment(jid)))?;
    if output.is_json() {
        return output.record(&place, &[]);
    }
    let sessions = place["sessions"].take();
    if let Some(members) = place.as_object_mut() {
        members.remove("sessions");
    }
    output.record(&place, &["jid", "kind", "home", "partition"])?;
    match sessions.as_array() {
        Some(sessions) if !sessions.is_empty() => output.rows(sessions, SESSIONS),
        _ => Ok(()),
    }
}

const NODES_PATH: &str = "/v1/cluster/nodes";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tests::{FakeNode, asked, ok};

    #[test]
    fn a_cell_that_is_not_well_ends_with_1_and_says_why() {
        let cell = |well: bool, problems: &[&str]| {
            ok(&json!({"well": well, "problems": problems, "node": "a", "nodes": {"alive": 2, "silent": 1}}))
        };
        let node = FakeNode::new(vec![
            cell(true, &[]),
            cell(false, &["b was not heard for 4 s", "the store fails"]),
        ]);
        let (text, done) = node.run(&["cluster", "status"]);
        assert!(
            text.starts_with("well          yes\nproblems      -\nnode          a\nnodes.alive   2\n"),
            "{text}"
        );
        assert_eq!(done, Ok(()));
        let (text, failed) = node.run(&["cluster", "status"]);
        assert!(text.starts_with("well          no\n"), "{text}");
        let why = "not all is well: b was not heard for 4 s; the store fails";
        assert_eq!(failed, Err((1, why.to_owned())));
        assert_eq!(node.asked(), [asked("GET /v1/cluster", ""), asked("GET /v1/cluster", "")]);
    }

    #[test]
    fn nodes_are_rows_of_what_is_seen_and_what_they_say() {
        let drain = json!({"state": "draining", "left": 5});
        let report = json!({"ready": false, "connections": 7, "version": "1", "drain": drain});
        let nodes = json!([
            {"node": "a", "number": 1, "state": "leaving", "beat_age_ms": 20, "homes": 0.25, "report": report},
            {"node": "b", "number": 2, "state": "silent", "homes": 0.75, "report": null},
        ]);
        let node = FakeNode::new(vec![ok(&json!({ "nodes": nodes }))]);
        let (text, done) = node.run(&["cluster", "nodes"]);
        assert_eq!(done, Ok(()));
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[1][..11], ["a", "1", "leaving", "20", "ms", "25", "%", "no", "5", "left", "7"]);
        assert_eq!(words[2][..8], ["b", "2", "silent", "-", "75", "%", "-", "-"]);
    }

    #[test]
    fn a_node_is_drained_and_buried_by_its_name() {
        let drained = json!({"state": "drained", "total": 3, "left": 0, "ends_in_ms": 0});
        let node = FakeNode::new(vec![
            ok(&drained),
            ok(&json!({"node": "b", "number": 2, "buried": true})),
            ok(&json!({"jid": "a@x", "kind": "account", "home": "b", "partition": 7,
                "sessions": [{"jid": "a@x/r", "state": "connected", "connection": "c"}]})),
        ]);
        assert_eq!(
            node.run(&["cluster", "drain", "b/c", "--over", "2s"]),
            ("drained: none of 3 left\n".into(), Ok(()))
        );
        let evict = ["cluster", "evict", "b", "--reason", "gone", "--yes"];
        assert_eq!(node.run(&evict), ("b is buried\n".into(), Ok(())));
        let (text, _) = node.run(&["cluster", "where", "a@x"]);
        assert_eq!(
            text,
            "jid        a@x\nkind       account\nhome       b\npartition  7\nSESSION  STATE      CONNECTION\na@x/r    connected  c\n"
        );
        assert_eq!(
            node.asked(),
            [
                asked("PUT /v1/cluster/nodes/b%2Fc/drain", r#"{"over_ms":2000}"#),
                asked("POST /v1/cluster/nodes/b/evict", r#"{"force":false,"reason":"gone"}"#),
                asked("GET /v1/cluster/where/a%40x", ""),
            ]
        );
    }
}
