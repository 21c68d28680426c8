//! What a notification or an item carries: any JSON value, or one XML element.

use crate::problem::{Code, Problem};
use carillon_core::model::{Item, Payload};
use carillon_wire::ns;
use carillon_wire::xml::Element;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// Takes a member that is there, also when it is `null`: a payload may be `null`.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

/// The payload that a body gives, in one of its two forms.
pub(crate) fn read(json: Option<&RawValue>, xml: Option<&str>, bytes_max: usize) -> Result<Payload, Problem> {
    match (json, xml) {
        (Some(json), None) => {
            let text = compact(json.get());
            bounded(text.len(), bytes_max, "/payload")?;
            Ok(Payload::Json(Arc::from(&*text)))
        }
        (None, Some(xml)) => {
            // Bounded before it is read, so that no tree is made of what is refused anyway.
            bounded(xml.len(), bytes_max, "/payload_xml")?;
            let text = element(xml)?;
            bounded(text.len(), bytes_max, "/payload_xml")?;
            Ok(Payload::Xml(text.into()))
        }
        (Some(_), Some(_)) => {
            Err(Problem::new(Code::InvalidValue, "give `payload` or `payload_xml`, not both")
                .at("/payload_xml"))
        }
        (None, None) => {
            Err(Problem::new(Code::MissingField, "give `payload` or `payload_xml`").at("/payload"))
        }
    }
}

/// The payload of a notification with a link, which becomes a member of it: a JSON object without that member, or nothing.
pub(crate) fn read_for_link(
    json: Option<&RawValue>,
    xml: Option<&str>,
    bytes_max: usize,
) -> Result<Payload, Problem> {
    let wrong = |detail: &str, pointer: &str| Err(Problem::new(Code::InvalidValue, detail).at(pointer));
    if xml.is_some() {
        return wrong("with `link` the payload is a JSON object, or is left out", "/payload_xml");
    }
    let Some(json) = json else { return Ok(Payload::Json("{}".into())) };
    match serde_json::from_str::<HashMap<Cow<'_, str>, IgnoredAny>>(json.get()) {
        Err(_) => wrong("with `link` the payload is a JSON object, or is left out", "/payload"),
        Ok(members) if members.contains_key("link") => {
            wrong("the payload has a member `link`, which is where the short link goes", "/payload/link")
        }
        // Room for the longest link.
        Ok(_) => read(Some(json), None, bytes_max.saturating_sub(LINK_BYTES_MAX)),
    }
}

/// What a link adds to a payload at most: the longest host, code and token, and the member's name.
const LINK_BYTES_MAX: usize = 400;

/// A payload of [`read_for_link`] with its link, which has no character that JSON escapes.
pub(crate) fn with_link(payload: &Payload, link: &str) -> Payload {
    let Payload::Json(text) = payload else { return payload.clone() };
    let rest = text.strip_suffix('}').unwrap_or(text);
    let comma = if rest.len() > 1 { "," } else { "" };
    Payload::Json(format!("{rest}{comma}\"link\":\"{link}\"}}").into())
}

/// An item's payload as it stands in JSON: the JSON that its provider sent, or else its XML.
pub(crate) fn show(item: &Item) -> (Option<Box<RawValue>>, Option<String>) {
    let json = Element::parse(&item.payload, "")
        .ok()
        .filter(|element| element.is("json", ns::JSON))
        .and_then(|element| RawValue::from_string(element.text()).ok());
    match json {
        Some(json) => (Some(json), None),
        None if item.payload.is_empty() => (None, None),
        None => (None, Some(String::from_utf8_lossy(&item.payload).into_owned())),
    }
}

fn bounded(bytes: usize, bytes_max: usize, pointer: &str) -> Result<(), Problem> {
    if bytes <= bytes_max {
        return Ok(());
    }
    let detail = format!("the payload has {bytes} bytes; this node delivers at most {bytes_max}");
    Err(Problem::new(Code::PayloadTooLarge, detail).at(pointer))
}

fn element(xml: &str) -> Result<String, Problem> {
    let refuse = |why: String| Problem::new(Code::InvalidXml, why).at("/payload_xml");
    let element = Element::parse(xml.as_bytes(), "").map_err(|error| refuse(error.to_string()))?;
    match element.ns() {
        "" => Err(refuse("the element has no namespace".to_owned())),
        // A payload must never be taken for a part of the stanza or the stream that carries it.
        taken @ (ns::CLIENT | ns::SERVER | ns::STREAMS) => {
            Err(refuse(format!("the namespace `{taken}` is XMPP's own")))
        }
        _ => Ok(element.to_string_in("")),
    }
}

/// A JSON text without the white space between its tokens. Numbers, key order and escapes stay as they were sent; the
/// two characters that JSON allows in strings and XML nowhere are escaped. As a rule there is nothing to do.
fn compact(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    let mut out = String::new();
    let (mut kept, mut at, mut in_string) = (0, 0, false);
    while at < bytes.len() {
        if in_string {
            let Some(next) = memchr::memchr3(b'"', b'\\', NONCHARACTER, &bytes[at..]) else { break };
            at += next;
        }
        match (bytes[at], in_string) {
            (b'"', _) => in_string = !in_string,
            // What is escaped is passed over: one byte is enough, none of the longer escapes has a quote.
            (b'\\', true) => at += 1,
            (NONCHARACTER, true) => {
                if let Some(escape) = escape(&bytes[at..]) {
                    out.push_str(&json[kept..at]);
                    out.push_str(escape);
                    kept = at + 3;
                }
            }
            (b' ' | b'\n' | b'\r' | b'\t', false) => {
                out.push_str(&json[kept..at]);
                kept = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    if kept == 0 && out.is_empty() {
        return Cow::Borrowed(json);
    }
    out.push_str(&json[kept..]);
    Cow::Owned(out)
}

/// The first byte of U+FFFE and U+FFFF, and of others.
const NONCHARACTER: u8 = 0xef;

fn escape(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xef, 0xbf, 0xbe, ..] => Some("\\ufffe"),
        [0xef, 0xbf, 0xbf, ..] => Some("\\uffff"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Result<Payload, Code> {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        read(Some(&raw), None, 64).map_err(|p| p.code())
    }

    fn xml(text: &str) -> Result<Payload, Code> {
        read(None, Some(text), 64).map_err(|p| p.code())
    }

    #[test]
    fn a_link_becomes_a_member() {
        let read = |text: &str| {
            let json = RawValue::from_string(text.to_owned()).expect("JSON");
            read_for_link(Some(&json), None, 1000).map(|payload| with_link(&payload, "https://a.example/b.c"))
        };
        let json = |text: &str| Ok(Payload::Json(text.into()));
        assert_eq!(read("{}"), json(r#"{"link":"https://a.example/b.c"}"#));
        assert_eq!(
            read(r#"{ "a": {"link": 1} }"#),
            json(r#"{"a":{"link":1},"link":"https://a.example/b.c"}"#)
        );
        for (text, pointer) in [
            ("1", "/payload"),
            ("[]", "/payload"),
            (r#"{"link":1}"#, "/payload/link"),
            (r#"{"l\u0069nk":1}"#, "/payload/link"),
        ] {
            assert_eq!(read(text).expect_err("refused").pointer(), Some(pointer), "{text}");
        }
        assert!(read_for_link(None, Some("<a xmlns='b'/>"), 1000).is_err());
        assert_eq!(read_for_link(None, None, 1000), Ok(Payload::Json("{}".into())));
    }

    #[test]
    fn json_is_kept_to_the_letter_but_for_white_space() {
        let expected = r#"{"b":1.50,"a":["x \" y","\\",12345678901234567890123]}"#;
        let spaced = "{ \"b\" : 1.50,\n \"a\":[ \"x \\\" y\", \"\\\\\",\t12345678901234567890123 ] }";
        assert_eq!(json(spaced), Ok(Payload::Json(expected.into())));
        assert_eq!(json("null"), Ok(Payload::Json("null".into())));
        assert_eq!(json("\"a\u{ffff}\""), Ok(Payload::Json("\"a\\uffff\"".into())));
    }

    #[test]
    fn xml_is_one_element_in_a_namespace_of_its_own() {
        assert_eq!(xml("<x xmlns='urn:a'/>"), Ok(Payload::Xml("<x xmlns='urn:a'/>".into())));
        assert_eq!(xml("<p:x xmlns:p='urn:a'>1</p:x>"), Ok(Payload::Xml("<x xmlns='urn:a'>1</x>".into())));
        for wrong in [
            "",
            "text",
            "<x/>",
            "<x xmlns='urn:a'>",
            "<x xmlns='urn:a'/><y xmlns='urn:a'/>",
            "<x xmlns='jabber:client'/>",
            "<!DOCTYPE x><x xmlns='urn:a'/>",
            "<x xmlns='urn:a'>&e;</x>",
        ] {
            assert_eq!(xml(wrong), Err(Code::InvalidXml), "{wrong}");
        }
    }

    #[test]
    fn one_payload_of_bounded_size() {
        let raw = RawValue::from_string("1".to_owned()).unwrap();
        assert_eq!(read(Some(&raw), Some("<x xmlns='urn:a'/>"), 64).unwrap_err().code(), Code::InvalidValue);
        assert_eq!(read(None, None, 64).unwrap_err().code(), Code::MissingField);
        assert_eq!(json(&format!("\"{}\"", "a".repeat(63))), Err(Code::PayloadTooLarge));
        assert_eq!(xml(&format!("<x xmlns='urn:a'>{}</x>", "a".repeat(64))), Err(Code::PayloadTooLarge));
    }
}
