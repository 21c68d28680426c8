//! XMPP on the wire: bytes ↔ elements ↔ stanzas, framing and addresses. No I/O, no clock, no async.
//!
//! Bytes take this way through the crate:
//!
//! ```text
//! TCP bytes ──► frame::tcp::Framer ────────┐ one unit        ┌─► Unit::Stanza   header typed, payload as bytes
//!                                          ├──► stanza::read ┼─► Unit::Nonza    anything else, as a tree
//! WebSocket ──► frame::websocket::Decoder ─┘                 └─► Unit::Refused  what to answer with an error
//!                     └─► TCP stream headers: stream::Header::parse
//! ```
//!
//! - [`xml`] has the strict reader of RFC 6120's restricted XML, the small tree ([`xml::Element`]) made only where a
//!   feature asks for one, and the escaping writer.
//! - [`frame`] cuts a byte stream into units without understanding them: [`frame::tcp`] and [`frame::websocket`].
//! - [`stream`] reads and writes what surrounds stanzas: headers, features, stream errors.
//! - [`stanza`] holds [`stanza::Stanza`]: a typed header and a payload that travels as the bytes it came in.
//! - [`jid`] prepares and compares addresses; past this crate no JID is a plain string.
//! - [`ns`] names the namespaces.
//!
//! Three promises hold throughout. Network input never panics and never makes the crate allocate more than the
//! [`xml::Limits`] in force. Whatever is accepted is namespace-well-formed. And a payload that is handed on means the
//! same inside the recipient's stream as it did inside the sender's: it depends on nothing but the default namespace
//! `jabber:client`.

#[macro_use]
mod words;

pub mod frame;
pub mod jid;
pub mod ns;
pub mod stanza;
pub mod stream;
pub mod xml;

pub use frame::Framing;
