//! The listening sockets of a node, which outlive its process.

use super::Service;
use socket2::Socket;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// The protocol of a listening socket, as it is named to the successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerKind(Service);

/// A listening socket that was inherited.
#[derive(Debug)]
pub(crate) struct Inherited {
    pub(crate) service: Service,
    pub(crate) address: SocketAddr,
    pub(crate) socket: Socket,
}

impl ListenerKind {
    pub(crate) fn of(service: Service) -> ListenerKind {
        ListenerKind(service)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(service, _)| *service == self.0).map_or("", |(_, name)| name)
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<ListenerKind> {
        NAMES.iter().find(|(_, known)| *known == name).map(|(service, _)| ListenerKind(*service))
    }
}

impl Inherited {
    /// A socket of this kind, if it is bound.
    pub(crate) fn new(kind: ListenerKind, socket: OwnedFd) -> Option<Inherited> {
        let socket = Socket::from(socket);
        let address = socket.local_addr().ok()?.as_socket()?;
        Some(Inherited { service: kind.0, address, socket })
    }
}

const NAMES: &[(Service, &str)] = &[
    (Service::StartTls, "c2s"),
    (Service::DirectTls, "c2s_tls"),
    (Service::WebSocket, "websocket"),
    (Service::WebSocketTls, "websocket_tls"),
    (Service::Light, "light"),
    (Service::LightTls, "light_tls"),
];
