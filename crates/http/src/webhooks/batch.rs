//! What is sent: events as JSON, gathered into requests.

use crate::provider::events::RoomEventView;
use crate::provider::notifications::NotificationView;
use bytes::Bytes;
use carillon_core::model::{DeadLetter, Event, NotificationId, UnixMs, Webhook};

/// Events of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    /// In the order of their numbers.
    pub(super) events: Vec<Prepared>,
    /// The number up to which everything is dealt with when they are taken: what follows them is of no interest.
    pub(super) through: u64,
    /// Events that were forgotten before they could be sent.
    pub(super) gap: Option<Gap>,
}

/// An event, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Prepared {
    /// Its number.
    pub(super) number: u64,
    /// The notification that it is about; none of a room.
    pub(super) of: Option<NotificationId>,
    /// When it happened.
    pub(super) ended: UnixMs,
    /// Its JSON.
    pub(super) body: Bytes,
}

/// The numbers between which events are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) after: u64,
    pub(super) next: u64,
}

/// An event as it stands in a request.
#[derive(serde::Serialize)]
struct EventView {
    id: u64,
    #[serde(flatten)]
    about: About,
}

/// What it tells of.
#[derive(serde::Serialize)]
#[serde(rename_all = "snake_case")]
enum About {
    Notification(Box<NotificationView>),
    Room(Box<RoomEventView>),
}

impl Prepared {
    /// The event of this number; with what was said in a room only where contents are told.
    pub(super) fn new(number: u64, event: &Event, contents: bool) -> Prepared {
        let about = match event {
            Event::Notification(trace) => About::Notification(Box::new(NotificationView::from(trace))),
            Event::Room(fact, said) => {
                About::Room(Box::new(RoomEventView::new(event.kind(), fact, said.as_ref(), contents)))
            }
        };
        let view = EventView { id: number, about };
        let body = serde_json::to_vec(&view).expect("an event is strings and numbers");
        let of = event.trace().map(|trace| trace.id);
        Prepared { number, of, ended: event.at(), body: body.into() }
    }

    /// One that was not taken before.
    pub(super) fn again(letter: DeadLetter) -> Prepared {
        Prepared { number: letter.event, of: None, ended: letter.failure.at, body: letter.body }
    }
}

impl Batch {
    /// A batch of the first of these events that one request has room for: one, if it is to be `alone`. `examined` is the number
    /// up to which events were looked at.
    pub(super) fn of(events: impl IntoIterator<Item = Prepared>, examined: u64, alone: bool) -> Batch {
        let (mut batch, mut bytes) = (Batch { through: examined, ..Batch::default() }, 0);
        for event in events {
            bytes += event.body.len();
            let is_full = batch.events.len() >= if alone { 1 } else { EVENTS_MAX.into() };
            if is_full || (bytes > BYTES_MAX && !batch.events.is_empty()) {
                batch.through = batch.events.last().map_or(examined, |last| last.number);
                break;
            }
            batch.events.push(event);
        }
        batch
    }

    /// Whether there is nothing to say.
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.gap.is_none()
    }

    /// Names the request, the same each time that these events are sent: a receiver may know it by that.
    pub(super) fn id(&self, webhook: &Webhook) -> String {
        let first = self.events.first().map_or(self.through, |event| event.number);
        let last = self.events.last().map_or(self.through, |event| event.number);
        format!("msg_{}_{}_{first}_{last}_{}", webhook.created.0, webhook.id, self.events.len())
    }

    /// The body of the request.
    pub(super) fn body(&self, webhook: &Webhook) -> Vec<u8> {
        let events: Vec<&[u8]> = self.events.iter().map(|event| &event.body[..]).collect();
        // Who asks for no rooms has been told this since before there were any.
        let kind = if webhook.wanted.types.has_rooms() { "events" } else { "notifications.ended" };
        let mut body = format!(r#"{{"type":"{kind}","webhook":{},"events":["#, webhook.id).into_bytes();
        body.extend(events.join(&b','));
        body.push(b']');
        if let Some(Gap { after, next }) = self.gap {
            body.extend(format!(r#","gap":{{"after":{after},"next":{next}}}"#).into_bytes());
        }
        body.push(b'}');
        body
    }
}

/// The body of a test.
pub(super) fn test_body(webhook: &Webhook) -> Vec<u8> {
    format!(r#"{{"type":"test","webhook":{},"events":[]}}"#, webhook.id).into_bytes()
}

/// Events of one request at most.
pub(super) const EVENTS_MAX: u16 = 256;
/// What they may take up together, in bytes; one may be larger.
const BYTES_MAX: usize = 256 * 1024;

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use carillon_core::model::{
        EventFilter, EventType, States, WebhookId, WebhookProgress, WebhookSecret, WebhookStatus,
    };

    fn event(number: u64, bytes: usize) -> Prepared {
        Prepared { number, of: None, ended: UnixMs(0), body: vec![b'1'; bytes].into() }
    }

    fn numbers(batch: &Batch) -> Vec<u64> {
        batch.events.iter().map(|event| event.number).collect()
    }

    /// A webhook that nothing has happened to.
    pub(in super::super) fn webhook() -> Webhook {
        Webhook {
            id: WebhookId(3),
            domain: None,
            url: "https://a.example/".into(),
            wanted: States::ENDS.into(),
            contents: false,
            secret: WebhookSecret(Box::new([])),
            status: WebhookStatus::Enabled,
            created: UnixMs(9),
            progress: WebhookProgress::default(),
            dead_letters: carillon_core::model::DeadLetters::default(),
        }
    }

    #[test]
    fn requests_are_bounded_in_events_and_bytes() {
        let batch = Batch::of([event(4, 1), event(6, 1)], 9, false);
        assert_eq!((numbers(&batch), batch.through), (vec![4, 6], 9));
        let batch = Batch::of([event(4, 1), event(6, 1)], 9, true);
        assert_eq!((numbers(&batch), batch.through), (vec![4], 4));
        assert_eq!(Batch::of([event(4, 1)], 9, true).through, 9);
        let batch = Batch::of((1..=300).map(|number| event(number, 1)), 900, false);
        assert_eq!((batch.events.len(), batch.through), (256, 256));
        let batch = Batch::of([event(1, BYTES_MAX), event(2, 1)], 9, false);
        assert_eq!((numbers(&batch), batch.through), (vec![1], 1));
        let batch = Batch::of([event(1, 2 * BYTES_MAX), event(2, 1)], 9, false);
        assert_eq!(numbers(&batch), [1], "one of any size");
        let none = Batch::of([], 9, false);
        assert!(none.is_empty() && none.through == 9);
    }

    #[test]
    fn a_webhook_that_is_told_of_rooms_is_told_so() {
        let batch = Batch::of([event(4, 1)], 4, false);
        let wanted = EventFilter { types: EventType::RoomMessage.into(), states: States::NONE };
        let body = String::from_utf8(batch.body(&Webhook { wanted, ..webhook() })).expect("text");
        assert_eq!(body, r#"{"type":"events","webhook":3,"events":[1]}"#);
    }

    #[test]
    fn a_body_is_json_with_what_is_missing() {
        let mut batch = Batch::of([event(4, 1), event(6, 2)], 9, false);
        assert_eq!(batch.id(&webhook()), "msg_9_3_4_6_2");
        let body = |batch: &Batch| String::from_utf8(batch.body(&webhook())).expect("text");
        assert_eq!(body(&batch), r#"{"type":"notifications.ended","webhook":3,"events":[1,11]}"#);
        batch.gap = Some(Gap { after: 1, next: 4 });
        let expected =
            r#"{"type":"notifications.ended","webhook":3,"events":[1,11],"gap":{"after":1,"next":4}}"#;
        assert_eq!(body(&batch), expected);
    }
}
