//! What a module is told of an event: values, and nothing of what people wrote.

use carillon_core::event::{acknowledger_word, audience_word, end_word, priority_word};
use carillon_core::model::{Event, RoomAction, RoomAffiliation, RoomFact, Trace};
use carillon_wire::jid::Jid;
use std::borrow::Cow;

/// A field of an event, by its number in the ABI; none where it has none.
pub(crate) fn of_event(event: &Event, number: i32) -> Option<Cow<'_, [u8]>> {
    match (number, event) {
        (0, event) => text(event.kind().as_str()),
        (_, Event::Notification(trace)) => of_trace(trace, number),
        (_, Event::Room(fact, _)) => of_fact(fact, number),
    }
}

fn of_trace(trace: &Trace, number: i32) -> Option<Cow<'_, [u8]>> {
    match number {
        2 => text(trace.to.as_str()),
        3 => owned(trace.id.to_string()),
        6 => text(audience_word(trace.audience)),
        7 => text(priority_word(trace.priority)),
        8 => text(trace.collapse_key.as_deref()?),
        20 => text(end_word(trace.state, Some(trace.reason?))),
        23 => text(end_word(trace.state, None)),
        24 => text(acknowledger_word(trace.acknowledged_by?)),
        _ => None,
    }
}

fn of_fact(fact: &RoomFact, number: i32) -> Option<Cow<'_, [u8]>> {
    match (number, &fact.action) {
        (1, _) => text(fact.by.as_ref()?.as_str()),
        (2, _) => text(fact.room.as_str()),
        (3, RoomAction::Message(message)) => owned(message.id.0.to_string()),
        (3, RoomAction::Moderated(id)) => owned(id.0.to_string()),
        (25, RoomAction::Members(changes)) => {
            let lines = changes.iter().map(|change| {
                format!("{} {} {}\n", change.account, affiliation(change.was), affiliation(change.is))
            });
            owned(lines.collect())
        }
        (26, RoomAction::Message(message)) => text(message.from.as_ref().map(Jid::as_str)?),
        _ => None,
    }
}

fn text(text: &str) -> Option<Cow<'_, [u8]>> {
    Some(Cow::Borrowed(text.as_bytes()))
}

fn owned(text: String) -> Option<Cow<'static, [u8]>> {
    Some(Cow::Owned(text.into_bytes()))
}

fn affiliation(affiliation: RoomAffiliation) -> &'static str {
    match affiliation {
        RoomAffiliation::Outcast => "outcast",
        RoomAffiliation::None => "none",
        RoomAffiliation::Member => "member",
        RoomAffiliation::Admin => "admin",
        RoomAffiliation::Owner => "owner",
    }
}
