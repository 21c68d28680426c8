//! `carillon account`: people and devices that may log in.

use super::client::Query;
use super::confirm::confirm;
use super::export;
use super::failure::Failure;
use super::generate;
use super::import;
use super::output::Column;
use super::password;
use super::remote::Remote;
use crate::web::segment;
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
        /// Domain of the accounts; by default that of the node
        #[arg(long)]
        domain: Option<String>,
        /// Largest number of accounts to list
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
    },
    /// Show an account
    Show {
        /// Bare JID of the account, such as alice@localhost
        jid: String,
    },
    /// Create an account
    #[command(alias = "add")]
    Create {
        /// Bare JID of the account, such as alice@localhost
        jid: String,
        /// Password of the account; without it, it is asked for, or read from standard input
        #[arg(long)]
        password: Option<String>,
    },
    /// Change an account
    Set {
        /// Bare JID of the account, such as alice@localhost
        jid: String,
        /// Whether it may log in; without, its sessions end
        #[arg(long, value_name = "BOOL", required = true, action = clap::ArgAction::Set)]
        enabled: bool,
    },
    /// Delete an account with all that belongs to it; its sessions end
    #[command(alias = "remove")]
    Delete {
        /// Bare JID of the account, such as alice@localhost
        jid: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Change the password of an account; its sessions end
    Password {
        /// Bare JID of the account, such as alice@localhost
        jid: String,
        /// New password; without it, it is asked for, or read from standard input
        #[arg(long)]
        password: Option<String>,
    },
    /// Write all that the node keeps of an account, for the person whose it is or for another server
    ///
    /// By default lines of JSON, with everything. `--format xep-0227` (PIEFXIS) writes what other
    /// servers import: password keys, contacts, private storage, vCard, personal nodes and messages
    /// that wait; with `--domain` of all accounts. Needs a key with scope `read_messages` besides
    /// `admin`. What is not whole has the exit code 1.
    #[command(verbatim_doc_comment)]
    Export(export::Args),
    /// Create many accounts with random passwords, and print them as CSV that `import` takes
    Generate(generate::Args),
    /// Create or replace many accounts
    ///
    /// FILE is CSV, one account per line: `jid,password`, or SCRAM keys in base64,
    /// `jid,iterations,salt,stored_key_sha256,server_key_sha256[,stored_key_sha1,server_key_sha1]`.
    /// A first line that names the columns is optional; with it they may come in another order.
    /// Or it is XML of XEP-0227 (PIEFXIS), as ejabberd and Prosody export it: accounts with their
    /// rosters, private storage, vCards, personal nodes and messages that wait. Files that it
    /// includes are read from its folder or below.
    /// Importing a file again changes nothing: run an import that was interrupted once more.
    #[command(verbatim_doc_comment)]
    Import {
        /// File of accounts: CSV, or XML of XEP-0227
        file: PathBuf,
    },
}

const COLUMNS: &[Column] =
    &[("ACCOUNT", "jid"), ("STATE", "state"), ("WAITING", "pending"), ("CREATED", "created_at")];

/// What an account's record begins with.
const ORDER: &[&str] = &["jid", "state", "sessions", "pending", "created_at", "topics"];

/// Does what is said.
pub(super) fn run(args: Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (client, mut output) = (args.remote.client()?, args.remote.output(out));
    match args.command {
        Command::List { domain, limit } => {
            let path = Query::of("/v1/admin/accounts").with_some("domain", domain.as_deref());
            output.rows(&client.list(&path.0, "accounts", limit.unwrap_or(usize::MAX))?, COLUMNS)
        }
        Command::Show { jid } => output.record(&client.get(&path(&jid))?, ORDER),
        Command::Create { jid, password } => {
            let body = json!({ "jid": jid, "password": password::given_or_asked(password)? });
            let made = client.post("/v1/admin/accounts", &body)?;
            output.done(&format!("created {jid}"), &made)
        }
        Command::Set { jid, enabled } => {
            let (verb, said) = if enabled { ("enable", "enabled") } else { ("disable", "disabled") };
            let (local, domain) = jid.split_once('@').unwrap_or((&jid, ""));
            let domain = Some(domain).filter(|domain| !domain.is_empty());
            let path =
                Query::of(format!("/v1/devices/{}/{verb}", segment(local))).with_some("domain", domain);
            let changed = client.post(&path.0, &json!({}))?;
            output.done(&format!("{said} {jid}"), &changed)
        }
        Command::Delete { jid, yes } => {
            confirm(yes, &format!("deletes {jid} with its subscriptions and all that waits for it"))?;
            let gone = client.delete(&path(&jid))?;
            output.done(&format!("deleted {jid}"), &gone)
        }
        Command::Password { jid, password } => {
            let body = json!({ "password": password::given_or_asked(password)? });
            let changed = client.put(&format!("{}/password", path(&jid)), &body)?;
            output.done(&format!("changed the password of {jid}"), &changed)
        }
        Command::Export(args) => export::run(&client, &args, &mut output),
        Command::Generate(args) => generate::run(&client, args, &mut output),
        Command::Import { file } => import::run(&client, &file, &mut output),
    }
}

fn path(jid: &str) -> String {
    format!("/v1/admin/accounts/{}", segment(jid))
}
