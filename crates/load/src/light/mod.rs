//! A client of the light protocol, without I/O: for subscribers that speak no XMPP.
//!
//! The client's frames end in NUL, the server's in 0x01.
//!
//! ```text
//! client                                     server
//! <regular-socket/> ──────────────────────►
//!                   ◄────────────────────── {"timestamp":MILLISECONDS,"token":"…"}
//! {"action":"subscribe","data":TOPIC} ────►
//!                   ◄────────────────────── ACK
//!                   ◄────────────────────── PUBLISH NUL {"topic":…,"event":…,"message_id":…,"data":…}
//! PING ───────────────────────────────────►
//!                   ◄────────────────────── PONG
//!                   ◄────────────────────── {"error":CODE,"message":…}
//! ```

#![deny(clippy::indexing_slicing, clippy::string_slice, clippy::unwrap_used)]

use std::io::ErrorKind;

use memchr::memchr;
use serde_json::Value;

/// The first bytes of a client.
const OPENING: &[u8] = b"<regular-socket/>\0";
const PING: &[u8] = b"PING\0";
/// The end of the server's frames.
const END: u8 = 0x01;
/// The first bytes of a published item.
const PUBLISH: &[u8] = b"PUBLISH\0";
/// The longest frame that a server may send.
const FRAME_BYTES_MAX: usize = 1 << 20;

/// A client's side of one connection.
#[derive(Debug, Default)]
pub struct Client {
    state: LightState,
    /// The beginning of a frame whose rest has not arrived.
    rest: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LightState {
    /// Nothing has been sent.
    #[default]
    New,
    /// The server's greeting is awaited.
    Opening,
    /// In session.
    Ready,
    /// The connection is over.
    Over,
}

/// Something that happened on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LightEvent {
    /// The server has greeted the client.
    Ready,
    /// The server confirmed the oldest unanswered request.
    Done,
    /// The server answered a ping.
    Pong,
    /// An item was published: its JSON.
    Published(Vec<u8>),
    /// The server refused a request, or is about to close the connection: the error code.
    Error(String),
    /// The connection is over; always the last event.
    Closed(End),
}

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum End {
    /// The server closed it, or it was lost.
    #[error("the connection was lost")]
    Cut,
    /// It could not be established, or failed.
    #[error("network: {0}")]
    Network(ErrorKind),
    /// The server violated the protocol.
    #[error("the server sent something that is not a frame of the light protocol")]
    Nonsense,
}

/// The output of a client; one outbox serves any number of clients in turn.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Bytes for the network.
    pub bytes: Vec<u8>,
    /// What happened, in order.
    pub events: Vec<LightEvent>,
}

impl Client {
    /// Begins when the connection is established.
    pub fn start(&mut self, out: &mut Outbox) {
        if self.state == LightState::New {
            self.state = LightState::Opening;
            out.bytes.extend_from_slice(OPENING);
        }
    }

    /// Processes bytes from the network.
    pub fn receive(&mut self, bytes: &[u8], out: &mut Outbox) {
        let mut rest = std::mem::take(&mut self.rest);
        let whole = if rest.is_empty() {
            bytes
        } else {
            rest.extend_from_slice(bytes);
            &rest
        };
        let mut left = whole;
        while self.state != LightState::Over
            && let Some(end) = memchr(END, left)
        {
            let (frame, behind) = left.split_at_checked(end).unwrap_or((left, &[]));
            self.frame(frame, out);
            left = behind.get(1..).unwrap_or_default();
        }
        if left.len() > FRAME_BYTES_MAX {
            self.end(End::Nonsense, out);
        }
        if self.state != LightState::Over {
            self.rest = left.to_vec();
        }
    }

    /// The server has closed its side.
    pub fn receive_end(&mut self, out: &mut Outbox) {
        self.end(End::Cut, out);
    }

    /// The connection could not be established, or failed.
    pub fn connection_failed(&mut self, kind: ErrorKind, out: &mut Outbox) {
        self.end(End::Network(kind), out);
    }

    /// Subscribes to a topic; [`LightEvent::Done`] is the answer. Sends nothing while there is no session.
    pub fn subscribe(&self, topic: &str, out: &mut Outbox) {
        if self.is_ready() {
            let request = serde_json::json!({ "action": "subscribe", "data": topic });
            out.bytes.extend_from_slice(request.to_string().as_bytes());
            out.bytes.push(0);
        }
    }

    /// Sends a ping; [`LightEvent::Pong`] is the answer.
    pub fn ping(&self, out: &mut Outbox) {
        if self.is_ready() {
            out.bytes.extend_from_slice(PING);
        }
    }

    /// Whether the client is in session.
    pub fn is_ready(&self) -> bool {
        self.state == LightState::Ready
    }

    /// Whether the connection is over.
    pub fn is_over(&self) -> bool {
        self.state == LightState::Over
    }

    fn frame(&mut self, frame: &[u8], out: &mut Outbox) {
        if let Some(code) = error_code(frame) {
            return out.events.push(LightEvent::Error(code));
        }
        match (self.state, frame) {
            (LightState::Opening, greeting) if is_greeting(greeting) => {
                self.state = LightState::Ready;
                out.events.push(LightEvent::Ready);
            }
            (LightState::Ready, b"ACK") => out.events.push(LightEvent::Done),
            (LightState::Ready, b"PONG") => out.events.push(LightEvent::Pong),
            (LightState::Ready, frame) => match frame.strip_prefix(PUBLISH) {
                Some(item) => out.events.push(LightEvent::Published(item.to_vec())),
                None => self.end(End::Nonsense, out),
            },
            _ => self.end(End::Nonsense, out),
        }
    }

    fn end(&mut self, end: End, out: &mut Outbox) {
        if self.state != LightState::Over {
            self.state = LightState::Over;
            self.rest = Vec::new();
            out.events.push(LightEvent::Closed(end));
        }
    }
}

fn is_greeting(frame: &[u8]) -> bool {
    let greeting = serde_json::from_slice::<Value>(frame).unwrap_or_default();
    greeting.get("timestamp").is_some_and(Value::is_u64)
        && greeting.get("token").is_some_and(Value::is_string)
}

/// The code of an error frame; items and answers are told apart by their first byte.
fn error_code(frame: &[u8]) -> Option<String> {
    if !frame.starts_with(b"{") {
        return None;
    }
    let frame = serde_json::from_slice::<Value>(frame).ok()?;
    frame.get("error")?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests;
