//! What a module made of what it decided about. Its output is believed no more than what a client sends.

use crate::model;
use crate::ports::modules::{Replacement, Subject};
use bytes::Bytes;
use carillon_wire::ns;
use carillon_wire::stanza::{Payload, Stanza};
use carillon_wire::xml::{Element, Limits};
use std::sync::Arc;

/// The subject with other content, or why that cannot be.
pub(super) fn replaced(subject: &Subject, by: Replacement) -> Result<Subject, &'static str> {
    match (subject, by) {
        (Subject::Message(message), Replacement::Body(text)) => {
            let mut message = message.clone();
            set_body(&mut message, &text);
            Ok(Subject::Message(message))
        }
        (Subject::Message(message), Replacement::Payload(bytes)) => {
            let payload = parsed(bytes)?;
            Ok(Subject::Message(Stanza { payload, ..message.clone() }))
        }
        (Subject::Notification(notification), Replacement::Payload(bytes)) => {
            let payload = notified(&notification.payload, bytes)?;
            let notification = model::Notification { payload, ..(**notification).clone() };
            Ok(Subject::Notification(Arc::new(notification)))
        }
        (Subject::Push(text), Replacement::Push { title, body, data }) => {
            let data = data.map(told).transpose()?;
            let mut text = text.clone();
            text.title = title.or(text.title.take());
            text.body = body.or(text.body.take());
            text.data = data.or(text.data.take());
            Ok(Subject::Push(text))
        }
        (Subject::Notification(_), _) => Err("a notification has a payload alone"),
        (Subject::Message(_), _) => Err("a message has a body or a payload"),
        (Subject::Push(_), _) => Err("a push has a title, a body and a payload"),
        (Subject::Match(_) | Subject::Client(_) | Subject::Event(_), _) => {
            Err("what it is about is not replaced")
        }
    }
}

/// The content of a stanza, such as a client could have sent it.
fn parsed(bytes: Bytes) -> Result<Payload, &'static str> {
    let payload = Payload::parse_within(bytes, &Limits::default());
    payload
        .map_err(|_| "the payload is not XML that a client could send: not well-formed, or too deep or large")
}

/// What an app is told beside.
fn told(data: Box<str>) -> Result<Box<str>, &'static str> {
    let read: Result<serde::de::IgnoredAny, _> = serde_json::from_str(&data);
    read.map(|_| data).map_err(|_| "what an app is told beside is JSON")
}

/// A payload must never be taken for a part of the stanza or the stream that carries it.
fn is_foreign(namespace: &str) -> bool {
    !matches!(namespace, "" | ns::CLIENT | ns::SERVER | ns::STREAMS)
}

/// A body in place of those that the message has, in whatever languages. What XML forbids in it is replaced where it is written.
fn set_body(message: &mut Stanza, text: &str) {
    message.payload.remove("body", ns::CLIENT);
    message.payload.push_element(&Element::new("body", ns::CLIENT).with_text(text));
}

/// The payload of a notification, of the kind that it had.
fn notified(before: &model::Payload, bytes: Bytes) -> Result<model::Payload, &'static str> {
    match before {
        model::Payload::Json(_) => {
            let text = std::str::from_utf8(&bytes).map_err(|_| "the payload is not UTF-8")?;
            let read: Result<serde::de::IgnoredAny, _> = serde_json::from_str(text);
            read.map_err(|_| "the payload of a notification is not JSON as it was")?;
            Ok(model::Payload::Json(text.into()))
        }
        model::Payload::Xml(_) => element(bytes).map(model::Payload::Xml),
        model::Payload::Request(request) => {
            let request = model::PushRequest { element: element(bytes)?, ..(**request).clone() };
            Ok(model::Payload::Request(request.into()))
        }
    }
}

/// One element in a namespace of its own.
fn element(bytes: Bytes) -> Result<Bytes, &'static str> {
    let payload = parsed(bytes.clone())?;
    let mut children = payload.children();
    match (children.next(), children.next()) {
        (Some(child), None) if child.bytes().len() == bytes.len() && is_foreign(child.ns()) => Ok(bytes),
        _ => Err("the payload of a notification is not one element in a namespace of its own"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_wire::stanza::MessageType;

    fn message(by: &str) -> Result<String, &'static str> {
        let body = Element::new("body", ns::CLIENT).with_text("before");
        let subject = Subject::Message(Stanza::message(MessageType::Chat).with_payload(body));
        match replaced(&subject, Replacement::Payload(Bytes::copy_from_slice(by.as_bytes())))? {
            Subject::Message(message) => Ok(String::from_utf8_lossy(message.payload.bytes()).into_owned()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_message_holds_nothing_that_a_client_could_not_send() {
        assert_eq!(message("<a xmlns='urn:a'/>").as_deref(), Ok("<a xmlns='urn:a'/>"));
        let nested = format!("{}{}", "<a>".repeat(70), "</a>".repeat(70));
        let many = "<a/>".repeat(300);
        for wrong in ["</p><p>", "<a>", "<b:a/>", "<?a?>", "<!-- a -->", "<!DOCTYPE a>", &nested, &many] {
            assert!(message(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_xml_of_a_notification_is_one_element_in_a_namespace_of_its_own() {
        let payload =
            |by: &str| notified(&model::Payload::Xml(Bytes::new()), Bytes::copy_from_slice(by.as_bytes()));
        assert!(payload("<a xmlns='urn:a'/>").is_ok());
        for namespace in ["", ns::CLIENT, ns::SERVER, ns::STREAMS] {
            assert!(payload(&format!("<a xmlns='{namespace}'/>")).is_err(), "{namespace}");
        }
        for wrong in ["", "a", "<a/>", "<a xmlns='urn:a'/>x", "<a xmlns='urn:a'/><a xmlns='urn:a'/>"] {
            assert!(payload(wrong).is_err(), "{wrong}");
        }
    }
}
