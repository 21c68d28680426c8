//! What a module is told of an event: values, and nothing of what people wrote.

use carillon_core::model::{
    AcknowledgedBy, Audience, DropReason, Event, NotificationState, Priority, RoomAction, RoomAffiliation,
    RoomFact, Trace,
};
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
        6 => text(match trace.audience {
            Audience::Active => "active",
            Audience::Connected => "connected",
            Audience::Always => "always",
        }),
        7 => text(match trace.priority {
            Priority::Low => "low",
            Priority::Normal => "normal",
            Priority::High => "high",
        }),
        8 => text(trace.collapse_key.as_deref()?),
        20 => text(reason(trace.reason?)),
        23 => text(state(trace.state)),
        24 => text(match trace.acknowledged_by? {
            AcknowledgedBy::StreamManagement => "stream-management",
            AcknowledgedBy::Receipt => "receipt",
            AcknowledgedBy::Socket => "socket",
            AcknowledgedBy::Link => "link",
        }),
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

fn state(state: NotificationState) -> &'static str {
    match state {
        NotificationState::Scheduled => "scheduled",
        NotificationState::Accepted => "accepted",
        NotificationState::Stored => "stored",
        NotificationState::Sent => "sent",
        NotificationState::Acknowledged => "acknowledged",
        NotificationState::Expired => "expired",
        NotificationState::Replaced => "replaced",
        NotificationState::Cancelled => "cancelled",
        NotificationState::Dropped => "dropped",
        NotificationState::Opened => "opened",
    }
}

fn reason(reason: DropReason) -> &'static str {
    match reason {
        DropReason::UnknownDevice => "unknown-device",
        DropReason::NotConnected => "not-connected",
        DropReason::NotActive => "not-active",
        DropReason::ConnectionLost => "connection-lost",
        DropReason::QueueFull => "queue-full",
        DropReason::DeviceDeleted => "device-deleted",
        DropReason::Module => "module",
    }
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
