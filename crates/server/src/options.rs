//! The options of a server.

use crate::events;
use crate::listen::{Bounds, ListenConfig, Service};
use crate::network::Network;
use crate::tls;
use carillon_core::settings::Settings;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// The options of a server. [`Options::new`] has defaults for all but the certificate and the core's settings.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen.
    pub addresses: Vec<IpAddr>,
    /// Port of XMPP with STARTTLS; 0 lets the system choose.
    pub c2s: Option<u16>,
    /// Port of XMPP inside TLS (XEP-0368).
    pub c2s_tls: Option<u16>,
    /// The WebSocket listener.
    pub websocket: Option<WebSocket>,
    /// Proxies in front of the WebSocket listener, whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<Network>,
    /// The listener of the light protocol.
    pub light: Option<Light>,
    /// Number of shards, each a thread; 0 for one per processor core.
    pub shards: u16,
    /// Listen backlog per listener.
    pub backlog: i32,
    /// Whether each shard has listeners of its own (`SO_REUSEPORT`), over which the kernel spreads the connections.
    pub reuse_port: bool,
    /// Whether small messages are sent at once (`TCP_NODELAY`).
    pub nodelay: bool,
    /// Whether sends to many connections use io_uring, where the system allows it.
    pub io_uring: bool,
    /// Bounds on connections. Without a bound on their number the limit of open files is the bound.
    pub bounds: Bounds,
    /// Bytes that may wait for a client that reads too slowly, before it is disconnected.
    pub out_queue_bytes: usize,
    /// Certificate, cipher suites and the other settings of TLS.
    pub tls: tls::Settings,
    /// The core's settings. The server uses `close_ms` and `auth_ms` of their timeouts, too.
    pub core: Arc<Settings>,
    /// Seed of the shards' random generators; none for the system's entropy.
    pub seed: Option<[u8; 32]>,
    /// How long the trace of an ended notification is kept, in milliseconds.
    pub traces_kept_ms: u64,
    /// Options of the event log; none for no event log.
    pub events: Option<events::Options>,
}

/// The WebSocket listener.
#[derive(Clone, Debug)]
pub struct WebSocket {
    /// Its port; 0 lets the system choose.
    pub port: u16,
    /// Whether it uses TLS itself. If not, a proxy in front must.
    pub tls: bool,
    /// The path of the WebSocket.
    pub path: String,
}

/// The listener of the light protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Light {
    /// Its port; 0 lets the system choose.
    pub port: u16,
    /// Whether it uses TLS from the first byte.
    pub tls: bool,
}

impl Default for WebSocket {
    fn default() -> WebSocket {
        WebSocket { port: 5281, tls: true, path: "/xmpp-websocket".to_owned() }
    }
}

impl Options {
    /// The defaults: ports 5222 and 5223 on every address.
    pub fn new(tls: tls::Settings, core: Arc<Settings>) -> Options {
        Options {
            addresses: vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()],
            c2s: Some(5222),
            c2s_tls: Some(5223),
            websocket: None,
            trusted_proxies: Vec::new(),
            light: None,
            shards: 0,
            backlog: 4096,
            reuse_port: true,
            nodelay: true,
            io_uring: true,
            bounds: Bounds::default(),
            out_queue_bytes: 256 * 1024,
            tls,
            core,
            seed: None,
            traces_kept_ms: 7 * 86_400_000,
            events: None,
        }
    }

    /// How its ports are bound.
    pub(crate) fn listen_config(&self) -> ListenConfig<'_> {
        ListenConfig {
            addresses: &self.addresses,
            services: self.services(),
            shards: self.shard_count().into(),
            backlog: self.backlog,
            reuse_port: self.reuse_port,
            nodelay: self.nodelay,
        }
    }

    /// The protocol of each port.
    fn services(&self) -> Vec<(Service, u16)> {
        let websocket = self.websocket.as_ref().map(|websocket| {
            (if websocket.tls { Service::WebSocketTls } else { Service::WebSocket }, websocket.port)
        });
        let c2s = self.c2s.map(|port| (Service::StartTls, port));
        let c2s_tls = self.c2s_tls.map(|port| (Service::DirectTls, port));
        let light =
            self.light.map(|light| (if light.tls { Service::LightTls } else { Service::Light }, light.port));
        [c2s, c2s_tls, websocket, light].into_iter().flatten().collect()
    }

    /// The number of shards.
    pub(crate) fn shard_count(&self) -> u16 {
        match self.shards {
            0 => std::thread::available_parallelism().map_or(1, |n| n.get().min(MAX_SHARDS.into()) as u16),
            n => n.min(MAX_SHARDS),
        }
    }
}

const MAX_SHARDS: u16 = 1024;
