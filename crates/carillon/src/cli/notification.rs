//! `carillon notification`: what became of notifications.

use super::client::Query;
use super::failure::Failure;
use super::output::Column;
use super::remote::Remote;
use crate::web::segment;
use serde_json::Value;
use std::io::Write;

/// Arguments of `carillon notification`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List notifications, the newest first
    List {
        /// Only those of this domain
        #[arg(long)]
        domain: Option<String>,
        /// Only those to this account: a bare JID, or its local part
        #[arg(long, value_name = "JID")]
        to: Option<String>,
        /// Only those in these states; several are separated by commas
        #[arg(long = "state", value_delimiter = ',')]
        states: Vec<String>,
        /// Largest number of notifications to list
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
        limit: u16,
    },
    /// Show a notification: its states with their times, its pushes, and why it ended
    Show {
        /// Id of the notification, as `carillon send` prints it
        id: String,
    },
    /// Cancel a notification that has not reached its device
    #[command(alias = "delete")]
    Cancel {
        /// Id of the notification
        id: String,
    },
}

const COLUMNS: &[Column] = &[
    ("ID", "id"),
    ("TO", "to"),
    ("AUDIENCE", "audience"),
    ("STATE", "state"),
    ("ACCEPTED", "accepted_at"),
    ("ENDED", "ended_at"),
    ("REASON", "reason"),
];

/// What a notification's record begins with.
const ORDER: &[&str] = &[
    "id",
    "to",
    "state",
    "reason",
    "acknowledged_by",
    "accepted_at",
    "send_at",
    "stored_at",
    "sent_at",
    "ended_at",
];

/// Does what is said.
pub(super) fn run(args: Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (client, mut output) = (args.remote.client()?, args.remote.output(out));
    match args.command {
        Command::List { domain, to, states, limit } => {
            let states = (!states.is_empty()).then(|| states.join(","));
            let query = Query::of("/v1/notifications")
                .with("limit", &limit.to_string())
                .with_some("domain", domain.as_deref())
                .with_some("to", to.as_deref())
                .with_some("state", states.as_deref());
            output.rows(&client.rows(&query.0, "notifications")?, COLUMNS)
        }
        Command::Show { id } => {
            let mut found = client.get(&path(&id))?;
            if !output.is_json() {
                list_pushes(&mut found);
            }
            output.record(&found, ORDER)
        }
        Command::Cancel { id } => {
            let ended = client.delete(&path(&id))?;
            let state = ended.get("state").and_then(Value::as_str).unwrap_or("cancelled");
            output.done(&format!("{id}  {state}"), &ended)
        }
    }
}

/// Puts a line for people in the place of each push.
fn list_pushes(found: &mut Value) {
    let Some(members) = found.as_object_mut() else { return };
    let Some(Value::Array(pushes)) = members.remove("pushes") else { return };
    for (push, number) in pushes.iter().zip(1..) {
        let said = |name: &str| push.get(name).and_then(Value::as_str).unwrap_or_default();
        let mut line = format!(
            "{} by {}: {}, sent {}, answered {}",
            said("node"),
            said("channel"),
            said("state"),
            said("sent_at"),
            said("answered_at")
        );
        if let Some(requests) = push.get("requests").and_then(Value::as_u64).filter(|requests| *requests > 1)
        {
            line += &format!(", {requests} requests");
        }
        if !said("reason").is_empty() {
            line += &format!(" ({})", said("reason"));
        }
        members.insert(format!("push.{number}"), line.into());
    }
}

fn path(id: &str) -> String {
    format!("/v1/notifications/{}", segment(id))
}
