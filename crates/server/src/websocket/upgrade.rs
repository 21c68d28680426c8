//! A connection whose upgrade request is not complete.

use super::request::{self, Verdict};
use super::{WebSocketEndpoint, response};
use carillon_core::sasl::ChannelBinding;
use std::net::IpAddr;

/// The request head so far, and the channel binding of the TLS handshake before it.
#[derive(Debug, Default)]
pub(crate) struct Upgrade {
    head: Vec<u8>,
    /// Present when the listener speaks TLS.
    pub(crate) binding: Option<ChannelBinding>,
}

/// The result of feeding more bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UpgradeStep {
    /// The head is incomplete.
    Partial,
    /// It asks for the WebSocket: send the response; what follows the head are frames.
    Accepted {
        /// The response.
        response: Vec<u8>,
        /// The bytes behind the head.
        rest: Vec<u8>,
        /// The client's address, if a trusted proxy tells it.
        client: Option<IpAddr>,
        /// Whether it is a player's: what follows are frames of a match.
        is_player: bool,
    },
    /// It does not: send this and close.
    Answered(Vec<u8>),
}

impl Upgrade {
    /// Feeds more bytes from `peer`.
    pub(crate) fn feed(&mut self, bytes: &[u8], peer: IpAddr, endpoint: &WebSocketEndpoint) -> UpgradeStep {
        // Frames may follow the head at once, so the bound is on the head alone.
        let looked_at = self.head.len().saturating_sub(END.len() - 1);
        self.head.extend_from_slice(bytes);
        let end = self.head[looked_at..].windows(END.len()).position(|window| window == END);
        match end.map(|at| looked_at + at + END.len()) {
            Some(end) if end <= HEAD_BYTES_MAX => {
                let mut head = std::mem::take(&mut self.head);
                let rest = head.split_off(end);
                match request::judge(&head, peer, endpoint) {
                    Verdict::WebSocket { accept, client, is_player } => {
                        let response = response::switching(&accept, is_player);
                        UpgradeStep::Accepted { response, rest, client, is_player }
                    }
                    Verdict::Answer(response) => UpgradeStep::Answered(response),
                }
            }
            None if self.head.len() <= HEAD_BYTES_MAX => UpgradeStep::Partial,
            _ => UpgradeStep::Answered(response::refusal(
                "431 Request Header Fields Too Large",
                "",
                "The request head is larger than 8 KiB.",
            )),
        }
    }
}

const END: &[u8] = b"\r\n\r\n";
const HEAD_BYTES_MAX: usize = 8 * 1024;
