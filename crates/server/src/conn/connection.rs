//! The value that is kept for a connection.

use crate::listen::{Permit, Refusal, Service};
use crate::tls::{Handshake, Link};
use crate::websocket::Upgrade;
use carillon_core::connection::{PausedInput, SendQueue};
use carillon_wire::frame::websocket::Decoder;
use socket2::Socket;
use std::net::IpAddr;

/// A connection.
pub(crate) struct Conn {
    pub(crate) socket: Socket,
    pub(crate) transport: Transport,
    pub(crate) protocol: Protocol,
    pub(crate) pending_input: Option<Box<PendingInput>>,
    pub(crate) send_queue: SendQueue,
    /// Bytes of memory that the shard's sum has for its queue: at most 4 GiB.
    pub(crate) counted: u32,
    /// Its place among the connections that the node may have; released when it is dropped.
    pub(super) permit: Permit,
    pub(crate) stage: Stage,
    pub(crate) readiness: Readiness,
    pub(crate) flow: ReadFlow,
    /// It is in one of the shard's queues of connections to read.
    pub(crate) queued: bool,
    /// The shard's batch of sends has a part for it.
    pub(crate) staged: bool,
}

/// What is between the socket and the stream.
pub(crate) enum Transport {
    /// Nothing.
    Plain,
    /// A PROXY header comes first, then what this service begins with.
    Announced(Service),
    /// A TLS handshake is going on. Boxed, as it is large and short-lived.
    Handshaking(Box<Handshake>),
    /// TLS.
    Secured(Link),
}

/// Input that cannot be handled yet. A connection between two messages has none.
#[derive(Debug, Default)]
pub(crate) struct PendingInput {
    /// The beginning of an incomplete TLS record.
    pub(super) record: Vec<u8>,
    /// What was decrypted while the core had the connection paused.
    pub(super) paused: PausedInput,
}

/// What the bytes inside the transport mean.
pub(crate) enum Protocol {
    /// The XML stream.
    Stream,
    /// Frames of the light protocol.
    Light,
    /// The HTTP request that asks for a WebSocket.
    Upgrade(Box<Upgrade>),
    /// WebSocket frames. A decoder is kept only inside a message.
    WebSocket(Option<Box<Decoder>>),
    /// Frames of a match.
    Player,
    /// The same in WebSocket frames.
    PlayerSocket(Option<Box<Decoder>>),
}

/// The stages in the life of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The core does not know it yet: a handshake or an upgrade comes first. With the client's address.
    New(IpAddr),
    /// The core knows it.
    Open,
    /// The core has closed it. It is shut down when its queue is written.
    Leaving,
    /// Shut down; input is discarded until the peer closes, too. A close at once would reset the connection, and the peer
    /// might never read what was sent last.
    Lingering,
}

/// Whether the socket can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Readiness {
    /// It cannot; an edge will announce input.
    Dry,
    /// It may have input.
    Ready,
    /// The peer has announced its end: it is read until a read returns the end.
    Ended,
}

/// Whether the core takes input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadFlow {
    /// It does.
    Open,
    /// It does not, as it waits for an answer; the socket is not read.
    Paused,
}

impl Transport {
    /// Takes the handshake out, if one is going on; until another transport is set, there is none.
    pub(super) fn take_handshake(&mut self) -> Option<Box<Handshake>> {
        match std::mem::replace(self, Transport::Plain) {
            Transport::Handshaking(handshaking) => Some(handshaking),
            other => {
                *self = other;
                None
            }
        }
    }
}

impl Conn {
    /// A connection that was just accepted from `address`.
    pub(crate) fn new(
        socket: Socket,
        address: IpAddr,
        transport: Transport,
        protocol: Protocol,
        permit: Permit,
    ) -> Conn {
        Conn {
            socket,
            transport,
            protocol,
            pending_input: None,
            send_queue: SendQueue::default(),
            counted: 0,
            permit,
            stage: Stage::New(address),
            readiness: Readiness::Dry,
            flow: ReadFlow::Open,
            queued: false,
            staged: false,
        }
    }

    /// The client's address, as a trusted proxy tells it: from now on the connection is that client's.
    pub(crate) fn is_from(&mut self, address: IpAddr) -> Result<(), Refusal> {
        if let Stage::New(peer) = &mut self.stage {
            *peer = address;
        }
        self.permit.count_for(address)
    }

    /// Marks the connection as known to the core. Returns its address, unless it was known already.
    pub(crate) fn mark_open(&mut self) -> Option<IpAddr> {
        let Stage::New(address) = self.stage else { return None };
        self.stage = Stage::Open;
        Some(address)
    }

    /// Releases its place among the handshakes that are in flight.
    pub(crate) fn handshake_done(&mut self) {
        self.permit.opened();
    }

    /// Whether there is input to read, and the core takes it.
    pub(crate) fn is_readable(&self) -> bool {
        self.flow == ReadFlow::Open && (self.readiness != Readiness::Dry || self.has_kept())
    }

    /// Whether its handshake or upgrade is not complete. Such connections queue apart, so that a storm of handshakes does
    /// not delay open sessions.
    pub(crate) fn is_opening(&self) -> bool {
        matches!(self.stage, Stage::New(_)) || matches!(self.transport, Transport::Handshaking(_))
    }
}
