//! Input that arrives while the session has its connection paused.

/// Decrypted bytes, and perhaps the end of the stream after them, kept until the session is resumed. The driver bounds them,
/// because it does not read a paused connection: they are the rest of one read.
#[derive(Debug, Default)]
pub struct PausedInput {
    bytes: Vec<u8>,
    ended: bool,
}

crate::form! { struct PausedInput { bytes, ended } }

/// A part of what was kept.
#[derive(Debug, PartialEq, Eq)]
pub enum Resumed {
    /// Bytes of the stream.
    Bytes(Vec<u8>),
    /// The peer's end: no bytes follow.
    End,
}

impl PausedInput {
    /// Keeps bytes, behind those that are kept already.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Keeps the peer's end, behind the bytes that are kept.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Takes all bytes. When there are none left, returns the end, again at each call.
    pub fn take(&mut self) -> Option<Resumed> {
        match (self.bytes.is_empty(), self.ended) {
            (false, _) => Some(Resumed::Bytes(std::mem::take(&mut self.bytes))),
            (true, true) => Some(Resumed::End),
            (true, false) => None,
        }
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && !self.ended
    }
}
