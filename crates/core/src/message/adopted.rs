//! Sessions that a node left when it died.

use crate::model::NodeId;
use carillon_wire::jid::BareJid;

/// Sessions of one account, on their way to where it is at home now.
#[derive(Debug)]
pub struct Orphans {
    /// The account.
    pub account: BareJid,
    /// The node that died.
    pub of: NodeId,
    /// Its sessions there.
    pub sessions: Vec<Orphan>,
}

crate::form! { struct Orphans { account, of, sessions } }

/// One of them.
#[derive(Debug)]
pub struct Orphan {
    /// As it is in the log: a [`LogHead`](crate::ports::LogHead) and the session's form.
    pub bytes: Vec<u8>,
    /// Numbers of stanzas of its client that are in the queues of others that go on.
    pub held: Vec<u32>,
}

crate::form! { struct Orphan { bytes, held } }

impl Orphans {
    /// Bytes that it takes in memory.
    pub fn memory_bytes(&self) -> usize {
        let of = |orphan: &Orphan| size_of::<Orphan>() + orphan.bytes.len() + 4 * orphan.held.len();
        size_of::<Orphans>() + self.sessions.iter().map(of).sum::<usize>()
    }
}
