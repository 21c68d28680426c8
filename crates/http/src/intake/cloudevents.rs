//! CloudEvents 1.0: what an event carries, and by what it is known, from either of its modes.

use crate::extract::parse;
use crate::problem::{Code, Problem};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use carillon_core::ports::Pulled;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// What an event carries.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// Its data, which is JSON.
    pub(super) data: Bytes,
    /// The name that its source and its id give it: events of the same name are one event.
    pub(super) name: Box<str>,
}

/// An event in structured mode. Extension attributes are left alone.
#[derive(Debug, serde::Deserialize)]
struct Structured {
    specversion: String,
    id: String,
    source: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    datacontenttype: Option<String>,
    #[serde(default)]
    data: Option<Box<RawValue>>,
    #[serde(default)]
    data_base64: Option<String>,
}

/// Whether a message is an event in binary mode: its attributes are headers.
pub(super) fn is_binary(pulled: &Pulled) -> bool {
    pulled.header("ce-specversion").is_some()
}

/// An event in structured mode.
pub(super) fn structured(body: &[u8]) -> Result<Event, Problem> {
    let event: Structured = parse(body)?;
    attributes(&event.specversion, &event.id, &event.source, &event.kind)?;
    content_type(event.datacontenttype.as_deref())?;
    let data = match (event.data, event.data_base64) {
        (Some(data), None) => Box::<str>::from(data).into_string().into(),
        (None, Some(text)) => STANDARD.decode(text).map(Bytes::from).map_err(|_| {
            Problem::new(Code::InvalidValue, "`data_base64` is not base64").at("/data_base64")
        })?,
        (Some(_), Some(_)) => {
            return Err(
                Problem::new(Code::InvalidValue, "give `data` or `data_base64`, not both").at("/data")
            );
        }
        (None, None) => return Err(Problem::new(Code::MissingField, "the event has no `data`").at("/data")),
    };
    Ok(Event { data, name: name(&event.source, &event.id) })
}

/// An event in binary mode.
pub(super) fn binary(pulled: &Pulled) -> Result<Event, Problem> {
    let header = |name: &str| pulled.header(name).unwrap_or_default();
    let (id, source) = (header("ce-id"), header("ce-source"));
    attributes(header("ce-specversion"), id, source, header("ce-type"))?;
    content_type(pulled.header("content-type"))?;
    Ok(Event { data: pulled.body.clone(), name: name(source, id) })
}

fn attributes(version: &str, id: &str, source: &str, kind: &str) -> Result<(), Problem> {
    if version != "1.0" {
        let detail = format!("the event has `specversion` {version:?}; 1.0 is understood");
        return Err(Problem::new(Code::InvalidValue, detail).at("/specversion"));
    }
    for (name, value) in [("id", id), ("source", source), ("type", kind)] {
        if value.is_empty() {
            let detail = format!("the event has no `{name}`");
            return Err(Problem::new(Code::MissingField, detail).at(format!("/{name}")));
        }
    }
    Ok(())
}

fn content_type(value: Option<&str>) -> Result<(), Problem> {
    let essence = value.unwrap_or("application/json").split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    if essence == "application/json" || essence.ends_with("+json") {
        return Ok(());
    }
    let detail = format!("the event's data is {essence}; JSON is understood");
    Err(Problem::new(Code::WrongContentType, detail))
}

fn name(source: &str, id: &str) -> Box<str> {
    let hash = Sha256::new().chain_update(source).chain_update([0]).chain_update(id).finalize();
    format!("event-{}", URL_SAFE_NO_PAD.encode(hash)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(body: &str) -> Code {
        structured(body.as_bytes()).unwrap_err().code()
    }

    #[test]
    fn an_event_is_known_by_its_source_and_its_id() {
        let event = |source: &str, id: &str| {
            let text = format!(
                r#"{{"specversion":"1.0","id":"{id}","source":"{source}","type":"t","data":{{"to":"a"}},"extension":1}}"#
            );
            structured(text.as_bytes()).unwrap()
        };
        assert_eq!(&event("/s", "1").data[..], br#"{"to":"a"}"#);
        assert_eq!(event("/s", "1"), event("/s", "1"));
        assert_ne!(event("/s", "1").name, event("/s", "2").name);
        assert_ne!(event("/s", "11").name, event("/s1", "1").name);
    }

    #[test]
    fn data_may_be_base64() {
        let text =
            r#"{"specversion":"1.0","id":"1","source":"s","type":"t","data_base64":"eyJ0byI6ImEifQ=="}"#;
        assert_eq!(&structured(text.as_bytes()).unwrap().data[..], br#"{"to":"a"}"#);
    }

    #[test]
    fn what_is_no_event_is_refused() {
        assert_eq!(
            code(r#"{"specversion":"0.3","id":"1","source":"s","type":"t","data":{}}"#),
            Code::InvalidValue
        );
        assert_eq!(
            code(r#"{"specversion":"1.0","id":"","source":"s","type":"t","data":{}}"#),
            Code::MissingField
        );
        assert_eq!(code(r#"{"specversion":"1.0","id":"1","source":"s","type":"t"}"#), Code::MissingField);
        let text = r#"{"specversion":"1.0","id":"1","source":"s","type":"t","datacontenttype":"text/xml","data":"<a/>"}"#;
        assert_eq!(code(text), Code::WrongContentType);
        let text = r#"{"specversion":"1.0","id":"1","source":"s","type":"t","data_base64":"?"}"#;
        assert_eq!(code(text), Code::InvalidValue);
    }
}
