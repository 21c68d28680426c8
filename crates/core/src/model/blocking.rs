//! Block lists (XEP-0191).

use super::Generation;
use carillon_wire::jid::{BareJid, Jid};

/// What an account changes of its block list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockListEdit {
    /// These are blocked from now on.
    Block(Vec<Jid>),
    /// These are not any more.
    Unblock(Vec<Jid>),
    /// Nobody is any more.
    UnblockAll,
}

/// A change of an account's block list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockListChange {
    /// The account.
    pub account: BareJid,
    /// The generation of its record before.
    pub before: Generation,
    /// The generation that the change made. The same as before where nothing changed.
    pub after: Generation,
    /// Who is blocked from now on and was not before.
    pub blocked: Vec<Jid>,
    /// Who is not blocked any more.
    pub unblocked: Vec<Jid>,
}

crate::form! { struct BlockListChange { account, before, after, blocked, unblocked } }

/// How much a block list holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockListBounds {
    /// Addresses.
    pub addresses: u32,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl BlockListEdit {
    /// Who is blocked by this edit and was not before, and who is not any more; none where the list has no room for that. `list` is sorted.
    pub fn apply(&self, list: &[Jid], bounds: BlockListBounds) -> Option<(Vec<Jid>, Vec<Jid>)> {
        let has = |jid: &&Jid| list.binary_search(jid).is_ok();
        match self {
            BlockListEdit::Block(jids) => {
                let mut new: Vec<Jid> = jids.iter().filter(|jid| !has(jid)).cloned().collect();
                new.sort();
                new.dedup();
                let bytes: usize = list.iter().chain(&new).map(|jid| jid.as_str().len()).sum();
                let fits =
                    list.len() + new.len() <= bounds.addresses as usize && bytes as u64 <= bounds.bytes;
                (new.is_empty() || fits).then_some((new, Vec::new()))
            }
            BlockListEdit::Unblock(jids) => {
                let mut gone: Vec<Jid> = jids.iter().filter(has).cloned().collect();
                gone.sort();
                gone.dedup();
                Some((Vec::new(), gone))
            }
            BlockListEdit::UnblockAll => Some((Vec::new(), list.to_vec())),
        }
    }
}

/// Whether an address is what an entry of a block list is about: the same address, one of the account or the server, or this resource of a server
/// (XEP-0191 §2.4).
pub fn is_covered(jid: &Jid, entry: &Jid) -> bool {
    let has_local = entry.local().is_none() || entry.local() == jid.local();
    let has_resource = entry.resource().is_none() || entry.resource() == jid.resource();
    entry.domain() == jid.domain() && has_local && has_resource
}
