//! `carillon account`: people and devices that may log in.

use super::client::{Query, segment};
use super::failure::Failure;
use super::import;
use super::output::Column;
use super::password;
use super::remote::Remote;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// What `carillon account` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List accounts
    List {
        /// Their domain; by default the node's first
        #[arg(long)]
        domain: Option<String>,
        /// How many at most
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
    },
    /// Make an account
    Add {
        /// Its bare JID
        jid: String,
        /// Its password; without, it is asked for, or read from standard input
        #[arg(long)]
        password: Option<String>,
    },
    /// Remove an account with all that belongs to it; its sessions end
    Remove {
        /// Its bare JID
        jid: String,
    },
    /// Change the password of an account; its sessions end
    Password {
        /// Its bare JID
        jid: String,
        /// The new password; without, it is asked for, or read from standard input
        #[arg(long)]
        password: Option<String>,
    },
    /// Make or replace many accounts
    ///
    /// FILE is CSV with a header: `jid,password`, or ready SCRAM keys in base64:
    /// `jid,iterations,salt,stored_key_sha256,server_key_sha256` with, if there are any, `stored_key_sha1` and
    /// `server_key_sha1`. Importing a file again changes nothing, so an import that was interrupted is simply run again.
    #[command(verbatim_doc_comment)]
    Import {
        /// The file
        file: PathBuf,
    },
}

const COLUMNS: &[Column] =
    &[("ACCOUNT", "jid"), ("STATE", "state"), ("WAITING", "pending"), ("CREATED", "created_at")];

/// Does what is said.
pub(super) fn run(args: Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (client, mut output) = (args.remote.client()?, args.remote.output(out));
    match args.command {
        Command::List { domain, limit } => {
            let path = Query::of("/v1/admin/accounts").with_some("domain", domain.as_deref());
            output.rows(&client.list(&path.0, "accounts", limit.unwrap_or(usize::MAX))?, COLUMNS)
        }
        Command::Add { jid, password } => {
            let body = json!({ "jid": jid, "password": password::given_or_asked(password)? });
            let made = client.post("/v1/admin/accounts", &body)?;
            output.done(&format!("made {jid}"), &made)
        }
        Command::Remove { jid } => {
            let gone = client.delete(&path(&jid))?;
            output.done(&format!("removed {jid}"), &gone)
        }
        Command::Password { jid, password } => {
            let body = json!({ "password": password::given_or_asked(password)? });
            let changed = client.put(&format!("{}/password", path(&jid)), &body)?;
            output.done(&format!("changed the password of {jid}"), &changed)
        }
        Command::Import { file } => import::run(&client, &file, &mut output),
    }
}

fn path(jid: &str) -> String {
    format!("/v1/admin/accounts/{}", segment(jid))
}
