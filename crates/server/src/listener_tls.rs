//! The TLS settings of each kind of listener, all with one certificate.

use crate::listen::Service;
use crate::quic::QuicKeys;
use crate::tls::{Handshake, Settings};
use carillon_wire::frame::game;
use quinn_proto::ServerConfig;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The TLS settings of each kind of listener, replaced as a whole at a reload.
pub(crate) struct ListenerTls {
    starttls: Settings,
    direct: Settings,
    websocket: Settings,
    /// Whether players may connect where XMPP comes inside TLS.
    takes_players: bool,
    /// For players by QUIC, where it is wanted.
    quic: Option<(Arc<QuicKeys>, Arc<ServerConfig>)>,
}

impl ListenerTls {
    /// Uses the certificate of `settings` for every kind of listener.
    pub(crate) fn new(settings: &Settings, takes_players: bool) -> ListenerTls {
        let direct: &[&[u8]] = if takes_players { &[b"xmpp-client", game::ALPN] } else { &[b"xmpp-client"] };
        ListenerTls {
            // No ALPN: a client that sends <starttls/> has chosen its protocol.
            starttls: settings.clone(),
            // XEP-0368 §2
            direct: settings.alpn(direct),
            websocket: settings.alpn(&[b"http/1.1"]),
            takes_players,
            quic: None,
        }
    }

    /// The same, and players may connect by QUIC, with these keys.
    pub(crate) fn with_quic(self, settings: &Settings, keys: &Arc<QuicKeys>) -> ListenerTls {
        let server = keys.server(settings).map(|server| (Arc::clone(keys), server));
        ListenerTls { quic: server.or(self.quic), ..self }
    }

    /// How players connect by QUIC.
    pub(crate) fn quic(&self) -> Option<&(Arc<QuicKeys>, Arc<ServerConfig>)> {
        self.quic.as_ref()
    }

    /// Uses the certificate of `settings`, with the tickets of these settings.
    pub(crate) fn renewed(&self, settings: &Settings) -> ListenerTls {
        let settings = settings.sharing_tickets_of(&self.starttls);
        let renewed =
            ListenerTls { quic: self.quic.clone(), ..ListenerTls::new(&settings, self.takes_players) };
        match &self.quic {
            Some((keys, _)) => renewed.with_quic(&settings, keys),
            None => renewed,
        }
    }

    /// The keys of the tickets, which all kinds of listeners share.
    pub(crate) fn ticket_keys(&self) -> Zeroizing<Vec<u8>> {
        self.starttls.ticket_keys()
    }

    /// Starts a handshake on a connection of this kind.
    pub(crate) fn handshake(&self, service: Service) -> Handshake {
        Handshake::new(match service {
            Service::StartTls => return Handshake::after_starttls(&self.starttls),
            // The light protocol has no ALPN name; a client has chosen it by the port.
            Service::Light | Service::LightTls => &self.starttls,
            Service::DirectTls => &self.direct,
            Service::WebSocket | Service::WebSocketTls => &self.websocket,
        })
    }
}
