//! The KeyUpdate message (RFC 8446 §4.6.3).

/// What a KeyUpdate asks of its receiver (RFC 8446 §4.6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Nothing: the sender changes its own keys.
    NotRequested = 0,
    /// To change its keys, too.
    Requested = 1,
}

/// The message.
pub(super) fn message(request: Request) -> [u8; LEN] {
    let [kind, a, b, c] = HEADER;
    [kind, a, b, c, request as u8]
}

/// Its handshake type and its length, which is always one.
pub(super) const HEADER: [u8; 4] = [24, 0, 0, 1];
/// Bytes of the message.
pub(super) const LEN: usize = HEADER.len() + 1;
