//! `carillon broadcast`: notifications for every account of a domain.

use super::client::Client;
use super::confirm::confirm;
use super::failure::Failure;
use super::output::Column;
use super::remote::Remote;
use super::send::json_argument;
use crate::web::segment;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::io::Write;

/// Arguments of `carillon broadcast`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Domain to act in; without it, the domain of the key, or else the node's first
    #[arg(long, global = true)]
    domain: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Send a notification to every account of the domain and print its id
    Send(SendArgs),
    /// List broadcasts, newest first
    List {
        /// The most that are listed
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Show a broadcast and how far it has come
    Show {
        /// Id of the broadcast
        id: String,
        /// Show what became of it at this account instead
        #[arg(long, value_name = "ACCOUNT")]
        account: Option<String>,
    },
    /// Change how fast a broadcast is given, or when
    Set {
        /// Id of the broadcast
        id: String,
        #[command(flatten)]
        pace: PaceArgs,
    },
    /// Give a broadcast to nobody until it is resumed
    Pause {
        /// Id of the broadcast
        id: String,
    },
    /// Go on with a broadcast
    Resume {
        /// Id of the broadcast
        id: String,
    },
    /// End a broadcast
    Abort {
        /// Id of the broadcast
        id: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

/// What is sent.
#[derive(Debug, clap::Args)]
struct SendArgs {
    /// Payload of the notification: JSON, or - to read it from standard input
    #[arg(long, value_name = "JSON")]
    payload: String,
    /// Accounts to deliver to: those in use (active), also those asleep (connected), or also those that return later (always)
    #[arg(long, value_parser = ["active", "connected", "always"])]
    audience: Option<String>,
    /// Seconds for which it is given
    #[arg(long, value_name = "SECONDS")]
    ttl: Option<u64>,
    /// Priority that clients are told
    #[arg(long, value_parser = ["low", "normal", "high"])]
    priority: Option<String>,
    /// Only sessions that follow this topic
    #[arg(long)]
    topic: Option<String>,
    /// Count who would be given it, and send nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    pace: PaceArgs,
}

/// How it is given.
#[derive(Debug, clap::Args)]
struct PaceArgs {
    /// Deliveries per second at most, or `none`
    #[arg(long, value_name = "N")]
    rate: Option<String>,
    /// When it begins (RFC 3339), or `none`
    #[arg(long, value_name = "TIME")]
    not_before: Option<String>,
    /// Hours of the day at which it is given, such as 09:00-21:00 or 09:00-21:00+09:00, or `none`
    #[arg(long, value_name = "HOURS")]
    window: Option<String>,
}

const COLUMNS: &[Column] = &[
    ("ID", "id"),
    ("STATE", "state"),
    ("AUDIENCE", "audience"),
    ("GIVEN", "given"),
    ("ACKNOWLEDGED", "acknowledged"),
    ("ACCEPTED", "accepted_at"),
    ("EXPIRES", "expires_at"),
];

/// What a broadcast's record begins with.
const ORDER: &[&str] = &["id", "domain", "state", "audience", "priority", "given", "acknowledged"];

/// Does what is said.
pub(super) fn run(args: Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (client, mut output) = (args.remote.client()?, args.remote.output(out));
    let domain = match args.domain {
        Some(domain) => domain,
        None => own_domain(&client)?,
    };
    let all = format!("/v1/domains/{}/notifications", segment(&domain));
    let one = |id: &str| format!("{all}/{}", segment(id));
    match args.command {
        Command::Send(sent) => {
            let answer = client.post(&all, &sent.body()?)?;
            if sent.dry_run {
                return output.record(&answer, &["accounts", "reached_now"]);
            }
            // The id alone, so that it can go into a variable.
            output.done(answer.get("id").and_then(Value::as_str).unwrap_or_default(), &answer)
        }
        Command::List { limit } => output.rows(&client.list(&all, "broadcasts", limit)?, COLUMNS),
        Command::Show { id, account: None } => output.record(&client.get(&one(&id))?, ORDER),
        Command::Show { id, account: Some(account) } => {
            let path = format!("{}/devices/{}", one(&id), segment(&account));
            output.record(&client.get(&path)?, &["id", "device", "state"])
        }
        Command::Set { id, pace } => {
            let changed = client.patch(&one(&id), &Value::Object(pace.members()?))?;
            output.done(&format!("changed broadcast {id}"), &changed)
        }
        Command::Pause { id } => {
            let changed = client.patch(&one(&id), &json!({ "paused": true }))?;
            output.done(&format!("paused broadcast {id}"), &changed)
        }
        Command::Resume { id } => {
            let changed = client.patch(&one(&id), &json!({ "paused": false }))?;
            output.done(&format!("resumed broadcast {id}"), &changed)
        }
        Command::Abort { id, yes } => {
            confirm(yes, &format!("ends broadcast {id}: who was not given it is not given it any more"))?;
            output.done(&format!("aborted broadcast {id}"), &client.delete(&one(&id))?)
        }
    }
}

/// The domain that the key acts in.
fn own_domain(client: &Client) -> Result<String, Failure> {
    let key = client.get("/v1/key")?;
    Ok(key.get("default_domain").and_then(Value::as_str).unwrap_or_default().to_owned())
}

/// A broadcast to be sent; the payload goes as it was written.
#[derive(serde::Serialize)]
struct Body {
    payload: Box<RawValue>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl SendArgs {
    fn body(&self) -> Result<Body, Failure> {
        let mut others = self.pace.members()?;
        others.retain(|_, value| !value.is_null());
        let given = [
            ("audience", self.audience.clone().map(Value::from)),
            ("ttl", self.ttl.map(Value::from)),
            ("priority", self.priority.clone().map(Value::from)),
            ("topic", self.topic.clone().map(Value::from)),
            ("dry_run", self.dry_run.then_some(Value::Bool(true))),
        ];
        others.extend(given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        Ok(Body { payload: json_argument("--payload", &self.payload)?, others })
    }
}

impl PaceArgs {
    /// The members that are given; `none` is null.
    fn members(&self) -> Result<Map<String, Value>, Failure> {
        let mut members = Map::new();
        let mut put = |name: &str, text: &Option<String>, read: &dyn Fn(&str) -> Option<Value>| {
            let Some(text) = text else { return Ok::<(), Failure>(()) };
            let value = if text == "none" { Some(Value::Null) } else { read(text) };
            let wrong = || Failure::Usage(format!("--{}: `{text}` cannot be read", name.replace('_', "-")));
            members.insert(name.to_owned(), value.ok_or_else(wrong)?);
            Ok(())
        };
        put("rate", &self.rate, &|text| text.parse::<u32>().ok().map(Value::from))?;
        put("not_before", &self.not_before, &|text| Some(text.into()))?;
        put("window", &self.window, &window)?;
        Ok(members)
    }
}

/// `HH:MM-HH:MM`, and an offset.
fn window(text: &str) -> Option<Value> {
    let (from, rest) = text.split_once('-')?;
    let (to, offset) = rest.split_at_checked(5)?;
    let offset = if offset.is_empty() { "+00:00" } else { offset };
    Some(json!({ "from": from, "to": to, "utc_offset": offset }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_read() {
        let read = |text| window(text).map(|value| value.to_string());
        let utc = r#"{"from":"09:00","to":"21:00","utc_offset":"+00:00"}"#;
        assert_eq!(read("09:00-21:00").as_deref(), Some(utc));
        let behind = r#"{"from":"09:00","to":"21:00","utc_offset":"-03:30"}"#;
        assert_eq!(read("09:00-21:00-03:30").as_deref(), Some(behind));
        assert_eq!(read("09:00"), None);
        assert_eq!(read("09:00-9"), None);
    }

    #[test]
    fn none_takes_a_bound_away_and_is_nothing_to_send() {
        let pace = PaceArgs { rate: Some("none".into()), not_before: None, window: None };
        assert_eq!(Value::Object(pace.members().unwrap()).to_string(), r#"{"rate":null}"#);
        let wrong = PaceArgs { rate: Some("fast".into()), not_before: None, window: None };
        assert!(wrong.members().is_err());
    }
}
