//! Where a domain's WebSocket is, for clients that know only the domain: host metadata (RFC 6415) as XEP-0156 has it. Web pages
//! of any origin may read it (XEP-0156 §3).

use carillon_wire::xml::Element;
use std::fmt::Write as _;

/// The media type of [`xrd`].
pub const XRD: &str = "application/xrd+xml";
/// The media type of [`json`] (RFC 6415 §3).
pub const JSON: &str = "application/json";

/// As XML; without a URL there are no links.
pub fn xrd(url: Option<&str>) -> String {
    let link = |url: &str| Element::new("Link", NS).with_attr("rel", WEBSOCKET).with_attr("href", url);
    let document = url.map(link).into_iter().fold(Element::new("XRD", NS), Element::with_child);
    format!("<?xml version='1.0' encoding='utf-8'?>\n{}\n", document.to_string_in(""))
}

/// As JSON.
pub fn json(url: Option<&str>) -> String {
    let link = |url: &str| format!("{{\"rel\":\"{WEBSOCKET}\",\"href\":{}}}", quoted(url));
    format!("{{\"links\":[{}]}}\n", url.map(link).unwrap_or_default())
}

/// A text of JSON (RFC 8259 §7).
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => write!(quoted, "\\u{:04x}", u32::from(c)).expect("a text takes all"),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

const NS: &str = "http://docs.oasis-open.org/ns/xri/xrd-1.0";
const WEBSOCKET: &str = "urn:xmpp:alt-connections:websocket";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_url_is_written_whole() {
        let url = "wss://x.example/ws?a='&\"\\\n";
        assert!(xrd(Some(url)).contains(
            "<Link rel='urn:xmpp:alt-connections:websocket' href='wss://x.example/ws?a=&apos;&amp;&quot;\\&#10;'/></XRD>\n"
        ));
        assert_eq!(
            json(Some(url)),
            "{\"links\":[{\"rel\":\"urn:xmpp:alt-connections:websocket\",\
             \"href\":\"wss://x.example/ws?a='&\\\"\\\\\\u000a\"}]}\n"
        );
    }

    #[test]
    fn without_a_websocket_there_are_no_links() {
        assert!(xrd(None).ends_with("<XRD xmlns='http://docs.oasis-open.org/ns/xri/xrd-1.0'/>\n"));
        assert_eq!(json(None), "{\"links\":[]}\n");
    }
}
