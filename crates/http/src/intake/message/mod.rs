//! What a message of a queue asks for: its parts, each a notification or an item, and by what each is known.

use super::cloudevents;
use crate::extract::parse;
use crate::problem::{Code, Problem};
use crate::provider::idempotency::{Identity, Named, body_hash};
use crate::provider::items::ItemBody;
use crate::provider::notifications::NotificationBody;
use axum::http::Uri;
use bytes::Bytes;
use carillon_core::model::UnixMs;
use carillon_core::ports::Pulled;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A part of a message: what is one request over HTTP.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) what: What,
    pub(super) identity: Identity,
}

/// What a part asks for.
#[derive(Debug)]
pub(super) enum What {
    /// The body of `POST /v1/notifications`.
    Notification(NotificationBody),
    /// The body of `POST /v1/topics/{topic}/items`.
    Item { topic: String, body: ItemBody },
}

/// Bounds, and what is needed to know a message again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules<'a> {
    /// The queue.
    pub(super) queue: &'a str,
    /// How long a notification is known again without the store being asked to remember the message, in milliseconds.
    pub(super) known_ms: u64,
    /// The largest body of a message.
    pub(super) bytes_max: usize,
    /// The most parts of a message.
    pub(super) parts_max: usize,
    pub(super) now: UnixMs,
}

/// The text of a part, and the name that its sender gave it.
struct Text {
    body: Bytes,
    event: Option<Box<str>>,
}

/// Only these members are looked at.
#[derive(serde::Deserialize)]
struct Peek {
    #[serde(default)]
    specversion: Option<IgnoredAny>,
    #[serde(default)]
    topic: Option<IgnoredAny>,
}

/// Reads a message.
pub(super) fn read(pulled: &Pulled, rules: Rules<'_>) -> Result<Vec<Part>, Problem> {
    if pulled.body.len() > rules.bytes_max {
        let detail = format!("a message may have at most {} bytes", rules.bytes_max);
        return Err(Problem::new(Code::TooLarge, detail));
    }
    let texts = texts(pulled)?;
    if texts.is_empty() || texts.len() > rules.parts_max {
        let detail =
            format!("a message has {} lines or events; it may have 1 to {}", texts.len(), rules.parts_max);
        return Err(Problem::new(Code::InvalidValue, detail));
    }
    let own = pulled.header("idempotency-key").map(check_key).transpose()?;
    let is_one = texts.len() == 1;
    let part = |(number, text): (usize, Text)| {
        let suffix = if is_one { String::new() } else { format!("#{}", number + 1) };
        part(pulled, &text, own.map(|own| format!("{own}{suffix}")), &suffix, rules)
            .map_err(|problem| if is_one { problem } else { numbered(&problem, number + 1) })
    };
    texts.into_iter().enumerate().map(part).collect()
}

/// The same problem, of a part of a message.
pub(super) fn numbered(problem: &Problem, number: usize) -> Problem {
    let of_part = Problem::new(problem.code(), format!("part {number}: {}", problem.detail()));
    match problem.pointer() {
        Some(pointer) => of_part.at(pointer),
        None => of_part,
    }
}

fn check_key(key: &str) -> Result<&str, Problem> {
    if (1..=255).contains(&key.len()) && key.bytes().all(|c| c.is_ascii_graphic()) {
        return Ok(key);
    }
    let detail = "`Idempotency-Key` has 1 to 255 printable ASCII characters, no spaces";
    Err(Problem::new(Code::InvalidHeader, detail))
}

/// The bodies that a message has: one, a line each, or the data of events.
fn texts(pulled: &Pulled) -> Result<Vec<Text>, Problem> {
    if cloudevents::is_binary(pulled) {
        return cloudevents::binary(pulled).map(|event| vec![Text::of(event)]);
    }
    let content_type = pulled.header("content-type").unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "application/cloudevents+json" => {
            cloudevents::structured(&pulled.body).map(|event| vec![Text::of(event)])
        }
        "application/cloudevents-batch+json" => {
            let events: Vec<Box<RawValue>> = serde_json::from_slice(&pulled.body).map_err(|e| {
                Problem::new(Code::NotJson, format!("a batch of events is a JSON array: {e}"))
            })?;
            let event = |event: Box<RawValue>| cloudevents::structured(event.get().as_bytes()).map(Text::of);
            events.into_iter().map(event).collect()
        }
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" => {
            let lines = pulled.body.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
            lines.map(|line| Text::read(pulled.body.slice_ref(line))).collect()
        }
        "" | "application/json" => Text::read(pulled.body.clone()).map(|text| vec![text]),
        other => {
            let detail = format!("a message is JSON, NDJSON or CloudEvents, and not {other}");
            Err(Problem::new(Code::WrongContentType, detail))
        }
    }
}

impl Text {
    fn of(event: cloudevents::Event) -> Text {
        Text { body: event.data, event: Some(event.name) }
    }

    /// A body, or an event in structured mode that does not say so.
    fn read(body: Bytes) -> Result<Text, Problem> {
        match serde_json::from_slice::<Peek>(&body) {
            Ok(Peek { specversion: Some(_), .. }) => cloudevents::structured(&body).map(Text::of),
            _ => Ok(Text { body, event: None }),
        }
    }
}

fn part(
    pulled: &Pulled,
    text: &Text,
    own: Option<String>,
    suffix: &str,
    rules: Rules<'_>,
) -> Result<Part, Problem> {
    let (what, uri) = what(&text.body)?;
    let name = format!("{}/{}{suffix}", rules.queue, pulled.id);
    let hash = body_hash(&uri, &text.body);
    let age_ms = rules.now.0.saturating_sub(pulled.sent.0);
    let identity = match (own, &text.event) {
        // A key that the sender gave counts as it does over HTTP.
        (Some(own), _) => Identity { reserve: Some((own.into(), hash)), ..Identity::default() },
        (None, event) => {
            let message = Named { name: name.into(), sent: pulled.sent.min(rules.now) };
            let reserve = match event {
                Some(event) => Some((event.clone(), hash)),
                None if what.is_known_again(age_ms, rules.known_ms) => None,
                None => Some((message.reservation(), hash)),
            };
            Identity { reserve, message: Some(message), given: None }
        }
    };
    Ok(Part { what, identity })
}

/// What a body asks for, and where it would be sent over HTTP.
fn what(body: &[u8]) -> Result<(What, Uri), Problem> {
    match serde_json::from_slice::<Peek>(body) {
        Ok(Peek { topic: Some(_), .. }) => item(body),
        // What is wrong with anything else is said by its parser.
        _ => Ok((What::Notification(parse(body)?), Uri::from_static("/v1/notifications"))),
    }
}

/// An item: the body that the route takes, with the topic as one more member.
fn item(body: &[u8]) -> Result<(What, Uri), Problem> {
    let not_json = |e: serde_json::Error| Problem::new(Code::NotJson, e.to_string());
    let mut members: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(body).map_err(not_json)?;
    let topic = members.remove("topic").map(|topic| serde_json::from_str::<String>(topic.get()));
    let Some(Ok(topic)) = topic else {
        return Err(Problem::new(Code::WrongType, "`topic` is the name of a topic").at("/topic"));
    };
    let rest = serde_json::to_vec(&members).map_err(not_json)?;
    let uri = Uri::builder().path_and_query("/v1/topics").build().unwrap_or_default();
    Ok((What::Item { topic, body: parse(&rest)? }, uri))
}

impl What {
    /// Whether the store knows it again by the name of its message alone.
    fn is_known_again(&self, age_ms: u64, known_ms: u64) -> bool {
        match self {
            What::Notification(body) => body.is_kept() && age_ms < known_ms,
            What::Item { .. } => age_ms < ITEM_KNOWN_MS,
        }
    }
}

/// How long an item is known again by the operation that it is: within the day that the operation is named for, less what a redelivery may
/// take.
const ITEM_KNOWN_MS: u64 = 20 * 60 * 60 * 1000;

#[cfg(test)]
mod tests;
