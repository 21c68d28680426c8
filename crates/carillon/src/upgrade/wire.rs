//! What the two processes of a live upgrade say to each other.
//!
//! ```text
//!  old                                                     new
//!   HELLO    release, protocol, form, schema, folder  ──►
//!            ◄──  CHECKED  release, process    or  REFUSED  why
//!   LISTENER kind or "http"; the socket  …            ──►
//!   TICKETS  keys of the TLS session tickets          ──►
//!   (reads nothing from now on)
//!   FAR      in a cell: what a shard has for other nodes ──►
//!   GROUP    sessions; their sockets  …               ──►
//!   END      how many                                 ──►
//!            ◄──  READY                        or  REFUSED  why
//!   (closes the store)
//!   GO       in a cell: where its bus stopped         ──►
//!            ◄──  SERVING  ports, how many             or  REFUSED  why
//! ```
//!
//! Each content but those of FAR, GROUP and TICKETS, and of GO in a cell, is a JSON object. A field that is not known is ignored; a new one is optional.

use super::channel::{Channel, Frame};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

/// The version of this protocol. A release that changes what cannot be ignored has another.
pub(crate) const PROTOCOL: u32 = 1;

/// Kinds of frames.
pub(crate) mod kind {
    pub(crate) const HELLO: u8 = 1;
    pub(crate) const CHECKED: u8 = 2;
    pub(crate) const REFUSED: u8 = 3;
    pub(crate) const LISTENER: u8 = 4;
    pub(crate) const TICKETS: u8 = 5;
    pub(crate) const GROUP: u8 = 6;
    pub(crate) const END: u8 = 7;
    pub(crate) const READY: u8 = 8;
    pub(crate) const GO: u8 = 9;
    pub(crate) const SERVING: u8 = 10;
    pub(crate) const FAR: u8 = 11;
}

/// What the old process is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// [`PROTOCOL`]
    pub protocol: u32,
    /// Its release.
    pub release: String,
    /// The version in which sessions are written.
    pub form: u16,
    /// The schema of the store.
    pub schema: u32,
    /// The data folder.
    pub data_dir: PathBuf,
    /// The process.
    pub pid: u32,
    /// The process that passes signals on to the present one, if there is one.
    #[serde(default)]
    pub guardian: Option<u32>,
    /// The node as the others of its cell know it, if it is in one.
    #[serde(default)]
    pub cell: Option<InCell>,
}

/// A node of a cell, which another process goes on with as the same node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InCell {
    /// Its name.
    pub name: String,
    /// Its epoch.
    pub epoch: u64,
    /// How many shards it has: others know its sessions by theirs.
    pub shards: u16,
    /// The other nodes that keep partitions.
    pub nodes: Vec<u32>,
    /// Those that leave.
    pub leaving: Vec<u32>,
}

/// The new process can go on, as far as it can know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checked {
    /// Its release.
    pub release: String,
    /// The process.
    pub pid: u32,
    /// Whether it goes on with a node of a cell, which earlier releases do not.
    #[serde(default)]
    pub cell: bool,
}

/// Why a process does not go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refused {
    /// For people.
    pub why: String,
}

/// What a listening socket is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Listener {
    /// The name of a [`carillon_server::handover::ListenerKind`], or [`HTTP`].
    pub kind: String,
}

/// The kind of the sockets of the HTTP APIs.
pub(crate) const HTTP: &str = "http";

/// How many sessions were sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    /// All.
    pub sessions: u64,
    /// Those that have a connection.
    pub connections: u64,
}

/// The new process serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Serving {
    /// Sessions that go on.
    pub sessions: u64,
}

/// Why the other process does not go on.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// It says so.
    #[error("{0}")]
    Refused(String),
    /// Its end of the socket is closed.
    #[error("it ended")]
    Ended,
    /// It says something else.
    #[error("it does not speak as it should: {0}")]
    Strange(String),
    /// The socket failed, or the time is up.
    #[error("{}", if .0.kind() == io::ErrorKind::TimedOut { "it takes too long".to_owned() } else { .0.to_string() })]
    Socket(io::Error),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Broken {
        match error.kind() {
            // It ended before it had read everything.
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => {
                Broken::Ended
            }
            _ => Broken::Socket(error),
        }
    }
}

/// Sends an object.
pub(crate) fn say<T: Serialize>(channel: &mut Channel, kind: u8, object: &T) -> Result<(), Broken> {
    let content = serde_json::to_vec(object).map_err(io::Error::other)?;
    Ok(channel.send(kind, &content, &[])?)
}

/// The next frame; an error if the other process refuses, or has ended.
pub(crate) fn hear(channel: &mut Channel) -> Result<Frame, Broken> {
    let frame = channel.receive()?.ok_or(Broken::Ended)?;
    match frame.kind {
        kind::REFUSED => Err(Broken::Refused(object::<Refused>(&frame)?.why)),
        _ => Ok(frame),
    }
}

/// The object of the next frame, which must be of this kind.
pub(crate) fn expect<T: DeserializeOwned>(channel: &mut Channel, kind: u8) -> Result<T, Broken> {
    let frame = hear(channel)?;
    if frame.kind != kind {
        return Err(Broken::Strange(format!("a frame of the kind {} in place of {kind}", frame.kind)));
    }
    object(&frame)
}

/// The object of a frame.
pub(crate) fn object<T: DeserializeOwned>(frame: &Frame) -> Result<T, Broken> {
    serde_json::from_slice(&frame.content).map_err(|error| Broken::Strange(error.to_string()))
}
