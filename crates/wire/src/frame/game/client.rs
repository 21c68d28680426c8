//! What clients send.

use super::{Header, INPUT_BYTES_MAX, Malformed, SNAPSHOT_BYTES_MAX, end, take_bytes, varint};

/// How many inputs a frame carries at most: that of its tick and of the 32 before.
pub const INPUTS_MAX: usize = 33;
/// Bytes of the longest token.
const TOKEN_BYTES_MAX: usize = 256;
/// Bytes of the longest stamp of a ping.
const STAMP_BYTES_MAX: usize = 16;
/// Bytes of the longest outcome that a client reports.
const OUTCOME_BYTES_MAX: usize = 512;

/// A frame of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientFrame<'a> {
    /// The first frame: take the seat of this token. A client that comes back says up to which tick it has everything.
    Join {
        /// The last tick that it has; 0 for none.
        have: u32,
        /// The token, as the matchmaker gave it.
        token: &'a [u8],
    },
    /// Inputs of its seat: of `header.tick`, and of ticks before it of which it does not know that the server has them.
    Input {
        /// The tick of the newest input, and what the client has of the server's.
        header: Header,
        /// The inputs.
        inputs: Inputs<'a>,
    },
    /// What it computed as the state of the game after a tick, hashed.
    Hash {
        /// The tick.
        tick: u32,
        /// The hash.
        hash: u32,
    },
    /// To be answered at once with the same stamp.
    Ping {
        /// At most 16 bytes, which mean something to the client.
        stamp: &'a [u8],
    },
    /// Stop the clock, as far as the match allows it.
    Pause,
    /// Let the clock run again.
    Continue,
    /// Leave the match for good.
    Forfeit,
    /// The game is over, and this came of it.
    Outcome {
        /// The last tick that was played.
        tick: u32,
        /// What came of it, at most 512 bytes: those of the seats are compared as they are.
        outcome: &'a [u8],
    },
    /// A part of the state that the server wanted to have. Parts come in their order.
    Snapshot {
        /// The tick after which it is.
        tick: u32,
        /// Bytes before this part.
        offset: u32,
        /// Bytes of all parts.
        total: u32,
        /// The part.
        part: &'a [u8],
    },
}

/// Inputs of consecutive ticks, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inputs<'a>(&'a [u8]);

impl<'a> Inputs<'a> {
    /// The inputs, that of the newest tick first.
    pub fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.0;
        std::iter::from_fn(move || take_input(&mut rest).ok())
    }
}

fn take_input<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
    let length = varint::take_u32(rest)? as usize;
    if length > INPUT_BYTES_MAX {
        return Err(Malformed::TooLong);
    }
    take_bytes(rest, length)
}

const JOIN: u8 = 1;
const INPUT: u8 = 2;
const HASH: u8 = 3;
const PING: u8 = 4;
const PAUSE: u8 = 5;
const CONTINUE: u8 = 6;
const FORFEIT: u8 = 7;
const OUTCOME: u8 = 8;
const SNAPSHOT: u8 = 9;

impl<'a> ClientFrame<'a> {
    /// Reads a frame, without its length.
    ///
    /// # Errors
    /// Why it is none.
    pub fn read(mut input: &'a [u8]) -> Result<ClientFrame<'a>, Malformed> {
        let (kind, header) = Header::take(&mut input)?;
        let bounded =
            |bytes: &'a [u8], max| if bytes.len() > max { Err(Malformed::TooLong) } else { Ok(bytes) };
        let tick = header.tick;
        let frame = match u8::try_from(kind) {
            Ok(JOIN) => ClientFrame::Join { have: tick, token: bounded(input, TOKEN_BYTES_MAX)? },
            Ok(INPUT) => {
                let mut rest = input;
                let mut count = 0;
                while !rest.is_empty() {
                    take_input(&mut rest)?;
                    count += 1;
                }
                // The first tick is 1.
                if count == 0 || count > INPUTS_MAX.min(tick as usize) {
                    return Err(Malformed::Value);
                }
                ClientFrame::Input { header, inputs: Inputs(input) }
            }
            Ok(HASH) => {
                let hash = take_bytes(&mut input, 4)?.try_into().map_or(0, u32::from_le_bytes);
                end(input)?;
                ClientFrame::Hash { tick, hash }
            }
            Ok(PING) => ClientFrame::Ping { stamp: bounded(input, STAMP_BYTES_MAX)? },
            Ok(OUTCOME) => ClientFrame::Outcome { tick, outcome: bounded(input, OUTCOME_BYTES_MAX)? },
            Ok(SNAPSHOT) => {
                let (offset, total) = (varint::take_u32(&mut input)?, varint::take_u32(&mut input)?);
                if total as usize > SNAPSHOT_BYTES_MAX {
                    return Err(Malformed::TooLong);
                }
                if offset as usize + input.len() > total as usize {
                    return Err(Malformed::Value);
                }
                ClientFrame::Snapshot { tick, offset, total, part: input }
            }
            Ok(empty @ (PAUSE | CONTINUE | FORFEIT)) => {
                end(input)?;
                match empty {
                    PAUSE => ClientFrame::Pause,
                    CONTINUE => ClientFrame::Continue,
                    _ => ClientFrame::Forfeit,
                }
            }
            _ => return Err(Malformed::Kind(kind)),
        };
        Ok(frame)
    }

    /// Appends the frame, without its length. Inputs are appended by [`ClientFrame::write_inputs`].
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            ClientFrame::Join { have, token } => {
                Header::at(*have).put(out, JOIN);
                out.extend_from_slice(token);
            }
            ClientFrame::Input { header, inputs } => {
                header.put(out, INPUT);
                out.extend_from_slice(inputs.0);
            }
            ClientFrame::Hash { tick, hash } => {
                Header::at(*tick).put(out, HASH);
                out.extend_from_slice(&hash.to_le_bytes());
            }
            ClientFrame::Ping { stamp } => {
                Header::default().put(out, PING);
                out.extend_from_slice(stamp);
            }
            ClientFrame::Pause => Header::default().put(out, PAUSE),
            ClientFrame::Continue => Header::default().put(out, CONTINUE),
            ClientFrame::Forfeit => Header::default().put(out, FORFEIT),
            ClientFrame::Outcome { tick, outcome } => {
                Header::at(*tick).put(out, OUTCOME);
                out.extend_from_slice(outcome);
            }
            ClientFrame::Snapshot { tick, offset, total, part } => {
                Header::at(*tick).put(out, SNAPSHOT);
                varint::put(out, u64::from(*offset));
                varint::put(out, u64::from(*total));
                out.extend_from_slice(part);
            }
        }
    }

    /// Appends a frame of these inputs, newest first, without its length.
    pub fn write_inputs<'b>(out: &mut Vec<u8>, header: Header, inputs: impl IntoIterator<Item = &'b [u8]>) {
        header.put(out, INPUT);
        for input in inputs {
            varint::put(out, input.len() as u64);
            out.extend_from_slice(input);
        }
    }
}
