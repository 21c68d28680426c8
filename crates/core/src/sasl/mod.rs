//! SASL without a connection: mechanisms, their messages and their proofs. Pure functions of what the client sent, what TLS
//! yields and what the store knows; `session::auth` drives the exchange.

mod channel;
pub mod derivation;
mod failure;
pub mod fast;
mod mechanism;
pub mod scram;
mod wrap;

pub use channel::{ChannelBinding, Protection};
pub use derivation::{Derivation, Derived, Hashes, Password};
pub use failure::Failure;
pub use mechanism::{Hash, Mechanism};
pub use wrap::{Inline, Wrap, decode, decode_bytes, encode};
