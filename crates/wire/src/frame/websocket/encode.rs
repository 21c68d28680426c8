//! Writing frames.

use super::opcode::{CONTROL_BYTES_MAX, Opcode};

pub(super) const FIN: u8 = 0x80;
pub(super) const MASKED: u8 = 0x80;

/// Appends a text message as a server sends it: one frame, unmasked.
pub fn encode_text(out: &mut Vec<u8>, payload: &[u8]) {
    header(out, Opcode::Text, payload.len(), 0);
    out.extend_from_slice(payload);
}

/// Appends a binary message as a server sends it: one frame, unmasked.
pub fn encode_binary(out: &mut Vec<u8>, payload: &[u8]) {
    header(out, Opcode::Binary, payload.len(), 0);
    out.extend_from_slice(payload);
}

/// Appends a control frame as a server sends it, with at most the first 125 bytes of `payload` (RFC 6455 §5.5).
pub fn encode_control(out: &mut Vec<u8>, opcode: Opcode, payload: &[u8]) {
    debug_assert!(opcode.is_control(), "{opcode:?} is no control frame");
    let payload = payload.get(..CONTROL_BYTES_MAX).unwrap_or(payload);
    header(out, opcode, payload.len(), 0);
    out.extend_from_slice(payload);
}

/// Appends a close frame as a server sends it, with as many characters of `reason` as fit.
pub fn encode_close(out: &mut Vec<u8>, code: u16, reason: &str) {
    let reason = reason.get(..reason.floor_char_boundary(CONTROL_BYTES_MAX - 2)).unwrap_or_default();
    header(out, Opcode::Close, reason.len() + 2, 0);
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(reason.as_bytes());
}

/// Appends one frame as a client sends it, masked with `mask`, which must be unpredictable (RFC 6455 §5.3).
pub fn encode_masked(out: &mut Vec<u8>, opcode: Opcode, payload: &[u8], mask: [u8; 4]) {
    header(out, opcode, payload.len(), MASKED);
    out.extend_from_slice(&mask);
    let start = out.len();
    out.extend_from_slice(payload);
    apply_mask(out.get_mut(start..).unwrap_or_default(), mask);
}

fn header(out: &mut Vec<u8>, opcode: Opcode, length: usize, masked: u8) {
    begin(out, FIN | opcode.bits(), length, masked);
}

/// Appends the header of a frame, up to the mask.
pub(super) fn begin(out: &mut Vec<u8>, first: u8, length: usize, masked: u8) {
    out.push(first);
    match length {
        0..=125 => out.push(masked | length as u8),
        126..=0xFFFF => {
            out.push(masked | 126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            out.push(masked | 127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
}

/// Masks or unmasks; `mask[0]` is for `payload[0]`.
pub(super) fn apply_mask(payload: &mut [u8], mask: [u8; 4]) {
    let mut words = payload.chunks_exact_mut(4);
    for word in &mut words {
        for (byte, key) in word.iter_mut().zip(mask) {
            *byte ^= key;
        }
    }
    for (byte, key) in words.into_remainder().iter_mut().zip(mask) {
        *byte ^= key;
    }
}
