//! Options that say what to test.

use clap::Args;

use super::failure::Failure;
use crate::client::sasl::Mechanism;
use crate::plan::{Target, TransportKind};

/// Where to connect to, and as whom.
#[derive(Debug, Args)]
#[command(next_help_heading = "Target")]
pub(super) struct TargetArgs {
    /// The server, such as 127.0.0.1 or example.org:5222; without a port, 5222, 5223 for tls, 5280 for ws, 5443 for wss.
    /// Several, separated by commas, are nodes over which the players are distributed in turn
    #[arg(long, value_name = "HOST[:PORT]")]
    target: String,
    /// The domain of the accounts
    #[arg(long)]
    domain: String,
    /// The password of all accounts
    #[arg(long, env = "CARILLON_LOAD_PASSWORD", hide_env_values = true)]
    password: String,
    /// Accounts are named by this and a number
    #[arg(long, default_value = "u")]
    user_prefix: String,
    /// The number of the first account
    #[arg(long, default_value_t = 0)]
    user_start: u32,
    /// What carries the stream
    #[arg(long, value_enum, default_value_t)]
    transport: TransportKind,
    /// Path of the WebSocket endpoint
    #[arg(long, default_value = "/xmpp-websocket")]
    websocket_path: String,
    /// Accept this SASL mechanism only; may be given more than once, the preferred first
    #[arg(long)]
    mechanism: Vec<Mechanism>,
    /// Trust only this PEM file's certificates; without it any certificate is accepted
    #[arg(long, value_name = "FILE")]
    ca: Option<String>,
    /// Remember keys derived from passwords in this file, for the next run; it is as secret as the passwords
    #[arg(long, value_name = "FILE")]
    key_cache: Option<String>,
    /// The pubsub service; `pubsub.` and the domain if not given
    #[arg(long, value_name = "JID")]
    pubsub: Option<String>,
    /// The service of rooms; `rooms.` or `muclight.` and the domain if not given
    #[arg(long, value_name = "JID")]
    rooms: Option<String>,
    /// Localpart of the account that publishes by XEP-0060
    #[arg(long, default_value = "publisher")]
    publisher: String,
    /// Carillon's HTTP API; several, separated by commas, are of nodes that know nothing of each other: every item is
    /// published at each
    #[arg(long, value_name = "URL")]
    http: Option<String>,
    /// A key of that API; several, separated by commas, in the order of the APIs
    #[arg(long, env = "CARILLON_KEY", hide_env_values = true)]
    key: Option<String>,
    /// The light protocol
    #[arg(long, value_name = "HOST:PORT")]
    light: Option<String>,
}

impl TargetArgs {
    /// As a test has it.
    pub(super) fn target(&self) -> Result<Target, Failure> {
        let read = |path: &String| {
            std::fs::read_to_string(path).map_err(|error| Failure::file(&format!("--ca {path}"), &error))
        };
        Ok(Target {
            address: self.target.clone(),
            transport: self.transport,
            websocket_path: self.websocket_path.clone(),
            ca_pem: self.ca.as_ref().map(read).transpose()?,
            domain: self.domain.clone(),
            user_prefix: self.user_prefix.clone(),
            user_start: self.user_start,
            password: self.password.clone(),
            mechanisms: self.mechanism.iter().map(|mechanism| mechanism.name().to_owned()).collect(),
            pubsub: self.pubsub.clone(),
            rooms: self.rooms.clone(),
            publisher: self.publisher.clone(),
            http: self.http.clone(),
            key: self.key.clone(),
            light: self.light.clone(),
            key_cache: self.key_cache.clone(),
        })
    }
}
