//! WebSocket frames (RFC 6455) as XMPP uses them (RFC 7395): text messages, without I/O and without extensions; or binary ones, as matches
//! use them.

mod decode;
mod encode;
mod opcode;

pub use decode::{Decoder, FrameEvent, Role};
pub use encode::{encode_binary, encode_close, encode_control, encode_masked, encode_text};
pub use opcode::{CONTROL_BYTES_MAX, Error, Opcode};

#[cfg(test)]
mod tests;
