//! Clients, as a node sees them: what they send, and what they make of what they are sent.

mod contacts;
mod light;
mod xmpp;

pub use contacts::{Contacts, bare, described};
pub use light::LightClient;
pub use xmpp::{HASH, Kind, XmppClient, is_stanza};

/// Every account's password.
pub const PASSWORD: &str = "secret";

/// Something that a client was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Got {
    /// An item of a topic.
    Item {
        /// The topic.
        topic: String,
        /// The item's id.
        id: String,
        /// Whether it was given as the last item, and not as it was published.
        is_last: bool,
    },
    /// Something else about a topic.
    Notice {
        /// The topic.
        topic: String,
    },
    /// A notification.
    Notification {
        /// Its id.
        id: String,
    },
    /// A chat message.
    Chat {
        /// Its id.
        id: String,
    },
    /// An error: what it sent with this id was not delivered.
    Refused {
        /// The id.
        id: String,
    },
}

/// The value that follows `before`, up to a quote.
pub fn value<'a>(text: &'a str, before: &str) -> Option<&'a str> {
    let rest = &text[text.find(before)? + before.len()..];
    rest.split_once('\'').map(|(value, _)| value)
}
