//! What each kind of listener offers in TLS, made of one certificate.

use crate::listen::Service;
use crate::tls::{Handshake, Settings};
use std::sync::Arc;

/// The TLS settings of every kind of listener; swapped whole at a reload.
pub(crate) struct ListenerTls {
    starttls: Settings,
    direct: Settings,
    websocket: Settings,
    /// `tls-server-end-point` of the certificate (RFC 5929), one copy for all connections.
    pub(crate) end_point: Option<Arc<[u8]>>,
}

impl ListenerTls {
    /// Offers the certificate of `settings` everywhere.
    pub(crate) fn new(settings: &Settings) -> ListenerTls {
        ListenerTls {
            // A client that has come as far as <starttls/> has chosen its protocol.
            starttls: settings.clone(),
            // XEP-0368 §2
            direct: settings.alpn(&[b"xmpp-client"]),
            websocket: settings.alpn(&[b"http/1.1"]),
            end_point: settings.server_end_point().map(Arc::from),
        }
    }

    /// The same certificate as `settings`, taking and giving the tickets of these offers.
    pub(crate) fn renewed(&self, settings: &Settings) -> ListenerTls {
        ListenerTls::new(&settings.sharing_tickets_of(&self.starttls))
    }

    /// Begins a handshake on a connection of this kind.
    pub(crate) fn handshake(&self, service: Service) -> Handshake {
        Handshake::new(match service {
            Service::StartTls => return Handshake::after_starttls(&self.starttls),
            // The light protocol has no name in ALPN: whatever a client names or not, it has chosen the port.
            Service::Light | Service::LightTls => &self.starttls,
            Service::DirectTls => &self.direct,
            Service::WebSocket | Service::WebSocketTls => &self.websocket,
        })
    }
}
