//! The value that is kept for a connection.

use crate::listen::Permit;
use crate::tls::{Handshake, Link};
use crate::websocket::Upgrade;
use carillon_core::connection::{PausedInput, SendQueue};
use carillon_wire::frame::websocket::Decoder;
use socket2::Socket;
use std::net::IpAddr;
use std::sync::Arc;

/// A connection.
pub(crate) struct Conn {
    pub(crate) socket: Socket,
    pub(crate) transport: Transport,
    pub(crate) protocol: Protocol,
    pub(crate) pending_input: Option<Box<PendingInput>>,
    pub(crate) send_queue: SendQueue,
    /// Its place among those the node takes; given back when it is dropped.
    permit: Permit,
    pub(crate) stage: Stage,
    pub(crate) readiness: Readiness,
    pub(crate) flow: ReadFlow,
    /// It stands in one of the shard's queues of connections to read.
    pub(crate) queued: bool,
    /// Something for it is in the shard's batch of sends.
    pub(crate) staged: bool,
}

/// What lies between the socket and the stream.
pub(crate) enum Transport {
    /// Nothing.
    Plain,
    /// TLS is being agreed on. Boxed: it is large and short-lived.
    Handshaking(Box<Handshaking>),
    /// TLS.
    Secured(Link),
}

/// The handshake of a connection, and what its listener's certificate binds to.
pub(crate) struct Handshaking {
    pub(crate) handshake: Handshake,
    /// `tls-server-end-point` of the certificate it began with; a reload may change it meanwhile.
    pub(crate) end_point: Option<Arc<[u8]>>,
}

/// Bytes that came and cannot be dealt with yet. There are none for a connection between two messages.
#[derive(Debug, Default)]
pub(crate) struct PendingInput {
    /// The beginning of a TLS record.
    pub(super) record: Vec<u8>,
    /// What was decrypted while the core had the connection paused.
    pub(super) paused: PausedInput,
}

/// What the bytes inside the transport are.
pub(crate) enum Protocol {
    /// The XML stream.
    Stream,
    /// Frames of the light protocol.
    Light,
    /// The HTTP request that asks for a WebSocket.
    Upgrade(Box<Upgrade>),
    /// WebSocket frames. A decoder is kept only inside a message.
    WebSocket(Option<Box<Decoder>>),
}

/// How far a connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The core does not know it: a handshake or an upgrade comes first. The client's address.
    New(IpAddr),
    /// The core and the peer talk.
    Open,
    /// The core has let it go. It is shut down when its queue has been written.
    Leaving,
    /// Shut down; whatever still comes is thrown away until the peer is done. To close at once would reset the
    /// connection, and the peer might never see the last words.
    Lingering,
}

/// What is known about the socket's readiness to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Readiness {
    /// There is nothing; an edge will tell.
    Dry,
    /// There may be something.
    Ready,
    /// The peer has announced its end: there is something until a read says that this was all.
    Ended,
}

/// Whether the core takes bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadFlow {
    /// It does.
    Open,
    /// It waits for an answer; the socket is not read.
    Paused,
}

impl Transport {
    /// Takes the handshake out, if one is going on; until another transport is set, there is none.
    pub(super) fn take_handshake(&mut self) -> Option<Box<Handshaking>> {
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
            permit,
            stage: Stage::New(address),
            readiness: Readiness::Dry,
            flow: ReadFlow::Open,
            queued: false,
            staged: false,
        }
    }

    /// Marks the connection as known to the core; its address, unless it was known already.
    pub(crate) fn mark_open(&mut self) -> Option<IpAddr> {
        let Stage::New(address) = self.stage else { return None };
        self.stage = Stage::Open;
        Some(address)
    }

    /// Its handshake is complete, where there is one.
    pub(crate) fn handshake_done(&mut self) {
        self.permit.opened();
    }

    /// Whether there is anything to do for a reader: something kept or readable, and nobody who wants it later.
    pub(crate) fn is_readable(&self) -> bool {
        self.flow == ReadFlow::Open && (self.readiness != Readiness::Dry || self.has_kept())
    }

    /// Whether it is on its way into the server: such connections queue separately, so that a storm of handshakes
    /// never stands in the way of those who are in.
    pub(crate) fn is_opening(&self) -> bool {
        matches!(self.stage, Stage::New(_)) || matches!(self.transport, Transport::Handshaking(_))
    }
}
