//! The options of a server.

use crate::events;
use crate::listen::{Bounds, ListenConfig, PortConfig, Service};
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr};

/// The options of a server. Types and defaults are declared here and nowhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Addresses to listen on.
    pub addresses: Vec<IpAddr>,
    /// XMPP with STARTTLS.
    pub c2s: Tcp,
    /// XMPP inside TLS (XEP-0368).
    pub c2s_tls: Tcp,
    /// The WebSocket listener.
    pub websocket: WebSocket,
    /// Proxies in front of this server. Whose client a connection is, is what they say: by `X-Forwarded-For` on the WebSocket
    /// port and where links are made without a key, and by a PROXY header on the ports of [`Options::proxy_protocol`].
    pub trusted_proxies: Vec<IpNet>,
    /// Ports on which every connection from a trusted proxy begins with a PROXY header.
    pub proxy_protocol: Vec<ClientPort>,
    /// The listener of the light protocol.
    pub light: Light,
    /// Port of QUIC, for the players of matches; 0 lets the system choose, none for no QUIC.
    pub quic: Option<u16>,
    /// Number of shards, each a thread; 0 for one per processor core.
    pub shards: u16,
    /// Listen backlog per listener.
    pub backlog: u32,
    /// Whether each shard has listeners of its own (`SO_REUSEPORT`), over which the kernel spreads the connections.
    pub reuse_port: bool,
    /// Whether small messages are sent at once (`TCP_NODELAY`).
    pub nodelay: bool,
    /// Whether sends to many connections use io_uring, where the system allows it.
    pub io_uring: bool,
    /// Bounds on connections. Without a bound on their number the limit of open files is the bound.
    pub bounds: Bounds,
    /// How much may wait for clients that read too slowly.
    pub out_queues: OutQueues,
    /// Bytes of parked sessions that the store keeps at most when the process ends; 0 for none.
    pub parked_bytes_max: u64,
    /// How long the trace of an ended notification is kept, in milliseconds.
    pub traces_kept_ms: u64,
    /// Options of the event log.
    pub event_log: events::Options,
}

/// A port that clients connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientPort {
    /// That of [`Options::c2s`].
    C2s,
    /// That of [`Options::c2s_tls`].
    C2sTls,
    /// That of [`Options::websocket`].
    WebSocket,
    /// That of [`Options::light`].
    Light,
}

/// A listener of XMPP over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Whether there is such a listener.
    pub enabled: bool,
    /// Its port; 0 lets the system choose.
    pub port: u16,
}

/// The WebSocket listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSocket {
    /// Whether there is such a listener.
    pub enabled: bool,
    /// Its port; 0 lets the system choose.
    pub port: u16,
    /// Whether it uses TLS itself. If not, a proxy in front must.
    pub tls: bool,
    /// The path of the WebSocket.
    pub path: String,
}

/// The listener of the light protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Light {
    /// Its port; 0 lets the system choose, none for no listener.
    pub port: Option<u16>,
    /// Whether it uses TLS from the first byte.
    pub tls: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            addresses: vec![Ipv4Addr::LOCALHOST.into()],
            c2s: Tcp { enabled: true, port: 5222 },
            c2s_tls: Tcp { enabled: true, port: 5223 },
            websocket: WebSocket::default(),
            trusted_proxies: Vec::new(),
            proxy_protocol: Vec::new(),
            light: Light::default(),
            quic: None,
            shards: 0,
            backlog: 4096,
            reuse_port: true,
            nodelay: true,
            io_uring: true,
            bounds: Bounds::default(),
            out_queues: OutQueues::default(),
            parked_bytes_max: 1 << 30,
            traces_kept_ms: 7 * 86_400_000,
            event_log: events::Options::default(),
        }
    }
}

/// How much may wait for clients that read too slowly, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutQueues {
    /// For one, before it is disconnected.
    pub each_bytes: usize,
    /// For all of the node together, in even parts to its shards. From three quarters of it on the clients for which most waits
    /// are told so and their streams closed; what would exceed it is freed with their connections.
    pub all_bytes: usize,
}

impl Default for OutQueues {
    fn default() -> OutQueues {
        OutQueues { each_bytes: 256 * 1024, all_bytes: 256 << 20 }
    }
}

impl OutQueues {
    /// The bound of one shard of so many.
    pub(crate) fn of_shard(self, shards: usize) -> OutQueues {
        OutQueues { all_bytes: self.all_bytes / shards.max(1), ..self }
    }
}

impl Default for WebSocket {
    fn default() -> WebSocket {
        WebSocket { enabled: true, port: 5280, tls: false, path: "/xmpp-websocket".to_owned() }
    }
}

impl Tcp {
    /// The port, if there is such a listener.
    pub fn wanted(self) -> Option<u16> {
        self.enabled.then_some(self.port)
    }
}

impl WebSocket {
    /// The port, if there is such a listener.
    pub fn wanted(&self) -> Option<u16> {
        self.enabled.then_some(self.port)
    }
}

impl Options {
    /// How its ports are bound.
    pub(crate) fn listen_config(&self) -> ListenConfig<'_> {
        ListenConfig {
            addresses: &self.addresses,
            ports: self.ports(),
            shards: self.shard_count().into(),
            backlog: self.backlog,
            reuse_port: self.reuse_port,
            nodelay: self.nodelay,
        }
    }

    /// The ports that are wanted.
    fn ports(&self) -> Vec<PortConfig> {
        let websocket = if self.websocket.tls { Service::WebSocketTls } else { Service::WebSocket };
        let light = if self.light.tls { Service::LightTls } else { Service::Light };
        let all = [
            (ClientPort::C2s, Service::StartTls, self.c2s.wanted()),
            (ClientPort::C2sTls, Service::DirectTls, self.c2s_tls.wanted()),
            (ClientPort::WebSocket, websocket, self.websocket.wanted()),
            (ClientPort::Light, light, self.light.port),
        ];
        let wanted = all.into_iter().filter_map(|(named, service, port)| {
            let is_proxied = self.proxy_protocol.contains(&named);
            Some(PortConfig { service, port: port?, is_proxied })
        });
        wanted.collect()
    }

    /// The number of shards.
    pub fn shard_count(&self) -> u16 {
        match self.shards {
            0 => std::thread::available_parallelism().map_or(1, |n| n.get().min(MAX_SHARDS.into()) as u16),
            n => n.min(MAX_SHARDS),
        }
    }
}

const MAX_SHARDS: u16 = 1024;
