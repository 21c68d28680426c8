//! The HTTP/1.1 exchange that opens a WebSocket (RFC 6455 §4.1) for XMPP (RFC 7395 §3.1).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha1::{Digest as _, Sha1};

/// The most bytes of an HTTP answer that are waited for.
const ANSWER_BYTES_MAX: usize = 8 * 1024;
/// RFC 6455 §1.3: appended to the key before it is hashed.
const KEY_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Why the server did not open a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpgradeError {
    /// The answer is not HTTP, or longer than a client should read.
    #[error("the answer to the WebSocket request is not HTTP")]
    Malformed,
    /// The server answered with another status than 101.
    #[error("the WebSocket request was answered with HTTP status {0}")]
    Status(u16),
    /// The server's hash of our key is missing or wrong.
    #[error("the answer to the WebSocket request does not match the client's key")]
    Accept,
    /// The server did not choose the subprotocol `xmpp`.
    #[error("the server does not speak XMPP over WebSocket here")]
    Subprotocol,
}

/// A request is sent, its answer awaited.
#[derive(Debug)]
pub(crate) struct Upgrade {
    accept: String,
    answer: Vec<u8>,
}

impl Upgrade {
    /// A request for `path` at `host`, and the state that waits for the answer.
    pub(crate) fn request(host: &str, path: &str, key: [u8; 16]) -> (Self, String) {
        let key = BASE64.encode(key);
        let accept = BASE64.encode(Sha1::digest(format!("{key}{KEY_SUFFIX}")));
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Protocol: xmpp\r\nSec-WebSocket-Version: 13\r\n\r\n"
        );
        (Self { accept, answer: Vec::new() }, request)
    }

    /// Takes bytes of the answer. When it is whole, returns how many of `bytes` belonged to it.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> Result<Option<usize>, UpgradeError> {
        let before = self.answer.len();
        self.answer.extend_from_slice(bytes);
        let Some(end) = self.answer.windows(4).position(|window| window == b"\r\n\r\n") else {
            return if self.answer.len() > ANSWER_BYTES_MAX {
                Err(UpgradeError::Malformed)
            } else {
                Ok(None)
            };
        };
        let head = std::str::from_utf8(self.answer.get(..end).unwrap_or_default())
            .map_err(|_| UpgradeError::Malformed)?;
        self.check(head)?;
        Ok(Some((end + 4).saturating_sub(before)))
    }

    fn check(&self, head: &str) -> Result<(), UpgradeError> {
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(status).ok_or(UpgradeError::Malformed)?;
        if status != 101 {
            return Err(UpgradeError::Status(status));
        }
        let mut accepted = false;
        let mut subprotocol = false;
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            if name.eq_ignore_ascii_case("sec-websocket-accept") {
                accepted = value == self.accept;
            } else if name.eq_ignore_ascii_case("sec-websocket-protocol") {
                subprotocol = value.eq_ignore_ascii_case("xmpp");
            }
        }
        if !accepted {
            return Err(UpgradeError::Accept);
        }
        if subprotocol { Ok(()) } else { Err(UpgradeError::Subprotocol) }
    }
}

fn status(line: &str) -> Option<u16> {
    line.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    // RFC 6455 §1.3
    const KEY: &[u8; 16] = b"the sample nonce";
    const ANSWER: &[u8] =
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nsec-websocket-protocol: xmpp\r\n\r\n";

    fn upgrade() -> Upgrade {
        Upgrade::request("example.org", "/ws", *KEY).0
    }

    #[test]
    fn the_request_is_that_of_rfc_7395() {
        assert_eq!(
            Upgrade::request("example.org", "/ws", *KEY).1,
            "GET /ws HTTP/1.1\r\nHost: example.org\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: xmpp\r\n\
             Sec-WebSocket-Version: 13\r\n\r\n"
        );
    }

    #[test]
    fn an_answer_may_come_in_pieces_and_be_followed_by_frames() {
        for cut in 0..ANSWER.len() {
            let mut upgrade = upgrade();
            assert_eq!(upgrade.receive(&ANSWER[..cut]), Ok(None));
            let rest = [&ANSWER[cut..], b"frame"].concat();
            assert_eq!(upgrade.receive(&rest), Ok(Some(ANSWER.len() - cut)));
        }
    }

    #[test]
    fn refusals_are_told_apart() {
        let answer = String::from_utf8(ANSWER.to_vec()).expect("ASCII");
        for (answer, error) in [
            (answer.replace("101", "404"), UpgradeError::Status(404)),
            (answer.replace("s3p", "abc"), UpgradeError::Accept),
            (answer.replace(": xmpp", ": chat"), UpgradeError::Subprotocol),
            (answer.replace("HTTP", "SMTP"), UpgradeError::Malformed),
            ("x".repeat(ANSWER_BYTES_MAX + 1), UpgradeError::Malformed),
        ] {
            assert_eq!(upgrade().receive(answer.as_bytes()), Err(error));
        }
    }
}
