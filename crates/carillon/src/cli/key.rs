//! `carillon key`: who may speak to the node over HTTP.

use super::confirm::confirm;
use super::failure::Failure;
use super::output::Column;
use super::remote::Remote;
use crate::config;
use carillon_core::model::UnixMs;
use serde_json::{Value, json};
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// Arguments of `carillon key`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List keys
    List {
        /// Only keys of this domain
        #[arg(long)]
        domain: Option<String>,
    },
    /// Show a key, without its text
    Show {
        /// Number of the key, as `carillon key list` shows it
        id: u32,
    },
    /// Create a key and print it; it cannot be shown again
    #[command(alias = "add")]
    Create {
        /// Name of the key, for people
        name: String,
        /// What the key may do; several are separated by commas
        #[arg(long = "scope", value_delimiter = ',', required = true, value_parser = SCOPES)]
        scopes: Vec<String>,
        /// Domain that the key is limited to; without it, the key is for all domains
        #[arg(long)]
        domain: Option<String>,
        /// Time after which the key expires, such as 12h or 90d; without it, never
        #[arg(long, value_name = "TIME", value_parser = time)]
        expires_in: Option<u64>,
        /// Network from which the key can be used, such as 192.0.2.0/24; several are separated by commas; without it, from anywhere
        #[arg(long = "network", value_delimiter = ',')]
        networks: Vec<String>,
        /// Name of a client certificate that has to be shown with the key, such as dns:backend.example.org, cn:shop or sha256:HEX; several are separated by commas; one of them is enough
        #[arg(long = "certificate", value_delimiter = ',', value_name = "NAME")]
        certificates: Vec<String>,
    },
    /// Create a key like this one and print it; this one expires after a time
    Rotate {
        /// Number of the key, as `carillon key list` shows it
        id: u32,
        /// Time for which the old key still counts, such as 1h; at most 30d
        #[arg(long, value_name = "TIME", value_parser = time, default_value = "1d")]
        overlap: u64,
    },
    /// Delete a key
    #[command(alias = "remove")]
    Delete {
        /// Number of the key, as `carillon key list` shows it
        id: u32,
        /// Delete it even if it is the last with scope `admin`: nobody can administer the node then until its next start
        #[arg(long)]
        last: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

const SCOPES: [&str; 11] = [
    "send",
    "broadcast",
    "topics",
    "enrol",
    "chat",
    "rooms",
    "links",
    "matches",
    "admin",
    "read_messages",
    "trace_payload",
];

const COLUMNS: &[Column] = &[
    ("ID", "id"),
    ("NAME", "name"),
    ("DOMAIN", "domain"),
    ("SCOPES", "scopes"),
    ("CREATED", "created_at"),
    ("EXPIRES", "expires_at"),
    ("USED", "used_at"),
];

/// Does what is said.
pub(super) fn run(args: Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (client, mut output) = (args.remote.client()?, args.remote.output(out));
    match args.command {
        Command::List { domain } => {
            let mut keys = client.rows("/v1/admin/keys", "keys")?;
            keys.retain(|key| {
                domain.is_none() || key.get("domain").and_then(Value::as_str) == domain.as_deref()
            });
            output.rows(&keys, COLUMNS)
        }
        Command::Show { id } => output.record(
            &client.get(&path(id))?,
            &["id", "name", "domain", "scopes", "networks", "certificates", "created_at", "used_at"],
        ),
        Command::Create { name, scopes, domain, expires_in, networks, certificates } => {
            let mut body = json!({ "name": name, "scopes": scopes });
            if !networks.is_empty() {
                body["networks"] = networks.into();
            }
            if !certificates.is_empty() {
                body["certificates"] = certificates.into();
            }
            if let Some(domain) = domain {
                body["domain"] = domain.into();
            }
            if let Some(ms) = expires_in {
                body["expires_at"] = after(ms).into();
            }
            let made = client.post("/v1/admin/keys", &body)?;
            // The key alone, so that it can go into a variable: KEY=$(carillon key create …).
            let key = made.get("key").and_then(Value::as_str).unwrap_or_default();
            output.done(key, &made)
        }
        Command::Rotate { id, overlap } => {
            let made = client.post(&format!("{}/rotate", path(id)), &json!({ "overlap_ms": overlap }))?;
            let key = made.get("key").and_then(Value::as_str).unwrap_or_default();
            output.done(key, &made)
        }
        Command::Delete { id, last, yes } => {
            confirm(yes, &format!("deletes key {id}: whoever uses it is refused from now on"))?;
            let query = if last { "?last=true" } else { "" };
            let gone = client.delete(&format!("{}{query}", path(id)));
            // The API speaks of its own parameter.
            let gone = gone.map_err(|failure| match failure {
                Failure::Refused(said) => {
                    Failure::Refused(said.replace("`last=true` removes", "`--last` removes"))
                }
                other => other,
            })?;
            output.done(&format!("deleted key {id}"), &gone)
        }
    }
}

fn path(id: u32) -> String {
    format!("/v1/admin/keys/{id}")
}

/// A time on the command line, in milliseconds.
pub(super) fn time(text: &str) -> Result<u64, String> {
    config::milliseconds(text).ok_or_else(|| "a time is a number with a unit: 30m, 12h, 90d".to_owned())
}

/// The time so many milliseconds from now (RFC 3339).
pub(super) fn after(ms: u64) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMs(since.as_millis() as u64).plus(ms).to_xmpp()
}
