//! Dead letters: messages of a stream of their own, with headers that say why they are there and which message they were.

use super::ensure::Ensured;
use super::{Taken, answered, away, millis};
use async_nats::HeaderMap;
use async_nats::jetstream::Context;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use bytes::Bytes;
use carillon_core::model::UnixMs;
use carillon_core::ports::queue::DeadMessage;
use carillon_core::ports::{QueueFault, Reason};

/// Headers of a dead letter, and of a message that was one: its own name, and when it was published first.
pub(super) const ID: &str = "carillon-message-id";
pub(super) const SENT: &str = "carillon-message-sent";
/// Headers of a dead letter alone.
const SUBJECT: &str = "carillon-subject";
const REASON: &str = "carillon-reason";
const DETAIL: &str = "carillon-detail";
const ATTEMPTS: &str = "carillon-attempts";
const CUT: &str = "carillon-cut";
/// By this header a stream knows for some minutes that it has a message.
const DEDUPLICATED: &str = "Nats-Msg-Id";
/// How long a detail may be, in bytes; and what all headers of the server and of ours take beside it.
const DETAIL_MAX: usize = 1024;
const HEADERS_MAX: usize = 2048;

/// Has a message kept as a dead letter: it is there when this is answered.
pub(super) async fn publish(
    context: &Context,
    subject: &str,
    taken: &Taken,
    reason: &Reason,
    payload_max: usize,
) -> Result<(), QueueFault> {
    let message = &taken.message;
    let mut headers = HeaderMap::new();
    let mut left = payload_max.saturating_sub(DETAIL_MAX + HEADERS_MAX).saturating_sub(message.payload.len());
    for (name, values) in message.headers.iter().flat_map(HeaderMap::iter) {
        let text: &str = name.as_ref();
        for value in values.iter().filter(|_| is_passed_on(text)) {
            let bytes = text.len() + value.as_str().len() + 4;
            if bytes <= left {
                left -= bytes;
                headers.append(name.clone(), value.clone());
            }
        }
    }
    let room = payload_max.saturating_sub(DETAIL_MAX + HEADERS_MAX);
    let payload = message.payload.slice(..message.payload.len().min(room));
    if payload.len() < message.payload.len() {
        headers.insert(CUT, message.payload.len().to_string());
    }
    headers.insert(ID, &*taken.id);
    headers.insert(SENT, taken.sent.0.to_string());
    headers.insert(SUBJECT, message.subject.as_str());
    headers.insert(REASON, &*one_line(&reason.code));
    headers.insert(DETAIL, &*one_line(&reason.detail));
    headers.insert(ATTEMPTS, taken.attempt.to_string());
    // Not by its own name, which it has once more when it has become a message again.
    let number = message.info().map_err(away)?.stream_sequence;
    headers.insert(DEDUPLICATED, format!("dead {number} {}", taken.id));
    put(context, subject, headers, payload).await
}

async fn put(context: &Context, subject: &str, headers: HeaderMap, payload: Bytes) -> Result<(), QueueFault> {
    let kept = answered(context.publish_with_headers(subject.to_owned(), headers, payload)).await?;
    answered(async { kept.await }).await.map(drop)
}

/// The oldest dead letters.
pub(super) async fn list(ensured: &Ensured, max: usize) -> Result<Vec<DeadMessage>, QueueFault> {
    let mut letters = Vec::new();
    let mut from = 1;
    while letters.len() < max
        && let Some(letter) = first(ensured, from).await?
    {
        from = letter.sequence + 1;
        letters.push(shown(letter));
    }
    Ok(letters)
}

/// Publishes the oldest dead letters where they came from, and forgets them as such.
pub(super) async fn redrive(ensured: &Ensured, context: &Context, max: usize) -> Result<usize, QueueFault> {
    let made = ensured.dead.cached_info().created.unix_timestamp_nanos();
    let mut redriven = 0;
    let mut from = 1;
    while redriven < max
        && let Some(letter) = first(ensured, from).await?
    {
        from = letter.sequence + 1;
        let Some(subject) = text(&letter, SUBJECT) else { continue };
        let mut headers = HeaderMap::new();
        let of_letter = [SUBJECT, REASON, DETAIL, ATTEMPTS, CUT];
        for (name, values) in letter.headers.iter() {
            let text: &str = name.as_ref();
            if is_passed_on(text) && !of_letter.contains(&text) {
                values.iter().for_each(|value| headers.append(name.clone(), value.clone()));
            }
        }
        // Should this end between the two: published once more, it is known to the stream.
        headers.insert(DEDUPLICATED, format!("redriven {made} {}", letter.sequence));
        let (subject, sequence) = (subject.to_owned(), letter.sequence);
        put(context, &subject, headers, letter.payload).await?;
        answered(ensured.dead.delete_message(sequence)).await?;
        redriven += 1;
    }
    Ok(redriven)
}

/// The first dead letter from this number on.
async fn first(ensured: &Ensured, from: u64) -> Result<Option<StreamMessage>, QueueFault> {
    let asked = ensured.dead.get_first_raw_message_by_subject(&*ensured.dead_subject, from);
    match tokio::time::timeout(super::ANSWER_MAX, asked).await {
        Ok(Ok(letter)) => Ok(Some(letter)),
        Ok(Err(error)) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
        Ok(Err(error)) => Err(away(error)),
        Err(_) => Err(QueueFault::Away("the server does not answer".into())),
    }
}

fn shown(letter: StreamMessage) -> DeadMessage {
    let reason = text(&letter, REASON)
        .map(|code| Reason { code: code.into(), detail: text(&letter, DETAIL).unwrap_or_default().into() });
    DeadMessage {
        letter: letter.sequence.to_string().into(),
        id: text(&letter, ID).unwrap_or_default().into(),
        sent: text(&letter, SENT).and_then(|sent| sent.parse().ok()).map(UnixMs),
        died: millis(letter.time.unix_timestamp_nanos()),
        reason,
        body: letter.payload,
    }
}

fn text<'a>(letter: &'a StreamMessage, name: &str) -> Option<&'a str> {
    letter.headers.get(name).map(async_nats::HeaderValue::as_str)
}

/// Whether a header is the message's own, and not an instruction to a stream.
fn is_passed_on(name: &str) -> bool {
    !name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("nats-"))
}

/// A text as a header can have it.
fn one_line(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut end = clean.len().min(DETAIL_MAX);
    while !clean.is_char_boundary(end) {
        end -= 1;
    }
    clean[..end].trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_fit_into_a_header() {
        assert_eq!(one_line("no\r\nNats-Msg-Id: x "), "no  Nats-Msg-Id: x");
        assert_eq!(one_line(&"é".repeat(DETAIL_MAX)).len(), DETAIL_MAX);
    }

    #[test]
    fn instructions_to_a_stream_are_not_passed_on() {
        assert!(!is_passed_on("Nats-Msg-Id") && !is_passed_on("nats-ttl"));
        assert!(is_passed_on("ce-id") && is_passed_on("nats"));
    }
}
