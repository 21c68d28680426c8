//! Framing: where units begin and end in the bytes from the network.

pub mod game;
pub mod proxy;
pub mod tcp;
pub mod websocket;

/// How XML is framed on a connection. It also determines where namespaces are declared: on TCP in the stream header, on a
/// WebSocket in each message (RFC 7395 §3.3.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Framing {
    /// One long document (RFC 6120 §4).
    Tcp,
    /// One document per message (RFC 7395).
    WebSocket,
}

impl Framing {
    /// The default namespace in scope at a top-level element.
    pub const fn default_ns(self) -> &'static str {
        match self {
            Self::Tcp => crate::ns::CLIENT,
            Self::WebSocket => "",
        }
    }
}
