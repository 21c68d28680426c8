//! The home of topics.

use crate::effect::ReplyTo;
use carillon_wire::jid::Jid;

/// Who asked for an operation on a topic.
#[derive(Debug)]
pub enum Asker {
    /// A client, by an IQ to the pubsub service: the outcome becomes the IQ's result or error.
    Iq {
        /// The client.
        from: Jid,
        /// The service's address, as the client wrote it.
        service: Jid,
        /// The IQ's id.
        id: Box<str>,
    },
    /// A command from outside.
    Command(ReplyTo),
}

/// Something that happened on a topic, serialised once for all who are told.
#[derive(Debug)]
pub struct Notice {}
