//! What a stanza is to a person: a notification, an item of a topic, a chat message.

use super::JSON;
use carillon_core::model::UnixMs;
use carillon_load::client::stanzas;
use carillon_wire::ns;
use carillon_wire::stanza::{Kind, PresenceType, Stanza};
use carillon_wire::xml::Element;
use serde::Serialize;
use serde_json::value::RawValue;
use std::time::{SystemTime, UNIX_EPOCH};

/// What came, as a line of NDJSON has it.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Incoming {
    /// A notification (docs/book/protocol.md).
    Notification {
        id: String,
        priority: String,
        sent: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        expires: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        collapse_key: Option<String>,
        /// From `sent` to now, by the clock of this machine; none when that clock is behind the server's.
        latency_ms: Option<u64>,
        payload: Carried,
    },
    /// An item of a topic.
    Item {
        topic: String,
        id: String,
        /// When it was published, if it is the last item of before.
        #[serde(skip_serializing_if = "Option::is_none")]
        published: Option<String>,
        payload: Carried,
    },
    /// An item that was taken back.
    Retracted { topic: String, id: String },
    /// All items of a topic were taken back.
    Purged { topic: String },
    /// The topic is gone.
    Deleted { topic: String },
    /// A message that somebody wrote.
    Message {
        from: String,
        body: String,
        /// When it was written, if it waited.
        #[serde(skip_serializing_if = "Option::is_none")]
        written: Option<String>,
    },
    /// Somebody came or went.
    Presence { from: String, available: bool },
    /// Anything else, as it came.
    Stanza { xml: String },
}

/// What a notification or an item carries.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Carried {
    /// JSON, as its sender wrote it.
    Json(Box<RawValue>),
    /// Something else: XML, or text in the place of JSON.
    Text(String),
}

impl Incoming {
    /// Classifies a stanza.
    pub(super) fn of(stanza: &Stanza) -> Incoming {
        let known = match stanza.kind {
            Kind::Message(_) => notification(stanza).or_else(|| event(stanza)).or_else(|| message(stanza)),
            Kind::Presence(PresenceType::Available | PresenceType::Unavailable) => presence(stanza),
            _ => None,
        };
        known.unwrap_or_else(|| {
            let mut xml = Vec::new();
            stanza.write(&mut xml, carillon_wire::stanza::Framing::Tcp);
            Incoming::Stanza { xml: String::from_utf8_lossy(&xml).into_owned() }
        })
    }
}

impl Carried {
    fn of(element: Option<&Element>) -> Carried {
        let Some(element) = element else { return Carried::Text(String::new()) };
        if element.is(JSON.0, JSON.1) {
            let text = element.text();
            return RawValue::from_string(text.clone()).map_or(Carried::Text(text), Carried::Json);
        }
        let mut xml = Vec::new();
        element.write(&mut xml, "");
        Carried::Text(String::from_utf8_lossy(&xml).into_owned())
    }

    /// As text on a line.
    pub(super) fn text(&self) -> &str {
        match self {
            Carried::Json(json) => json.get(),
            Carried::Text(text) => text,
        }
    }
}

fn notification(stanza: &Stanza) -> Option<Incoming> {
    let about = stanza.payload.find("notification", ns::NOTIFICATION)?.element();
    let attribute = |name: &str| about.attr(name).map(str::to_owned);
    // The payload is the other child, next to what the protocol itself adds.
    let own = |child: &Element| {
        child.is("notification", ns::NOTIFICATION) || matches!(child.ns(), ns::RECEIPTS | ns::STANZA_ID)
    };
    let carried = stanza.payload.children().map(|child| child.element()).find(|child| !own(child));
    let sent = attribute("sent").unwrap_or_default();
    Some(Incoming::Notification {
        id: stanza.id.as_deref().unwrap_or_default().to_owned(),
        priority: attribute("priority").unwrap_or_default(),
        latency_ms: latency_ms(&sent),
        sent,
        expires: attribute("expires"),
        collapse_key: attribute("collapse-key"),
        payload: Carried::of(carried.as_ref()),
    })
}

fn event(stanza: &Stanza) -> Option<Incoming> {
    let event = stanza.payload.find("event", ns::PUBSUB_EVENT)?.element();
    let change = event.children().next()?;
    let topic = change.attr("node")?.to_owned();
    let id = |child: &Element| child.attr("id").unwrap_or_default().to_owned();
    match change.name() {
        "purge" => Some(Incoming::Purged { topic }),
        "delete" => Some(Incoming::Deleted { topic }),
        "items" => {
            let child = change.children().next()?;
            match child.name() {
                "retract" => Some(Incoming::Retracted { topic, id: id(child) }),
                "item" => Some(Incoming::Item {
                    topic,
                    id: id(child),
                    published: delay(stanza),
                    payload: Carried::of(child.children().next()),
                }),
                _ => None,
            }
        }
        _ => None,
    }
}

fn message(stanza: &Stanza) -> Option<Incoming> {
    let body = stanzas::body(stanza)?;
    Some(Incoming::Message { from: from(stanza), body, written: delay(stanza) })
}

fn presence(stanza: &Stanza) -> Option<Incoming> {
    let available = stanza.kind == Kind::Presence(PresenceType::Available);
    Some(Incoming::Presence { from: from(stanza), available })
}

fn from(stanza: &Stanza) -> String {
    stanza.from.as_ref().map(ToString::to_string).unwrap_or_default()
}

/// When a stanza that waited was sent (XEP-0203).
fn delay(stanza: &Stanza) -> Option<String> {
    stanza.payload.find("delay", ns::DELAY)?.element().attr("stamp").map(str::to_owned)
}

fn latency_ms(sent: &str) -> Option<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_millis();
    u64::try_from(now).ok()?.checked_sub(UnixMs::from_rfc3339(sent)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_wire::stanza::{Context, Framing, Unit, read};
    use carillon_wire::xml::Limits;
    use serde_json::{Value, json};

    /// What the line of NDJSON says of a stanza.
    fn line(xml: &str) -> Value {
        let context = Context::new(Framing::Tcp, Limits::default());
        let Unit::Stanza(stanza) = read(xml.as_bytes(), &context).expect("well-formed") else {
            panic!("a stanza")
        };
        let text = serde_json::to_string(&Incoming::of(&stanza)).expect("plain data");
        serde_json::from_str(&text).expect("JSON")
    }

    #[test]
    fn notifications_have_their_latency_and_their_payload() {
        let sent = "2026-11-20T09:30:00.000Z";
        let mut line = line(&format!(
            "<message from='push.localhost' id='N' type='headline'>\
             <notification xmlns='urn:carillon:notification:0' priority='high' sent='{sent}' collapse-key='k'/>\
             <json xmlns='urn:xmpp:json:0'>{{\"b\":1, \"a\":2}}</json>\
             <request xmlns='urn:xmpp:receipts'/></message>"
        ));
        assert!(line["latency_ms"].take().as_u64().is_some());
        assert_eq!(
            line,
            json!({
                "event": "notification", "id": "N", "priority": "high", "sent": sent, "collapse_key": "k",
                "latency_ms": null, "payload": {"b": 1, "a": 2},
            })
        );
        let future = Incoming::Notification {
            id: String::new(),
            priority: String::new(),
            sent: String::new(),
            expires: None,
            collapse_key: None,
            latency_ms: latency_ms("2999-01-01T00:00:00.000Z"),
            payload: Carried::Text(String::new()),
        };
        assert!(matches!(future, Incoming::Notification { latency_ms: None, .. }));
    }

    #[test]
    fn events_of_topics_are_told_apart() {
        let event = |change: &str| {
            line(&format!(
                "<message from='pubsub.localhost'><event xmlns='http://jabber.org/protocol/pubsub#event'>{change}\
                 </event><delay xmlns='urn:xmpp:delay' stamp='T'/></message>"
            ))
        };
        assert_eq!(
            event("<items node='t'><item id='i'><json xmlns='urn:xmpp:json:0'>[1]</json></item></items>"),
            json!({"event": "item", "topic": "t", "id": "i", "published": "T", "payload": [1]})
        );
        assert_eq!(
            event("<items node='t'><item id='i'><a xmlns='x'>1</a></item></items>"),
            json!({"event": "item", "topic": "t", "id": "i", "published": "T", "payload": "<a xmlns='x'>1</a>"})
        );
        assert_eq!(
            event("<items node='t'><retract id='i'/></items>"),
            json!({"event": "retracted", "topic": "t", "id": "i"})
        );
        assert_eq!(event("<purge node='t'/>"), json!({"event": "purged", "topic": "t"}));
        assert_eq!(event("<delete node='t'/>"), json!({"event": "deleted", "topic": "t"}));
    }

    #[test]
    fn people_and_what_is_neither() {
        assert_eq!(
            line("<message from='bob@localhost/x' type='chat'><body>hi</body></message>"),
            json!({"event": "message", "from": "bob@localhost/x", "body": "hi"})
        );
        assert_eq!(
            line("<presence from='bob@localhost/x' type='unavailable'/>"),
            json!({"event": "presence", "from": "bob@localhost/x", "available": false})
        );
        assert_eq!(line("<message id='1'/>")["event"], "stanza");
    }
}
