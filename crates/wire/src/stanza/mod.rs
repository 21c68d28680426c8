//! Stanzas: a typed header, and a payload that is forwarded as the bytes that were received (RFC 6120 §8).

mod error;
mod kind;
mod payload;
mod read;
mod shared;

pub use error::{Condition, ErrorType, StanzaError};
pub use kind::{IqType, Kind, MessageType, PresenceType};
pub use payload::{Child, Payload};
pub use read::{Context, Unit, read};
pub use shared::SharedStanza;

pub use crate::frame::Framing;

use crate::jid::Jid;
use crate::ns;
use crate::xml::Element;
use crate::xml::writer::Writer;

/// The largest payload that an error returns to its sender, in bytes.
const ECHO_BYTES_MAX: usize = 1024;

/// A message, presence or IQ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stanza {
    /// The kind of stanza and its type.
    pub kind: Kind,
    /// The recipient.
    pub to: Option<Jid>,
    /// The sender.
    pub from: Option<Jid>,
    /// The id, which the sender chose; every IQ that was read has one.
    pub id: Option<Box<str>>,
    /// The language of its texts, `xml:lang`.
    pub lang: Option<Box<str>>,
    /// The content.
    pub payload: Payload,
}

impl Stanza {
    /// An empty message.
    pub fn message(kind: MessageType) -> Self {
        Self::new(Kind::Message(kind))
    }

    /// An empty presence.
    pub fn presence(kind: PresenceType) -> Self {
        Self::new(Kind::Presence(kind))
    }

    /// An empty IQ. It needs an id.
    pub fn iq(kind: IqType) -> Self {
        Self::new(Kind::Iq(kind))
    }

    fn new(kind: Kind) -> Self {
        Self { kind, to: None, from: None, id: None, lang: None, payload: Payload::empty() }
    }

    /// The stanza with a recipient.
    #[must_use]
    pub fn with_to(mut self, to: impl Into<Jid>) -> Self {
        self.to = Some(to.into());
        self
    }

    /// The stanza with a sender.
    #[must_use]
    pub fn with_from(mut self, from: impl Into<Jid>) -> Self {
        self.from = Some(from.into());
        self
    }

    /// The stanza with an id.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<Box<str>>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The stanza with another child in its payload.
    #[must_use]
    pub fn with_payload(mut self, child: Element) -> Self {
        self.payload.push_element(&child);
        drop(child);
        self
    }

    /// `message`, `presence` or `iq`.
    pub fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// Bytes that it takes in memory, whatever its sender filled it with: what a bound on kept stanzas counts.
    pub fn memory_bytes(&self) -> usize {
        let jids = [&self.to, &self.from].into_iter().flatten().map(|jid| jid.as_str().len());
        let texts = [&self.id, &self.lang].into_iter().flatten().map(|text| text.len());
        size_of::<Self>() + jids.chain(texts).sum::<usize>() + self.payload.memory_bytes()
    }

    /// Appends the stanza. On a WebSocket it declares `jabber:client` itself.
    pub fn write(&self, out: &mut Vec<u8>, framing: Framing) {
        let name = self.name();
        let mut writer = Writer::new(out);
        writer.start(name);
        if framing == Framing::WebSocket {
            writer.attr("xmlns", ns::CLIENT);
        }
        writer.attr_opt("to", self.to.as_ref().map(Jid::as_str));
        self.write_after_to(&mut writer);
        if !self.payload.bytes().is_empty() {
            writer.raw(self.payload.bytes()).end(name);
        }
    }

    /// Appends the start tag from behind `to` on, which is the whole rest where there is no payload.
    fn write_after_to(&self, writer: &mut Writer<'_>) {
        writer
            .attr_opt("from", self.from.as_ref().map(Jid::as_str))
            .attr_opt("id", self.id.as_deref())
            .attr_opt("type", self.kind.type_word())
            .attr_opt("xml:lang", self.lang.as_deref());
        match self.payload.bytes().is_empty() {
            true => writer.close_empty(),
            false => writer.close_start(),
        };
    }

    /// An empty result for this IQ, from its recipient to its sender.
    pub fn result_reply(&self) -> Self {
        self.reply(Kind::Iq(IqType::Result))
    }

    /// The error that answers this stanza, with the payload that caused it if that is at most 1 KiB (RFC 6120
    /// §8.3.1). `None` for a stanza that must not be answered: an error, or the result of an IQ.
    pub fn error_reply(&self, error: &StanzaError) -> Option<Self> {
        let kind = match self.kind {
            Kind::Message(MessageType::Error) | Kind::Presence(PresenceType::Error) => return None,
            Kind::Iq(IqType::Error | IqType::Result) => return None,
            Kind::Message(_) => Kind::Message(MessageType::Error),
            Kind::Presence(_) => Kind::Presence(PresenceType::Error),
            Kind::Iq(_) => Kind::Iq(IqType::Error),
        };
        let mut reply = self.reply(kind);
        if self.payload.bytes().len() <= ECHO_BYTES_MAX {
            reply.payload = self.payload.clone();
        }
        reply.payload.push_element(&error.to_element());
        Some(reply)
    }

    fn reply(&self, kind: Kind) -> Self {
        Self { to: self.from.clone(), from: self.to.clone(), id: self.id.clone(), ..Self::new(kind) }
    }
}

#[cfg(test)]
mod tests;
