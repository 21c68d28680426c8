//! What an operator decides about what the binary does itself, as it reads it.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

/// What an operator decides about the node besides what its parts are told. Types and defaults are declared here and
/// nowhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The domain that is created at the start if it does not exist.
    pub domain: String,
    /// The folder of the database, the keys and the self-signed certificate.
    pub data_dir: PathBuf,
    /// The certificate chain, PEM; none for a self-signed one.
    pub certificate: Option<PathBuf>,
    /// Its private key, PEM.
    pub certificate_key: Option<PathBuf>,
    /// Whether its memory may be written to a file when it crashes, and be read by other processes of its user.
    pub core_dumps: bool,
    /// Where the HTTP side listens; nothing for the addresses of the server.
    pub http_addresses: Vec<IpAddr>,
    /// Its port; 0 lets the system choose.
    pub http_port: u16,
    /// The host name that devices are told; empty for that of their domain.
    pub host: String,
    /// What the node is called among those that share a database; empty for a name that is made once and kept in the data folder.
    pub name: String,
    /// The PostgreSQL database that the store is on; empty for the embedded one.
    pub store_url: String,
    /// A file with the password for it.
    pub store_password_file: Option<PathBuf>,
    /// The WebSocket's URL that devices are told; empty to make it of host, port and path.
    pub websocket_url: String,
    /// Whether clients can use stream management: a feature that has a switch of its own.
    pub stream_management: bool,
    /// How long the node goes on as before after SIGTERM, milliseconds.
    pub drain_delay_ms: u64,
    /// Over how long streams are closed then, where there are many, milliseconds.
    pub drain_spread_ms: u64,
    /// How long sessions are given to end after that, milliseconds.
    pub drain_timeout_ms: u64,
}

/// The cell that the node is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The NATS servers that its nodes share, with commas between; empty for a node that runs alone.
    pub nats: String,
    /// A file with the JWT and the nkey by which the node says who it is.
    pub nats_credentials: Option<PathBuf>,
    /// A file with the certificates that the servers are known by.
    pub nats_ca_file: Option<PathBuf>,
    /// What its subjects begin with.
    pub prefix: String,
    /// A file with the 32 bytes that its nodes share.
    pub secret_file: Option<PathBuf>,
}

impl Default for Cell {
    fn default() -> Cell {
        Cell {
            nats: String::new(),
            nats_credentials: None,
            nats_ca_file: None,
            prefix: "carillon".to_owned(),
            secret_file: None,
        }
    }
}

impl Default for Node {
    fn default() -> Node {
        Node {
            domain: "localhost".to_owned(),
            data_dir: "./data".into(),
            certificate: None,
            certificate_key: None,
            core_dumps: false,
            http_addresses: vec![Ipv4Addr::LOCALHOST.into()],
            http_port: 8080,
            host: String::new(),
            name: String::new(),
            store_url: String::new(),
            store_password_file: None,
            websocket_url: String::new(),
            stream_management: true,
            drain_delay_ms: 0,
            drain_spread_ms: 2000,
            drain_timeout_ms: 10_000,
        }
    }
}
