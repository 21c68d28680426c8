//! The decrypted bytes a shard is working on.

use carillon_core::model::ConnId;
use carillon_wire::frame::websocket::{Decoder, Error, FrameEvent};

/// Bytes of one connection that came out of its transport and are being taken in, in a buffer used again and again. The
/// core may send the connection elsewhere in the middle of them: then the rest goes along.
#[derive(Default)]
pub(crate) struct Plaintext {
    whose: Option<ConnId>,
    bytes: Vec<u8>,
    /// Where the rest begins.
    at: usize,
}

impl Plaintext {
    /// Opens the hand, empty, for bytes of a connection.
    pub(crate) fn begin(&mut self, id: ConnId) -> &mut Vec<u8> {
        self.clear();
        self.whose = Some(id);
        &mut self.bytes
    }

    /// Takes bytes of a connection in hand that were kept elsewhere.
    pub(crate) fn replace(&mut self, id: ConnId, bytes: Vec<u8>) {
        (self.whose, self.bytes, self.at) = (Some(id), bytes, 0);
    }

    /// What has not been taken in yet.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    /// The same, if it is this connection's.
    pub(crate) fn unread_of(&self, id: ConnId) -> &[u8] {
        if self.whose == Some(id) { self.unread() } else { &[] }
    }

    /// Reads on in the rest.
    pub(crate) fn decode(&mut self, decoder: &mut Decoder) -> Result<Option<FrameEvent>, Error> {
        let mut rest = &self.bytes[self.at..];
        let event = decoder.poll(&mut rest);
        self.at = self.bytes.len() - rest.len();
        event
    }

    /// Empties the hand.
    pub(crate) fn clear(&mut self) {
        self.whose = None;
        self.bytes.clear();
        self.at = 0;
    }
}
