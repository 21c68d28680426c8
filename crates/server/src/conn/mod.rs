//! A connection, in as few bytes as possible.
//!
//! ```text
//!  socket ─► PendingInput? ─► Transport ─► Protocol ─► the core    (the way in: `input`, `upgrade` in `websocket`)
//!  socket ◄─ SendQueue ◄───── Transport ◄─ Protocol ◄─ the core    (the way out: `output`)
//! ```
//!
//! While nothing is in flight a connection is this value and its keys: no buffer, no parser, no task. Buffers exist only
//! while something is incomplete.

mod carried;
mod connection;
pub(crate) mod deadlines;
mod input;
mod output;
pub(crate) mod plaintext;
mod slab;
#[cfg(test)]
mod tests;

pub(crate) use carried::{Carried, Relayed};
pub(crate) use connection::{Conn, Protocol, ReadFlow, Readiness, Stage, Transport};
pub(crate) use input::{HandshakeStep, ReadOutcome, SCRATCH_BYTES};
pub(crate) use output::{ConnError, SendOutcome, Sent};
pub(crate) use slab::Slab;
