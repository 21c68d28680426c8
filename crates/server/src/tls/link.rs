//! A connection after its handshake, on either record layer.

use super::buffered::Buffered;
use super::fault::Fault;
use super::keys::Keys;
use super::opened::{Circumstances, OpenedRecords};

/// A connection after its handshake. Two words, and what they point to.
#[derive(Debug)]
pub enum Link {
    /// TLS 1.3 on this crate's record layer.
    Extracted(Box<Keys>),
    /// TLS 1.2 on rustls' record layer.
    Buffered(Box<Buffered>),
}

impl Link {
    /// Seals `plain` and appends the records to `out`, one for every 16 KiB. Several stanzas given as one slice share a
    /// record.
    pub fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        match self {
            Link::Extracted(keys) => keys.seal(plain, out),
            Link::Buffered(connection) => connection.seal(plain, out),
        }
    }

    /// Opens every whole record at the start of `input`, decrypting in place, and appends its data to `plain`.
    ///
    /// What the peer must be told is appended to `reply`: send it before anything sealed later. That includes the alert
    /// of a fault; after one the connection is dead, and `plain` has the data of the records before the bad one.
    pub fn open(
        &mut self,
        input: &mut [u8],
        plain: &mut Vec<u8>,
        reply: &mut Vec<u8>,
        circumstances: Circumstances,
    ) -> Result<OpenedRecords, Fault> {
        match self {
            Link::Extracted(keys) => keys.open(input, plain, reply, circumstances),
            Link::Buffered(connection) => connection.open(input, plain, reply),
        }
    }

    /// Says that nothing more will be sent; sealing fails from now on. A second call does nothing.
    pub fn close_notify(&mut self, out: &mut Vec<u8>) {
        match self {
            Link::Extracted(keys) => keys.close_notify(out),
            Link::Buffered(connection) => connection.close_notify(out),
        }
    }
}
