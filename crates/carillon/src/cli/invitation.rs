//! `carillon invitation`: tokens by which people register accounts and become contacts of whoever invited them.

use super::client::Query;
use super::confirm::confirm;
use super::failure::Failure;
use super::key::{after, time};
use super::output::Column;
use super::remote::Remote;
use serde_json::{Value, json};
use std::io::Write;

/// Arguments of `carillon invitation`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Domain to act in, for a key of the whole node; without it, the node's first
    #[arg(long, global = true)]
    domain: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List invitations, newest first
    List {
        /// The most that are listed
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Create an invitation and print its URI, or the URL of its page; it cannot be shown again
    Create {
        /// Local part of the account that invites; whoever uses the invitation becomes its contact
        #[arg(long, value_name = "LOCALPART")]
        inviter: Option<String>,
        /// The only local part that can be registered with it; without it, any
        #[arg(long)]
        localpart: Option<String>,
        /// How often it can be used
        #[arg(long, default_value_t = 1)]
        uses: u32,
        /// Time after which it expires, such as 12h or 30d; without it, that of `invitations.valid_ms`
        #[arg(long, value_name = "TIME", value_parser = time)]
        expires_in: Option<u64>,
        /// No account can be registered with it: it makes contacts of accounts that are there
        #[arg(long, requires = "inviter", conflicts_with = "localpart")]
        contacts_only: bool,
    },
    /// Revoke an invitation: it cannot be used any more
    Delete {
        /// Number of the invitation, as `carillon invitation list` shows it
        id: u64,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

const COLUMNS: &[Column] = &[
    ("ID", "id"),
    ("INVITER", "inviter"),
    ("LOCALPART", "localpart"),
    ("REGISTERS", "registers"),
    ("USES", "uses"),
    ("OF", "uses_max"),
    ("CREATED", "created_at"),
    ("EXPIRES", "expires_at"),
];

/// Does what is said.
pub(super) fn run(args: Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (client, mut output) = (args.remote.client()?, args.remote.output(out));
    let at = |path: &str| Query::of(path).with_some("domain", args.domain.as_deref()).0;
    match args.command {
        Command::List { limit } => {
            output.rows(&client.list(&at("/v1/invitations"), "invitations", limit)?, COLUMNS)
        }
        Command::Create { inviter, localpart, uses, expires_in, contacts_only } => {
            let mut body = json!({ "uses": uses });
            let expires = expires_in.map(after);
            for (member, value) in [("inviter", inviter), ("localpart", localpart), ("expires_at", expires)] {
                if let Some(value) = value {
                    body[member] = value.into();
                }
            }
            if contacts_only {
                body["registers"] = false.into();
            }
            let made = client.post(&at("/v1/invitations"), &body)?;
            let text = |member: &str| made.get(member).and_then(Value::as_str);
            // One line, so that it can go into a message: the page where there is one.
            let line = text("landing_url").or(text("uri")).unwrap_or_default().to_owned();
            output.done(&line, &made)
        }
        Command::Delete { id, yes } => {
            confirm(yes, &format!("revokes invitation {id}: nobody can use it any more"))?;
            let gone = client.delete(&at(&format!("/v1/invitations/{id}")))?;
            output.done(&format!("revoked invitation {id}"), &gone)
        }
    }
}
