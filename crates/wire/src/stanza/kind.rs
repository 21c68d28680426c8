//! The kinds of stanzas and their types.

words! {
    /// Types of messages (RFC 6121 §5.2.2).
    pub enum MessageType {
        /// A message outside a conversation; an unknown type means the same.
        Normal = "normal",
        /// A message in a conversation of two.
        Chat = "chat",
        /// An alert to which no reply is expected.
        Headline = "headline",
        /// A message in a room.
        Groupchat = "groupchat",
        /// The answer to a message that could not be delivered.
        Error = "error",
    }
}

words! {
    /// Types of presence (RFC 6121 §4.7.1).
    pub enum PresenceType {
        /// Online: written as no type at all.
        Available = "available",
        /// Offline.
        Unavailable = "unavailable",
        /// Asks to see the recipient's presence.
        Subscribe = "subscribe",
        /// Allows the recipient to see the sender's presence.
        Subscribed = "subscribed",
        /// No longer wants to see it.
        Unsubscribe = "unsubscribe",
        /// Refuses or withdraws that.
        Unsubscribed = "unsubscribed",
        /// A server asks for the current presence.
        Probe = "probe",
        /// The answer to a presence that could not be delivered.
        Error = "error",
    }
}

words! {
    /// Types of IQs (RFC 6120 §8.2.3).
    pub enum IqType {
        /// Requests information.
        Get = "get",
        /// Requests a change.
        Set = "set",
        /// A successful answer.
        Result = "result",
        /// An error as the answer.
        Error = "error",
    }
}

/// The kind of a stanza, and its type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// `<message/>`
    Message(MessageType),
    /// `<presence/>`
    Presence(PresenceType),
    /// `<iq/>`
    Iq(IqType),
}

impl Kind {
    /// `message`, `presence` or `iq`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Message(_) => "message",
            Self::Presence(_) => "presence",
            Self::Iq(_) => "iq",
        }
    }

    /// The value of the `type` attribute; `None` where the type is the default.
    pub const fn type_word(self) -> Option<&'static str> {
        match self {
            Self::Message(MessageType::Normal) | Self::Presence(PresenceType::Available) => None,
            Self::Message(kind) => Some(kind.as_str()),
            Self::Presence(kind) => Some(kind.as_str()),
            Self::Iq(kind) => Some(kind.as_str()),
        }
    }

    /// Whether the stanza is of type `error`.
    pub const fn is_error(self) -> bool {
        matches!(
            self,
            Self::Message(MessageType::Error) | Self::Presence(PresenceType::Error) | Self::Iq(IqType::Error)
        )
    }
}
