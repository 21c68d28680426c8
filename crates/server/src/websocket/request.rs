//! Checking a request head.

use super::WebSocketEndpoint;
use super::response::{host_metadata, refusal};
use aws_lc_rs::digest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use carillon_wire::frame::game;
use std::net::IpAddr;

/// The result of checking a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is a correct request for the WebSocket.
    WebSocket {
        /// `Sec-WebSocket-Accept`.
        accept: String,
        /// The client's address, if a trusted proxy tells it.
        client: Option<IpAddr>,
        /// Whether it is for a match.
        is_player: bool,
    },
    /// It is answered with these bytes, and the connection is closed.
    Answer(Vec<u8>),
}

/// Checks a complete head that came from `peer`.
pub(super) fn judge(head: &[u8], peer: IpAddr, endpoint: &WebSocketEndpoint) -> Verdict {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    if !matches!(request.parse(head), Ok(httparse::Status::Complete(_))) {
        return bad("This is not an HTTP/1.1 request.");
    }
    let (Some(method), Some(target), Some(1)) = (request.method, request.path, request.version) else {
        return bad("This is not an HTTP/1.1 request.");
    };
    let fields = Fields(request.headers);
    let path = target.split('?').next().unwrap_or(target);
    let metadata = match path {
        "/.well-known/host-meta" => Some(false),
        "/.well-known/host-meta.json" => Some(true),
        _ => None,
    };
    if metadata.is_none() && path != &*endpoint.path {
        let words = format!("Nothing is here. The WebSocket is at {}.", endpoint.path);
        return Verdict::Answer(refusal("404 Not Found", "", &words));
    }
    if method != "GET" {
        return Verdict::Answer(refusal(
            "405 Method Not Allowed",
            "Allow: GET\r\n",
            "Only GET is answered here.",
        ));
    }
    let Some(host) = fields.one("host").filter(|host| is_host(host)) else {
        return bad("The Host header is missing or malformed.");
    };
    match metadata {
        Some(json) => Verdict::Answer(host_metadata(&url(host, &fields, endpoint), json)),
        None => websocket(&fields, peer, endpoint),
    }
}

/// The checks of RFC 6455 §4.2.1 and RFC 7395 §3.1.
fn websocket(fields: &Fields<'_>, peer: IpAddr, endpoint: &WebSocketEndpoint) -> Verdict {
    if !fields.list("upgrade", "websocket") || !fields.list("connection", "upgrade") {
        let headers = "Upgrade: websocket\r\nConnection: Upgrade\r\n";
        let words =
            "This is a WebSocket endpoint: the request needs `Upgrade: websocket` and `Connection: Upgrade`.";
        return Verdict::Answer(refusal("426 Upgrade Required", headers, words));
    }
    if fields.one("sec-websocket-version") != Some("13") {
        let headers = "Sec-WebSocket-Version: 13\r\nUpgrade: websocket\r\n";
        let words = "Only version 13 of the WebSocket protocol is spoken here.";
        return Verdict::Answer(refusal("426 Upgrade Required", headers, words));
    }
    let Some(key) = fields.one("sec-websocket-key").filter(|key| is_key(key)) else {
        return bad("The Sec-WebSocket-Key header is missing or not 16 bytes in base 64.");
    };
    // Subprotocols are case-sensitive.
    let offers =
        |name: &str| fields.values("sec-websocket-protocol").flat_map(items).any(|offered| offered == name);
    let is_player = endpoint.takes_players && offers(game::SUBPROTOCOL);
    if !is_player && !offers("xmpp") {
        return bad("The request must offer the subprotocol `xmpp` (RFC 7395 §3.1).");
    }
    let client = endpoint.proxies.client(peer, fields.values("x-forwarded-for"));
    Verdict::WebSocket { accept: accept(key), client, is_player }
}

/// `Sec-WebSocket-Accept` for a key (RFC 6455 §4.2.2).
fn accept(key: &str) -> String {
    let mut context = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    context.update(key.as_bytes());
    context.update(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    STANDARD.encode(context.finish())
}

fn bad(words: &str) -> Verdict {
    Verdict::Answer(refusal("400 Bad Request", "", words))
}

fn is_key(key: &str) -> bool {
    key.len() == 24 && STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == 16)
}

/// Whether this can be a `Host`, and needs no escaping in a document.
fn is_host(host: &str) -> bool {
    !host.is_empty()
        && host.len() <= 260
        && host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_:[]".contains(&b))
}

/// The URL of the WebSocket, with the host name that the client used.
fn url(host: &str, fields: &Fields<'_>, endpoint: &WebSocketEndpoint) -> String {
    let secure =
        endpoint.secure || fields.one("x-forwarded-proto").is_some_and(|p| p.eq_ignore_ascii_case("https"));
    let path: String =
        endpoint.path.chars().filter(|c| c.is_ascii_graphic() && !"\"'<>&\\".contains(*c)).collect();
    format!("{}://{host}{path}", if secure { "wss" } else { "ws" })
}

/// The header fields of a request.
struct Fields<'a>(&'a [httparse::Header<'a>]);

impl<'a> Fields<'a> {
    /// The values of a field, in order, without those that are not UTF-8.
    fn values(&self, name: &str) -> impl DoubleEndedIterator<Item = &'a str> {
        let named = self.0.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
        named.filter_map(|header| std::str::from_utf8(header.value).ok()).map(str::trim)
    }

    /// The value of a field that may occur only once.
    fn one(&self, name: &str) -> Option<&'a str> {
        let mut values = self.values(name);
        values.next().filter(|_| values.next().is_none())
    }

    /// Whether a field lists `item`, in any case.
    fn list(&self, name: &str, item: &str) -> bool {
        self.values(name).flat_map(items).any(|i| i.eq_ignore_ascii_case(item))
    }
}

fn items(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim)
}

const HEADERS_MAX: usize = 64;
