//! How a store on PostgreSQL is opened.

use super::address;
use super::open_error::OpenError;
use super::tls::Tls;
use carillon_core::model::Epoch;
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Config;

/// How a store is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where the server is, which database, and who asks.
    pub config: Config,
    /// How connections are secured.
    pub tls: Tls,
    /// A file with the password, read for each connection; none where the server wants none, or `config` has it.
    pub password_file: Option<PathBuf>,
    /// How long opening a connection to one of the servers may take.
    pub connect_max: Duration,
    /// The name of this node among those that share the database. Another process of the same name takes over.
    pub node: Box<str>,
    /// The epoch of the process before this one of the node, if this one goes on with it in a live upgrade: then it is the same node to the others.
    pub goes_on: Option<Epoch>,
    /// What this node says of itself to the others of its cell, if it is in one: it does not open where that does not fit.
    pub joins: Option<Joins>,
    /// Where other nodes of the cell reach this one.
    pub address: Box<str>,
    /// What this node does, for others to read: `edge`, `ingress`, `api`.
    pub roles: Box<str>,
    /// Connections that write, 1 to 64. What one thread asks goes over one of them.
    pub lanes: usize,
    /// Connections that read, 1 to 64.
    pub readers: usize,
    /// Questions that may wait: this many reads, and as many writes for each connection. More are answered [`Busy`].
    ///
    /// [`Busy`]: carillon_core::ports::Fault::Busy
    pub queue_max: usize,
    /// Bytes of what those questions carry. Past it they are answered [`Busy`], too.
    ///
    /// [`Busy`]: carillon_core::ports::Fault::Busy
    pub queue_bytes_max: usize,
    /// How long what was asked waits for a database that is away, and a commit for what became of it. While it is away for longer, what is
    /// asked fails at once.
    pub patience: Duration,
    /// How long an answer of the server may take. Without one until then the connection counts as lost.
    pub answer_max: Duration,
    /// Payload bytes of last items kept in memory to be shared between logins.
    pub items_bytes_max: usize,
}

/// What a node of a cell says of itself to those that join later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joins {
    /// Its release.
    pub release: Box<str>,
    /// Settings that all nodes have alike: their names and what of them is compared.
    pub shared: Vec<(Box<str>, Box<str>)>,
}

impl Joins {
    /// What is compared of a secret: nobody learns it from that.
    pub fn digest(secret: &[u8]) -> Box<str> {
        let digest = Sha256::new_with_prefix(b"carillon joins ").chain_update(secret).finalize();
        digest[..8].iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
    }
}

impl Options {
    /// The defaults for a database at `postgresql://…`: node `carillon`, 2 connections that write and 2 that read, 65,536 questions with 128
    /// MiB, 3 seconds to connect, 10 seconds of patience, 16 MiB of items. Connections have TLS and verify the server, unless it is on this
    /// machine or the address has another `sslmode`.
    ///
    /// # Errors
    /// When the address cannot be read, carries a password, or asks for what there is not.
    pub fn new(url: &str) -> Result<Options, OpenError> {
        let (config, tls) = address::read(url)?;
        Ok(Options {
            connect_max: config.get_connect_timeout().copied().unwrap_or(Duration::from_secs(3)),
            config,
            tls,
            password_file: None,
            node: "carillon".into(),
            goes_on: None,
            joins: None,
            address: "".into(),
            roles: "".into(),
            lanes: 2,
            readers: 2,
            queue_max: 65_536,
            queue_bytes_max: 128 << 20,
            patience: Duration::from_secs(10),
            answer_max: Duration::from_secs(15),
            items_bytes_max: 16 << 20,
        })
    }
}
