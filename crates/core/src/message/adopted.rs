//! Sessions that a node left when it died, or gives away as it is drained.

use crate::model::{NodeId, Place, Settlement};
use carillon_wire::jid::BareJid;

/// What follows from the death or the drain of a node, for the home of an account.
#[derive(Debug)]
pub enum AdoptionMessage {
    /// Sessions that go on there.
    Left(Orphans),
    /// The next stanza for the account may have been given to it already: its sender's node died before that was told.
    Repeats {
        /// The account.
        account: BareJid,
        /// Who waits for the stanza that comes.
        new: Settlement,
        /// Who waited for the one that may have come before.
        old: Settlement,
    },
    /// Sessions that a node gives away which lives: parked ones, as they are now.
    Moved(Orphans),
}

crate::form! { enum AdoptionMessage { 0 = Left(orphans), 1 = Repeats { account, new, old }, 2 = Moved(orphans) } }

impl AdoptionMessage {
    /// The account.
    pub fn account(&self) -> &BareJid {
        match self {
            AdoptionMessage::Left(orphans) | AdoptionMessage::Moved(orphans) => &orphans.account,
            AdoptionMessage::Repeats { account, .. } => account,
        }
    }

    /// Bytes that it takes in memory.
    pub fn memory_bytes(&self) -> usize {
        match self {
            AdoptionMessage::Left(orphans) | AdoptionMessage::Moved(orphans) => orphans.memory_bytes(),
            AdoptionMessage::Repeats { .. } => size_of::<AdoptionMessage>(),
        }
    }
}

/// Sessions of one account, on their way to where it is at home now.
#[derive(Debug)]
pub struct Orphans {
    /// The account.
    pub account: BareJid,
    /// The node that died, or gives them away.
    pub of: NodeId,
    /// Its sessions there.
    pub sessions: Vec<Orphan>,
}

crate::form! { struct Orphans { account, of, sessions } }

/// One of them.
#[derive(Debug)]
pub struct Orphan {
    /// Where it was.
    pub place: Place,
    /// As it is in the log: a [`LogHead`](crate::ports::LogHead) and the session's form.
    pub bytes: Vec<u8>,
    /// Numbers of stanzas of its client that are in the queues of others that go on.
    pub held: Vec<u32>,
}

crate::form! { struct Orphan { place, bytes, held } }

impl Orphans {
    /// Bytes that it takes in memory.
    pub fn memory_bytes(&self) -> usize {
        let of = |orphan: &Orphan| size_of::<Orphan>() + orphan.bytes.len() + 4 * orphan.held.len();
        size_of::<Orphans>() + self.sessions.iter().map(of).sum::<usize>()
    }
}
