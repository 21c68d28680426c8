//! Who asked for an operation on a topic, and what the answer has to say.

use super::{PendingIq, ReplyTo};
use crate::model::Place;
use carillon_wire::jid::BareJid;

/// Who asked for an operation on a topic.
#[derive(Debug)]
pub enum Asker {
    /// A client, by an IQ to the pubsub service: the outcome becomes the IQ's result or error.
    Iq(Box<TopicIq>),
    /// A command from outside.
    Command(ReplyTo),
    /// The light sessions of the shard at this place, for [`super::TopicOp::Listen`].
    Light(Place),
}

crate::form! { enum Asker { 0 = Iq(iq), 1 = Command(reply), 2 = Light(place) } }

/// An IQ about a topic that waits for its answer.
#[derive(Debug)]
pub struct TopicIq {
    /// What is to be answered.
    pub iq: PendingIq,
    /// What the client asked for, and so what the result says.
    pub about: About,
}

crate::form! { struct TopicIq { iq, about } }

/// What a client asked of a topic, and so what the result says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// To do something: the result is empty.
    Nothing,
    /// To create a topic with a name of the server's making (XEP-0060 §8.1.2).
    Instant,
    /// How it is configured (§8.2.1).
    Config,
    /// To publish (§7.1.2).
    Publication,
    /// To follow it, for this account (§6.1.2).
    Subscription(BareJid),
    /// Its items (§6.5).
    Items {
        /// Whether the answer says which part of the list it has (XEP-0059).
        paged: bool,
    },
    /// Who follows it (§8.8.1).
    Subscribers,
    /// Its affiliations (§8.9.1).
    Affiliations,
    /// What it is (§5.4).
    Info,
    /// Which items there are (§5.5).
    ItemNames {
        /// As for [`About::Items`].
        paged: bool,
    },
}

crate::form! {
    enum About {
        0 = Nothing,
        1 = Instant,
        2 = Config,
        3 = Publication,
        4 = Subscription(account),
        5 = Items { paged },
        6 = Subscribers,
        7 = Affiliations,
        8 = Info,
        9 = ItemNames { paged },
    }
}
