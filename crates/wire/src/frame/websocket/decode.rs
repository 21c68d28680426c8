//! Reading frames.

use super::encode::{FIN, MASKED, apply_mask, begin};
use super::opcode::{CONTROL_BYTES_MAX, Error, Opcode};
use crate::xml::Limits;

/// The longest frame header: 2 bytes, 8 of length, 4 of mask.
const HEADER_BYTES_MAX: usize = 14;

/// The side for which the decoder reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Reads what clients send: masked frames.
    Server,
    /// Reads what a server sends: unmasked frames.
    Client,
}

/// A message or control frame that was received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FrameEvent {
    /// A whole text message, which is valid UTF-8.
    Text(Vec<u8>),
    /// A whole binary message, where all are binary.
    Binary(Vec<u8>),
    /// A ping, to be answered by a pong with the same payload.
    Ping(Vec<u8>),
    /// The answer to a ping.
    Pong(Vec<u8>),
    /// A close frame, to be answered by a close frame if none was sent yet.
    Close {
        /// The status code; `None` if the frame was empty.
        code: Option<u16>,
        /// The reason as text.
        reason: String,
    },
}

/// Reads frames piece by piece. It consumes all bytes of its input, so that the caller needs no buffer, and holds memory
/// only within a message: at most 64 bytes when idle.
#[derive(Debug)]
pub struct Decoder {
    role: Role,
    /// What messages are: text or binary.
    messages: Opcode,
    /// Limit of a message, in bytes.
    message_bytes_max: u32,
    state: DecodeState,
    /// Whether a fragmented message is incomplete.
    fragmented: bool,
    /// Payload of the message so far, followed by that of a control frame between its fragments.
    payload: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum DecodeState {
    /// In a frame's header; `known` bytes of it have been read.
    Header { bytes: [u8; HEADER_BYTES_MAX], known: u8 },
    /// In a frame's payload.
    Payload(Frame),
    /// After the close frame.
    Closed,
}

/// A frame whose header has been read.
#[derive(Clone, Copy, Debug)]
struct Frame {
    opcode: Opcode,
    fin: bool,
    /// The start of its payload in the decoder's buffer.
    start: u32,
    /// Bytes of payload that are missing.
    remaining: u32,
    /// Rotated so that its first byte masks the next byte of payload.
    mask: [u8; 4],
}

impl DecodeState {
    const START: Self = Self::Header { bytes: [0; HEADER_BYTES_MAX], known: 0 };
}

impl Decoder {
    /// A decoder that expects the first frame. Messages are limited to [`Limits::stanza_bytes`].
    pub fn new(role: Role, limits: Limits) -> Self {
        Self::of(role, Opcode::Text, limits)
    }

    /// The same for a protocol whose messages are binary.
    pub fn binary(role: Role, limits: Limits) -> Self {
        Self::of(role, Opcode::Binary, limits)
    }

    fn of(role: Role, messages: Opcode, limits: Limits) -> Self {
        let mut decoder = Self {
            role,
            messages,
            message_bytes_max: 0,
            state: DecodeState::START,
            fragmented: false,
            payload: Vec::new(),
        };
        decoder.set_limits(limits);
        decoder
    }

    /// Changes the limit, from the next frame on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.message_bytes_max = u32::try_from(limits.stanza_bytes).unwrap_or(u32::MAX);
    }

    /// Whether no incomplete message or frame is buffered.
    pub fn is_idle(&self) -> bool {
        !self.fragmented && matches!(self.state, DecodeState::Header { known: 0, .. } | DecodeState::Closed)
    }

    /// Bytes that bring a new decoder of the same role to where this one stands: what it has of a message or frame that is
    /// incomplete. None when it is idle.
    pub fn replay(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let earlier = match &self.state {
            DecodeState::Payload(frame) if frame.opcode == self.messages => None,
            DecodeState::Payload(frame) => self.payload.get(..frame.start as usize),
            DecodeState::Header { .. } | DecodeState::Closed => Some(self.payload.as_slice()),
        };
        if let Some(earlier) = earlier.filter(|_| self.fragmented) {
            self.frame(&mut out, self.messages.bits(), earlier, earlier.len(), [0; 4]);
        }
        match &self.state {
            DecodeState::Payload(frame) => {
                let taken = self.payload.get(frame.start as usize..).unwrap_or_default();
                let mut mask = frame.mask;
                mask.rotate_right(taken.len() % 4);
                let first = frame.opcode.bits() | if frame.fin { FIN } else { 0 };
                self.frame(&mut out, first, taken, taken.len() + frame.remaining as usize, mask);
            }
            DecodeState::Header { bytes, known } => {
                out.extend_from_slice(bytes.get(..usize::from(*known)).unwrap_or_default());
            }
            DecodeState::Closed => {}
        }
        out
    }

    /// Appends a frame of `length` bytes, of which `payload` is the beginning, as the other side sends it.
    fn frame(&self, out: &mut Vec<u8>, first: u8, payload: &[u8], length: usize, mask: [u8; 4]) {
        match self.role {
            Role::Server => {
                begin(out, first, length, MASKED);
                out.extend_from_slice(&mask);
            }
            Role::Client => begin(out, first, length, 0),
        }
        let start = out.len();
        out.extend_from_slice(payload);
        apply_mask(out.get_mut(start..).unwrap_or_default(), mask);
    }

    /// Consumes bytes of `input` until an event is complete, or all of them (`None`).
    ///
    /// # Errors
    /// The caller must close the connection with the error's code and not use the decoder again.
    pub fn poll(&mut self, input: &mut &[u8]) -> Result<Option<FrameEvent>, Error> {
        loop {
            match &mut self.state {
                DecodeState::Closed if input.is_empty() => return Ok(None),
                DecodeState::Closed => return Err(Error::AfterClose),
                DecodeState::Header { bytes, known } => {
                    let Some(length) = fill_header(bytes, known, input) else {
                        return Ok(None);
                    };
                    let header = *bytes;
                    self.state =
                        DecodeState::Payload(self.begin_frame(header.get(..length).unwrap_or_default())?);
                }
                DecodeState::Payload(frame) => {
                    take_payload(frame, &mut self.payload, input);
                    if frame.remaining > 0 {
                        return Ok(None);
                    }
                    let frame = *frame;
                    self.state = DecodeState::START;
                    if let Some(event) = self.end_frame(frame)? {
                        return Ok(Some(event));
                    }
                }
            }
        }
    }

    /// Checks a complete header.
    fn begin_frame(&mut self, header: &[u8]) -> Result<Frame, Error> {
        let [first, second, extended @ ..] = header else { return Err(Error::Length) };
        if first & 0x70 != 0 {
            return Err(Error::ReservedBits);
        }
        let fin = first & 0x80 != 0;
        let opcode = match first & 0x0F {
            0x0 if self.fragmented => Opcode::Continuation,
            0x1 if self.messages == Opcode::Binary => return Err(Error::Text),
            0x2 if self.messages == Opcode::Text => return Err(Error::Binary),
            0x1 | 0x2 if !self.fragmented => self.messages,
            0x0..=0x2 => return Err(Error::Fragmentation),
            0x8 => Opcode::Close,
            0x9 => Opcode::Ping,
            0xA => Opcode::Pong,
            _ => return Err(Error::Opcode),
        };
        if (second & 0x80 != 0) != (self.role == Role::Server) {
            return Err(Error::Masking);
        }
        let length = payload_length(*second, extended)?;
        if opcode.is_control() {
            if !fin || length > CONTROL_BYTES_MAX as u64 {
                return Err(Error::Control);
            }
        } else {
            self.fragmented = true;
            if self.payload.len() as u64 + length > u64::from(self.message_bytes_max) {
                return Err(Error::TooLarge);
            }
        }
        let mask = match self.role {
            Role::Server => header.last_chunk().copied().unwrap_or_default(),
            Role::Client => [0; 4],
        };
        // Both are at most the limit of a message plus that of a control frame.
        let start = self.payload.len() as u32;
        Ok(Frame { opcode, fin, start, remaining: length as u32, mask })
    }

    fn end_frame(&mut self, frame: Frame) -> Result<Option<FrameEvent>, Error> {
        if !frame.opcode.is_control() {
            if !frame.fin {
                return Ok(None);
            }
            self.fragmented = false;
            let message = std::mem::take(&mut self.payload);
            if self.messages == Opcode::Binary {
                return Ok(Some(FrameEvent::Binary(message)));
            }
            // RFC 6455 §8.1
            std::str::from_utf8(&message).map_err(|_| Error::InvalidUtf8)?;
            return Ok(Some(FrameEvent::Text(message)));
        }
        let payload = match frame.start {
            0 => std::mem::take(&mut self.payload),
            start => self.payload.split_off(start as usize),
        };
        match frame.opcode {
            Opcode::Ping => Ok(Some(FrameEvent::Ping(payload))),
            Opcode::Pong => Ok(Some(FrameEvent::Pong(payload))),
            _ => {
                (self.state, self.fragmented, self.payload) = (DecodeState::Closed, false, Vec::new());
                read_close(&payload).map(Some)
            }
        }
    }
}

/// Consumes header bytes of `input`; returns the header's length when it is complete.
fn fill_header(bytes: &mut [u8; HEADER_BYTES_MAX], known: &mut u8, input: &mut &[u8]) -> Option<usize> {
    loop {
        let have = usize::from(*known);
        let needed = if have < 2 { 2 } else { header_length(bytes[1]) };
        if have == needed {
            return Some(needed);
        }
        let (taken, rest) = input.split_at(input.len().min(needed - have));
        if taken.is_empty() {
            return None;
        }
        if let Some(place) = bytes.get_mut(have..have + taken.len()) {
            place.copy_from_slice(taken);
        }
        *known += taken.len() as u8;
        *input = rest;
    }
}

/// The length of a header with this second byte.
fn header_length(second: u8) -> usize {
    let length = match second & 0x7F {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let mask = if second & 0x80 != 0 { 4 } else { 0 };
    2 + length + mask
}

/// The payload's length by the second byte of a complete header and the bytes after it; it must be written in the
/// shortest way (RFC 6455 §5.2).
fn payload_length(second: u8, extended: &[u8]) -> Result<u64, Error> {
    match second & 0x7F {
        126 => extended
            .first_chunk()
            .map(|bytes| u16::from_be_bytes(*bytes).into())
            .filter(|length| *length > 125),
        127 => extended
            .first_chunk()
            .map(|bytes| u64::from_be_bytes(*bytes))
            .filter(|length| *length > 0xFFFF && length >> 63 == 0),
        length => Some(u64::from(length)),
    }
    .ok_or(Error::Length)
}

/// Moves payload from `input` to `payload`, unmasked.
fn take_payload(frame: &mut Frame, payload: &mut Vec<u8>, input: &mut &[u8]) {
    let (taken, rest) = input.split_at(input.len().min(frame.remaining as usize));
    let start = payload.len();
    payload.extend_from_slice(taken);
    apply_mask(payload.get_mut(start..).unwrap_or_default(), frame.mask);
    frame.mask.rotate_left(taken.len() % 4);
    frame.remaining -= taken.len() as u32;
    *input = rest;
}

/// Reads the payload of a close frame (RFC 6455 §5.5.1, §7.4).
fn read_close(payload: &[u8]) -> Result<FrameEvent, Error> {
    let Some((code, reason)) = payload.split_first_chunk() else {
        let event = FrameEvent::Close { code: None, reason: String::new() };
        return if payload.is_empty() { Ok(event) } else { Err(Error::CloseCode) };
    };
    let code = u16::from_be_bytes(*code);
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(Error::CloseCode);
    }
    let reason = std::str::from_utf8(reason).map_err(|_| Error::InvalidUtf8)?.to_owned();
    Ok(FrameEvent::Close { code: Some(code), reason })
}
