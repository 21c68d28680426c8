//! A client of the light protocol.

use super::Got;

/// A client of the light protocol, on one connection.
#[derive(Clone, Debug, Default)]
pub struct LightClient {
    /// What it was given.
    pub got: Vec<Got>,
    /// The frames that were something else.
    pub told: Vec<String>,
}

impl LightClient {
    /// What it says first.
    pub const OPENING: &str = "<regular-socket/>\0";

    /// Wants to follow a topic.
    pub fn subscribe(topic: &str) -> String {
        format!("{{\"action\":\"subscribe\",\"data\":\"{topic}\"}}\0")
    }

    /// Wants to follow it no longer.
    pub fn unsubscribe(topic: &str) -> String {
        format!("{{\"action\":\"unsubscribe\",\"data\":\"{topic}\"}}\0")
    }

    /// Hears a frame.
    pub fn hears(&mut self, frame: &[u8]) {
        let text = String::from_utf8_lossy(frame);
        let text = text.trim_end_matches('\u{1}');
        match text.strip_prefix("PUBLISH\0").and_then(item) {
            Some(item) => self.got.push(item),
            None => self.told.push(text.to_owned()),
        }
    }
}

fn item(json: &str) -> Option<Got> {
    let value: serde_json::Value = serde_json::from_str(json).ok()?;
    let field = |name: &str| value.get(name)?.as_str().map(str::to_owned);
    let topic = field("topic")?;
    Some(match (&*field("event")?, field("message_id")) {
        (event @ ("publish" | "last"), Some(id)) => Got::Item { topic, id, is_last: event == "last" },
        _ => Got::Notice { topic },
    })
}
