//! Restricted XML (RFC 6120 §11): a strict reader, a small tree, an escaping writer, limits.
//!
//! The reader refuses what XMPP forbids (document types, processing instructions, comments, references to entities
//! other than the five) and what XML and XML Namespaces forbid. It takes the ends of tags from quick-xml's parser and
//! judges every byte between them itself, because quick-xml is lenient by design.
//!
//! There are two ways to write XML. An [`Element`] is a tree: for a reply as a whole, which is built in parts, read again or
//! changed on its way, and which no client causes often. A [`writer::Writer`] appends to a buffer and allocates nothing: for
//! what is written for each stanza, each event of a topic and each notification. Nobody else puts tags together.

mod chars;
mod declaration;
mod element;
mod error;
mod lexer;
mod limits;
mod name;
mod reference;
mod scope;
mod tag;
pub mod writer;

pub use chars::is_space;
pub use element::{Attribute, Element, Node};
pub use error::{Error, Restriction};
pub use limits::Limits;

pub(crate) use chars::{legal_utf8_prefix, trim};
pub(crate) use declaration::split_declaration;
pub(crate) use element::SizeLimit;
pub(crate) use lexer::{Lexer, Token};
pub(crate) use reference::{REFERENCE_BYTES_MAX, resolve_reference};
pub(crate) use scope::Outer;
