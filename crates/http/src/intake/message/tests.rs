//! What messages ask for, and by what they are known.

use super::*;
use carillon_core::ports::Receipt;

fn pulled(headers: &[(&str, &str)], body: &str) -> Pulled {
    Pulled {
        receipt: Receipt(1),
        id: "S/5/7".into(),
        sent: UnixMs(1000),
        attempt: 1,
        group: None,
        headers: headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        body: Bytes::copy_from_slice(body.as_bytes()),
    }
}

fn read_at(headers: &[(&str, &str)], body: &str, now: u64) -> Result<Vec<Part>, Code> {
    let rules = Rules { queue: "orders", known_ms: 5000, bytes_max: 1000, parts_max: 3, now: UnixMs(now) };
    read(&pulled(headers, body), rules).map_err(|problem| problem.code())
}

fn names(headers: &[(&str, &str)], body: &str, now: u64) -> Vec<(Option<String>, Option<String>)> {
    let parts = read_at(headers, body, now).unwrap();
    let names = |part: Part| {
        let Identity { reserve, message, .. } = part.identity;
        (reserve.map(|(name, _)| name.into()), message.map(|message| message.name.into()))
    };
    parts.into_iter().map(names).collect()
}

const ONE: &str = r#"{"to":"a","payload":1}"#;
const ACTIVE: &str = r#"{"to":"a","audience":"active","payload":1}"#;
const ITEM: &str = r#"{"topic":"news","id":"i","payload":1}"#;

#[test]
fn a_message_is_known_by_its_queues_name_for_it() {
    let name = || Some("orders/S/5/7".to_owned());
    let reserved = || Some("message orders/S/5/7".to_owned());
    assert_eq!(names(&[], ONE, 2000), [(None, name())]);
    assert_eq!(names(&[], ITEM, 2000), [(None, name())]);
    // The store forgets what ended long ago, and never knew what it did not keep.
    assert_eq!(names(&[], ONE, 6000), [(reserved(), name())]);
    assert_eq!(names(&[], ACTIVE, 2000), [(reserved(), name())]);
    assert_eq!(names(&[], ITEM, 1000 + ITEM_KNOWN_MS), [(reserved(), name())]);
}

#[test]
fn a_key_of_its_own_counts_as_over_http() {
    let headers = [("idempotency-key", "k1")];
    assert_eq!(names(&headers, ONE, 2000), [(Some("k1".into()), None)]);
    let parts = read_at(&headers, ONE, 2000).unwrap();
    let over_http =
        Identity::of_request(Some("k1".into()), &Uri::from_static("/v1/notifications"), ONE.as_bytes());
    assert_eq!(parts[0].identity.reserve, over_http.reserve);
    assert_eq!(read_at(&[("idempotency-key", "a b")], ONE, 2000).err(), Some(Code::InvalidHeader));
}

#[test]
fn lines_are_parts_with_names_of_their_own() {
    let headers = [("content-type", "application/x-ndjson; charset=utf-8")];
    let lines = format!("{ONE}\n\n{ITEM}\r\n");
    let named = |n| (None, Some(format!("orders/S/5/7#{n}")));
    assert_eq!(names(&headers, &lines, 2000), [named(1), named(2)]);
    assert_eq!(read_at(&headers, &[ONE; 4].join("\n"), 2000).err(), Some(Code::InvalidValue));
    assert_eq!(read_at(&headers, "\n", 2000).err(), Some(Code::InvalidValue));
}

#[test]
fn events_are_understood_in_each_mode() {
    let event = format!(r#"{{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{ONE}}}"#);
    let structured = names(&[("content-type", "application/cloudevents+json")], &event, 2000);
    assert!(structured[0].0.as_ref().is_some_and(|name| name.starts_with("event-")));
    assert_eq!(names(&[], &event, 2000), structured, "without saying so");
    let attributes = [("ce-specversion", "1.0"), ("ce-id", "1"), ("ce-source", "/s"), ("ce-type", "t")];
    assert_eq!(names(&attributes, ONE, 2000), structured, "in binary mode");
    let batch = [("content-type", "application/cloudevents-batch+json")];
    assert_eq!(names(&batch, &format!("[{event},{event}]"), 2000).len(), 2);
    assert_eq!(read_at(&batch, &event, 2000).err(), Some(Code::NotJson));
}

#[test]
fn poison_is_refused_with_its_reason() {
    for (headers, body, code) in [
        (&[][..], "", Code::NotJson),
        (&[], "{", Code::NotJson),
        (&[], "[]", Code::WrongType),
        (&[], r#"{"payload":1}"#, Code::MissingField),
        (&[], r#"{"to":"a","payload":1,"colour":"red"}"#, Code::UnknownField),
        (&[], r#"{"topic":7,"payload":1}"#, Code::WrongType),
        (&[("content-type", "text/xml")], "<a/>", Code::WrongContentType),
    ] {
        assert_eq!(read_at(headers, body, 2000).err(), Some(code), "{body}");
    }
    let long = format!(r#"{{"to":"a","payload":"{}"}}"#, "x".repeat(1000));
    assert_eq!(read_at(&[], &long, 2000).err(), Some(Code::TooLarge));
}
