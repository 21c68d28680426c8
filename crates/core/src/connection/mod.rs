//! The rules of a connection's two directions, without a socket: which bytes are written at once, which wait, and what the
//! session hears of it.
//!
//! The server drives these machines with sockets, a simulation with its own model of a network. Neither decides anything.

mod paused_input;
mod send_queue;
#[cfg(test)]
mod tests;

pub use paused_input::{PausedInput, Resumed};
pub use send_queue::{Offered, SendQueue};
