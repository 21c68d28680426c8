//! A connection that goes on in another process: everything of it but its socket, as bytes.

use super::connection::{Conn, PendingInput, Protocol, ReadFlow, Readiness, Stage, Transport};
use crate::listen::Permit;
use crate::tls::{Keys, Link};
use carillon_core::connection::{PausedInput, Resumed, SendQueue};
use carillon_core::form::{Form, Malformed, Reader, Writer};
use socket2::Socket;

/// What was read of a connection, which has no socket yet.
pub(crate) struct Carried {
    transport: Transport,
    protocol: Protocol,
    record: Vec<u8>,
    paused: PausedInput,
    send_queue: SendQueue,
    flow: ReadFlow,
    /// Whom it counts for among the connections of an address.
    pub(crate) place: u64,
    /// The core waits to hear that everything is written, and what is left is written by the process before this one.
    pub(crate) awaits_flush: bool,
}

/// What is between the socket and the stream, as it is written.
enum Carrier {
    /// Nothing.
    Plain,
    /// TLS 1.3: its keys follow.
    Tls13,
    /// TLS 1.2, whose record layer cannot leave the process: that relays what is inside of it.
    Relayed,
}

carillon_core::form! { enum Carrier { 0 = Plain, 1 = Tls13, 2 = Relayed } }

/// What the bytes inside the transport mean, as it is written.
enum Inside {
    Stream,
    Light,
    WebSocket,
}

carillon_core::form! { enum Inside { 0 = Stream, 1 = Light, 2 = WebSocket } }

impl Conn {
    /// Whether its record layer cannot leave the process.
    pub(crate) fn must_be_relayed(&self) -> bool {
        matches!(self.transport, Transport::Secured(Link::Buffered(_)))
    }

    /// Appends everything but the socket. From then on only one of the two may be used.
    pub(crate) fn write_form(&self, out: &mut Writer) {
        let Conn {
            socket: _,
            transport,
            protocol,
            pending_input,
            send_queue,
            permit,
            // Connections that the core does not know, or has closed, stay.
            stage: _,
            // Its socket is registered anew, which tells it again.
            readiness: _,
            flow,
            // Who takes it counts anew.
            counted: _,
            // Both are over when the shard rests.
            queued: _,
            staged: _,
        } = self;
        let carrier = match transport {
            Transport::Plain | Transport::Announced(_) | Transport::Handshaking(_) => Carrier::Plain,
            Transport::Secured(Link::Extracted(_)) => Carrier::Tls13,
            Transport::Secured(Link::Buffered(_)) => Carrier::Relayed,
        };
        let is_relayed = matches!(carrier, Carrier::Relayed);
        carrier.write(out);
        if let Transport::Secured(Link::Extracted(keys)) = transport {
            out.raw(&*keys.to_bytes());
        }
        let (inside, replay) = match protocol {
            Protocol::Stream | Protocol::Upgrade(_) => (Inside::Stream, Vec::new()),
            Protocol::Light => (Inside::Light, Vec::new()),
            // They are not handed over: their matches ended before.
            Protocol::Player | Protocol::PlayerSocket(_) => (Inside::Stream, Vec::new()),
            Protocol::WebSocket(decoder) => {
                (Inside::WebSocket, decoder.as_ref().map(|decoder| decoder.replay()).unwrap_or_default())
            }
        };
        inside.write(out);
        let none = PendingInput::default();
        let pending = pending_input.as_deref().unwrap_or(&none);
        // What TLS has yet to open, and has sealed, is the relay's.
        let (record, awaits_flush) =
            if is_relayed { (&[][..], send_queue.is_watched()) } else { (pending.record.as_slice(), false) };
        out.string(record);
        out.string(&replay);
        pending.paused.write(out);
        if is_relayed {
            SendQueue::default().write(out);
        } else {
            send_queue.write(out);
        }
        (*flow == ReadFlow::Paused).write(out);
        permit.place().write(out);
        awaits_flush.write(out);
    }
}

/// What is left here of a connection whose record layer cannot leave the process.
pub(crate) struct Relayed {
    pub(crate) socket: Socket,
    pub(crate) link: Link,
    /// The beginning of an incomplete record.
    pub(crate) record: Vec<u8>,
    /// Sealed, and not yet taken by the client.
    pub(crate) sealed: Vec<u8>,
}

impl Conn {
    /// What is left here of the connection, if it is relayed.
    pub(crate) fn into_relayed(self) -> Option<Relayed> {
        let Conn { socket, transport: Transport::Secured(link), pending_input, send_queue, .. } = self else {
            return None;
        };
        let record = pending_input.map(|pending| pending.record).unwrap_or_default();
        Some(Relayed { socket, link, record, sealed: send_queue.unsent().to_vec() })
    }
}

impl Carried {
    /// Reads what [`Conn::write_form`] wrote.
    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Carried, Malformed> {
        let transport = match Carrier::read(input)? {
            Carrier::Plain | Carrier::Relayed => Transport::Plain,
            Carrier::Tls13 => {
                let keys = Keys::from_bytes(input.raw(Keys::BYTES)?);
                let keys = keys.map_err(|_| input.malformed("not the keys of a connection"))?;
                Transport::Secured(Link::Extracted(Box::new(keys)))
            }
        };
        let protocol = match Inside::read(input)? {
            Inside::Stream => Protocol::Stream,
            Inside::Light => Protocol::Light,
            Inside::WebSocket => Protocol::WebSocket(None),
        };
        let record = Vec::read(input)?;
        let replay: Vec<u8> = Vec::read(input)?;
        let mut kept = PausedInput::read(input)?;
        let mut paused = PausedInput::default();
        paused.push(&replay);
        while let Some(part) = kept.take() {
            match part {
                Resumed::Bytes(bytes) => paused.push(&bytes),
                Resumed::End => {
                    paused.end();
                    break;
                }
            }
        }
        let send_queue = SendQueue::read(input)?;
        let flow = if bool::read(input)? { ReadFlow::Paused } else { ReadFlow::Open };
        let (place, awaits_flush) = (u64::read(input)?, bool::read(input)?);
        Ok(Carried { transport, protocol, record, paused, send_queue, flow, place, awaits_flush })
    }

    /// The connection, with its socket.
    pub(crate) fn into_conn(self, socket: Socket, permit: Permit) -> Conn {
        let Carried { transport, protocol, record, paused, send_queue, flow, .. } = self;
        let pending = PendingInput { record, paused };
        let is_empty = pending.record.is_empty() && pending.paused.is_empty();
        Conn {
            socket,
            transport,
            protocol,
            pending_input: (!is_empty).then(|| Box::new(pending)),
            send_queue,
            counted: 0,
            permit,
            stage: Stage::Open,
            readiness: Readiness::Dry,
            flow,
            queued: false,
            staged: false,
        }
    }
}
