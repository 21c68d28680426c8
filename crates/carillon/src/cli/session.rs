//! `carillon session`: who is connected, and ending it.

use super::client::Query;
use super::failure::Failure;
use super::output::Column;
use super::remote::Remote;
use crate::web::segment;
use serde_json::Value;
use std::io::Write;

/// What `carillon session` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List live sessions
    List {
        /// Only sessions of this domain
        #[arg(long)]
        domain: Option<String>,
        /// Only sessions of this account
        #[arg(long, value_name = "JID")]
        account: Option<String>,
        /// Largest number of sessions to list
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
        limit: u16,
    },
    /// Show a session, or with a bare JID the sessions of the account
    Show {
        /// Full JID of the session, or bare JID of the account
        jid: String,
    },
    /// End a session, or with a bare JID all sessions of the account
    #[command(aliases = ["delete", "kick"])]
    End {
        /// Full JID of the session, or bare JID of the account
        jid: String,
    },
}

const COLUMNS: &[Column] = &[
    ("SESSION", "jid"),
    ("STATE", "state"),
    ("ADDRESS", "address"),
    ("TRANSPORT", "transport"),
    ("TLS", "tls"),
    ("SINCE", "since"),
    ("PRESENCE", "presence"),
    ("TOPICS", "topics"),
    ("UNACKED", "unacknowledged"),
];

/// What a session's record begins with.
const ORDER: &[&str] = &["jid", "state", "address", "transport", "tls", "since", "presence"];

/// Does what is said.
pub(super) fn run(args: Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (client, mut output) = (args.remote.client()?, args.remote.output(out));
    match args.command {
        Command::List { domain, account, limit } => {
            let path = Query::of("/v1/admin/sessions")
                .with_some("domain", domain.as_deref())
                .with_some("account", account.as_deref());
            output.rows(&client.list(&path.0, "sessions", limit.into())?, COLUMNS)
        }
        Command::Show { jid } => {
            let account = jid.split('/').next().unwrap_or_default();
            let path = Query::of("/v1/admin/sessions").with("account", account);
            let mut sessions = client.list(&path.0, "sessions", 1000)?;
            sessions.retain(|session| {
                jid == account || session.get("jid").and_then(Value::as_str) == Some(&*jid)
            });
            if sessions.is_empty() {
                return Err(Failure::Missing(format!("{jid} has no session")));
            }
            if output.is_json() {
                return output.rows(&sessions, COLUMNS);
            }
            sessions.iter().try_for_each(|session| output.record(session, ORDER))
        }
        Command::End { jid } => {
            let ended = client.delete(&format!("/v1/admin/sessions/{}", segment(&jid)))?;
            let count = ended.get("sessions_ended").and_then(Value::as_u64);
            output.done(
                &count.map_or_else(
                    || "ended the sessions".to_owned(),
                    |n| match n {
                        1 => "ended 1 session".to_owned(),
                        n => format!("ended {n} sessions"),
                    },
                ),
                &ended,
            )
        }
    }
}
