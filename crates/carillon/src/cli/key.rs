//! `carillon key`: who may speak to the node over HTTP.

use super::client::segment;
use super::confirm::confirm;
use super::failure::Failure;
use super::output::Column;
use super::remote::Remote;
use serde_json::{Value, json};
use std::io::Write;

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
    /// Create a key and print it; it cannot be shown again
    Add {
        /// Name of the key, for people
        name: String,
        /// What the key may do; several are separated by commas
        #[arg(long = "scope", value_delimiter = ',', required = true, value_parser = SCOPES)]
        scopes: Vec<String>,
        /// Domain that the key is limited to; without it, the key is for all domains
        #[arg(long)]
        domain: Option<String>,
    },
    /// Remove a key
    Remove {
        /// Number of the key, as `carillon key list` shows it
        id: u64,
        /// Also when it is the last with scope `admin`: until the next start nobody can administer the node then
        #[arg(long)]
        last: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

const SCOPES: [&str; 6] = ["send", "topics", "enrol", "chat", "admin", "read_messages"];

const COLUMNS: &[Column] =
    &[("ID", "id"), ("NAME", "name"), ("DOMAIN", "domain"), ("SCOPES", "scopes"), ("CREATED", "created_at")];

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
        Command::Add { name, scopes, domain } => {
            let mut body = json!({ "name": name, "scopes": scopes });
            if let Some(domain) = domain {
                body["domain"] = domain.into();
            }
            let made = client.post("/v1/admin/keys", &body)?;
            // The key alone, so that it can go into a variable: KEY=$(carillon key add …).
            let key = made.get("key").and_then(Value::as_str).unwrap_or_default();
            output.done(key, &made)
        }
        Command::Remove { id, last, yes } => {
            confirm(yes, &format!("removes key {id}: whoever uses it is refused from now on"))?;
            let last = if last { "?last=true" } else { "" };
            let gone = client.delete(&format!("/v1/admin/keys/{}{last}", segment(&id.to_string())))?;
            output.done(&format!("removed key {id}"), &gone)
        }
    }
}
