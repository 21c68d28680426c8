//! Responses over HTTP.

/// The response that switches to WebSocket (RFC 6455 §4.2.2).
pub(super) fn switching(accept: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: xmpp\r\n\r\n"
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

/// The host metadata (RFC 6415) with the URL of the WebSocket (XEP-0156), as XRD or as JRD. Web pages of any origin may
/// read it (XEP-0156 §3).
pub(super) fn host_meta(url: &str, json: bool) -> Vec<u8> {
    const OPEN: &str = "Access-Control-Allow-Origin: *\r\n";
    const REL: &str = "urn:xmpp:alt-connections:websocket";
    match json {
        true => {
            let body = format!("{{\"links\":[{{\"rel\":\"{REL}\",\"href\":\"{url}\"}}]}}\n");
            answer("200 OK", "application/jrd+json", OPEN, &body)
        }
        false => {
            let body = format!(
                "<?xml version='1.0' encoding='utf-8'?>\n<XRD xmlns='http://docs.oasis-open.org/ns/xri/xrd-1.0'>\
                 <Link rel='{REL}' href='{url}'/></XRD>\n"
            );
            answer("200 OK", "application/xrd+xml", OPEN, &body)
        }
    }
}
