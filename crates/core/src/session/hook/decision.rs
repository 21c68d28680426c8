//! What hooks decide about a stanza, and why: the reasons are labels of metrics.

use super::{Stanza, Wait};
use crate::model::Settlement;

/// Whether a stanza from the client goes on.
#[derive(Debug)]
pub enum Flow {
    /// It goes on to the next hook, then to routing.
    Pass,
    /// The feature has handled it.
    Taken(Taken),
    /// The feature decides when it has an answer; until then the session's input waits behind this stanza.
    Wait(Wait<Flow>),
}

/// Why a stanza goes no further: what a feature did with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It acknowledges something that the client was given.
    Receipt,
    /// It is the client's presence, which is shown to whom it concerns.
    Presence,
    /// It changes a subscription, or asks for the presence of a contact.
    Subscription,
    /// It is a request to the feature's address, which is answered.
    Request,
    /// It is a message that is kept, because no session takes it.
    Stored,
    /// It is a message that a module ends without an answer.
    Dropped,
    /// Nothing follows from it.
    Ignored,
}

/// Why a stanza is not given to a session now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Nobody looks at the client.
    Inactive,
    /// Older messages are on their way to the session.
    Backlog,
    /// More has not arrived at the client than one that reads leaves.
    Unread,
    /// The client is away, and may come back.
    Parked,
    /// Older messages of the account are being stored.
    Storing,
    /// An archive is to have it first, or what came before it.
    Archiving,
}

/// Whether something is written now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// It is written.
    Write,
    /// The feature keeps it and writes it later.
    Held(Held),
}

/// What becomes of a stanza that has come for an account.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it is taken apart where it is returned")]
pub enum Arrival {
    /// It is delivered now.
    Passes(Stanza, Option<Settlement>),
    /// The feature delivers it later.
    Held(Held),
    /// Its sender was told that it is not delivered.
    Refused,
}

impl Taken {
    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Taken::Receipt => "receipt",
            Taken::Presence => "presence",
            Taken::Subscription => "subscription",
            Taken::Request => "request",
            Taken::Stored => "stored",
            Taken::Dropped => "dropped",
            Taken::Ignored => "ignored",
        }
    }
}

impl Held {
    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Held::Inactive => "inactive",
            Held::Backlog => "backlog",
            Held::Unread => "unread",
            Held::Parked => "parked",
            Held::Storing => "storing",
            Held::Archiving => "archiving",
        }
    }
}
