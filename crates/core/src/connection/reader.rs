//! From bytes to units, for every state of a connection.

use super::Io;
use crate::error::StreamError;
use crate::form::{self, Form};
use crate::settings::Limits;
use carillon_wire::Framing;
use carillon_wire::frame::tcp::{Framer, Step};
use carillon_wire::stanza::{self, Context, Unit};
use carillon_wire::stream::{Condition, Header, Prefixes};
use carillon_wire::xml::is_space;
use carillon_wire::{ns, xml};

/// Cuts a stream into units. Between stanzas it holds no bytes.
#[derive(Debug)]
pub struct Reader {
    framer: Framer,
    /// Bytes of an incomplete unit, or of units that wait.
    #[expect(clippy::box_collection, reason = "eight bytes in an idle session, not twenty-four")]
    rest: Option<Box<Vec<u8>>>,
    /// Prefixes that the stream header declared besides the usual ones; nearly always none.
    prefixes: Option<Prefixes>,
}

// The framer begins anew with the unit that is incomplete, because all of its bytes are kept. Limits are settings: whoever goes on with
// what was read calls [`Reader::trust`].
impl Form for Reader {
    fn write(&self, out: &mut form::Writer) {
        let Reader { framer, rest, prefixes } = self;
        framer.state().write(out);
        rest.write(out);
        prefixes.write(out);
    }

    fn read(input: &mut form::Reader<'_>) -> Result<Reader, form::Malformed> {
        let framer = Framer::resume(Form::read(input)?, xml::Limits::before_auth());
        Ok(Reader { framer, rest: Form::read(input)?, prefixes: Form::read(input)? })
    }
}

/// What stands at the front of a stream.
#[derive(Debug)]
pub enum Frame {
    /// A stream header, or `<open/>`.
    Header(Box<Header>),
    /// A top-level element.
    Unit(Box<Unit>),
    /// The peer's stream error: it ends the stream (RFC 6120 §4.9.1.1).
    Error,
    /// The stream's end, or `<close/>`.
    Close,
}

impl Reader {
    /// A reader that awaits a header, with the limits before authentication.
    pub fn new(limits: &Limits) -> Reader {
        Reader { framer: Framer::new(before_auth(limits)), rest: None, prefixes: None }
    }

    /// The client is authenticated: the limits are larger from now on.
    pub fn trust(&mut self, limits: &Limits) {
        self.framer.set_limits(after_auth(limits));
    }

    /// Expects a new header: after TLS and after SASL.
    pub fn restart(&mut self) {
        self.framer.restart();
        self.prefixes = None;
    }

    /// Takes over the prefixes that a header declared.
    pub fn declare(&mut self, header: &Header) {
        self.prefixes = header.prefixes();
    }

    /// Whether anything besides white space was read and not handled.
    pub fn has_more_than_space(&self) -> bool {
        self.rest.as_ref().is_some_and(|rest| !rest.iter().copied().all(is_space))
    }

    /// Keeps `bytes` behind what is kept already.
    pub fn keep(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.rest.get_or_insert_default().extend_from_slice(bytes);
        }
    }

    /// Takes the bytes that are kept; they belong before new ones.
    pub fn take_rest(&mut self) -> Option<Box<Vec<u8>>> {
        self.rest.take()
    }

    fn context(&self, framing: Framing, limits: xml::Limits) -> Context {
        Context { framing, extra_ns: self.prefixes.clone(), limits }
    }
}

impl Io {
    /// The next frame of `bytes`, if it is complete, and how many bytes are consumed.
    pub fn next_frame(
        &mut self,
        bytes: &[u8],
        limits: &Limits,
        trusted: bool,
    ) -> Result<(Option<Frame>, usize), StreamError> {
        let limits = if trusted { after_auth(limits) } else { before_auth(limits) };
        match self.framing {
            Framing::Tcp => self.next_tcp(bytes, limits),
            Framing::WebSocket if bytes.is_empty() => Ok((None, 0)),
            Framing::WebSocket => self.message(bytes, limits).map(|frame| (Some(frame), bytes.len())),
        }
    }

    #[expect(clippy::indexing_slicing, reason = "the framer counts bytes of what it was given")]
    fn next_tcp(&mut self, bytes: &[u8], limits: xml::Limits) -> Result<(Option<Frame>, usize), StreamError> {
        let mut at = 0;
        loop {
            match self.reader.framer.poll(&bytes[at..])? {
                Step::Incomplete => return Ok((None, at)),
                Step::Whitespace(n) => at += n,
                Step::Header(n) => {
                    let header = Header::parse(&bytes[at..at + n])?;
                    return Ok((Some(Frame::Header(Box::new(header))), at + n));
                }
                Step::Element(n) => {
                    let context = self.reader.context(Framing::Tcp, limits);
                    let unit = stanza::read(&bytes[at..at + n], &context)?;
                    return Ok((Some(Frame::of(unit)), at + n));
                }
                Step::Close(n) => return Ok((Some(Frame::Close), at + n)),
            }
        }
    }

    /// One WebSocket message is one element (RFC 7395 §3.3).
    fn message(&mut self, bytes: &[u8], limits: xml::Limits) -> Result<Frame, StreamError> {
        if bytes.len() > limits.stanza_bytes {
            return Err(StreamError::new(Condition::PolicyViolation, "the message is too large"));
        }
        let unit = stanza::read(bytes, &self.reader.context(Framing::WebSocket, limits))?;
        match &unit {
            Unit::Nonza(element) if element.is("open", ns::FRAMING) => {
                Ok(Frame::Header(Box::new(Header::parse_open(element)?)))
            }
            Unit::Nonza(element) if element.is("close", ns::FRAMING) => Ok(Frame::Close),
            _ => Ok(Frame::of(unit)),
        }
    }
}

impl Frame {
    fn of(unit: Unit) -> Frame {
        match &unit {
            Unit::Nonza(element) if element.is("error", ns::STREAMS) => Frame::Error,
            _ => Frame::Unit(Box::new(unit)),
        }
    }
}

fn before_auth(limits: &Limits) -> xml::Limits {
    let strict = xml::Limits::before_auth();
    xml::Limits { stanza_bytes: limits.stanza_bytes_before_auth, ..strict }
}

fn after_auth(limits: &Limits) -> xml::Limits {
    xml::Limits { stanza_bytes: limits.stanza_bytes, depth: limits.depth, ..xml::Limits::default() }
}
