//! The decrypted input that a shard is handling.

use carillon_core::model::ConnId;
use carillon_wire::frame::websocket::{Decoder, Error, FrameEvent};

/// Decrypted bytes of one connection that are being handled, in a buffer that is reused. The core may move the connection
/// to another shard before all are handled: then the rest moves along.
#[derive(Default)]
pub(crate) struct Plaintext {
    whose: Option<ConnId>,
    bytes: Vec<u8>,
    /// How many bytes were handled.
    at: usize,
}

impl Plaintext {
    /// Clears the buffer, to be filled with bytes of a connection.
    pub(crate) fn begin(&mut self, id: ConnId) -> &mut Vec<u8> {
        self.clear();
        self.whose = Some(id);
        &mut self.bytes
    }

    /// Replaces the buffer by bytes of a connection that were kept elsewhere.
    pub(crate) fn replace(&mut self, id: ConnId, bytes: Vec<u8>) {
        (self.whose, self.bytes, self.at) = (Some(id), bytes, 0);
    }

    /// The bytes that are not handled yet.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    /// The bytes that are not handled yet, if they are of this connection.
    pub(crate) fn unread_of(&self, id: ConnId) -> &[u8] {
        if self.whose == Some(id) { self.unread() } else { &[] }
    }

    /// Takes the bytes that are not handled yet.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let bytes = self.unread().to_vec();
        self.clear();
        bytes
    }

    /// Has the decoder read on in the bytes that are not handled yet.
    pub(crate) fn decode(&mut self, decoder: &mut Decoder) -> Result<Option<FrameEvent>, Error> {
        let mut rest = &self.bytes[self.at..];
        let event = decoder.poll(&mut rest);
        self.at = self.bytes.len() - rest.len();
        event
    }

    /// Clears the buffer.
    pub(crate) fn clear(&mut self) {
        self.whose = None;
        self.bytes.clear();
        self.at = 0;
    }
}
