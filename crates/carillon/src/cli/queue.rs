//! `carillon queue`: durable queues that a node takes messages from, and their dead letters.

use super::client::Client;
use super::confirm::confirm;
use super::failure::Failure;
use super::output::{Column, Output};
use super::remote::Remote;
use crate::web::segment;
use serde_json::{Value, json};
use std::io::Write;

/// What `carillon queue` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show the queues and how taking messages from them goes, or one of them; exit code 1 if no messages can be taken
    Status {
        /// Name of the queue in the settings
        queue: Option<String>,
    },
    /// Show the oldest dead letters of a queue and why they were refused; they stay where they are
    Peek {
        /// Name of the queue in the settings
        queue: String,
        /// Largest number of dead letters to show, 1 to 1000
        #[arg(long, default_value_t = 20)]
        max: u16,
    },
    /// Make the oldest dead letters of a queue messages of it again
    Redrive {
        /// Name of the queue in the settings
        queue: String,
        /// Largest number of dead letters to send again, 1 to 1000
        #[arg(long, default_value_t = 100)]
        max: u16,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

const COLUMNS: &[Column] = &[
    ("QUEUE", "name"),
    ("STATE", "state"),
    ("WAITING", "waiting"),
    ("UNSETTLED", "unsettled"),
    ("OLDEST", "oldest"),
    ("DEAD", "dead"),
    ("ACCEPTED", "accepted"),
    ("REPEATED", "repeated"),
    ("PUT BACK", "put_back"),
    ("IN FLIGHT", "in_flight"),
];

const DEAD: &[Column] =
    &[("LETTER", "letter"), ("DIED", "died_at"), ("MESSAGE", "id"), ("CODE", "code"), ("DETAIL", "detail")];

/// What the record of a queue begins with.
const ORDER: &[&str] =
    &["name", "state", "why", "waiting", "unsettled", "oldest", "dead", "received", "accepted", "repeated"];

/// Does what is said.
pub(super) fn run(args: Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (client, mut output) = (args.remote.client()?, args.remote.output(out));
    match args.command {
        Command::Status { queue: None } => list(&client, &mut output),
        Command::Status { queue: Some(queue) } => {
            let found = client.get(&path(&queue))?;
            output.record(&found, ORDER)?;
            judged(&[found])
        }
        Command::Peek { queue, max } => {
            let found = client.get(&format!("{}/dead?max={max}", path(&queue)))?;
            output.rows(found["dead"].as_array().map_or(&[][..], Vec::as_slice), DEAD)
        }
        Command::Redrive { queue, max, yes } => {
            confirm(yes, &format!("makes up to {max} dead letters messages of {queue} again"))?;
            let done = client.post(&format!("{}/redrive?max={max}", path(&queue)), &json!({}))?;
            output.done(&format!("{} dead letters are messages again", done["redriven"]), &done)
        }
    }
}

fn path(queue: &str) -> String {
    format!("/v1/queues/{}", segment(queue))
}

fn list(client: &Client, output: &mut Output<'_>) -> Result<(), Failure> {
    let answer = client.get("/v1/queues")?;
    let queues = answer["queues"].as_array().cloned().unwrap_or_default();
    if output.is_json() {
        output.rows(&queues, COLUMNS)?;
    } else {
        let rows: Vec<Value> = queues.iter().map(row).collect();
        output.rows(&rows, COLUMNS)?;
    }
    judged(&queues)
}

/// A queue in a row, where what was put back is one number.
fn row(queue: &Value) -> Value {
    let mut row = queue.clone();
    let put_back =
        queue["put_back"].as_object().into_iter().flatten().filter_map(|(_, count)| count.as_u64());
    row["put_back"] = put_back.sum::<u64>().into();
    row
}

/// A failure if no messages can be taken from one of them.
fn judged(queues: &[Value]) -> Result<(), Failure> {
    let why = |queue: &Value| {
        let why = queue["why"].as_str()?;
        Some(format!("{}: {why}", queue["name"].as_str().unwrap_or_default()))
    };
    let problems: Vec<String> = queues.iter().filter_map(why).collect();
    if problems.is_empty() { Ok(()) } else { Err(Failure::Refused(problems.join("; "))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tests::{FakeNode, asked, ok};

    #[test]
    fn queues_are_rows_and_what_is_wrong_is_the_failure() {
        let queue = |name: &str, state: &str| {
            json!({"name": name, "state": state, "waiting": 3, "dead": 1, "accepted": 7, "repeated": 0,
                "put_back": {"unavailable": 2, "too-fast": 1}, "in_flight": 0})
        };
        let mut away = queue("b", "away");
        away["why"] = "no route".into();
        let node = FakeNode::new(vec![
            ok(&json!({"queues": [queue("a", "pulling")]})),
            ok(&json!({"queues": [queue("a", "pulling"), away]})),
        ]);
        let (text, done) = node.run(&["queue", "status"]);
        assert_eq!(done, Ok(()));
        let words: Vec<&str> = text.lines().nth(1).unwrap_or_default().split_whitespace().collect();
        assert_eq!(words, ["a", "pulling", "3", "-", "-", "1", "7", "0", "3", "0"]);
        assert_eq!(node.run(&["queue", "status"]).1, Err((1, "b: no route".to_owned())));
        assert_eq!(node.asked(), [asked("GET /v1/queues", ""), asked("GET /v1/queues", "")]);
    }

    #[test]
    fn dead_letters_are_shown_and_sent_again() {
        let letter = json!({"letter": "7", "id": "S/1/2", "died_at": "2026-01-01T00:00:00.000Z", "code": "not-json", "detail": "no"});
        let node = FakeNode::new(vec![ok(&json!({"dead": [letter]})), ok(&json!({"redriven": 1}))]);
        let (text, done) = node.run(&["queue", "peek", "a/b", "--max", "5"]);
        assert_eq!(done, Ok(()));
        assert!(text.contains("S/1/2") && text.contains("not-json"), "{text}");
        let (text, done) = node.run(&["queue", "redrive", "a", "--yes"]);
        assert_eq!((text.as_str(), done), ("1 dead letters are messages again\n", Ok(())));
        assert_eq!(
            node.asked(),
            [asked("GET /v1/queues/a%2Fb/dead?max=5", ""), asked("POST /v1/queues/a/redrive?max=100", "{}")]
        );
    }
}
