//! `carillon room`: conversations of many.

use super::client::{Client, Query};
use super::confirm::confirm;
use super::failure::Failure;
use super::output::{Column, Output, created};
use super::remote::Remote;
use crate::web::segment;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};

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
    /// Set a room's avatar, or remove it
    Avatar {
        /// Name of the room, or its address
        room: String,
        /// The image: a file whose name ends with png, jpg, jpeg, gif or webp
        #[arg(required_unless_present = "remove")]
        file: Option<PathBuf>,
        /// Remove the avatar
        #[arg(long, conflicts_with = "file")]
        remove: bool,
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
    #[command(flatten)]
    Said(Said),
}

/// What is done with what is said in a room.
#[derive(Debug, clap::Subcommand)]
enum Said {
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
    /// List the messages in a room's archive, the newest first
    ///
    /// Takes a key with scope `read_messages`; that they were read is logged.
    Messages {
        /// Name of the room, or its address
        room: String,
        /// Only those that this account sent: a bare JID, or a local part in the room's domain
        #[arg(long)]
        with: Option<String>,
        /// Only those received at this time (RFC 3339) or later
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// Only those received at this time (RFC 3339) or earlier
        #[arg(long, value_name = "TIME")]
        until: Option<String>,
        /// Only older ones than this, by its id
        #[arg(long, value_name = "ID")]
        before: Option<u64>,
        /// Messages at most
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
        limit: u16,
    },
    /// Retract a message, as a moderator does: the archive keeps that it was retracted, and not what it said
    Retract {
        /// Name of the room, or its address
        room: String,
        /// Its id in the archive, as `carillon room messages` shows it
        id: u64,
        /// Why, for those who are in the room
        #[arg(long)]
        reason: Option<String>,
    },
    /// Erase a room's archive
    ///
    /// Takes a key with scope `admin`.
    Erase {
        /// Name of the room, or its address
        room: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
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

const MESSAGES: &[Column] = &[("ID", "id"), ("RECEIVED", "received_at"), ("FROM", "from"), ("TEXT", "body")];

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
            Command::Avatar { room, file, .. } => {
                let at = self.at(format!("{}/avatar", path(&room))).0;
                let Some(file) = file else {
                    let gone = self.client.delete(&at)?;
                    return self.output.done(&format!("removed the avatar of {room}"), &gone);
                };
                let failed = |why: String| Failure::Usage(format!("{}: {why}", file.display()));
                let media_type =
                    media_type(&file).ok_or_else(|| failed("no image by its name".to_owned()))?;
                let image = std::fs::read(&file).map_err(|error| failed(error.to_string()))?;
                let changed = self.client.put_image(&at, media_type, &image)?;
                self.output.done(&format!("set the avatar of {room}"), &changed)
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
            Command::Said(command) => self.said(command),
        }
    }

    fn said(&mut self, command: Said) -> Result<(), Failure> {
        let messages = |room: &str| format!("{}/messages", path(room));
        match command {
            Said::Send { room, text, from, nick } => {
                let body = given(&[("from", from.map(Value::from)), ("nick", nick.map(Value::from))]);
                let path = self.at(messages(&room));
                let said = self.client.post(&path.0, &with(body, "body", json!(text)))?;
                self.output.done(&format!("said in {room}"), &said)
            }
            Said::Messages { room, with, since, until, before, limit } => {
                let path = self.at(messages(&room)).with_some("with", with.as_deref());
                let path = path.with_some("from", since.as_deref()).with_some("to", until.as_deref());
                let path = path.with_some("before", before.map(|id| id.to_string()).as_deref());
                let path = path.with("limit", &limit.to_string());
                self.output.rows(&self.client.rows(&path.0, "messages")?, MESSAGES)
            }
            Said::Retract { room, id, reason } => {
                let path = self.at(format!("{}/{id}", messages(&room)));
                let gone = self.client.delete(&path.with_some("reason", reason.as_deref()).0)?;
                self.output.done(&format!("retracted {id} in {room}"), &gone)
            }
            Said::Erase { room, yes } => {
                confirm(yes, &format!("erases the archive of the room {room}"))?;
                let gone = self.client.delete(&self.at(messages(&room)).0)?;
                self.output.done(&format!("erased the archive of {room}"), &gone)
            }
        }
    }
}

/// Where the API has a room.
fn path(room: &str) -> String {
    format!("/v1/rooms/{}", segment(room))
}

/// The media type of an image, by the name of its file.
fn media_type(file: &Path) -> Option<&'static str> {
    match &*file.extension()?.to_str()?.to_ascii_lowercase() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "gif" => Some("image/gif"),
        "webp" => Some("image/webp"),
        _ => None,
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

#[cfg(test)]
mod tests {
    use crate::cli::tests::{FakeNode, asked, ok};
    use serde_json::json;

    #[test]
    fn an_avatar_is_set_from_a_file_and_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("Tea.PNG");
        std::fs::write(&file, "an image").expect("a file");
        let file = file.to_str().expect("text");
        let node = FakeNode::new(vec![ok(&json!({"name": "tea"})), (204, String::new())]);
        let (said, done) = node.run(&["room", "avatar", "tea", file]);
        assert_eq!((&*said, done), ("set the avatar of tea\n", Ok(())));
        let (said, done) = node.run(&["room", "avatar", "tea", "--remove"]);
        assert_eq!((&*said, done), ("removed the avatar of tea\n", Ok(())));
        assert!(node.run(&["room", "avatar", "tea", "tea.txt"]).1.is_err());
        let expected =
            [asked("PUT /v1/rooms/tea/avatar", "an image"), asked("DELETE /v1/rooms/tea/avatar", "")];
        assert_eq!(node.asked(), expected);
    }

    #[test]
    fn what_was_said_is_listed_retracted_and_erased() {
        let message = json!({
            "id": 7, "received_at": "2026-11-28T02:00:00Z", "from": "tea@rooms.example.org/Ali", "to": null,
            "body": "The kettle is on\u{1b}[2J", "xml": "<message/>",
        });
        let node = FakeNode::new(vec![
            ok(&json!({"messages": [message], "next": 7})),
            ok(&json!({"messages": [], "next": null})),
            (204, String::new()),
            (204, String::new()),
        ]);
        let (listed, done) = node.run(&["room", "messages", "tea"]);
        assert_eq!(done, Ok(()));
        // Text of others does not command the terminal.
        assert!(listed.contains("tea@rooms.example.org/Ali  The kettle is on\\u{1b}[2J"), "{listed}");
        let narrow = ["--with", "ali", "--since", "2026-11-28T00:00:00Z", "--before", "7", "--limit", "5"];
        let args = [&["room", "messages", "tea@muclight.example.org"][..], &narrow].concat();
        assert_eq!(node.run(&args).1, Ok(()));
        let (said, done) = node.run(&["room", "retract", "tea", "7", "--reason", "loud"]);
        assert_eq!((&*said, done), ("retracted 7 in tea\n", Ok(())));
        let (said, done) = node.run(&["room", "erase", "tea", "--yes", "--domain", "example.org"]);
        assert_eq!((&*said, done), ("erased the archive of tea\n", Ok(())));
        let expected = [
            "GET /v1/rooms/tea/messages?limit=100",
            "GET /v1/rooms/tea%40muclight.example.org/messages?with=ali&from=2026-11-28T00%3A00%3A00Z&before=7&limit=5",
            "DELETE /v1/rooms/tea/messages/7?reason=loud",
            "DELETE /v1/rooms/tea/messages?domain=example.org",
        ];
        assert_eq!(node.asked(), expected.map(|request| asked(request, "")));
    }
}
