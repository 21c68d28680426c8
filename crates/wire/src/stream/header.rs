//! Stream headers, features and the stream's end.

use std::sync::Arc;

use crate::frame::Framing;
use crate::ns;
use crate::xml::writer::Writer;
use crate::xml::{Element, Error, Lexer, Limits, Outer, split_declaration, trim};

/// A prefix and the namespace it stands for.
pub type PrefixBinding = (Box<str>, Box<str>);

/// The prefixes with which every unit of a stream is read, shared by them. One pointer, because each connection has one.
pub type Prefixes = Arc<Vec<PrefixBinding>>;

/// The opening of a stream as received, on TCP or by `<open/>`.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Header {
    /// The domain of the stream, as received.
    pub to: Option<String>,
    /// Who opens the stream, as received.
    pub from: Option<String>,
    /// Major and minor version of XMPP; `None` means before 1.0 (RFC 6120 §4.7.5).
    pub version: Option<(u8, u8)>,
    /// Default language of the stream.
    pub lang: Option<String>,
    /// The stream's id, in the header of a server.
    pub id: Option<String>,
    /// The content namespace, such as `jabber:client`; empty if the header declares none.
    pub default_ns: String,
    /// Prefixes that the header declares, with their namespaces. Empty for the usual header that declares nothing but
    /// `stream`; all of them, the streams namespace's included, for any other.
    pub extra: Vec<PrefixBinding>,
}

impl Header {
    /// [`Header::extra`] for [`Context::extra_ns`](crate::stanza::Context::extra_ns); none for the usual header.
    pub fn prefixes(&self) -> Option<Prefixes> {
        (!self.extra.is_empty()).then(|| Arc::new(self.extra.clone()))
    }

    /// Reads `<stream:stream …>` with the XML declaration before it, if there is one. Any prefix will do.
    ///
    /// # Errors
    /// [`Error::InvalidNamespace`] if the root is not in the streams namespace, [`Error::HeaderPrefix`] if it has no
    /// prefix, [`Error::Header`] if it is named otherwise or is empty, [`Error::HeaderVersion`]; and as for any XML.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let bytes = trim(split_declaration(trim(bytes))?);
        let mut lexer = Lexer::new(bytes, &Limits::before_auth(), &Outer::default_ns(""))?;
        lexer.token()?;
        let tag = lexer.tag();
        if lexer.element_ns() != ns::STREAMS {
            return Err(Error::InvalidNamespace);
        }
        if tag.prefix().is_empty() {
            return Err(Error::HeaderPrefix);
        }
        if tag.local() != "stream" || bytes.ends_with(b"/>") {
            return Err(Error::Header);
        }
        if lexer.position() != bytes.len() {
            return Err(Error::NotOneElement);
        }
        let attribute = |name| tag.attribute(name).map(std::borrow::Cow::into_owned);
        let mut header = Self {
            to: attribute("to"),
            from: attribute("from"),
            version: attribute("version").as_deref().map(parse_version).transpose()?,
            lang: attribute("xml:lang"),
            id: attribute("id"),
            ..Self::default()
        };
        for (prefix, ns) in lexer.root_declarations() {
            match prefix {
                "" => ns.clone_into(&mut header.default_ns),
                _ => header.extra.push((prefix.into(), ns.into())),
            }
        }
        if let [(prefix, ns)] = &*header.extra
            && &**prefix == "stream"
            && &**ns == ns::STREAMS
        {
            header.extra.clear();
        }
        Ok(header)
    }

    /// Reads `<open/>` (RFC 7395 §3.4). The content namespace is `jabber:client`, the only one there is on a WebSocket.
    ///
    /// # Errors
    /// [`Error::InvalidNamespace`] if the element is another, [`Error::HeaderVersion`].
    pub fn parse_open(element: &Element) -> Result<Self, Error> {
        if !element.is("open", ns::FRAMING) {
            return Err(Error::InvalidNamespace);
        }
        let attribute = |name| element.attr(name).map(str::to_owned);
        Ok(Self {
            to: attribute("to"),
            from: attribute("from"),
            version: element.attr("version").map(parse_version).transpose()?,
            lang: attribute("xml:lang"),
            id: attribute("id"),
            default_ns: ns::CLIENT.to_owned(),
            extra: Vec::new(),
        })
    }
}

/// RFC 6120 §4.7.5: two numbers, each of which may have leading zeros.
fn parse_version(text: &str) -> Result<(u8, u8), Error> {
    let number = |digits: &str| {
        let valid = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        if valid { digits.parse().map_err(|_| Error::HeaderVersion) } else { Err(Error::HeaderVersion) }
    };
    let (major, minor) = text.split_once('.').ok_or(Error::HeaderVersion)?;
    Ok((number(major)?, number(minor)?))
}

/// The contents of a stream header to send.
#[derive(Clone, Copy, Default, Debug)]
pub struct HeaderOut<'a> {
    /// Who opens the stream.
    pub from: Option<&'a str>,
    /// The domain to which it is opened.
    pub to: Option<&'a str>,
    /// The stream's id, if a server opens the stream.
    pub id: Option<&'a str>,
    /// Default language of the stream.
    pub lang: Option<&'a str>,
}

/// Appends an XML declaration and a stream header of version 1.0 for TCP.
pub fn write_header(out: &mut Vec<u8>, header: &HeaderOut<'_>) {
    let mut writer = Writer::new(out);
    writer.raw(b"<?xml version='1.0'?>").start("stream:stream");
    writer.attr("xmlns", ns::CLIENT).attr("xmlns:stream", ns::STREAMS);
    attributes(&mut writer, header).close_start();
}

/// Appends `<open/>` of version 1.0 for a WebSocket (RFC 7395 §3.4).
pub fn write_open(out: &mut Vec<u8>, header: &HeaderOut<'_>) {
    let mut writer = Writer::new(out);
    writer.start("open").attr("xmlns", ns::FRAMING);
    attributes(&mut writer, header).close_empty();
}

fn attributes<'w, 'o>(writer: &'w mut Writer<'o>, header: &HeaderOut<'_>) -> &'w mut Writer<'o> {
    writer
        .attr_opt("from", header.from)
        .attr_opt("to", header.to)
        .attr_opt("id", header.id)
        .attr("version", "1.0")
        .attr_opt("xml:lang", header.lang)
}

/// Appends the end of the stream: the root's end tag on TCP, `<close/>` on a WebSocket.
pub fn write_close(out: &mut Vec<u8>, framing: Framing) {
    match framing {
        Framing::Tcp => {
            Writer::new(out).end("stream:stream");
        }
        Framing::WebSocket => {
            Writer::new(out).empty("close", ns::FRAMING);
        }
    }
}

/// Appends `<stream:features/>` with `features` in it.
pub fn write_features<'e>(
    out: &mut Vec<u8>,
    features: impl IntoIterator<Item = &'e Element>,
    framing: Framing,
) {
    let mut writer = Writer::new(out);
    writer.start("stream:features");
    if framing == Framing::WebSocket {
        writer.attr("xmlns:stream", ns::STREAMS);
    }
    writer.close_start();
    for feature in features {
        feature.write(out, framing.default_ns());
    }
    Writer::new(out).end("stream:features");
}

#[cfg(test)]
#[path = "header_tests.rs"]
mod tests;
