//! The light protocol on the wire. A client's frames end in NUL, the server's in 0x01. Neither byte can be inside a frame,
//! because both sides send only text: JSON escapes control characters, and the other words have none.

use super::{Ended, Refused};
use crate::model::{News, UnixMs};
use carillon_wire::ns;
use carillon_wire::xml::Element;
use serde::de::IgnoredAny;
use std::borrow::Cow;

/// The longest frame of a client, without its NUL.
pub(crate) const BYTES_MAX: usize = 4096;
/// Ends a client's frame.
const NUL: u8 = 0;
/// Ends a server's frame.
const END: u8 = 1;
/// What a client sends first.
const OPENING: &[u8] = b"<regular-socket/>";

/// What a client wants.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request<'a> {
    /// To be answered, to see whether the connection works.
    Ping,
    /// To follow a topic.
    Subscribe(Cow<'a, str>),
    /// To stop following a topic.
    Unsubscribe(Cow<'a, str>),
}

#[derive(serde::Deserialize)]
struct Wanted<'a> {
    #[serde(borrow)]
    action: Cow<'a, str>,
    #[serde(borrow)]
    data: Cow<'a, str>,
}

/// A frame without its NUL, and the bytes that follow.
type Cut<'a> = (&'a [u8], &'a [u8]);

/// Cuts the first frame off; none when it is not complete.
pub(crate) fn cut(bytes: &[u8]) -> Result<Option<Cut<'_>>, Ended> {
    // No further than a frame may be: what is behind that is not looked at again and again.
    match bytes.iter().take(BYTES_MAX + 1).position(|byte| *byte == NUL) {
        Some(end) => {
            let frame = bytes.split_at_checked(end);
            Ok(frame.map(|(frame, rest)| (frame, rest.get(1..).unwrap_or_default())))
        }
        None if bytes.len() > BYTES_MAX => Err(Ended::FrameTooLarge),
        None => Ok(None),
    }
}

/// Reads the first frame of a connection.
pub(crate) fn opening(frame: &[u8]) -> Result<(), Ended> {
    if frame == OPENING { Ok(()) } else { Err(Ended::BadOpening) }
}

/// Reads any other frame.
pub(crate) fn request(frame: &[u8]) -> Result<Request<'_>, Ended> {
    if frame == b"PING" {
        return Ok(Request::Ping);
    }
    let text = std::str::from_utf8(frame).map_err(|_| Ended::BadUtf8)?;
    let wanted: Wanted<'_> = serde_json::from_str(text).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => Ended::BadRequest,
        _ => Ended::BadJson,
    })?;
    match &*wanted.action {
        "subscribe" => Ok(Request::Subscribe(wanted.data)),
        "unsubscribe" => Ok(Request::Unsubscribe(wanted.data)),
        _ => Err(Ended::UnknownAction),
    }
}

/// Appends the answer to the opening.
pub(crate) fn welcome(out: &mut Vec<u8>, now: UnixMs, token: &str) {
    out.extend_from_slice(format!("{{\"timestamp\":{},\"token\":", now.0).as_bytes());
    text(out, token);
    out.extend_from_slice(&[b'}', END]);
}

/// Appends the answer to `PING`.
pub(crate) fn pong(out: &mut Vec<u8>) {
    out.extend_from_slice(b"PONG\x01");
}

/// Appends the answer to a request that was done.
pub(crate) fn ack(out: &mut Vec<u8>) {
    out.extend_from_slice(b"ACK\x01");
}

/// Appends the error for a refused request.
pub(crate) fn refused(out: &mut Vec<u8>, why: Refused) {
    error(out, why.code(), why.message());
}

/// Appends the error for a connection that is closed.
pub(crate) fn ended(out: &mut Vec<u8>, why: Ended) {
    error(out, why.code(), why.message());
}

/// Appends what happened on a topic.
pub(crate) fn publish(out: &mut Vec<u8>, topic: &str, news: &News<'_>) {
    let (event, id, payload) = match *news {
        News::Item { id, payload } => ("publish", Some(id), payload),
        News::Last { id, payload } => ("last", Some(id), payload),
        News::Retracted { id } => ("retract", Some(id), &[][..]),
        News::Purged => ("purge", None, &[][..]),
        News::Deleted => ("delete", None, &[][..]),
    };
    publication(out, topic, event, id, payload);
}

/// Appends that a topic is no longer open to all.
pub(crate) fn restricted(out: &mut Vec<u8>, topic: &str) {
    publication(out, topic, "closed", None, &[]);
}

fn publication(out: &mut Vec<u8>, topic: &str, event: &str, id: Option<&str>, payload: &[u8]) {
    out.extend_from_slice(b"PUBLISH\0{\"topic\":");
    text(out, topic);
    out.extend_from_slice(b",\"event\":");
    text(out, event);
    out.extend_from_slice(b",\"message_id\":");
    match id {
        Some(id) => text(out, id),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"data\":");
    data(out, payload);
    out.extend_from_slice(&[b'}', END]);
}

/// Appends a payload as JSON: the content of a XEP-0335 container as it is, other XML as a string.
fn data(out: &mut Vec<u8>, payload: &[u8]) {
    if payload.is_empty() {
        return out.extend_from_slice(b"null");
    }
    let element = Element::parse(payload, ns::CLIENT);
    if let Ok(container) = element.as_ref()
        && container.is("json", ns::JSON)
    {
        let inside = container.text();
        // A client may have put anything into its container.
        return match serde_json::from_str::<IgnoredAny>(&inside) {
            Ok(_) => out.extend_from_slice(inside.trim().as_bytes()),
            Err(_) => text(out, &inside),
        };
    }
    text(out, &String::from_utf8_lossy(payload));
}

fn error(out: &mut Vec<u8>, code: &str, message: &str) {
    out.extend_from_slice(b"{\"error\":");
    text(out, code);
    out.extend_from_slice(b",\"message\":");
    text(out, message);
    out.extend_from_slice(&[b'}', END]);
}

fn text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("a text is JSON, and a Vec takes all");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_cut_at_their_nul() {
        assert_eq!(cut(b"PING\0{}\0"), Ok(Some((&b"PING"[..], &b"{}\0"[..]))));
        assert_eq!(cut(b"\0"), Ok(Some((&b""[..], &b""[..]))));
        assert_eq!(cut(b"PIN"), Ok(None));
        let mut longest = vec![b'x'; BYTES_MAX];
        assert_eq!(cut(&longest), Ok(None));
        longest.push(0);
        assert_eq!(cut(&longest).unwrap().unwrap().0.len(), BYTES_MAX);
        longest.insert(0, b'x');
        assert_eq!(cut(&longest), Err(Ended::FrameTooLarge));
        longest.pop();
        assert_eq!(cut(&longest), Err(Ended::FrameTooLarge), "before its end is there");
    }

    #[test]
    fn requests() {
        assert_eq!(request(b"PING"), Ok(Request::Ping));
        let subscribe = br#" {"data":"a\u0022b","more":[1],"action":"subscribe"} "#;
        assert_eq!(request(subscribe), Ok(Request::Subscribe("a\"b".into())));
        let unsubscribe = r#"{"action":"unsubscribe","data":"é"}"#.as_bytes();
        assert_eq!(request(unsubscribe), Ok(Request::Unsubscribe("é".into())));
        for (frame, why) in [
            (&b""[..], Ended::BadJson),
            (b"ping", Ended::BadJson),
            (b"{\"action\":", Ended::BadJson),
            (b"{} {}", Ended::BadRequest),
            (b"[]", Ended::BadRequest),
            (b"{\"action\":\"subscribe\"}", Ended::BadRequest),
            (b"{\"action\":\"subscribe\",\"data\":1}", Ended::BadRequest),
            (b"{\"action\":\"subscribe\",\"data\":\"a\",\"data\":\"b\"}", Ended::BadRequest),
            (b"{\"action\":\"publish\",\"data\":\"a\"}", Ended::UnknownAction),
            (b"{\"action\":\"\xff\"}", Ended::BadUtf8),
        ] {
            assert_eq!(request(frame), Err(why), "{}", String::from_utf8_lossy(frame));
        }
        let deep = [vec![b'['; BYTES_MAX / 2], vec![b']'; BYTES_MAX / 2]].concat();
        assert!(request(&deep).is_err());
    }

    fn published(news: News<'_>) -> String {
        let mut out = Vec::new();
        publish(&mut out, "a\"\u{1}b", &news);
        assert_eq!(out.pop(), Some(END));
        let out = String::from_utf8(out).unwrap();
        let json = out.strip_prefix("PUBLISH\0").unwrap();
        assert!(!json.bytes().any(|b| b == END || b == NUL), "{json}");
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(value["topic"], "a\"\u{1}b");
        json.strip_prefix("{\"topic\":\"a\\\"\\u0001b\",").unwrap().to_owned()
    }

    fn item(payload: &str) -> String {
        let json = published(News::Item { id: "i1", payload: payload.as_bytes() });
        json.strip_prefix("\"event\":\"publish\",\"message_id\":\"i1\",").unwrap().to_owned()
    }

    #[test]
    fn items() {
        assert_eq!(
            item("<json xmlns='urn:xmpp:json:0'> {\"a&quot;:[1,\"&lt;\"]}\n</json>"),
            "\"data\":{\"a\":[1,\"<\"]}}"
        );
        assert_eq!(item(""), "\"data\":null}");
        assert_eq!(item("<x xmlns='urn:x'>&amp;\n</x>"), "\"data\":\"<x xmlns='urn:x'>&amp;\\n</x>\"}");
        assert_eq!(
            item("<json xmlns='urn:xmpp:json:0'>1},{</json>"),
            "\"data\":\"1},{\"}",
            "no way out of the frame"
        );
        assert_eq!(item("<json xmlns='urn:xmpp:json:0'/>"), "\"data\":\"\"}");
        assert_eq!(
            item("<json xmlns='urn:other'>1</json>"),
            "\"data\":\"<json xmlns='urn:other'>1</json>\"}"
        );
    }

    #[test]
    fn other_news() {
        let last = News::Last { id: "i", payload: b"<json xmlns='urn:xmpp:json:0'>1</json>" };
        assert_eq!(published(last), "\"event\":\"last\",\"message_id\":\"i\",\"data\":1}");
        assert_eq!(
            published(News::Retracted { id: "i" }),
            "\"event\":\"retract\",\"message_id\":\"i\",\"data\":null}"
        );
        assert_eq!(published(News::Purged), "\"event\":\"purge\",\"message_id\":null,\"data\":null}");
        assert_eq!(published(News::Deleted), "\"event\":\"delete\",\"message_id\":null,\"data\":null}");
    }

    #[test]
    fn the_servers_words() {
        let mut out = Vec::new();
        welcome(&mut out, UnixMs(1_795_167_000_125), "t");
        pong(&mut out);
        ack(&mut out);
        refused(&mut out, Refused::NotFound);
        ended(&mut out, Ended::Shutdown);
        let expected = "{\"timestamp\":1795167000125,\"token\":\"t\"}\x01PONG\x01ACK\x01\
            {\"error\":\"topic-not-found\",\"message\":\"there is no topic of this name\"}\x01\
            {\"error\":\"shutdown\",\"message\":\"the server is shutting down\"}\x01";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
