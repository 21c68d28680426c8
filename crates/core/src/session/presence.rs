//! What a session says of itself: how available it is (RFC 6121 §4.7), and whether somebody looks at it (XEP-0352). Routing and
//! delivery go by it, so it is the session's; the features that speak of it set it.

use super::BoundSession;
use crate::command::Reach;
use carillon_wire::stanza::{Payload, PresenceType, Stanza};

/// What a session says of itself.
#[derive(Debug, Default)]
pub struct Presence {
    availability: Availability,
    priority: i8,
    /// Whether the client said that nobody looks at it.
    pub is_inactive: bool,
    /// What the last presence carried, when it carried anything.
    payload: Option<Box<Payload>>,
}

/// How available a session is (RFC 6121 §4.7.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Availability {
    /// Not at all: no presence was sent, or it was taken back.
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

impl Presence {
    /// A presence was sent.
    pub fn set(&mut self, availability: Availability, priority: i8, payload: &Payload) {
        self.availability = availability;
        self.priority = priority;
        self.payload = (!payload.is_empty()).then(|| Box::new(payload.clone()));
    }

    /// Presence was taken back; whether there was any.
    pub fn withdraw(&mut self) -> bool {
        let was_available = self.is_available();
        self.availability = Availability::Unavailable;
        self.payload = None;
        was_available
    }

    /// Whether initial presence was sent and not taken back.
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

    /// In a word.
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

    /// The last presence of the session `live`, whose this is, when it is available.
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
