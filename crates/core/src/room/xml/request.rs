//! What clients want of a room.

use crate::command::RoomRequest;
use crate::error::StanzaError;
use crate::model::{ArchiveId, UnixMs};
use crate::session::rsm;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Kind, MessageType, Payload, Stanza};
use carillon_wire::xml::Element;

/// Whose invitation a message declines (XEP-0045 §7.8.2); an empty text if it does not say whose.
pub(in crate::room) fn declined(stanza: &Stanza) -> Option<String> {
    let x = stanza.payload.find("x", ns::MUC_USER)?.element();
    let decline = x.child("decline", ns::MUC_USER)?;
    Some(decline.attr("to").unwrap_or_default().to_owned())
}

/// What a stanza to a room has to do with the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::room) enum Weight {
    /// Nothing.
    Nothing,
    /// It is a message that may be kept.
    Message,
    /// It reads.
    Read,
    /// It changes the room.
    Change,
}

/// What a stanza to a room has to do with the store.
pub(in crate::room) fn weight(stanza: &Stanza) -> Weight {
    match stanza.kind {
        Kind::Message(MessageType::Groupchat)
            if is_subject(&stanza.payload) || retracted(&stanza.payload).is_some() =>
        {
            Weight::Change
        }
        Kind::Message(MessageType::Groupchat) => Weight::Message,
        // An invitation to a members-only room makes a member.
        Kind::Message(MessageType::Normal) if stanza.payload.find("x", ns::MUC_USER).is_some() => {
            Weight::Change
        }
        Kind::Message(_) | Kind::Presence(_) => Weight::Nothing,
        Kind::Iq(_) if stanza.to.as_ref().is_some_and(|to| !to.is_bare()) => Weight::Nothing,
        Kind::Iq(kind) => match stanza.payload.children().next() {
            Some(child) if child.ns() == ns::MAM && matches!(kind, IqType::Set | IqType::Get) => Weight::Read,
            Some(child) if child.ns() == ns::VCARD && kind == IqType::Get => Weight::Read,
            Some(_) if kind == IqType::Set => Weight::Change,
            _ => Weight::Nothing,
        },
    }
}

/// What a request from outside has to do with the store.
pub(in crate::room) fn weight_of(request: &RoomRequest) -> Weight {
    match request {
        RoomRequest::Describe | RoomRequest::Occupants { .. } | RoomRequest::SetRole { .. } => {
            Weight::Nothing
        }
        RoomRequest::Say { payload, .. } if !is_subject(payload) => Weight::Message,
        RoomRequest::Say { .. }
        | RoomRequest::Create { .. }
        | RoomRequest::Configure { .. }
        | RoomRequest::Destroy { .. }
        | RoomRequest::SetMembers { .. }
        | RoomRequest::Moderate { .. }
        | RoomRequest::SetAvatar { .. }
        | RoomRequest::EraseArchive => Weight::Change,
    }
}

/// Whether a message sets the subject (XEP-0045 §8.1).
pub(in crate::room) fn is_subject(payload: &Payload) -> bool {
    let has = |name| payload.find(name, ns::CLIENT).is_some();
    has("subject") && !has("body") && !has("thread")
}

/// The message that one with this content retracts (XEP-0424): in a room it is named by the number that the room gave it.
pub(in crate::room) fn retracted(payload: &Payload) -> Option<ArchiveId> {
    let retract = payload.find("retract", ns::RETRACT)?;
    rsm::number(retract.element().attr("id")?).ok()
}

/// What somebody who enters says (XEP-0045 §7.2).
#[derive(Debug, Default)]
pub(in crate::room) struct EnterRequest {
    /// The password, or empty.
    pub(in crate::room) password: String,
    pub(in crate::room) history: HistoryWanted,
}

/// How much history somebody wants who enters (XEP-0045 §7.2.14).
#[derive(Debug)]
pub(in crate::room) struct HistoryWanted {
    pub(in crate::room) stanzas: Option<usize>,
    /// Bytes at most.
    pub(in crate::room) chars: usize,
    seconds: Option<u64>,
    since: Option<UnixMs>,
}

impl Default for HistoryWanted {
    fn default() -> HistoryWanted {
        HistoryWanted { stanzas: None, chars: usize::MAX, seconds: None, since: None }
    }
}

impl HistoryWanted {
    /// The time of the oldest message.
    pub(in crate::room) fn since(&self, now: UnixMs) -> UnixMs {
        let age = self.seconds.map(|seconds| UnixMs(now.0.saturating_sub(seconds.saturating_mul(1000))));
        age.max(self.since).unwrap_or_default()
    }
}

/// What a presence to a room says, if its client enters by it.
pub(in crate::room) fn entry(presence: &Stanza) -> Option<EnterRequest> {
    let x = presence.payload.find("x", ns::MUC)?.element();
    let password = x.child("password", ns::MUC).map(Element::text).unwrap_or_default();
    let Some(history) = x.child("history", ns::MUC) else {
        return Some(EnterRequest { password, history: HistoryWanted::default() });
    };
    let number = |name| history.attr(name).and_then(|text| text.parse::<u64>().ok());
    let history = HistoryWanted {
        stanzas: number("maxstanzas").map(|max| usize::try_from(max).unwrap_or(usize::MAX)),
        chars: number("maxchars").map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(usize::MAX)),
        seconds: number("seconds"),
        since: history.attr("since").and_then(UnixMs::from_rfc3339),
    };
    Some(EnterRequest { password, history })
}

/// One entry of a request of muc#admin (XEP-0045 §9, §10).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::room) struct AdminItem {
    pub(in crate::room) nick: Option<String>,
    pub(in crate::room) jid: Option<String>,
    pub(in crate::room) role: Option<String>,
    pub(in crate::room) affiliation: Option<String>,
    pub(in crate::room) reason: Option<String>,
}

/// The entries of a request of muc#admin.
pub(in crate::room) fn admin_items(query: &Element) -> Result<Vec<AdminItem>, StanzaError> {
    let attr = |item: &Element, name| item.attr(name).map(str::to_owned);
    let items: Vec<AdminItem> = query
        .children()
        .filter(|child| child.is("item", ns::MUC_ADMIN))
        .map(|item| AdminItem {
            nick: attr(item, "nick"),
            jid: attr(item, "jid"),
            role: attr(item, "role"),
            affiliation: attr(item, "affiliation"),
            reason: item.child("reason", ns::MUC_ADMIN).map(Element::text),
        })
        .collect();
    match items.is_empty() {
        true => Err(StanzaError::new(Condition::BadRequest).with_text("there is no item")),
        false => Ok(items),
    }
}
