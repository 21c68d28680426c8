//! What a load test is pointed at.

use serde::{Deserialize, Serialize};

/// A server, and whom to be there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// `HOST:PORT` for clients.
    pub address: String,
    /// What carries the stream.
    #[serde(default)]
    pub transport: Encryption,
    /// The WebSocket endpoint's path.
    #[serde(default = "Target::default_path")]
    pub websocket_path: String,
    /// Certificates to trust, in PEM; without them any certificate is accepted.
    #[serde(default)]
    pub ca_pem: Option<String>,
    /// The domain of the accounts.
    pub domain: String,
    /// Accounts are named by this and a number.
    #[serde(default = "Target::default_prefix")]
    pub user_prefix: String,
    /// The number of the first account.
    #[serde(default)]
    pub user_start: u32,
    /// The password of all accounts, the publisher's included.
    pub password: String,
    /// SASL mechanisms to accept, the preferred first; all when empty.
    #[serde(default)]
    pub mechanisms: Vec<String>,
    /// The pubsub service; `pubsub.` and the domain when not given.
    #[serde(default)]
    pub pubsub: Option<String>,
    /// The localpart of the account that publishes by XEP-0060.
    #[serde(default = "Target::default_publisher")]
    pub publisher: String,
    /// Carillon's HTTP API.
    #[serde(default)]
    pub http: Option<String>,
    /// A key of that API.
    #[serde(default)]
    pub key: Option<String>,
    /// `HOST:PORT` of the light protocol.
    #[serde(default)]
    pub light: Option<String>,
    /// Remember keys derived from passwords in this file of the worker's machine; as secret as the passwords.
    #[serde(default)]
    pub key_cache: Option<String>,
}

/// What carries the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Encryption {
    /// TCP with STARTTLS.
    #[default]
    Starttls,
    /// TLS from the first byte.
    Tls,
    /// WebSocket.
    Ws,
    /// WebSocket in TLS.
    Wss,
    /// TCP without TLS.
    Plain,
}

impl Target {
    fn default_path() -> String {
        "/xmpp-websocket".to_owned()
    }

    fn default_prefix() -> String {
        "u".to_owned()
    }

    fn default_publisher() -> String {
        "publisher".to_owned()
    }
}
