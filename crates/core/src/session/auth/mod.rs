//! Authentication: SASL as RFC 6120 §6 wraps it, and SASL2 (XEP-0388), over the same exchange.
//!
//! Whoever claims an account goes to its home (`claimed`), where the exchange is held; a token (XEP-0484) takes a way of its
//! own there (`redeem`).
//!
//! Only this module can make an [`Authenticated`]: whoever holds one knows that the client proved it.

mod claimed;
mod exchange;
pub mod offer;
mod proven;
mod redeem;

pub use exchange::Authenticating;
pub use proven::{Authenticated, Greeting, success2};
