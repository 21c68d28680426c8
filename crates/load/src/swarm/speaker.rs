//! Who speaks on a connection: an XMPP client or one of the light protocol. Both are driven alike.

use std::io::ErrorKind;

use crate::client::{self, Client, Entropy, Options};
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
pub enum Event {
    /// To an XMPP client.
    Xmpp(client::Event),
    /// To one of the light protocol.
    Light(light::Event),
}

/// A client's side of a connection.
#[derive(Debug)]
pub(super) enum Speaker {
    Xmpp(Box<Client>),
    Light(light::Client),
}

/// Where speakers leave what they have to say.
#[derive(Debug, Default)]
pub(super) struct Outlet {
    pub(super) xmpp: client::Outbox,
    pub(super) light: light::Outbox,
}

impl Outlet {
    /// What happened since the last call. One of the two kinds at most: a speaker is served at a time.
    pub(super) fn events(&mut self) -> impl Iterator<Item = Event> + '_ {
        let light = self.light.events.drain(..).map(Event::Light);
        self.xmpp.events.drain(..).map(Event::Xmpp).chain(light)
    }
}

impl Speaker {
    pub(super) fn new(start: Start) -> std::io::Result<Self> {
        Ok(match start {
            Start::Xmpp(options) => Self::Xmpp(Box::new(Client::new(options, Entropy::from_system()?))),
            Start::Light => Self::Light(light::Client::default()),
        })
    }

    /// The bytes for the network that this speaker has left.
    pub(super) fn bytes<'a>(&self, out: &'a mut Outlet) -> &'a mut Vec<u8> {
        match self {
            Self::Xmpp(_) => &mut out.xmpp.bytes,
            Self::Light(_) => &mut out.light.bytes,
        }
    }

    pub(super) fn start(&mut self, out: &mut Outlet) {
        match self {
            Self::Xmpp(client) => client.start(&mut out.xmpp),
            Self::Light(client) => client.start(&mut out.light),
        }
    }

    pub(super) fn receive(&mut self, bytes: &[u8], out: &mut Outlet) {
        match self {
            Self::Xmpp(client) => client.receive(bytes, &mut out.xmpp),
            Self::Light(client) => client.receive(bytes, &mut out.light),
        }
    }

    pub(super) fn receive_end(&mut self, out: &mut Outlet) {
        match self {
            Self::Xmpp(client) => client.receive_end(&mut out.xmpp),
            Self::Light(client) => client.receive_end(&mut out.light),
        }
    }

    pub(super) fn connection_failed(&mut self, kind: ErrorKind, out: &mut Outlet) {
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
