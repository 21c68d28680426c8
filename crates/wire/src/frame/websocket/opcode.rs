//! The kinds of frames, and what may be wrong with one.

/// The kind of a frame (RFC 6455 §5.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opcode {
    /// A further fragment of a message.
    Continuation,
    /// A message, or its first fragment.
    Text,
    /// A binary message, or its first fragment. XMPP has none.
    Binary,
    /// The end of the connection.
    Close,
    /// A ping.
    Ping,
    /// The answer to a ping.
    Pong,
}

impl Opcode {
    /// The four bits of the header.
    pub const fn bits(self) -> u8 {
        match self {
            Self::Continuation => 0x0,
            Self::Text => 0x1,
            Self::Binary => 0x2,
            Self::Close => 0x8,
            Self::Ping => 0x9,
            Self::Pong => 0xA,
        }
    }

    /// Whether frames of this kind may stand between the fragments of a message.
    pub const fn is_control(self) -> bool {
        self.bits() & 0x8 != 0
    }
}

/// The longest payload of a control frame, in bytes (RFC 6455 §5.5).
pub const CONTROL_BYTES_MAX: usize = 125;

/// Why a received frame is refused. Each error ends the connection with [`Error::close_code`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// Reserved bits are set, and no extension was negotiated.
    #[error("reserved bits are set")]
    ReservedBits,
    /// An opcode that RFC 6455 does not define.
    #[error("unknown opcode")]
    Opcode,
    /// A binary message, which XMPP does not have (RFC 7395 §3.2).
    #[error("binary message")]
    Binary,
    /// A text message, where all are binary.
    #[error("text message")]
    Text,
    /// A client's frame without mask, or a server's with one.
    #[error("wrong masking")]
    Masking,
    /// A control frame that is fragmented or longer than 125 bytes.
    #[error("malformed control frame")]
    Control,
    /// A length not written in the shortest way, or with its highest bit set.
    #[error("malformed length")]
    Length,
    /// A continuation of nothing, or a new message inside a fragmented one.
    #[error("wrong fragmentation")]
    Fragmentation,
    /// A close frame with half a code, or a code that may not be sent.
    #[error("malformed close frame")]
    CloseCode,
    /// Text that is not UTF-8.
    #[error("invalid UTF-8")]
    InvalidUtf8,
    /// A message larger than the limit.
    #[error("message too large")]
    TooLarge,
    /// A frame after the close frame.
    #[error("frame after close")]
    AfterClose,
}

impl Error {
    /// The code to close the connection with (RFC 6455 §7.4.1).
    pub const fn close_code(self) -> u16 {
        match self {
            Self::Binary | Self::Text => 1003,
            Self::InvalidUtf8 => 1007,
            Self::TooLarge => 1009,
            _ => 1002,
        }
    }
}
