//! The listening sockets of a node, which outlive its process.

use super::Service;
use socket2::Socket;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// The protocol of a listening socket, as it is named to the successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerKind(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Tcp(Service),
    Quic,
}

/// A listening socket that was inherited.
#[derive(Debug)]
pub(crate) struct Inherited {
    pub(crate) kind: ListenerKind,
    pub(crate) address: SocketAddr,
    pub(crate) socket: Socket,
}

impl ListenerKind {
    /// A socket of UDP, for QUIC.
    pub(crate) const QUIC: ListenerKind = ListenerKind(Kind::Quic);

    pub(crate) const fn of(service: Service) -> ListenerKind {
        ListenerKind(Kind::Tcp(service))
    }

    /// Whether it is one of UDP.
    pub(crate) fn is_quic(self) -> bool {
        self.0 == Kind::Quic
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<ListenerKind> {
        NAMES.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }
}

impl Inherited {
    /// A socket of this kind, if it is bound.
    pub(crate) fn new(kind: ListenerKind, socket: OwnedFd) -> Option<Inherited> {
        let socket = Socket::from(socket);
        let address = socket.local_addr().ok()?.as_socket()?;
        Some(Inherited { kind, address, socket })
    }
}

const NAMES: &[(ListenerKind, &str)] = &[
    (ListenerKind::of(Service::StartTls), "c2s"),
    (ListenerKind::of(Service::DirectTls), "c2s_tls"),
    (ListenerKind::of(Service::WebSocket), "websocket"),
    (ListenerKind::of(Service::WebSocketTls), "websocket_tls"),
    (ListenerKind::of(Service::Light), "light"),
    (ListenerKind::of(Service::LightTls), "light_tls"),
    (ListenerKind::QUIC, "quic"),
];
