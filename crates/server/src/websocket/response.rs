//! Responses over HTTP.

use super::host_meta;
use carillon_wire::frame::game;

/// The response that switches to WebSocket (RFC 6455 §4.2.2).
pub(super) fn switching(accept: &str, is_player: bool) -> Vec<u8> {
    let subprotocol = if is_player { game::SUBPROTOCOL } else { "xmpp" };
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: {subprotocol}\r\n\r\n"
    )
    .into_bytes()
}

/// A refusal with an explanation. `headers` are whole lines.
pub(super) fn refusal(status: &str, headers: &str, words: &str) -> Vec<u8> {
    answer(status, "text/plain; charset=utf-8", headers, &format!("{words}\n"))
}

/// A response with a body, after which the connection is closed.
pub(super) fn answer(status: &str, content_type: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n{headers}\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// The host metadata with the URL of the WebSocket, as XML or as JSON.
pub(super) fn host_metadata(url: &str, as_json: bool) -> Vec<u8> {
    const OPEN: &str = "Access-Control-Allow-Origin: *\r\n";
    let (media_type, body) = match as_json {
        true => (host_meta::JSON, host_meta::json(Some(url))),
        false => (host_meta::XRD, host_meta::xrd(Some(url))),
    };
    answer("200 OK", media_type, OPEN, &body)
}
