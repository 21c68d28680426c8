//! SASL without a connection: mechanisms, their messages and their proofs. Pure functions of what the client sent, what TLS
//! yields and what the store knows; `session::auth` drives the exchange.

mod channel;
pub mod derivation;
mod encoding;
mod failure;
pub mod fast;
mod mechanism;
mod profile;
pub mod scram;
mod stamp;

pub use channel::{ChannelBinding, Protection};
pub use derivation::{Derivation, Derived, Hashes, Password};
pub use encoding::{decode, decode_bytes, encode};
pub use failure::Failure;
pub use mechanism::{Hash, Mechanism};
pub use profile::{Inline, SaslProfile};
pub use stamp::Stamp;
