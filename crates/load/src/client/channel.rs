//! The layers between the network and the stream: TLS, and the framing of TCP or WebSocket. An idle channel holds only
//! their state.

use std::sync::Arc;

use carillon_wire::frame::tcp::{Framer, Step};
use carillon_wire::frame::websocket::{Decoder, FrameEvent, Opcode, Role, encode_masked};
use carillon_wire::ns;
use carillon_wire::stanza::{self, Context, Framing, Stanza, Unit};
use carillon_wire::stream::{Header, HeaderOut, write_close, write_header, write_open};
use carillon_wire::xml::writer::Writer;
use carillon_wire::xml::{Element, Limits};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::entropy::Entropy;
use super::event::Failure;
use super::outbox::Outbox;
use super::tls::{PeerState, TlsLayer};

/// The layers of one connection.
pub(crate) struct Channel {
    tls: Option<Box<TlsLayer>>,
    frames: Frames,
    context: Context,
}

enum Frames {
    Tcp(Framer),
    WebSocket { decoder: Box<Decoder>, masks: Masks },
}

/// An event on the stream.
#[derive(Debug)]
pub(crate) enum Frame {
    /// The stream is opened or restarted.
    Header(Header),
    /// A stanza or another element.
    Unit(Unit),
    /// The stream ends.
    Close,
}

impl Channel {
    pub(crate) fn new(framing: Framing, limits: Limits, entropy: &mut Entropy) -> Self {
        let frames = match framing {
            Framing::Tcp => Frames::Tcp(Framer::new(limits)),
            Framing::WebSocket => Frames::WebSocket {
                decoder: Box::new(Decoder::new(Role::Client, limits)),
                masks: Masks::new(entropy.mask_seed()),
            },
        };
        Self { tls: None, frames, context: Context::new(framing, limits) }
    }

    pub(crate) fn framing(&self) -> Framing {
        self.context.framing
    }

    pub(crate) fn tls(&mut self) -> Option<&mut TlsLayer> {
        self.tls.as_deref_mut()
    }

    /// Begins a TLS handshake: all further bytes are inside TLS.
    pub(crate) fn secure(
        &mut self,
        config: &Arc<ClientConfig>,
        domain: &str,
        out: &mut Outbox,
    ) -> Result<(), Failure> {
        self.flush(out);
        let name =
            ServerName::try_from(domain.to_owned()).map_err(|_| Failure::ServerName(domain.to_owned()))?;
        self.tls = Some(Box::new(TlsLayer::new(config, name, &mut out.bytes)?));
        Ok(())
    }

    /// Takes bytes from the network and appends the text in them to `text`.
    pub(crate) fn open_records(
        &mut self,
        bytes: &[u8],
        text: &mut Vec<u8>,
        out: &mut Outbox,
    ) -> Result<PeerState, Failure> {
        match &mut self.tls {
            Some(tls) => Ok(tls.receive(bytes, text, &mut out.bytes)?),
            None => {
                text.extend_from_slice(bytes);
                Ok(PeerState::Open)
            }
        }
    }

    /// Takes the next frame from the front of `text`; `None` if it is incomplete.
    pub(crate) fn next(&mut self, text: &mut &[u8], out: &mut Outbox) -> Result<Option<Frame>, Failure> {
        match &mut self.frames {
            Frames::Tcp(framer) => next_on_tcp(framer, &mut self.context, text),
            Frames::WebSocket { decoder, masks } => {
                next_on_websocket(decoder, masks, &self.context, text, &mut out.text)
            }
        }
    }

    /// Opens or restarts the stream.
    pub(crate) fn open(&mut self, domain: &str, out: &mut Outbox) {
        let header = HeaderOut { to: Some(domain), lang: Some("en"), ..HeaderOut::default() };
        match &mut self.frames {
            Frames::Tcp(framer) => {
                framer.restart();
                write_header(&mut out.text, &header);
            }
            Frames::WebSocket { .. } => {
                let mut open = Vec::new();
                write_open(&mut open, &header);
                self.write(&open, out);
            }
        }
    }

    /// Sends one element, which declares all the namespaces its framing demands.
    pub(crate) fn write(&mut self, element: &[u8], out: &mut Outbox) {
        match &mut self.frames {
            Frames::Tcp(_) => out.text.extend_from_slice(element),
            Frames::WebSocket { masks, .. } => {
                encode_masked(&mut out.text, Opcode::Text, element, masks.draw());
            }
        }
    }

    /// Prints one element and sends it; it declares all the namespaces that its framing demands.
    pub(crate) fn write_element(&mut self, out: &mut Outbox, print: impl FnOnce(&mut Writer<'_>)) {
        match self.frames {
            Frames::Tcp(_) => print(&mut Writer::new(&mut out.text)),
            Frames::WebSocket { .. } => {
                let mut element = Vec::new();
                print(&mut Writer::new(&mut element));
                self.write(&element, out);
            }
        }
    }

    /// Sends a stanza.
    pub(crate) fn write_stanza(&mut self, stanza: &Stanza, out: &mut Outbox) {
        match self.frames {
            Frames::Tcp(_) => stanza.write(&mut out.text, Framing::Tcp),
            Frames::WebSocket { .. } => {
                let mut element = Vec::new();
                stanza.write(&mut element, Framing::WebSocket);
                self.write(&element, out);
            }
        }
    }

    /// Sends a stanza given as text that may lack the declaration of its namespace. On WebSocket that is added.
    pub(crate) fn write_text(&mut self, stanza: &[u8], out: &mut Outbox) {
        match (self.framing(), Element::parse(stanza, ns::CLIENT)) {
            (Framing::WebSocket, Ok(element)) => {
                let mut text = Vec::new();
                element.write(&mut text, "");
                self.write(&text, out);
            }
            _ => self.write(stanza, out),
        }
    }

    /// Sends text outside of any framing.
    pub(crate) fn write_unframed(&mut self, text: &[u8], out: &mut Outbox) {
        out.text.extend_from_slice(text);
    }

    /// Closes the client's stream.
    pub(crate) fn close_stream(&mut self, out: &mut Outbox) {
        let mut close = Vec::new();
        write_close(&mut close, self.framing());
        self.write(&close, out);
    }

    /// Closes the connection, after both streams.
    pub(crate) fn close_connection(&mut self, out: &mut Outbox) {
        if let Frames::WebSocket { masks, .. } = &mut self.frames {
            // RFC 6455 §7.4.1: 1000 is a normal closure.
            encode_masked(&mut out.text, Opcode::Close, &1000_u16.to_be_bytes(), masks.draw());
        }
        self.flush(out);
        if let Some(tls) = &mut self.tls {
            tls.close(&mut out.bytes);
        }
    }

    /// Turns what was written into bytes for the network.
    pub(crate) fn flush(&mut self, out: &mut Outbox) {
        if out.text.is_empty() {
            return;
        }
        match &mut self.tls {
            // What cannot be encrypted any more is not sent: the connection has failed, which is reported elsewhere.
            Some(tls) => drop(tls.send(&out.text, &mut out.bytes)),
            None => out.bytes.extend_from_slice(&out.text),
        }
        out.text.clear();
    }
}

fn next_on_tcp(
    framer: &mut Framer,
    context: &mut Context,
    text: &mut &[u8],
) -> Result<Option<Frame>, Failure> {
    loop {
        let whole = *text;
        let mut unit = |length: usize| {
            let (unit, behind) = whole.split_at_checked(length).unwrap_or((whole, &[]));
            *text = behind;
            unit
        };
        match framer.poll(whole).map_err(Failure::Xml)? {
            Step::Incomplete => return Ok(None),
            Step::Whitespace(length) => {
                unit(length);
            }
            Step::Header(length) => {
                let header = Header::parse(unit(length)).map_err(Failure::Xml)?;
                *context = Context::of_header(&header, context.limits);
                return Ok(Some(Frame::Header(header)));
            }
            Step::Element(length) => {
                return stanza::read(unit(length), context).map(Frame::Unit).map(Some).map_err(Failure::Xml);
            }
            Step::Close(length) => {
                unit(length);
                return Ok(Some(Frame::Close));
            }
        }
    }
}

fn next_on_websocket(
    decoder: &mut Decoder,
    masks: &mut Masks,
    context: &Context,
    text: &mut &[u8],
    output: &mut Vec<u8>,
) -> Result<Option<Frame>, Failure> {
    while let Some(event) = decoder.poll(text).map_err(Failure::WebSocket)? {
        match event {
            FrameEvent::Text(message) => return read_message(&message, context).map(Some),
            FrameEvent::Ping(payload) => encode_masked(output, Opcode::Pong, &payload, masks.draw()),
            FrameEvent::Pong(_) | FrameEvent::Binary(_) => {}
            FrameEvent::Close { .. } => return Ok(Some(Frame::Close)),
        }
    }
    Ok(None)
}

fn read_message(message: &[u8], context: &Context) -> Result<Frame, Failure> {
    match stanza::read(message, context).map_err(Failure::Xml)? {
        Unit::Nonza(element) if element.is("open", ns::FRAMING) => {
            Header::parse_open(&element).map(Frame::Header).map_err(Failure::Xml)
        }
        Unit::Nonza(element) if element.is("close", ns::FRAMING) => Ok(Frame::Close),
        unit => Ok(Frame::Unit(unit)),
    }
}

/// Masks of WebSocket frames (xorshift64*). They protect proxies against scripts of web pages (RFC 6455 §10.3);
/// a load tester has none, so a cheap generator is enough.
#[derive(Debug)]
struct Masks {
    state: u64,
}

impl Masks {
    fn new(seed: u64) -> Self {
        // Zero would stay zero.
        Self { state: seed | 1 }
    }

    fn draw(&mut self) -> [u8; 4] {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let bytes = self.state.wrapping_mul(0x2545_F491_4F6C_DD1D).to_be_bytes();
        [bytes[0], bytes[1], bytes[2], bytes[3]]
    }
}
