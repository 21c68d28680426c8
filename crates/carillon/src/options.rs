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
    /// The folder of further certificates.
    pub certificates: Option<PathBuf>,
    /// How often their files are looked at; 0 for never.
    pub certificates_watch_ms: u64,
    /// Whether its memory may be written to a file when it crashes, and be read by other processes of its user.
    pub core_dumps: bool,
    /// Where the HTTP side listens; nothing for the addresses of the server.
    pub http_addresses: Vec<IpAddr>,
    /// Its port; 0 lets the system choose.
    pub http_port: u16,
    /// Where it listens with TLS; nothing for the addresses of the server.
    pub https_addresses: Vec<IpAddr>,
    /// Its port with TLS, if it has one; 0 lets the system choose.
    pub https_port: Option<u16>,
    /// The authorities by which certificates of clients over HTTPS are known.
    pub https_client_ca: Option<PathBuf>,
    /// Whether every client over HTTPS shows such a certificate.
    pub https_client_required: bool,
    /// Where nothing but how it is can be read.
    pub health_addresses: Vec<IpAddr>,
    /// The port of that, if there is one; 0 lets the system choose.
    pub health_port: Option<u16>,
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
    /// A file with the certificate of the node, for servers that ask for one.
    pub nats_certificate: Option<PathBuf>,
    /// A file with its private key.
    pub nats_key: Option<PathBuf>,
    /// What its subjects begin with.
    pub prefix: String,
    /// The newest version of the form that this node writes, and has others write for it.
    pub form_max: u16,
    /// A file with the 32 bytes that its nodes share.
    pub secret_file: Option<PathBuf>,
    /// The Redis in which sessions are written down; empty where they are not.
    pub redis: String,
    /// A file with its password.
    pub redis_password_file: Option<PathBuf>,
    /// A file with the certificates that it is known by.
    pub redis_ca_file: Option<PathBuf>,
    /// A file with the certificate of the node, for a server that asks for one.
    pub redis_certificate: Option<PathBuf>,
    /// A file with its private key.
    pub redis_key: Option<PathBuf>,
}

/// A durable queue that messages are taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Where it is: NATS servers, with commas between, or the URL of a queue of SQS.
    pub url: String,
    /// Name of the API key as which its messages are sent.
    pub sender: String,
    /// The domain to act in; empty for that of the key, or the node's first.
    pub domain: String,
    /// The stream of JetStream.
    pub stream: String,
    /// The durable consumer of the stream.
    pub consumer: String,
    /// The subject that a consumer takes which is made; empty for all of the stream.
    pub subject: String,
    /// A file with the JWT and the nkey by which the node says who it is.
    pub credentials: Option<PathBuf>,
    /// A file with the certificates that the servers are known by.
    pub ca_file: Option<PathBuf>,
    /// How long a delivery may take until the message is delivered again, milliseconds.
    pub ack_wait_ms: u64,
    /// Messages that the node deals with at once.
    pub messages_max: usize,
    /// What these may have together, bytes.
    pub bytes_max: usize,
    /// Messages that all nodes together deal with at once, of a consumer that is made.
    pub unsettled_max: u32,
    /// The stream of dead letters; empty for one of its own.
    pub dead_stream: String,
    /// Its subject; empty for one of its own.
    pub dead_subject: String,
}

impl Queue {
    /// Whether it is a queue of SQS.
    pub fn is_sqs(&self) -> bool {
        ["https://", "http://"].iter().any(|scheme| self.url.starts_with(scheme))
    }
}

impl Default for Queue {
    fn default() -> Queue {
        Queue {
            url: String::new(),
            sender: String::new(),
            domain: String::new(),
            stream: String::new(),
            consumer: "carillon".to_owned(),
            subject: String::new(),
            credentials: None,
            ca_file: None,
            ack_wait_ms: 30_000,
            messages_max: 1000,
            bytes_max: 16 << 20,
            unsettled_max: 10_000,
            dead_stream: String::new(),
            dead_subject: String::new(),
        }
    }
}

impl Default for Cell {
    fn default() -> Cell {
        Cell {
            nats: String::new(),
            nats_credentials: None,
            nats_ca_file: None,
            nats_certificate: None,
            nats_key: None,
            prefix: "carillon".to_owned(),
            form_max: carillon_core::form::VERSION,
            secret_file: None,
            redis: String::new(),
            redis_password_file: None,
            redis_ca_file: None,
            redis_certificate: None,
            redis_key: None,
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
            certificates: None,
            certificates_watch_ms: 60_000,
            core_dumps: false,
            http_addresses: vec![Ipv4Addr::LOCALHOST.into()],
            http_port: 8080,
            https_addresses: Vec::new(),
            https_port: None,
            https_client_ca: None,
            https_client_required: false,
            health_addresses: vec![Ipv4Addr::LOCALHOST.into()],
            health_port: None,
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
