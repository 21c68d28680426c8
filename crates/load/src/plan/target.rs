//! The server under test.

use serde::{Deserialize, Serialize};

/// A server and the accounts to use there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// `HOST` or `HOST:PORT` for clients; several, separated by commas, are nodes over which the players are distributed in turn.
    pub address: String,
    /// The transport of the stream.
    #[serde(default)]
    pub transport: TransportKind,
    /// The WebSocket endpoint's path.
    #[serde(default = "Target::default_path")]
    pub websocket_path: String,
    /// Certificates to trust, in PEM; without them any certificate is accepted.
    #[serde(default)]
    pub ca_pem: Option<String>,
    /// The domain of the accounts.
    pub domain: String,
    /// The prefix of account names; a number follows it.
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
    /// The service of rooms; `rooms.` or `muclight.` and the domain when not given.
    #[serde(default)]
    pub rooms: Option<String>,
    /// The localpart of the account that publishes by XEP-0060.
    #[serde(default = "Target::default_publisher")]
    pub publisher: String,
    /// Carillon's HTTP API. Several, separated by commas, belong to nodes that do not form a cluster: each topic is created
    /// and each item is published at all of them.
    #[serde(default)]
    pub http: Option<String>,
    /// A key of that API; several, separated by commas, in the order of the APIs.
    #[serde(default)]
    pub key: Option<String>,
    /// `HOST:PORT` of the light protocol.
    #[serde(default)]
    pub light: Option<String>,
    /// A file on the worker's machine for keys derived from passwords; it is as secret as the passwords.
    #[serde(default)]
    pub key_cache: Option<String>,
}

/// The transport of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum TransportKind {
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
    /// QUIC, for matches alone.
    Quic,
}

impl TransportKind {
    /// The default port.
    fn port(self) -> u16 {
        match self {
            Self::Starttls | Self::Plain => 5222,
            Self::Tls => 5223,
            Self::Ws => 5280,
            Self::Wss => 5443,
            Self::Quic => 5443,
        }
    }
}

impl Target {
    /// The addresses in a comma-separated list.
    pub(crate) fn places(address: &str) -> impl Iterator<Item = &str> {
        address.split(',').map(str::trim)
    }

    /// The addresses for XMPP clients, with the transport's default port where none is given.
    pub(crate) fn client_places(&self) -> impl Iterator<Item = String> {
        Self::places(&self.address).map(|place| {
            let is_bare_v6 = place.parse::<std::net::Ipv6Addr>().is_ok();
            let after_host = place.rsplit_once(']').map_or(place, |(_, after)| after);
            match (is_bare_v6, after_host.contains(':')) {
                (true, _) => format!("[{place}]:{}", self.transport.port()),
                (false, true) => place.to_owned(),
                (false, false) => format!("{place}:{}", self.transport.port()),
            }
        })
    }

    /// The HTTP APIs, each with its key; none without URL and key. One key may serve for all.
    pub(crate) fn apis(&self) -> Vec<(&str, &str)> {
        let (Some(urls), Some(keys)) = (&self.http, &self.key) else { return Vec::new() };
        let keys: Vec<_> = Self::places(keys).collect();
        let key = |n: usize| keys.get(n).or(keys.last()).copied().unwrap_or_default();
        Self::places(urls).enumerate().map(|(n, url)| (url, key(n))).collect()
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_a_port_gets_that_of_the_transport() {
        let target: Target = toml::from_str(
            "address = '127.0.0.1, example.org:7,::1,[::1],[::1]:9'
             transport = 'tls'
             domain = 'localhost'
             password = 'pw'",
        )
        .expect("a target");
        let places: Vec<_> = target.client_places().collect();
        assert_eq!(places, ["127.0.0.1:5223", "example.org:7", "[::1]:5223", "[::1]:5223", "[::1]:9"]);
    }
}
