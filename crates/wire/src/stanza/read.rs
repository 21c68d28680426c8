//! Reads one top-level element, in the single pass that everything from the network goes through.

use std::borrow::Cow;

use bytes::Bytes;

use super::Stanza;
use super::error::{Condition, StanzaError};
use super::kind::{IqType, Kind, MessageType, PresenceType};
use super::payload::{Indexer, Payload};
use crate::frame::Framing;
use crate::jid::Jid;
use crate::ns;
use crate::stream::{Header, Prefixes};
use crate::xml::{Element, Error, Lexer, Limits, Outer, trim};

/// The context of a unit.
#[derive(Clone, Debug)]
pub struct Context {
    /// The framing.
    pub framing: Framing,
    /// Prefixes that the stream header declares; `None` for the usual header that declares only `stream`. See
    /// [`Header::extra`].
    pub extra_ns: Option<Prefixes>,
    /// The limits of a unit.
    pub limits: Limits,
}

impl Context {
    /// A TCP stream with the usual header, or a WebSocket.
    pub const fn new(framing: Framing, limits: Limits) -> Self {
        Self { framing, extra_ns: None, limits }
    }

    /// A TCP stream with this header.
    pub fn of_header(header: &Header, limits: Limits) -> Self {
        Self { framing: Framing::Tcp, extra_ns: header.prefixes(), limits }
    }

    fn outer(&self) -> Outer<'_> {
        match (self.framing, &self.extra_ns) {
            // RFC 7395 §3.3.3: a message declares all it needs.
            (Framing::WebSocket, _) => Outer::default_ns(""),
            (Framing::Tcp, None) => Outer { default_ns: ns::CLIENT, prefixes: &[], stream_prefix: true },
            (Framing::Tcp, Some(prefixes)) => {
                Outer { default_ns: ns::CLIENT, prefixes, stream_prefix: false }
            }
        }
    }
}

/// A unit as it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A message, presence or IQ.
    Stanza(Stanza),
    /// Anything else, such as `<auth/>` or `<r/>`.
    Nonza(Element),
    /// A stanza that is well-formed but unusable.
    Refused {
        /// The stanza without its invalid parts: `reply.error_reply(&error)` is the answer, if one is allowed.
        reply: Stanza,
        /// The error to answer with.
        error: StanzaError,
    },
}

/// Reads one complete top-level element as found by [`Framer`](crate::frame::tcp::Framer), or one WebSocket message.
///
/// A stanza's payload is kept as received if it means the same elsewhere, and is rewritten if it depends on
/// prefixes declared outside of it.
///
/// # Errors
/// Any of [`Error`]: the stream must be closed. [`Error::InvalidNamespace`] and [`Error::UnsupportedStanza`] for an
/// element named like a stanza that is not in `jabber:client`.
pub fn read(bytes: &[u8], context: &Context) -> Result<Unit, Error> {
    let bytes = trim(bytes);
    let outer = context.outer();
    let mut lexer = Lexer::new(bytes, &context.limits, &outer)?;
    lexer.token()?;
    let Some(name) = StanzaName::of(lexer.tag().local()) else {
        return Element::build(&mut lexer).map(Unit::Nonza);
    };
    match lexer.element_ns() {
        ns::CLIENT => {}
        // RFC 6120 §4.9.3.10: the content namespace is another, or none.
        ns::SERVER | "" => return Err(Error::InvalidNamespace),
        // RFC 6120 §4.9.3.24
        _ => return Err(Error::UnsupportedStanza),
    }
    let draft = Draft::of(name, &lexer);
    let payload = read_payload(&mut lexer, bytes, &outer, &context.limits)?;
    Ok(draft.finish(payload))
}

/// Reads from the end of the stanza's start tag to the end.
fn read_payload(
    lexer: &mut Lexer<'_>,
    bytes: &[u8],
    outer: &Outer<'_>,
    limits: &Limits,
) -> Result<Payload, Error> {
    let origin = lexer.position();
    let mut end = origin;
    let mut indexer = Indexer::new(origin);
    while let Some(token) = lexer.token()? {
        indexer.see(token, lexer);
        if indexer.children() > Limits::CHILDREN_MAX {
            return Err(Error::TooManyChildren);
        }
        end = lexer.start();
    }
    if lexer.depends_on_outside() {
        return rewrite_payload(bytes, outer, limits);
    }
    Ok(indexer.finish(Bytes::copy_from_slice(bytes.get(origin..end).unwrap_or_default())))
}

/// Writes each child with the declarations that it needs, by way of a tree.
fn rewrite_payload(bytes: &[u8], outer: &Outer<'_>, limits: &Limits) -> Result<Payload, Error> {
    let mut lexer = Lexer::new(bytes, limits, outer)?;
    lexer.token()?;
    let stanza = Element::build(&mut lexer)?;
    // Each child repeats the declarations that it needs.
    Payload::from_elements_within(stanza.children(), limits)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StanzaName {
    Message,
    Presence,
    Iq,
}

impl StanzaName {
    fn of(name: &str) -> Option<Self> {
        match name {
            "message" => Some(Self::Message),
            "presence" => Some(Self::Presence),
            "iq" => Some(Self::Iq),
            _ => None,
        }
    }
}

/// A stanza whose payload is not read yet, and the first error of its header.
struct Draft {
    stanza: Stanza,
    error: Option<StanzaError>,
}

impl Draft {
    fn of(name: StanzaName, lexer: &Lexer<'_>) -> Self {
        let tag = lexer.tag();
        let mut error = None;
        let mut refuse = |condition, text: &'static str| {
            error.get_or_insert_with(|| StanzaError::new(condition).with_text(text));
        };
        let kind = read_kind(name, tag.attribute("type").as_deref()).unwrap_or_else(|stand_in| {
            refuse(Condition::BadRequest, "unknown type");
            stand_in
        });
        let id = tag.attribute("id").map(into_box);
        if id.is_none() && name == StanzaName::Iq {
            refuse(Condition::BadRequest, "an IQ needs an id");
        }
        let mut address = |name, text| {
            let value = tag.attribute(name)?;
            let jid = Jid::new(&value).ok();
            if jid.is_none() {
                refuse(Condition::JidMalformed, text);
            }
            jid
        };
        let to = address("to", "the address in 'to' is malformed");
        let from = address("from", "the address in 'from' is malformed");
        let lang = tag.attribute("xml:lang").map(into_box);
        Self { stanza: Stanza { kind, to, from, id, lang, payload: Payload::empty() }, error }
    }

    fn finish(mut self, payload: Payload) -> Unit {
        let question = matches!(self.stanza.kind, Kind::Iq(IqType::Get | IqType::Set));
        // RFC 6120 §8.2.3
        if self.error.is_none() && question && payload.children().take(2).count() != 1 {
            let error = StanzaError::new(Condition::BadRequest);
            self.error = Some(error.with_text("an IQ that asks needs exactly one child"));
        }
        self.stanza.payload = payload;
        match self.error {
            None => Unit::Stanza(self.stanza),
            Some(error) => Unit::Refused { reply: self.stanza, error },
        }
    }
}

/// The kind of stanza; for an unknown type, the kind that stands in for it in the error's answer.
fn read_kind(name: StanzaName, word: Option<&str>) -> Result<Kind, Kind> {
    match name {
        // RFC 6121 §5.2.2: an unknown type means `normal`.
        StanzaName::Message => {
            Ok(Kind::Message(word.and_then(MessageType::from_word).unwrap_or(MessageType::Normal)))
        }
        StanzaName::Presence => match word {
            None => Ok(Kind::Presence(PresenceType::Available)),
            // Available is written as no type at all (RFC 6121 §4.7.1).
            Some(word) => match PresenceType::from_word(word) {
                None | Some(PresenceType::Available) => Err(Kind::Presence(PresenceType::Available)),
                Some(kind) => Ok(Kind::Presence(kind)),
            },
        },
        StanzaName::Iq => word.and_then(IqType::from_word).map(Kind::Iq).ok_or(Kind::Iq(IqType::Get)),
    }
}

fn into_box(text: Cow<'_, str>) -> Box<str> {
    text.into()
}
