//! The XMPP wire format: bytes ↔ elements ↔ stanzas, framing and addresses. No I/O, no clock, no async.
//!
//! The path of bytes through the crate:
//!
//! ```text
//! TCP bytes ──► frame::tcp::Framer ────────┐ one unit        ┌─► Unit::Stanza   header typed, payload as bytes
//!                                          ├──► stanza::read ┼─► Unit::Nonza    anything else, as a tree
//! WebSocket ──► frame::websocket::Decoder ─┘                 └─► Unit::Refused  what to answer with an error
//!                     └─► TCP stream headers: stream::Header::parse
//! ```
//!
//! - [`xml`] has the strict reader of RFC 6120's restricted XML, a small tree ([`xml::Element`]) that is built only where a
//!   feature needs it, and the escaping writer.
//! - [`frame`] cuts a byte stream into units without understanding them: [`frame::tcp`] and [`frame::websocket`].
//! - [`stream`] reads and writes stream headers, features and stream errors.
//! - [`stanza`] has [`stanza::Stanza`]: a typed header, and a payload that is forwarded as the bytes that were received.
//! - [`jid`] prepares and compares addresses; outside this crate no JID is a plain string.
//! - [`ns`] lists the namespaces.
//!
//! Three guarantees hold throughout. Network input never causes a panic and never makes the crate allocate more than the
//! [`xml::Limits`] allow. Everything that is accepted is namespace-well-formed. And a forwarded payload means the
//! same inside the recipient's stream as inside the sender's: it depends on nothing but the default namespace
//! `jabber:client`.

#![deny(clippy::indexing_slicing, clippy::string_slice, clippy::unwrap_used)]

#[macro_use]
mod words;

pub mod frame;
pub mod jid;
pub mod ns;
pub mod stanza;
pub mod stream;
pub mod xml;

pub use frame::Framing;
