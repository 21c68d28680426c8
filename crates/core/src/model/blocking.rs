//! Block lists (XEP-0191).

use super::{Generation, PrivacyLists};
use carillon_wire::jid::{BareJid, Jid};

/// What an account changes of its block list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockListEdit {
    /// These are blocked from now on.
    Block(Vec<Jid>),
    /// These are not any more.
    Unblock(Vec<Jid>),
    /// The first [`UNBLOCKED_MAX`] are not any more: whoever wants nobody to be says it until fewer than that were.
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
    /// Who is blocked from now on and was not before, sorted.
    pub blocked: Vec<Jid>,
    /// Who is not blocked any more, sorted.
    pub unblocked: Vec<Jid>,
    /// Whether a change of privacy lists made it, of which the sessions are told by itself.
    pub by_lists: bool,
}

crate::form! { struct BlockListChange { account, before, after, blocked, unblocked, by_lists: since(5) } }

/// A change of an account's privacy lists (XEP-0016).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivacyChange {
    /// The account.
    pub account: BareJid,
    /// The generation of its record before.
    pub before: Generation,
    /// The generation that the change made.
    pub after: Generation,
    /// The lists from now on.
    pub lists: PrivacyLists,
    /// The names of those whose rules are others now, or that are removed.
    pub changed: Vec<Box<str>>,
}

crate::form! { struct PrivacyChange { account, before, after, lists, changed } }

/// How much a block list holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockListBounds {
    /// Addresses.
    pub addresses: u32,
    /// Bytes of all of them.
    pub bytes: u64,
}

/// How many addresses [`BlockListEdit::UnblockAll`] takes from a list at once: others have the store to themselves in between.
pub const UNBLOCKED_MAX: usize = 1000;

/// Who is blocked from now on and was not before, and who is not any more.
type Difference = (Vec<Jid>, Vec<Jid>);

/// A block list, wherever it is.
pub trait BlockList {
    /// Why it could not be read.
    type Error;

    /// How much it holds.
    fn used(&self) -> BlockListBounds;

    /// Whether an address is in it.
    ///
    /// # Errors
    /// It could not be read.
    fn has(&mut self, jid: &Jid) -> Result<bool, Self::Error>;

    /// The first addresses in it, so many at most, sorted.
    ///
    /// # Errors
    /// It could not be read.
    fn first(&mut self, max: usize) -> Result<Vec<Jid>, Self::Error>;
}

impl BlockListEdit {
    /// Who is blocked by this edit and was not before, and who is not any more, both sorted; none where the list has no room for that. `list` is asked for
    /// nobody whom the edit does not name.
    ///
    /// # Errors
    /// What `list` says.
    pub fn apply<L: BlockList>(
        &self,
        list: &mut L,
        bounds: BlockListBounds,
    ) -> Result<Option<Difference>, L::Error> {
        let mut named = match self {
            BlockListEdit::Block(jids) | BlockListEdit::Unblock(jids) => jids.clone(),
            BlockListEdit::UnblockAll => return Ok(Some((Vec::new(), list.first(UNBLOCKED_MAX)?))),
        };
        named.sort();
        named.dedup();
        let is_blocked = matches!(self, BlockListEdit::Block(_));
        let mut changed = Vec::new();
        for jid in named {
            if list.has(&jid)? != is_blocked {
                changed.push(jid);
            }
        }
        if !is_blocked {
            return Ok(Some((Vec::new(), changed)));
        }
        let used = list.used();
        let bytes: u64 = changed.iter().map(|jid| jid.as_str().len() as u64).sum();
        let fits = used.addresses as usize + changed.len() <= bounds.addresses as usize
            && used.bytes + bytes <= bounds.bytes;
        Ok((changed.is_empty() || fits).then_some((changed, Vec::new())))
    }
}

/// Whether an address is what one of these entries is about ([`is_covered`]). `list` is sorted: at most four entries can be about an address, and
/// each is looked up.
pub fn is_covered_by(jid: &Jid, list: &[Jid]) -> bool {
    let has = |entry: &str| list.binary_search_by(|jid| jid.as_str().cmp(entry)).is_ok();
    if list.is_empty() {
        return false;
    }
    if has(jid.domain()) || has(jid.bare_str()) {
        return true;
    }
    jid.resource().is_some_and(|resource| has(jid.as_str()) || has(&[jid.domain(), resource].join("/")))
}

/// Whether an address is what an entry of a block list is about: the same address, one of the account or the server, or this resource of a server
/// (XEP-0191 §2.4).
pub fn is_covered(jid: &Jid, entry: &Jid) -> bool {
    let has_local = entry.local().is_none() || entry.local() == jid.local();
    let has_resource = entry.resource().is_none() || entry.resource() == jid.resource();
    entry.domain() == jid.domain() && has_local && has_resource
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_entries_up_finds_what_going_through_them_does() {
        let parts = [None, Some("ann"), Some("bob"), Some("bo")];
        let domains = ["example.org", "example.or", "sub.example.org"];
        let resources = [None, Some("r"), Some("r/s"), Some("example.org")];
        let mut jids = Vec::new();
        for (local, domain) in parts.iter().flat_map(|local| domains.map(|domain| (*local, domain))) {
            jids.extend(
                resources.map(|resource| Jid::from_parts(local, domain, resource).expect("an address")),
            );
        }
        for step in 1..jids.len() {
            let mut list: Vec<Jid> = jids.iter().step_by(step).cloned().collect();
            list.sort();
            for jid in &jids {
                let expected = list.iter().any(|entry| is_covered(jid, entry));
                assert_eq!(is_covered_by(jid, &list), expected, "{jid} in {list:?}");
            }
        }
        assert!(!is_covered_by(&jids[0], &[]));
    }
}
