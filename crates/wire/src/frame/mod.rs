//! Where units begin and end in what the network delivers.

pub mod tcp;
pub mod websocket;

/// How XML is framed on a connection. It also decides who declares namespaces: on TCP the stream header does, on a
/// WebSocket each message does for itself (RFC 7395 §3.3.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Framing {
    /// One long document (RFC 6120 §4).
    Tcp,
    /// One document a message (RFC 7395).
    WebSocket,
}

impl Framing {
    /// The default namespace in force where a top-level element stands.
    pub const fn default_ns(self) -> &'static str {
        match self {
            Self::Tcp => crate::ns::CLIENT,
            Self::WebSocket => "",
        }
    }
}
