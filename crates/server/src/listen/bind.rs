//! Binding the ports. All are bound before any thread starts: a server that cannot have its ports does not start.

use super::accept::Listener;
use super::inherited::{Inherited, ListenerKind};
use super::service::{ListenConfig, PortConfig, Service};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{Ipv6Addr, SocketAddr};

/// A port that could not be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}")]
pub struct BindError {
    /// The address and port.
    pub address: SocketAddr,
    /// The system's error.
    pub source: io::Error,
}

/// The ports that a server listens on; for port 0, the one that the system chose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// XMPP with STARTTLS.
    pub c2s: Option<u16>,
    /// XMPP inside TLS.
    pub c2s_tls: Option<u16>,
    /// WebSocket.
    pub websocket: Option<u16>,
    /// The light protocol.
    pub light: Option<u16>,
    /// QUIC, for the players of matches.
    pub quic: Option<u16>,
}

/// Binds every port on every address, once per shard, unless another process left its socket there. Returns the listeners of each
/// shard. What was left and is not wanted is closed.
pub(crate) fn bind(
    config: &ListenConfig<'_>,
    mut inherited: Vec<Inherited>,
) -> Result<(Ports, Vec<Vec<Listener>>), BindError> {
    let mut ports = Ports::default();
    let mut shards: Vec<Vec<Listener>> = std::iter::repeat_with(Vec::new).take(config.shards).collect();
    for &PortConfig { service, port, is_proxied } in &config.ports {
        let (port, sockets) = with_port(config, ListenerKind::of(service), port, &mut inherited)?;
        *match service {
            Service::StartTls => &mut ports.c2s,
            Service::DirectTls => &mut ports.c2s_tls,
            Service::WebSocket | Service::WebSocketTls => &mut ports.websocket,
            Service::Light | Service::LightTls => &mut ports.light,
        } = Some(port);
        for (listeners, sockets) in shards.iter_mut().zip(sockets) {
            listeners.extend(sockets.into_iter().map(|socket| Listener::new(socket, service, is_proxied)));
        }
    }
    Ok((ports, shards))
}

/// Binds a port of UDP on every address, once per shard, as [`bind`] does; the sockets of each shard. Those that are wanted are taken out of
/// `inherited`.
pub(crate) fn bind_quic(
    config: &ListenConfig<'_>,
    port: u16,
    inherited: &mut Vec<Inherited>,
) -> Result<(u16, Vec<Vec<Socket>>), BindError> {
    with_port(config, ListenerKind::QUIC, port, inherited)
}

/// Binds one port on every address. For port 0 the system chooses on the first address; if that port is taken on another
/// address, it chooses again.
fn with_port(
    config: &ListenConfig<'_>,
    kind: ListenerKind,
    port: u16,
    inherited: &mut Vec<Inherited>,
) -> Result<(u16, Vec<Vec<Socket>>), BindError> {
    for _ in 1..CHOICES {
        match on_all(config, kind, port, inherited) {
            Err(error) if port == 0 && error.source.kind() == ErrorKind::AddrInUse => {}
            result => return result,
        }
    }
    on_all(config, kind, port, inherited)
}

fn on_all(
    config: &ListenConfig<'_>,
    kind: ListenerKind,
    port: u16,
    inherited: &mut Vec<Inherited>,
) -> Result<(u16, Vec<Vec<Socket>>), BindError> {
    let mut port = port;
    let mut shards: Vec<Vec<Socket>> = std::iter::repeat_with(Vec::new).take(config.shards).collect();
    for &address in config.addresses {
        let error = |port| move |source| BindError { address: SocketAddr::new(address, port), source };
        let left = take(inherited, kind, SocketAddr::new(address, port));
        let bound = match left.is_empty() {
            true => on_one(config, kind, SocketAddr::new(address, port)),
            false => spread(left, config.shards),
        };
        let sockets = match bound {
            // A host without IPv6, with a configuration that means every address.
            Err(e)
                if address == Ipv6Addr::UNSPECIFIED && config.addresses.len() > 1 && is_unsupported(&e) =>
            {
                tracing::warn!(%address, "no IPv6 on this host; not listening there");
                continue;
            }
            result => result.map_err(error(port))?,
        };
        let bound =
            sockets.iter().flatten().next().map(Socket::local_addr).transpose().map_err(error(port))?;
        port = bound.and_then(|bound| bound.as_socket()).map_or(port, |bound| bound.port());
        for (shard, sockets) in shards.iter_mut().zip(sockets) {
            shard.extend(sockets);
        }
    }
    Ok((port, shards))
}

/// The sockets that another process left at this address; at any port for port 0.
fn take(inherited: &mut Vec<Inherited>, kind: ListenerKind, at: SocketAddr) -> Vec<Socket> {
    let fits = |left: &Inherited| {
        left.kind == kind
            && left.address.ip() == at.ip()
            && (at.port() == 0 || left.address.port() == at.port())
    };
    let (taken, rest): (Vec<_>, Vec<_>) = std::mem::take(inherited).into_iter().partition(fits);
    *inherited = rest;
    taken.into_iter().map(|left| left.socket).collect()
}

/// Gives every shard a socket, and every socket a shard: the kernel spreads connections over all of them.
fn spread(sockets: Vec<Socket>, shards: usize) -> io::Result<Vec<Vec<Socket>>> {
    let mut all: Vec<Vec<Socket>> = std::iter::repeat_with(Vec::new).take(shards).collect();
    for n in sockets.len()..shards {
        all[n].push(sockets[n % sockets.len()].try_clone()?);
    }
    for (n, socket) in sockets.into_iter().enumerate() {
        all[n % shards].push(socket);
    }
    Ok(all)
}

/// Binds one address and port, for every shard.
fn on_one(
    config: &ListenConfig<'_>,
    kind: ListenerKind,
    address: SocketAddr,
) -> io::Result<Vec<Vec<Socket>>> {
    let share = config.reuse_port && config.shards > 1;
    if share && address.port() != 0 {
        // With SO_REUSEPORT a second server would start without an error and take half of the connections.
        listen(config, kind, address, false)?;
    }
    let first = listen(config, kind, address, share)?;
    let bound = first.local_addr()?.as_socket().unwrap_or(address);
    let mut sockets = vec![first];
    while sockets.len() < config.shards {
        sockets.push(match share {
            true => listen(config, kind, bound, true)?,
            false => sockets[0].try_clone()?,
        });
    }
    Ok(sockets.into_iter().map(|socket| vec![socket]).collect())
}

fn listen(
    config: &ListenConfig<'_>,
    kind: ListenerKind,
    address: SocketAddr,
    share: bool,
) -> io::Result<Socket> {
    let (form, protocol) = match kind.is_quic() {
        true => (Type::DGRAM, Protocol::UDP),
        false => (Type::STREAM, Protocol::TCP),
    };
    let socket = Socket::new(Domain::for_address(address), form.nonblocking(), Some(protocol))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    if share {
        socket.set_reuse_port(true)?;
    }
    if kind.is_quic() {
        socket.bind(&address.into())?;
        return Ok(socket);
    }
    // A restart need not wait until the kernel has forgotten the connections of the last run.
    socket.set_reuse_address(true)?;
    // On Linux accepted connections inherit it: one system call less per connection.
    socket.set_tcp_nodelay(config.nodelay)?;
    socket.bind(&address.into())?;
    socket.listen(config.backlog.try_into().unwrap_or(i32::MAX))?;
    Ok(socket)
}

fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(EAFNOSUPPORT | EADDRNOTAVAIL))
}

const EAFNOSUPPORT: i32 = 97;
const EADDRNOTAVAIL: i32 = 99;
/// How many ports of the system's choice are tried.
const CHOICES: usize = 8;
