//! How available a session is.

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

impl Availability {
    /// The value for the API: the `<show/>`, or whether it is available.
    pub fn word(self) -> &'static str {
        match self {
            Availability::Unavailable => "unavailable",
            Availability::Available => "available",
            Availability::Chat => "chat",
            Availability::Away => "away",
            Availability::Xa => "xa",
            Availability::Dnd => "dnd",
        }
    }
}
