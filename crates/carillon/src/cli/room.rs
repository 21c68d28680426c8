//! `carillon room`: conversations of many.

use super::client::{Client, Query};
use super::confirm::confirm;
use super::failure::Failure;
use super::output::{Column, Output, created};
use super::remote::Remote;
use crate::web::segment;
use serde_json::{Map, Value, json};
use std::io::Write;

/// What `carillon room` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Domain of the room; by default that of the node
    #[arg(long, global = true)]
    domain: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List rooms
    List {
        /// Only those whose names begin with this
        #[arg(long)]
        prefix: Option<String>,
        /// Those of this kind
        #[arg(long, value_parser = ["muc", "muclight"])]
        kind: Option<String>,
    },
    /// Create a room; what is not given has its default
    ///
    /// A room that exists is left as it is: exit code 0 if it has all that is given, else 1.
    Create {
        /// Name of the room: the local part of its address; or the whole address of a room of MUC Light
        room: String,
        #[command(flatten)]
        config: Box<ConfigArgs>,
    },
    /// Change a room; what is not given stays as it is
    Set {
        /// Name of the room, or its address
        room: String,
        #[command(flatten)]
        config: Box<ConfigArgs>,
    },
    /// Show a room
    Show {
        /// Name of the room, or its address
        room: String,
    },
    /// Delete a room with its members and its archive
    Delete {
        /// Name of the room, or its address
        room: String,
        /// Why, for those who are in it
        #[arg(long)]
        reason: Option<String>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// List the accounts that a room lists
    Members {
        /// Name of the room, or its address
        room: String,
        /// Only those of this affiliation
        #[arg(long, value_parser = AFFILIATIONS)]
        affiliation: Option<String>,
    },
    /// Set what an account is to a room
    Member {
        /// Name of the room, or its address
        room: String,
        /// The account: a bare JID, or a local part in the room's domain
        account: String,
        /// What it is to be
        #[arg(value_parser = AFFILIATIONS)]
        affiliation: String,
        /// The nick that is reserved for it; empty for none
        #[arg(long)]
        nick: Option<String>,
        /// Why
        #[arg(long)]
        reason: Option<String>,
    },
    /// List who is in a room
    Occupants {
        /// Name of the room, or its address
        room: String,
    },
    /// Remove somebody from a room; it may enter again
    Kick {
        /// Name of the room, or its address
        room: String,
        /// Its nick
        nick: String,
        /// Why
        #[arg(long)]
        reason: Option<String>,
    },
    /// Say something in a room
    Send {
        /// Name of the room, or its address
        room: String,
        /// The text
        text: String,
        /// The account that says it; by default the room itself does
        #[arg(long)]
        from: Option<String>,
        /// The account's nick; by default that which is reserved for it, or its local part
        #[arg(long, requires = "from")]
        nick: Option<String>,
    },
}

/// What an account can be to a room.
const AFFILIATIONS: [&str; 5] = ["outcast", "none", "member", "admin", "owner"];

#[derive(Debug, clap::Args)]
struct ConfigArgs {
    /// Title of the room, for people
    #[arg(long)]
    title: Option<String>,
    /// What it is about
    #[arg(long)]
    description: Option<String>,
    /// Whether everybody can find it
    #[arg(long, value_name = "BOOL")]
    public: Option<bool>,
    /// Whether only members may enter
    #[arg(long, value_name = "BOOL")]
    members_only: Option<bool>,
    /// Whether those without an affiliation may not speak until they are given voice
    #[arg(long, value_name = "BOOL")]
    moderated: Option<bool>,
    /// Whether everyone sees the occupants' addresses
    #[arg(long, value_name = "BOOL")]
    non_anonymous: Option<bool>,
    /// The password for those who enter; empty for none
    #[arg(long)]
    password: Option<String>,
    /// Occupants at most; 0 for as many as the node allows
    #[arg(long, value_name = "N")]
    max_users: Option<u32>,
    /// Whether messages are kept in the room's archive
    #[arg(long, value_name = "BOOL")]
    archive: Option<bool>,
    /// Days for which the archive keeps a message at most; 0 for as long as the domain does
    #[arg(long, value_name = "DAYS")]
    archive_days: Option<u32>,
}

const COLUMNS: &[Column] = &[("ROOM", "name"), ("PUBLIC", "public"), ("TITLE", "title")];
const MEMBERS: &[Column] =
    &[("ACCOUNT", "jid"), ("AFFILIATION", "affiliation"), ("NICK", "nick"), ("REASON", "reason")];
const OCCUPANTS: &[Column] =
    &[("NICK", "nick"), ("ROLE", "role"), ("AFFILIATION", "affiliation"), ("CLIENTS", "clients")];

/// Does what is said.
pub(super) fn run(args: Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (client, output) = (args.remote.client()?, args.remote.output(out));
    Rooms { client, output, domain: args.domain }.run(args.command)
}

/// The rooms of a domain, as the API shows them.
struct Rooms<'a> {
    client: Client,
    output: Output<'a>,
    domain: Option<String>,
}

impl Rooms<'_> {
    fn at(&self, path: String) -> Query {
        Query::of(path).with_some("domain", self.domain.as_deref())
    }

    fn run(&mut self, command: Command) -> Result<(), Failure> {
        let path = |room: &str| format!("/v1/rooms/{}", segment(room));
        match command {
            Command::List { prefix, kind } => {
                let path = self.at("/v1/rooms".to_owned()).with_some("prefix", prefix.as_deref());
                let path = path.with_some("kind", kind.as_deref());
                let rooms = self.client.list(&path.0, "rooms", usize::MAX)?;
                self.output.rows(&rooms, COLUMNS)
            }
            Command::Create { room, config } => {
                let (made, is_new) = self.client.create(&self.at(path(&room)).0, &config.body())?;
                self.output.done(&created("the room", &room, is_new), &made)
            }
            Command::Set { room, config } => {
                let changed = self.client.patch(&self.at(path(&room)).0, &config.body())?;
                self.output.done(&format!("changed {room}"), &changed)
            }
            Command::Show { room } => {
                let shown = self.client.get(&self.at(path(&room)).0)?;
                self.output.record(&shown, &["name", "domain", "jid", "created_at", "members", "occupants"])
            }
            Command::Delete { room, reason, yes } => {
                confirm(yes, &format!("deletes the room {room} with its members and its archive"))?;
                let gone =
                    self.client.delete(&self.at(path(&room)).with_some("reason", reason.as_deref()).0)?;
                self.output.done(&format!("deleted {room}"), &gone)
            }
            Command::Members { room, affiliation } => {
                let path = self.at(format!("{}/members", path(&room)));
                let path = path.with_some("affiliation", affiliation.as_deref());
                self.output.rows(&self.client.list(&path.0, "members", usize::MAX)?, MEMBERS)
            }
            Command::Member { room, account, affiliation, nick, reason } => {
                let path = self.at(format!("{}/members/{}", path(&room), segment(&account)));
                let body = given(&[("nick", nick.map(Value::from)), ("reason", reason.map(Value::from))]);
                let body = with(body, "affiliation", json!(affiliation));
                let done = self.client.put(&path.0, &body)?;
                self.output.done(&format!("{account} is {affiliation} of {room}"), &done)
            }
            Command::Occupants { room } => {
                let path = self.at(format!("{}/occupants", path(&room)));
                self.output.rows(&self.client.list(&path.0, "occupants", usize::MAX)?, OCCUPANTS)
            }
            Command::Kick { room, nick, reason } => {
                let path = self.at(format!("{}/occupants/{}", path(&room), segment(&nick)));
                let gone = self.client.delete(&path.with_some("reason", reason.as_deref()).0)?;
                self.output.done(&format!("removed {nick} from {room}"), &gone)
            }
            Command::Send { room, text, from, nick } => {
                let body = given(&[("from", from.map(Value::from)), ("nick", nick.map(Value::from))]);
                let path = self.at(format!("{}/messages", path(&room)));
                let said = self.client.post(&path.0, &with(body, "body", json!(text)))?;
                self.output.done(&format!("said in {room}"), &said)
            }
        }
    }
}

impl ConfigArgs {
    /// What is given of the room's configuration, as the API takes it.
    fn body(self) -> Value {
        Value::from(given(&[
            ("title", self.title.map(Value::from)),
            ("description", self.description.map(Value::from)),
            ("public", self.public.map(Value::from)),
            ("members_only", self.members_only.map(Value::from)),
            ("moderated", self.moderated.map(Value::from)),
            ("non_anonymous", self.non_anonymous.map(Value::from)),
            ("password", self.password.map(Value::from)),
            ("max_users", self.max_users.map(Value::from)),
            ("archive", self.archive.map(Value::from)),
            ("archive_days", self.archive_days.map(Value::from)),
        ]))
    }
}

/// The members that are given.
fn given(members: &[(&str, Option<Value>)]) -> Map<String, Value> {
    members.iter().filter_map(|(name, value)| Some(((*name).to_owned(), value.clone()?))).collect()
}

fn with(mut body: Map<String, Value>, name: &str, value: Value) -> Map<String, Value> {
    body.insert(name.to_owned(), value);
    body
}
