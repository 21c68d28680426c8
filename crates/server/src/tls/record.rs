//! The outside of a record: its header, its limits and its length.

use super::fault::Violation;

/// Bytes of a record's header: type, legacy version, length.
pub(super) const HEADER_LEN: usize = 5;
/// Bytes of plaintext a record can carry (RFC 8446 §5.1).
pub(super) const CONTENT_MAX: usize = 1 << 14;
/// Bytes that may follow a protected record's header (RFC 8446 §5.2).
pub(super) const CIPHERTEXT_MAX: usize = CONTENT_MAX + 256;
/// The same in TLS 1.2 (RFC 5246 §6.2.3), which is also what rustls takes before it knows the version.
const TLS12_CIPHERTEXT_MAX: usize = CONTENT_MAX + 2048;
/// Bytes of an AEAD tag; the same in every suite.
pub(super) const TAG_LEN: usize = 16;
/// By how many bytes an unpadded protected record is longer than its content: header, inner type, tag.
pub(super) const OVERHEAD: usize = HEADER_LEN + 1 + TAG_LEN;

/// The content types (RFC 8446 §B.1).
pub(super) mod kind {
    pub(in super::super) const CHANGE_CIPHER_SPEC: u8 = 20;
    pub(in super::super) const ALERT: u8 = 21;
    pub(in super::super) const HANDSHAKE: u8 = 22;
    pub(in super::super) const APPLICATION_DATA: u8 = 23;
}

/// What some input begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Not yet a whole record.
    Partial,
    /// A whole record of this many bytes, header included.
    Whole(usize),
    /// No record that TLS allows; rustls refuses its header.
    Malformed,
}

/// Frames a record of a handshake or of TLS 1.2, where rustls judges the details.
pub(super) fn frame(input: &[u8]) -> Frame {
    let Some(header) = input.first_chunk::<HEADER_LEN>() else {
        return Frame::Partial;
    };
    let [kind, major, ..] = *header;
    let known = (kind::CHANGE_CIPHER_SPEC..=kind::APPLICATION_DATA).contains(&kind);
    let len = body_len(header);
    if !known || major != 3 || len > TLS12_CIPHERTEXT_MAX {
        return Frame::Malformed;
    }
    match input.len() >= HEADER_LEN + len {
        true => Frame::Whole(HEADER_LEN + len),
        false => Frame::Partial,
    }
}

/// Frames a protected TLS 1.3 record after the handshake: its length with header, or `None` if it is not yet whole.
/// Refuses malformed records as early as possible, so that nobody waits for the rest.
pub(super) fn protected(input: &[u8]) -> Result<Option<usize>, Violation> {
    // Encrypted records all look like application data; a change_cipher_spec after the handshake is an error, as is
    // an alert in the clear (RFC 8446 §5, appendix D.4). The version is ignored here, but authenticated with the header.
    if input.first().is_some_and(|kind| *kind != kind::APPLICATION_DATA) {
        return Err(Violation::UnexpectedRecord);
    }
    let Some(header) = input.first_chunk::<HEADER_LEN>() else {
        return Ok(None);
    };
    let len = body_len(header);
    if len > CIPHERTEXT_MAX {
        return Err(Violation::RecordOverflow);
    }
    Ok((input.len() >= HEADER_LEN + len).then_some(HEADER_LEN + len))
}

/// The header of a protected record whose ciphertext, tag included, is `len` bytes.
pub(super) fn protected_header(len: usize) -> [u8; HEADER_LEN] {
    let [high, low] = (len as u16).to_be_bytes();
    [kind::APPLICATION_DATA, 3, 3, high, low]
}

fn body_len(header: &[u8; HEADER_LEN]) -> usize {
    usize::from(u16::from_be_bytes([header[3], header[4]]))
}
