//! A client of either protocol, XMPP or the light one, driven in the same way.

use std::io::ErrorKind;

use crate::client::{self, Client, Entropy, Options, Resumable};
use crate::light;

/// How a client begins.
#[derive(Debug)]
pub enum Start {
    /// As an XMPP client.
    Xmpp(Options),
    /// As a client of the light protocol.
    Light,
}

/// What happened to a client.
#[derive(Debug)]
pub enum SwarmEvent {
    /// To an XMPP client.
    Xmpp(client::ClientEvent),
    /// To one of the light protocol.
    Light(light::LightEvent),
}

/// A client's side of a connection.
#[derive(Debug)]
pub(super) enum AnyClient {
    Xmpp(Box<Client>),
    Light(light::Client),
}

/// The outboxes of both protocols.
#[derive(Debug, Default)]
pub(super) struct AnyOutbox {
    pub(super) xmpp: client::Outbox,
    pub(super) light: light::Outbox,
}

impl AnyOutbox {
    /// What happened since the last call, of one protocol at most: one client is served at a time.
    pub(super) fn events(&mut self) -> impl Iterator<Item = SwarmEvent> + '_ {
        let light = self.light.events.drain(..).map(SwarmEvent::Light);
        self.xmpp.events.drain(..).map(SwarmEvent::Xmpp).chain(light)
    }
}

impl AnyClient {
    /// A client that begins, by resuming an earlier stream if there is one.
    pub(super) fn new(start: Start, resumable: Option<Box<Resumable>>) -> std::io::Result<Self> {
        Ok(match (start, resumable) {
            (Start::Xmpp(options), Some(resumable)) => {
                Self::Xmpp(Box::new(Client::resuming(options, Entropy::from_system()?, resumable)))
            }
            (Start::Xmpp(options), None) => {
                Self::Xmpp(Box::new(Client::new(options, Entropy::from_system()?)))
            }
            (Start::Light, _) => Self::Light(light::Client::default()),
        })
    }

    /// What is needed to resume the stream, which is given up.
    pub(super) fn take_resumable(&mut self) -> Option<Box<Resumable>> {
        match self {
            Self::Xmpp(client) => client.take_resumable(),
            Self::Light(_) => None,
        }
    }

    /// The bytes that this client wants to send.
    pub(super) fn bytes<'a>(&self, out: &'a mut AnyOutbox) -> &'a mut Vec<u8> {
        match self {
            Self::Xmpp(_) => &mut out.xmpp.bytes,
            Self::Light(_) => &mut out.light.bytes,
        }
    }

    pub(super) fn start(&mut self, out: &mut AnyOutbox) {
        match self {
            Self::Xmpp(client) => client.start(&mut out.xmpp),
            Self::Light(client) => client.start(&mut out.light),
        }
    }

    pub(super) fn receive(&mut self, bytes: &[u8], out: &mut AnyOutbox) {
        match self {
            Self::Xmpp(client) => client.receive(bytes, &mut out.xmpp),
            Self::Light(client) => client.receive(bytes, &mut out.light),
        }
    }

    pub(super) fn receive_end(&mut self, out: &mut AnyOutbox) {
        match self {
            Self::Xmpp(client) => client.receive_end(&mut out.xmpp),
            Self::Light(client) => client.receive_end(&mut out.light),
        }
    }

    pub(super) fn connection_failed(&mut self, kind: ErrorKind, out: &mut AnyOutbox) {
        match self {
            Self::Xmpp(client) => client.connection_failed(kind, &mut out.xmpp),
            Self::Light(client) => client.connection_failed(kind, &mut out.light),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Xmpp(client) => client.is_over(),
            Self::Light(client) => client.is_over(),
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        match self {
            Self::Xmpp(client) => client.ready().is_some(),
            Self::Light(client) => client.is_ready(),
        }
    }
}
