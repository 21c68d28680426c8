//! The presence of a session: how available it is (RFC 6121 §4.7), and whether anyone is looking at it (XEP-0352). Routing
//! and delivery depend on it, so the session has it; features set it.

use super::BoundSession;
use crate::command::Reach;
use carillon_wire::stanza::{Payload, PresenceType, Stanza};

/// The presence of a session.
#[derive(Debug, Default)]
pub struct Presence {
    availability: Availability,
    priority: i8,
    /// Whether the client said that it is inactive (XEP-0352).
    pub is_inactive: bool,
    /// The payload of the last presence, if it had any.
    payload: Option<Box<Payload>>,
}

crate::form! { struct Presence { availability, priority, is_inactive, payload } }

/// How available a session is (RFC 6121 §4.7.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Availability {
    /// Not available: no presence was sent, or it was withdrawn.
    #[default]
    Unavailable,
    /// Available.
    Available,
    /// Free for a chat.
    Chat,
    /// Away: connected, asleep.
    Away,
    /// Away for long: connected, asleep.
    Xa,
    /// Not to be disturbed.
    Dnd,
}

crate::form! { enum Availability { 0 = Unavailable, 1 = Available, 2 = Chat, 3 = Away, 4 = Xa, 5 = Dnd } }

impl Presence {
    /// A presence was sent.
    pub fn set(&mut self, availability: Availability, priority: i8, payload: &Payload) {
        self.availability = availability;
        self.priority = priority;
        self.payload = (!payload.is_empty()).then(|| Box::new(payload.clone()));
    }

    /// What the last presence carried, if anything.
    pub fn payload(&self) -> Option<&Payload> {
        self.payload.as_deref()
    }

    /// Withdraws presence. Returns whether the session was available.
    pub fn withdraw(&mut self) -> bool {
        let was_available = self.is_available();
        self.availability = Availability::Unavailable;
        self.payload = None;
        was_available
    }

    /// Whether initial presence was sent and not withdrawn.
    pub fn is_available(&self) -> bool {
        self.availability != Availability::Unavailable
    }

    /// Whether messages to the account's bare JID are given to it (RFC 6121 §8.5.2.1).
    pub fn takes_messages(&self) -> bool {
        self.is_available() && self.priority >= 0
    }

    /// Which notifications reach the session.
    pub fn reach(&self) -> Reach {
        match self.availability {
            Availability::Unavailable => Reach::Unavailable,
            Availability::Away | Availability::Xa => Reach::Asleep,
            _ if self.is_inactive => Reach::Asleep,
            Availability::Available | Availability::Chat | Availability::Dnd => Reach::Active,
        }
    }

    /// The value for the API: the `<show/>`, or whether it is available.
    pub fn word(&self) -> &'static str {
        match self.availability {
            Availability::Unavailable => "unavailable",
            Availability::Available => "available",
            Availability::Chat => "chat",
            Availability::Away => "away",
            Availability::Xa => "xa",
            Availability::Dnd => "dnd",
        }
    }

    /// The last presence of `session`, whose presence this is; none when it is not available.
    pub fn stanza(&self, session: &BoundSession) -> Option<Stanza> {
        self.is_available().then(|| {
            let mut stanza = Stanza::presence(PresenceType::Available).with_from(session.jid.clone());
            if let Some(payload) = &self.payload {
                stanza.payload = (**payload).clone();
            }
            stanza
        })
    }
}
