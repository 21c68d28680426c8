//! What events tell of rooms, as JSON.

use crate::values::schema;
use crate::values::time::Time;
use carillon_core::model::{
    ArchivedMessage, EventType, RoomAction, RoomAffiliation, RoomFact, RoomMemberFact, RoomMessageFact,
};
use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::Stanza;

/// Something that happened to a room. Which members it has besides the first three follows from its type.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct RoomEventView {
    /// What happened.
    #[serde(rename = "type")]
    #[schema(value_type = schema::EventType)]
    kind: EventType,
    /// The address of the room.
    #[schema(example = "tea@rooms.example.org")]
    room: String,
    /// When.
    at: Time,
    /// The account that did it. An API key has none, and nobody destroys a room that all have left.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    /// Why the room was destroyed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// What accounts are to the room now: at most 100. A change of more makes several events.
    #[serde(skip_serializing_if = "Option::is_none")]
    members: Option<Vec<RoomMemberChangeView>>,
    /// The message that was kept, or moderated.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<RoomMessageEventView>,
    /// The subject as it is now, empty for none; where contents are told.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
}

/// An account that is something else to a room.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct RoomMemberChangeView {
    /// The account.
    account: String,
    /// What it was.
    #[schema(value_type = schema::Affiliation)]
    was: RoomAffiliation,
    /// What it is: `none` for who was removed.
    #[schema(value_type = schema::Affiliation)]
    affiliation: RoomAffiliation,
}

/// A message of a room.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct RoomMessageEventView {
    /// Its number in the room's archive, by which it is retracted; clients know it by that, too (XEP-0359).
    archive_id: u64,
    /// The id that its sender gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// The address in the room of whoever said it: that of the room, and a nick.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    /// The nick of whoever said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    nick: Option<String>,
    /// Its text, if it has one and is still in the archive; where contents are told.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
}

impl RoomEventView {
    /// What happened; with what was said only where contents are told.
    pub(crate) fn new(
        kind: EventType,
        fact: &RoomFact,
        said: Option<&ArchivedMessage>,
        contents: bool,
    ) -> RoomEventView {
        let mut view = RoomEventView {
            kind,
            room: fact.room.to_string(),
            at: Time(fact.at),
            by: fact.by.as_ref().map(ToString::to_string),
            reason: None,
            members: None,
            message: None,
            subject: None,
        };
        match &fact.action {
            RoomAction::Created => {}
            RoomAction::Destroyed(reason) => view.reason = reason.as_deref().map(Into::into),
            RoomAction::Members(changes) => {
                let change = |of: &RoomMemberFact| RoomMemberChangeView {
                    account: of.account.to_string(),
                    was: of.was,
                    affiliation: of.is,
                };
                view.members = Some(changes.iter().map(change).collect());
            }
            RoomAction::Subject(text) => {
                view.subject = contents.then(|| text.as_deref().unwrap_or_default().into());
            }
            RoomAction::Message(message) => view.message = Some(message_of(message, said, contents)),
            RoomAction::Moderated(id) => {
                let archive_id = id.0;
                view.message =
                    Some(RoomMessageEventView { archive_id, id: None, from: None, nick: None, body: None });
            }
        }
        view
    }
}

fn message_of(
    message: &RoomMessageFact,
    kept: Option<&ArchivedMessage>,
    contents: bool,
) -> RoomMessageEventView {
    let body = |said: Stanza| said.payload.find("body", ns::CLIENT).map(|body| body.element().text());
    RoomMessageEventView {
        archive_id: message.id.0,
        id: message.stanza_id.as_deref().map(Into::into),
        from: message.from.as_ref().map(ToString::to_string),
        nick: message.from.as_ref().and_then(Jid::resource).map(Into::into),
        body: kept.filter(|_| contents).and_then(ArchivedMessage::read).and_then(body),
    }
}
