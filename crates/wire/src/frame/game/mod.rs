//! `carillon-match/1`: the frames of real-time matches, binary and small.
//!
//! ```text
//! stream := (length frame)*                  over TLS; over WebSocket the same bytes, cut into binary messages anywhere
//! frame  := kind tick ack missing payload    kind, tick and missing are varints; ack is the tick minus the acknowledged tick, zigzag
//! ```
//!
//! A varint is a number in the little-endian base 128 (LEB128), written in the shortest way. `tick`, `ack` and `missing` mean the same
//! in both directions: what the frame is about, the newest tick that its sender has of the other side, and by a bit each which of the 32
//! before that it lacks. What is read is bounded before anything is kept, and nothing is allocated.

mod client;
mod server;
#[cfg(test)]
mod tests;
mod varint;

pub use client::{ClientFrame, INPUTS_MAX, Inputs};
pub use server::{EndReason, ErrorCode, Mode, SeatState, ServerFrame, TickInputs, Welcome};
pub use varint::{put as put_varint, take as take_varint};

use std::fmt;

/// The protocol's name in TLS (ALPN, RFC 7301).
pub const ALPN: &[u8] = b"carillon-match/1";
/// The protocol's name as a subprotocol of WebSocket.
pub const SUBPROTOCOL: &str = "carillon-match.1";
/// Bytes of the longest frame that a client may send, without its length.
pub const CLIENT_BYTES_MAX: usize = 2048;
/// Bytes of the longest frame that a server sends, without its length: the inputs of [`SEATS_MAX`] seats.
pub const SERVER_BYTES_MAX: usize = 64 * 1024;
/// Bytes of the longest update of a tick.
pub const UPDATE_BYTES_MAX: usize = 4096;
/// Bytes of the longest snapshot.
pub const SNAPSHOT_BYTES_MAX: usize = 60 * 1024;
/// How many seats a match has at most: seats are bits of a mask.
pub const SEATS_MAX: usize = 64;
/// Bytes of the longest input.
pub const INPUT_BYTES_MAX: usize = 512;

/// Why bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The frame is longer than it may be.
    TooLong,
    /// It ends too early.
    Short,
    /// A number is larger than its field, or not written in the shortest way.
    Number,
    /// Bytes follow its end.
    Excess,
    /// Its kind is not one of this protocol.
    Kind(u32),
    /// A field has a value that means nothing.
    Value,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::TooLong => f.write_str("the frame is longer than it may be"),
            Malformed::Short => f.write_str("the frame ends too early"),
            Malformed::Number => f.write_str("a number is too large, or not written in the shortest way"),
            Malformed::Excess => f.write_str("bytes follow the end of the frame"),
            Malformed::Kind(kind) => write!(f, "no frame is of kind {kind}"),
            Malformed::Value => f.write_str("a field has a value that means nothing"),
        }
    }
}

impl std::error::Error for Malformed {}

/// What every frame begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The tick that the frame is about.
    pub tick: u32,
    /// The newest tick that its sender has of the other side; 0 for none.
    pub ack: u32,
    /// Which of the 32 ticks before that it does not have: the lowest bit is for the one just before.
    pub missing: u32,
}

impl Header {
    /// A header about a tick that acknowledges nothing.
    pub fn at(tick: u32) -> Header {
        Header { tick, ..Header::default() }
    }

    /// Notes that its sender has this tick of the other side.
    pub fn acknowledge(&mut self, tick: u32) {
        if tick > self.ack {
            let ahead = tick - self.ack;
            // Those between the two are missing; the one that was the newest is there.
            let between = 1_u32.checked_shl(ahead - 1).unwrap_or(0).wrapping_sub(1);
            (self.ack, self.missing) = (tick, self.missing.checked_shl(ahead).unwrap_or(0) | between);
        } else if let Some(behind) = self.ack.checked_sub(tick).filter(|behind| *behind > 0) {
            self.missing &= !1_u32.checked_shl(behind - 1).unwrap_or(0);
        }
    }

    /// Whether it acknowledges this tick. Of those that are more than 32 behind the newest it says nothing.
    pub fn acknowledges(&self, tick: u32) -> bool {
        match self.ack.checked_sub(tick) {
            _ if tick == 0 => false,
            None => false,
            Some(0) => true,
            Some(behind) => 1_u32.checked_shl(behind - 1).is_some_and(|bit| self.missing & bit == 0),
        }
    }

    fn put(&self, out: &mut Vec<u8>, kind: u8) {
        out.push(kind);
        varint::put(out, self.tick.into());
        varint::put(out, varint::zigzag(i64::from(self.tick) - i64::from(self.ack)));
        varint::put(out, self.missing.into());
    }

    fn take(input: &mut &[u8]) -> Result<(u32, Header), Malformed> {
        let kind = varint::take_u32(input)?;
        let tick = varint::take_u32(input)?;
        let behind = varint::unzigzag(varint::take(input)?);
        let ack = i64::from(tick)
            .checked_sub(behind)
            .and_then(|ack| u32::try_from(ack).ok())
            .ok_or(Malformed::Number)?;
        Ok((kind, Header { tick, ack, missing: varint::take_u32(input)? }))
    }
}

/// A frame without its length, and the bytes that follow.
type Cut<'a> = (&'a [u8], &'a [u8]);

/// Cuts the first frame off a stream; none when it is not complete. `max` bounds its length.
///
/// # Errors
/// [`Malformed::TooLong`] as soon as its length is known.
pub fn cut(bytes: &[u8], max: usize) -> Result<Option<Cut<'_>>, Malformed> {
    let mut rest = bytes;
    let length = match varint::take(&mut rest) {
        Ok(length) => usize::try_from(length).unwrap_or(usize::MAX),
        Err(Malformed::Short) => return Ok(None),
        Err(error) => return Err(error),
    };
    if length > max {
        return Err(Malformed::TooLong);
    }
    Ok(rest.split_at_checked(length))
}

/// Appends a frame, which `write` appends without its length, to a stream.
pub fn framed(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    // Most frames are shorter than 128 bytes, which takes one byte to say.
    let start = out.len();
    out.push(0);
    write(out);
    let length = out.len() - start - 1;
    if let (Ok(short @ 0..=127), Some(place)) = (u8::try_from(length), out.get_mut(start)) {
        *place = short;
        return;
    }
    let mut head = Vec::with_capacity(4);
    varint::put(&mut head, length as u64);
    out.splice(start..=start, head);
}

/// What the states of clients are compared by where the server wants to have one: FNV-1a, 32 bits.
pub fn state_hash(state: &[u8]) -> u32 {
    state.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

fn take_bytes<'a>(input: &mut &'a [u8], length: usize) -> Result<&'a [u8], Malformed> {
    let (bytes, rest) = input.split_at_checked(length).ok_or(Malformed::Short)?;
    *input = rest;
    Ok(bytes)
}

fn end(input: &[u8]) -> Result<(), Malformed> {
    if input.is_empty() { Ok(()) } else { Err(Malformed::Excess) }
}
