//! A connection as plain data: what is read from it, what is known of its client before a session is bound, and the rules of
//! its two directions without a socket: which bytes are written at once, which wait, and what the session is told.
//!
//! The server applies these rules to sockets, the simulation to its model of a network.

mod allowance;
mod by_size;
mod carried;
mod claim;
#[cfg(test)]
mod form_tests;
mod io;
mod paused_input;
mod reader;
mod send_queue;
#[cfg(test)]
mod tests;

pub use allowance::{Allowance, Received};
pub use by_size::BySize;
pub use carried::CarriedClaim;
pub use claim::{
    Claim, Claimed, Client, FeatureClaim, FeatureProof, FirstMessage, Invited, Proof, ProofKind,
};
pub use io::{Io, Noted};
pub use paused_input::{PausedInput, Resumed};
pub use reader::{Frame, Reader};
pub use send_queue::{Offered, SendQueue};

use crate::model::ConnId;
use crate::sasl::ChannelBinding;
use std::net::IpAddr;

/// A player on the way to the shard of a match.
#[derive(Debug)]
pub struct Joining {
    /// What takes the seat.
    pub token: Box<[u8]>,
    /// The last tick that the client has.
    pub have: u32,
    /// What it sent behind that.
    pub rest: Box<[u8]>,
    /// Whether datagrams may be sent on its connection.
    pub datagrams: bool,
}

/// A connection that was accepted.
#[derive(Debug)]
pub struct Opened {
    /// Its name.
    pub conn: ConnId,
    /// The client's address.
    pub address: IpAddr,
    /// How stanzas are framed on it.
    pub framing: carillon_wire::Framing,
    /// Whether TLS must, or did, come first.
    pub security: Security,
}

/// The bound that was reached by what waits for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueBound {
    /// That of its own queue: the bytes sent last were dropped.
    Own,
    /// That of all queues together, and its queue is among the largest. Nothing was dropped.
    Common,
}

crate::form! { enum QueueBound { 0 = Own, 1 = Common } }

/// Where a new connection stands with TLS.
#[derive(Debug)]
pub enum Security {
    /// Plain, to be secured by STARTTLS before anything else.
    StartTls,
    /// TLS is complete: direct TLS, or WebSocket over TLS.
    Secured(ChannelBinding),
    /// Plain and allowed to stay so by configuration: WebSocket behind a proxy that ends TLS.
    Trusted,
}
