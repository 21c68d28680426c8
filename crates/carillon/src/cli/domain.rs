//! `carillon domain`: the tenants of a node and their policies.

use super::confirm::confirm;
use super::failure::Failure;
use super::output::{Column, created};
use super::remote::Remote;
use crate::web::segment;
use serde_json::{Map, Value};
use std::io::Write;

/// What `carillon domain` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List domains
    List,
    /// Show a domain: its policy, and what the operator of the node grants it
    Show {
        /// Host name of the domain
        domain: String,
    },
    /// Show how much of its quotas a domain uses
    Usage {
        /// Host name of the domain
        domain: String,
    },
    /// Create a domain
    #[command(alias = "add")]
    Create {
        /// Host name of the domain
        domain: String,
        #[command(flatten)]
        policy: Box<PolicyArgs>,
    },
    /// Change the policy of a domain; what is not given stays as it is
    Set {
        /// Host name of the domain
        domain: String,
        #[command(flatten)]
        policy: Box<PolicyArgs>,
    },
    /// Delete a domain with its accounts, topics, notifications and keys
    #[command(alias = "remove")]
    Delete {
        /// Host name of the domain
        domain: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, clap::Args)]
struct PolicyArgs {
    /// Whether a login ends the account's earlier session or is added to it
    #[arg(long, value_parser = ["single", "multi"])]
    sessions: Option<String>,
    /// Sessions of one account at the same time under `--sessions multi`, 1 to 1000
    #[arg(long, value_name = "N")]
    sessions_max: Option<u16>,
    /// Whether anyone can create an account over XMPP (XEP-0077)
    #[arg(long, value_name = "BOOL")]
    registration: Option<bool>,
    /// Whether accounts change their passwords and remove themselves over XMPP (XEP-0077)
    #[arg(long, value_name = "BOOL")]
    account_management: Option<bool>,
    /// Who can create topics over XMPP: any account, or none, so that only API keys create them
    #[arg(long, value_parser = ["any", "admin"])]
    pubsub_create: Option<String>,
    /// Whether a chat message is acknowledged to its sender only when it is stored, or acknowledged by the recipient's client; otherwise as soon as it is routed
    #[arg(long, value_name = "BOOL")]
    messages_durable: Option<bool>,
    /// Longest time that a session whose connection is lost waits for its client to resume it (XEP-0198), in milliseconds; 0: sessions end with their connections
    #[arg(long, value_name = "MS")]
    resumption_ms_max: Option<u32>,
    /// Whether the domain archives chat messages (XEP-0313); an account may opt out
    #[arg(long, value_name = "BOOL")]
    archive: Option<bool>,
    /// Days for which an archive keeps a message; 0 for ever
    #[arg(long, value_name = "DAYS")]
    archive_days: Option<u32>,
    /// Messages that the archive of one account keeps, the newest; 0 for any number
    #[arg(long, value_name = "N")]
    archive_messages_max: Option<u32>,
    /// Bytes of messages that the archive of one account keeps, the newest; 0 for any number
    #[arg(long, value_name = "BYTES")]
    archive_bytes_max: Option<u64>,
    /// API keys that are bound to the domain, 1 to 10000
    #[arg(long, value_name = "N")]
    keys_max: Option<u32>,
    /// Whether its accounts exchange stanzas with those of other domains that allow it, too
    #[arg(long, value_name = "BOOL")]
    other_domains: Option<bool>,
    /// Requests per second by all API keys that are bound to the domain, up to 1000000; 0 for any number
    #[arg(long, value_name = "N")]
    requests_per_second: Option<u32>,
    /// Stanzas per second that the clients of the domain may send together, up to 1000000; 0 for any number
    #[arg(long, value_name = "N")]
    stanzas_per_second: Option<u32>,
    /// Bytes per second that the clients of the domain may send together; 0 for any number
    #[arg(long, value_name = "BYTES")]
    bytes_per_second: Option<u32>,
    /// Who can create rooms over XMPP: any account, or none, so that only API keys create them
    #[arg(long, value_parser = ["any", "admin"])]
    rooms_create: Option<String>,
    /// Rooms that one account may own by creating them, up to 1000000; 0 for any number
    #[arg(long, value_name = "N")]
    rooms_owned_max: Option<u32>,
    /// Rooms that the domain may have, up to 1000000; 0 for any number
    #[arg(long, value_name = "N")]
    rooms_max: Option<u32>,
    /// Days for which archives of rooms keep a message; 0 for as long as other archives
    #[arg(long, value_name = "DAYS")]
    room_archive_days: Option<u32>,
    /// What event streams and webhooks are told of rooms: nothing, who is in them, or also what is said
    #[arg(long, value_parser = ["off", "membership", "all"])]
    room_events: Option<String>,
    /// Accounts that the domain may have, up to 100000000; 0 for any number
    #[arg(long, value_name = "N")]
    accounts_max: Option<u32>,
    /// Topics that the domain may have, up to 10000000; 0 for any number
    #[arg(long, value_name = "N")]
    topics_max: Option<u32>,
    /// Topics that one account may own by creating them, up to 10000000; 0 for any number
    #[arg(long, value_name = "N")]
    topics_owned_max: Option<u32>,
    /// Topics that one account may be subscribed to, up to 10000000; 0 for any number
    #[arg(long, value_name = "N")]
    subscriptions_max: Option<u32>,
    /// Sessions that all accounts of the domain may hold on each node together, up to 100000000; 0 for any number
    #[arg(long, value_name = "N")]
    sessions_total_max: Option<u32>,
    /// Bytes per second that the clients of the domain may be sent together; 0 for any number
    #[arg(long, value_name = "BYTES")]
    bytes_out_per_second: Option<u32>,
    /// Bytes that may be stored of the domain's accounts and topics; 0 for any number
    #[arg(long, value_name = "BYTES")]
    stored_bytes_max: Option<u64>,
}

const COLUMNS: &[Column] = &[
    ("DOMAIN", "domain"),
    ("SESSIONS", "sessions"),
    ("MAX", "sessions_max"),
    ("REGISTRATION", "registration"),
    ("TOPICS BY", "pubsub_create"),
    ("DURABLE", "messages_durable"),
    ("RESUMED WITHIN MS", "resumption_ms_max"),
    ("ARCHIVE", "archive"),
];

const QUOTAS: &[Column] =
    &[("QUOTA", "quota"), ("USED", "used"), ("AT MOST", "max"), ("REFUSED", "refused"), ("POLICY", "member")];

/// Does what is said.
pub(super) fn run(args: Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (client, mut output) = (args.remote.client()?, args.remote.output(out));
    match args.command {
        Command::List => {
            let mut domains = client.rows("/v1/admin/domains", "domains")?;
            if !output.is_json() {
                domains = domains.iter().map(flat).collect();
            }
            output.rows(&domains, COLUMNS)
        }
        Command::Show { domain } => output.record(&client.get(&path(&domain))?, &["domain"]),
        Command::Usage { domain } => {
            output.rows(&client.rows(&format!("{}/usage", path(&domain)), "quotas")?, QUOTAS)
        }
        Command::Create { domain, policy } => {
            let (made, is_new) = client.create(&path(&domain), &policy.named())?;
            output.done(&created("the domain", &domain, is_new), &made)
        }
        Command::Set { domain, policy } => {
            let changed = client.patch(&path(&domain), &policy.named())?;
            output.done(&format!("changed {domain}"), &changed)
        }
        Command::Delete { domain, yes } => {
            confirm(yes, &format!("deletes {domain} with its accounts, topics, notifications and keys"))?;
            let gone = client.delete(&path(&domain))?;
            output.done(&format!("deleted {domain}"), &gone)
        }
    }
}

impl PolicyArgs {
    /// What was named on the command line.
    fn named(self) -> Value {
        let named = [
            ("sessions", self.sessions.map(Value::from)),
            ("sessions_max", self.sessions_max.map(Value::from)),
            ("registration", self.registration.map(Value::from)),
            ("account_management", self.account_management.map(Value::from)),
            ("pubsub_create", self.pubsub_create.map(Value::from)),
            ("messages_durable", self.messages_durable.map(Value::from)),
            ("resumption_ms_max", self.resumption_ms_max.map(Value::from)),
            ("archive", self.archive.map(Value::from)),
            ("archive_days", self.archive_days.map(Value::from)),
            ("archive_messages_max", self.archive_messages_max.map(Value::from)),
            ("archive_bytes_max", self.archive_bytes_max.map(Value::from)),
            ("keys_max", self.keys_max.map(Value::from)),
            ("other_domains", self.other_domains.map(Value::from)),
            ("requests_per_second", self.requests_per_second.map(Value::from)),
            ("stanzas_per_second", self.stanzas_per_second.map(Value::from)),
            ("bytes_per_second", self.bytes_per_second.map(Value::from)),
            ("rooms_create", self.rooms_create.map(Value::from)),
            ("rooms_owned_max", self.rooms_owned_max.map(Value::from)),
            ("rooms_max", self.rooms_max.map(Value::from)),
            ("room_archive_days", self.room_archive_days.map(Value::from)),
            ("room_events", self.room_events.map(Value::from)),
            ("accounts_max", self.accounts_max.map(Value::from)),
            ("topics_max", self.topics_max.map(Value::from)),
            ("topics_owned_max", self.topics_owned_max.map(Value::from)),
            ("subscriptions_max", self.subscriptions_max.map(Value::from)),
            ("sessions_total_max", self.sessions_total_max.map(Value::from)),
            ("bytes_out_per_second", self.bytes_out_per_second.map(Value::from)),
            ("stored_bytes_max", self.stored_bytes_max.map(Value::from)),
        ];
        let given = named.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        Value::Object(given.collect::<Map<_, _>>())
    }
}

fn path(domain: &str) -> String {
    format!("/v1/admin/domains/{}", segment(domain))
}

/// A domain with its policy's members beside its name.
fn flat(domain: &Value) -> Value {
    let mut flat = domain.clone();
    if let (Some(flat), Some(Value::Object(policy))) = (flat.as_object_mut(), domain.get("policy")) {
        flat.extend(policy.clone());
    }
    flat
}
