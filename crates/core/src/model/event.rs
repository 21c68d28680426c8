//! Events: what a store tells others, in the order of its commits: how notifications ended, and what happened to rooms.

use super::{ArchiveId, ArchivedMessage, DomainId, RoomAffiliation, RoomEvents, States, Trace, UnixMs};
use carillon_wire::jid::{BareJid, Jid};

/// What an event tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// How a notification ended, or that its link was followed.
    Notification(Trace),
    /// What happened to a room, and the message if one was said and is still in the archive.
    Room(Box<RoomFact>, Option<ArchivedMessage>),
}

impl Event {
    /// The trace of the notification, if it is about one.
    pub fn trace(&self) -> Option<&Trace> {
        match self {
            Event::Notification(trace) => Some(trace),
            Event::Room(..) => None,
        }
    }

    /// Its type.
    pub fn kind(&self) -> EventType {
        match self {
            Event::Notification(_) => EventType::Notification,
            Event::Room(fact, _) => fact.action.event_type(),
        }
    }

    /// When it happened.
    pub fn at(&self) -> UnixMs {
        match self {
            Event::Notification(trace) => trace.ended.unwrap_or(trace.accepted),
            Event::Room(fact, _) => fact.at,
        }
    }

    /// Bytes that it takes in memory beside its own size, as far as others choose how many.
    pub fn bytes(&self) -> usize {
        match self {
            Event::Notification(trace) => trace.to.as_str().len(),
            Event::Room(fact, said) => fact.bytes() + said.as_ref().map_or(0, |said| said.stanza.len()),
        }
    }

    /// Whether it is of this domain, which is given by its number and its name.
    pub fn is_of(&self, domain: DomainId, name: &str) -> bool {
        match self {
            Event::Notification(trace) => trace.to.domain() == name,
            Event::Room(fact, _) => fact.domain == domain,
        }
    }
}

/// The types of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventType {
    /// A notification ended, or its link was followed.
    Notification,
    /// A room was created.
    RoomCreated,
    /// A room was destroyed.
    RoomDestroyed,
    /// What accounts are to a room has changed.
    RoomMembers,
    /// The subject of a room has changed.
    RoomSubject,
    /// A message was kept in the archive of a room.
    RoomMessage,
    /// A message was taken out of the archive of a room by somebody who moderates it.
    RoomModerated,
}

impl EventType {
    /// All of them, in the order in which they are declared.
    pub const ALL: [EventType; 7] = [
        EventType::Notification,
        EventType::RoomCreated,
        EventType::RoomDestroyed,
        EventType::RoomMembers,
        EventType::RoomSubject,
        EventType::RoomMessage,
        EventType::RoomModerated,
    ];

    /// Its name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            EventType::Notification => "notification",
            EventType::RoomCreated => "room_created",
            EventType::RoomDestroyed => "room_destroyed",
            EventType::RoomMembers => "room_members",
            EventType::RoomSubject => "room_subject",
            EventType::RoomMessage => "room_message",
            EventType::RoomModerated => "room_moderated",
        }
    }
}

/// Some of the types of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EventTypes(u16);

impl EventTypes {
    /// None.
    pub const NONE: EventTypes = EventTypes(0);
    /// Those of notifications: what is told to whoever asks for no others.
    pub const NOTIFICATIONS: EventTypes = EventTypes(1 << EventType::Notification as u16);
    /// All.
    pub const ALL: EventTypes = EventTypes(u16::MAX);

    /// Whether a type is in the set.
    pub fn contains(self, kind: EventType) -> bool {
        self.0 & EventTypes::from(kind).0 != 0
    }

    /// The types of the set, in the order in which they are declared.
    pub fn iter(self) -> impl Iterator<Item = EventType> {
        EventType::ALL.into_iter().filter(move |kind| self.contains(*kind))
    }

    /// Whether one of them tells of rooms.
    pub fn has_rooms(self) -> bool {
        self.iter().any(|kind| kind != EventType::Notification)
    }

    /// The union of both sets.
    #[must_use]
    pub fn with(self, others: EventTypes) -> EventTypes {
        EventTypes(self.0 | others.0)
    }
}

impl From<EventType> for EventTypes {
    fn from(kind: EventType) -> EventTypes {
        EventTypes(1 << kind as u16)
    }
}

/// Which events somebody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventFilter {
    /// Those of these types.
    pub types: EventTypes,
    /// Of notifications, those that reached one of these states.
    pub states: States,
}

impl EventFilter {
    /// Every event.
    pub const ALL: EventFilter = EventFilter { types: EventTypes::ALL, states: States::ALL };

    /// Whether it lets an event through.
    pub fn takes(&self, event: &Event) -> bool {
        let is_of_state = match event {
            Event::Notification(trace) => self.states.contains(trace.shown()),
            Event::Room(..) => true,
        };
        is_of_state && self.types.contains(event.kind())
    }
}

impl From<States> for EventFilter {
    /// The notifications that reached one of these.
    fn from(states: States) -> EventFilter {
        EventFilter { types: EventTypes::NOTIFICATIONS, states }
    }
}

/// Something that happened to a room, as its home has it stored with the change itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomFact {
    /// The room's domain.
    pub domain: DomainId,
    /// The room's address.
    pub room: BareJid,
    /// When.
    pub at: UnixMs,
    /// The account that did it; none where an API key did, or nobody.
    pub by: Option<BareJid>,
    /// What was done.
    pub action: RoomAction,
}

crate::form! { struct RoomFact { domain, room, at, by, action } }

impl RoomFact {
    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        let by = self.by.as_ref().map_or(0, |by| by.as_str().len());
        let text = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| text.len());
        let action = match &self.action {
            RoomAction::Created | RoomAction::Moderated(_) => 0,
            RoomAction::Message(message) => {
                let from = message.from.as_ref().map_or(0, |from| from.as_str().len());
                from + text(&message.stanza_id)
            }
            RoomAction::Destroyed(of) | RoomAction::Subject(of) => text(of),
            RoomAction::Members(changes) => {
                changes.iter().map(|change| size_of::<RoomMemberFact>() + change.account.as_str().len()).sum()
            }
        };
        size_of::<RoomFact>() + self.room.as_str().len() + by + action
    }
}

/// What was done to a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoomAction {
    /// It was created.
    Created,
    /// It was destroyed, for this reason.
    Destroyed(Option<Box<str>>),
    /// Accounts are something else to it: at most [`RoomAction::MEMBERS_MAX`].
    Members(Vec<RoomMemberFact>),
    /// Its subject is this now; none for no subject.
    Subject(Option<Box<str>>),
    /// A message was kept in its archive.
    Message(RoomMessageFact),
    /// This message was replaced by what is left of it (XEP-0425).
    Moderated(ArchiveId),
}

crate::form! {
    enum RoomAction {
        0 = Created,
        1 = Destroyed(reason),
        2 = Members(changes),
        3 = Subject(text),
        4 = Message(message),
        5 = Moderated(id),
    }
}

impl RoomAction {
    /// Accounts of one event: a change of more makes several events.
    pub const MEMBERS_MAX: usize = 100;

    fn event_type(&self) -> EventType {
        match self {
            RoomAction::Created => EventType::RoomCreated,
            RoomAction::Destroyed(_) => EventType::RoomDestroyed,
            RoomAction::Members(_) => EventType::RoomMembers,
            RoomAction::Subject(_) => EventType::RoomSubject,
            RoomAction::Message(_) => EventType::RoomMessage,
            RoomAction::Moderated(_) => EventType::RoomModerated,
        }
    }
}

impl RoomEvents {
    /// Whether a domain of this policy has an event of it.
    pub fn tells(self, action: &RoomAction) -> bool {
        match action {
            RoomAction::Created | RoomAction::Destroyed(_) | RoomAction::Members(_) => {
                self >= RoomEvents::Membership
            }
            RoomAction::Subject(_) | RoomAction::Message(_) | RoomAction::Moderated(_) => {
                self >= RoomEvents::All
            }
        }
    }
}

/// A message, but for what it says: that is in the archive, as long as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomMessageFact {
    /// Its number in the archive; 0 until the store has given it.
    pub id: ArchiveId,
    /// The address in the room of whoever said it.
    pub from: Option<Jid>,
    /// The id that its sender gave it.
    pub stanza_id: Option<Box<str>>,
}

crate::form! { struct RoomMessageFact { id, from, stanza_id } }

/// What an account was to a room, and is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomMemberFact {
    /// The account.
    pub account: BareJid,
    /// What it was.
    pub was: RoomAffiliation,
    /// What it is.
    pub is: RoomAffiliation,
}

crate::form! { struct RoomMemberFact { account, was, is } }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::testing::proves;

    fn said() -> RoomMessageFact {
        let from = Jid::new("tea@rooms.example.org/Ali").expect("an address");
        RoomMessageFact { id: ArchiveId(9), from: Some(from), stanza_id: Some("m1".into()) }
    }

    fn fact(action: RoomAction) -> RoomFact {
        let jid = |text| BareJid::new(text).expect("an address");
        RoomFact {
            domain: DomainId(3),
            room: jid("tea@rooms.example.org"),
            at: UnixMs(7),
            by: Some(jid("alice@example.org")),
            action,
        }
    }

    #[test]
    fn what_is_stored_is_read_as_it_was_written() {
        let account = BareJid::new("bob@example.org").expect("an address");
        let members =
            vec![RoomMemberFact { account, was: RoomAffiliation::None, is: RoomAffiliation::Member }];
        let actions = [
            ("created", RoomAction::Created),
            ("destroyed", RoomAction::Destroyed(Some("over".into()))),
            ("members", RoomAction::Members(members)),
            ("subject", RoomAction::Subject(None)),
            ("message", RoomAction::Message(said())),
            ("moderated", RoomAction::Moderated(ArchiveId(9))),
        ];
        for (name, action) in actions {
            proves(&format!("RoomFact, {name}"), &fact(action));
        }
    }

    #[test]
    fn a_domain_has_the_events_that_its_policy_says() {
        let (created, said) = (RoomAction::Created, RoomAction::Message(said()));
        let of = |policy: RoomEvents| (policy.tells(&created), policy.tells(&said));
        let all = [RoomEvents::Off, RoomEvents::Membership, RoomEvents::All].map(of);
        assert_eq!(all, [(false, false), (true, false), (true, true)]);
    }

    #[test]
    fn whoever_asks_for_no_rooms_is_told_of_none() {
        let room = Event::Room(Box::new(fact(RoomAction::Created)), None);
        assert!(!EventFilter::from(States::ALL).takes(&room));
        assert!(EventFilter { types: EventType::RoomCreated.into(), states: States::NONE }.takes(&room));
        assert!(!EventFilter { types: EventType::RoomMessage.into(), states: States::ALL }.takes(&room));
        assert!(EventFilter::ALL.takes(&room) && EventTypes::ALL.has_rooms());
        assert!(!EventTypes::NOTIFICATIONS.has_rooms());
    }
}
