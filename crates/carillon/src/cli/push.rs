//! `carillon push`: apps that are woken by push services.

use super::client::Query;
use super::confirm::confirm;
use super::failure::Failure;
use super::output::Column;
use super::remote::Remote;
use serde_json::{Value, json};
use std::io::Write;

/// Arguments of `carillon push`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List registrations, and how they fare
    List {
        /// Only those of this account
        #[arg(long)]
        account: Option<String>,
        /// The domain; without it the key's, or the node's first
        #[arg(long)]
        domain: Option<String>,
        /// Largest number of registrations to list
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Register a URL that is told what waits for an account, and print its secret; it cannot be shown again
    Register {
        /// The account
        account: String,
        /// Where requests go: `https://` and a public address
        #[arg(value_name = "URL")]
        target: String,
        /// The app's own name for it; what has the same name is replaced
        #[arg(long, default_value = "webhook")]
        node: String,
        /// How much a push tells
        #[arg(long, value_parser = ["nothing", "sender", "whole"])]
        shown: Option<String>,
        /// What wakes the app; several are separated by commas. By default all
        #[arg(long, value_delimiter = ',', value_parser = ["notifications", "messages", "mentions"])]
        wakes: Vec<String>,
        /// A room that lists the account, by its address: every message of it wakes the app. May be given more than once
        #[arg(long = "room", value_name = "ROOM")]
        rooms: Vec<String>,
    },
    /// Show a registration, and how it fares
    Show {
        /// Number of the registration
        id: u64,
    },
    /// End a registration
    Delete {
        /// Number of the registration
        id: u64,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Show in which words devices show the pushes of a domain, as its administrators have set them
    Templates {
        /// The domain; without it the key's, or the node's first
        #[arg(long)]
        domain: Option<String>,
    },
    /// Set in which words devices show the pushes of a domain; this takes the place of what was set before
    SetTemplates {
        /// A title; of several the first is shown of which all placeholders are known, as `{sender}`
        #[arg(long = "title", value_name = "TEMPLATE")]
        titles: Vec<String>,
        /// A text; likewise
        #[arg(long = "body", value_name = "TEMPLATE")]
        bodies: Vec<String>,
        /// The domain; without it the key's, or the node's first
        #[arg(long)]
        domain: Option<String>,
    },
    /// Have devices show the pushes of a domain as the settings of the node say
    ClearTemplates {
        /// The domain; without it the key's, or the node's first
        #[arg(long)]
        domain: Option<String>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Print the public key by which push services know this server
    Key,
    /// List endpoints of this server as a push service
    Endpoints {
        /// Only those of this account
        #[arg(long)]
        account: Option<String>,
        /// The domain; without it the key's, or the node's first
        #[arg(long)]
        domain: Option<String>,
        /// Largest number of endpoints to list
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Revoke an endpoint of this server as a push service
    Revoke {
        /// Id of the endpoint
        id: String,
        /// The domain; without it the key's, or the node's first
        #[arg(long)]
        domain: Option<String>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

const COLUMNS: &[Column] = &[
    ("ID", "id"),
    ("ACCOUNT", "account"),
    ("NODE", "node"),
    ("CHANNEL", "channel"),
    ("SERVICE", "service"),
    ("STATE", "state"),
    ("FAILURES", "failures"),
    ("PUSHED", "pushed_at"),
];

const ENDPOINT_COLUMNS: &[Column] = &[
    ("ID", "id"),
    ("ACCOUNT", "account"),
    ("RESOURCE", "resource"),
    ("RESTRICTED", "restricted"),
    ("CREATED", "created_at"),
    ("EXPIRES", "expires_at"),
];

/// What a registration's record begins with.
const ORDER: &[&str] =
    &["id", "account", "node", "channel", "service", "shown", "wakes", "rooms", "state", "failures"];

/// Does what is said.
pub(super) fn run(args: Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (client, mut output) = (args.remote.client()?, args.remote.output(out));
    match args.command {
        Command::List { account, domain, limit } => {
            let query = Query::of(PATH)
                .with_some("account", account.as_deref())
                .with_some("domain", domain.as_deref());
            output.rows(&client.list(&query.0, "registrations", limit)?, COLUMNS)
        }
        Command::Register { account, target, node, shown, wakes, rooms } => {
            let mut body = json!({ "account": account, "node": node, "webhook": { "url": target } });
            if let Some(shown) = shown {
                body["shown"] = shown.into();
            }
            if !wakes.is_empty() {
                body["wakes"] = wakes.into();
            }
            if !rooms.is_empty() {
                body["rooms"] = rooms.into();
            }
            let made = client.post(PATH, &body)?;
            if !output.is_json() {
                let id = made.get("id").and_then(Value::as_u64).unwrap_or_default();
                eprintln!("made registration {id}; its secret, which cannot be shown again:");
            }
            output.done(made.get("secret").and_then(Value::as_str).unwrap_or_default(), &made)
        }
        Command::Show { id } => output.record(&client.get(&format!("{PATH}/{id}"))?, ORDER),
        Command::Delete { id, yes } => {
            confirm(yes, &format!("ends registration {id}: its app is not woken any more"))?;
            let gone = client.delete(&format!("{PATH}/{id}"))?;
            output.done(&format!("ended registration {id}"), &gone)
        }
        Command::Templates { domain } => {
            let path = Query::of(TEMPLATES).with_some("domain", domain.as_deref());
            output.record(&client.get(&path.0)?, &["domain", "templates"])
        }
        Command::SetTemplates { titles, bodies, domain } => {
            let path = Query::of(TEMPLATES).with_some("domain", domain.as_deref());
            let set = client.put(&path.0, &json!({ "title": titles, "body": bodies }))?;
            output.done("set the templates of pushes", &set)
        }
        Command::ClearTemplates { domain, yes } => {
            confirm(yes, "devices show pushes as the settings of the node say")?;
            let path = Query::of(TEMPLATES).with_some("domain", domain.as_deref());
            let gone = client.delete(&path.0)?;
            output.done("removed the templates of pushes", &gone)
        }
        Command::Key => {
            let key = client.get("/v1/push/key")?;
            output.done(key.get("vapid").and_then(Value::as_str).unwrap_or_default(), &key)
        }
        Command::Endpoints { account, domain, limit } => {
            let query = Query::of(ENDPOINTS)
                .with_some("account", account.as_deref())
                .with_some("domain", domain.as_deref());
            output.rows(&client.list(&query.0, "endpoints", limit)?, ENDPOINT_COLUMNS)
        }
        Command::Revoke { id, domain, yes } => {
            confirm(yes, &format!("revokes endpoint {id}: nothing can be pushed to it any more"))?;
            let path = Query::of(format!("{ENDPOINTS}/{id}")).with_some("domain", domain.as_deref());
            let gone = client.delete(&path.0)?;
            output.done(&format!("revoked endpoint {id}"), &gone)
        }
    }
}

const TEMPLATES: &str = "/v1/push/templates";

const ENDPOINTS: &str = "/v1/push/endpoints";

const PATH: &str = "/v1/push/registrations";
