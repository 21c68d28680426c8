//! `carillon webhook`: URLs that are told how notifications ended, and what happened to rooms.

use super::client::Client;
use super::confirm::confirm;
use super::failure::Failure;
use super::output::{Column, Output};
use super::remote::Remote;
use serde_json::{Map, Value, json};
use std::io::Write;

/// Arguments of `carillon webhook`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List webhooks
    List {
        /// Only webhooks of this domain
        #[arg(long)]
        domain: Option<String>,
    },
    /// Create a webhook and print its secret; it cannot be shown again
    Create {
        /// Where requests go: `https://` and a public address
        #[arg(value_name = "URL")]
        target: String,
        /// The ends that it is told of, all without it; several are separated by commas
        #[arg(long = "state", value_delimiter = ',', value_parser = ENDS)]
        states: Vec<String>,
        /// The types of events that it is told of, `notification` without it; several are separated by commas
        #[arg(long = "type", value_delimiter = ',', value_parser = TYPES)]
        types: Vec<String>,
        /// Tell it the text of messages and subjects of rooms; the key needs scope `read_messages`
        #[arg(long)]
        contents: bool,
        /// Domain whose notifications it is told of; without it, those of all domains
        #[arg(long)]
        domain: Option<String>,
        /// What requests are signed with, `whsec_` and base64; without it the node makes a secret
        #[arg(long)]
        secret: Option<String>,
    },
    /// Show a webhook and the state of its deliveries
    Show {
        /// Number of the webhook
        id: u32,
    },
    /// Change a webhook; what is not given stays as it is
    #[command(alias = "update")]
    Set {
        /// Number of the webhook
        id: u32,
        #[command(flatten)]
        change: Change,
    },
    /// Delete a webhook with its dead letters
    Delete {
        /// Number of the webhook
        id: u32,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Send a request without events, and print the response
    Test {
        /// Number of the webhook
        id: u32,
    },
    /// List the events that the receiver did not take
    DeadLetters {
        /// Number of the webhook
        id: u32,
        /// Largest number of dead letters to list
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Send dead letters again: the oldest, 100 at most, or one
    Resend {
        /// Number of the webhook
        id: u32,
        /// Number of the event
        event: Option<u64>,
    },
}

#[derive(Debug, clap::Args)]
struct Change {
    /// Where requests go
    #[arg(long, value_name = "URL")]
    target: Option<String>,
    /// The ends that it is told of; several are separated by commas
    #[arg(long = "state", value_delimiter = ',', value_parser = ENDS)]
    states: Vec<String>,
    /// The types of events that it is told of; several are separated by commas
    #[arg(long = "type", value_delimiter = ',', value_parser = TYPES)]
    types: Vec<String>,
    /// Whether it is told the text of messages and subjects of rooms
    #[arg(long, value_name = "BOOL")]
    contents: Option<bool>,
    /// Whether events are sent
    #[arg(long, value_name = "BOOL")]
    enabled: Option<bool>,
    /// Have the node make another secret, and print it
    #[arg(long, conflicts_with = "secret")]
    rotate_secret: bool,
    /// Another secret
    #[arg(long)]
    secret: Option<String>,
}

const ENDS: [&str; 6] = ["acknowledged", "expired", "replaced", "cancelled", "dropped", "opened"];

const TYPES: [&str; 7] = [
    "notification",
    "room_created",
    "room_destroyed",
    "room_members",
    "room_subject",
    "room_message",
    "room_moderated",
];

const COLUMNS: &[Column] = &[
    ("ID", "id"),
    ("DOMAIN", "domain"),
    ("URL", "url"),
    ("STATUS", "status"),
    ("BEHIND", "behind"),
    ("FAILURES", "failures"),
    ("DEAD LETTERS", "dead_letters"),
];

const LETTER_COLUMNS: &[Column] = &[("EVENT", "event"), ("TRIED", "at"), ("ERROR", "error")];

/// What a webhook's record begins with.
const ORDER: &[&str] = &["id", "url", "domain", "types", "states", "status", "behind", "failures"];

/// Does what is said.
pub(super) fn run(args: Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (client, mut output) = (args.remote.client()?, args.remote.output(out));
    match args.command {
        Command::List { domain } => list(&client, &mut output, domain.as_deref()),
        Command::Create { target, states, types, contents, domain, secret } => {
            let mut body = json!({ "url": target });
            let named = [
                ("domain", domain.map(Value::from)),
                ("secret", secret.map(Value::from)),
                ("states", (!states.is_empty()).then(|| Value::from(states))),
                ("types", (!types.is_empty()).then(|| Value::from(types))),
                ("contents", contents.then_some(Value::Bool(true))),
            ];
            for (key, value) in named {
                if let Some(value) = value {
                    body[key] = value;
                }
            }
            let made = client.post("/v1/webhooks", &body)?;
            if !output.is_json() {
                let id = made.get("id").and_then(Value::as_u64).unwrap_or_default();
                eprintln!("created webhook {id}; its secret, which cannot be shown again:");
            }
            // The secret alone, so that it can go into a variable: SECRET=$(carillon webhook create …).
            output.done(made.get("secret").and_then(Value::as_str).unwrap_or_default(), &made)
        }
        Command::Show { id } => output.record(&client.get(&path(id, ""))?, ORDER),
        Command::Set { id, change } => {
            let changed = client.patch(&path(id, ""), &change.body())?;
            let said = match changed.get("secret").and_then(Value::as_str) {
                Some(secret) => secret.to_owned(),
                None => format!("changed webhook {id}"),
            };
            output.done(&said, &changed)
        }
        Command::Delete { id, yes } => {
            confirm(yes, &format!("deletes webhook {id} with its dead letters"))?;
            let gone = client.delete(&path(id, ""))?;
            output.done(&format!("deleted webhook {id}"), &gone)
        }
        Command::Test { id } => {
            let tried = client.post(&path(id, "/test"), &json!({}))?;
            output.record(&tried, &["taken", "status", "took_ms"])?;
            failed_unless_taken(&tried, tried.get("taken") == Some(&Value::Bool(true)))
        }
        Command::DeadLetters { id, limit } => {
            let letters = client.list(&path(id, "/dead-letters"), "dead_letters", limit)?;
            output.rows(&letters, LETTER_COLUMNS)
        }
        Command::Resend { id, event } => {
            let event = event.map(|event| format!("/{event}")).unwrap_or_default();
            let sent = client.post(&path(id, &format!("/dead-letters{event}/resend")), &json!({}))?;
            output.record(&sent, &["taken", "left"])?;
            failed_unless_taken(&sent, sent.get("error").is_none_or(Value::is_null))
        }
    }
}

fn list(client: &Client, output: &mut Output<'_>, domain: Option<&str>) -> Result<(), Failure> {
    let mut webhooks = client.rows("/v1/webhooks", "webhooks")?;
    webhooks.retain(|webhook| domain.is_none() || webhook.get("domain").and_then(Value::as_str) == domain);
    if !output.is_json() {
        for webhook in &mut webhooks {
            let letters = webhook.pointer("/dead_letters/count").cloned();
            webhook["dead_letters"] = letters.unwrap_or_default();
        }
    }
    output.rows(&webhooks, COLUMNS)
}

/// The exit code says what the receiver said.
fn failed_unless_taken(answer: &Value, taken: bool) -> Result<(), Failure> {
    let error = answer.get("error").and_then(Value::as_str).unwrap_or("it was not taken");
    if taken { Ok(()) } else { Err(Failure::Refused(format!("the receiver: {error}"))) }
}

impl Change {
    fn body(self) -> Value {
        let Change { target, states, types, contents, enabled, rotate_secret, secret } = self;
        let named = [
            ("url", target.map(Value::from)),
            ("states", (!states.is_empty()).then(|| Value::from(states))),
            ("types", (!types.is_empty()).then(|| Value::from(types))),
            ("contents", contents.map(Value::from)),
            ("enabled", enabled.map(Value::from)),
            ("rotate_secret", rotate_secret.then_some(Value::Bool(true))),
            ("secret", secret.map(Value::from)),
        ];
        let given = named.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        Value::Object(given.collect::<Map<_, _>>())
    }
}

fn path(id: u32, rest: &str) -> String {
    format!("/v1/webhooks/{id}{rest}")
}
