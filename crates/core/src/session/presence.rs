//! The presence of a session: how available it is (RFC 6121 §4.7), and whether anyone is looking at it (XEP-0352). Routing
//! and delivery depend on it, so the session has it; features set it.

use super::BoundSession;
use crate::command::Reach;
use crate::model::Availability;
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

    /// How available the session is.
    pub fn availability(&self) -> Availability {
        self.availability
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
