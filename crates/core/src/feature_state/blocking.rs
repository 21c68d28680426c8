//! What is known of a session, and of an account at its home.

use crate::model::{BlockListChange, is_covered_by};
use carillon_wire::jid::Jid;

/// Whether a session has asked for the block list, and is told of its changes from then on (XEP-0191 §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockListInterest {
    pub(crate) is_interested: bool,
}

crate::form! { struct BlockListInterest { is_interested } }

/// Whom an account blocks: eight bytes for nobody.
#[derive(Debug, Default)]
#[expect(clippy::box_collection, reason = "eight bytes for an account that blocks nobody, not twenty-four")]
pub struct Blocked(Option<Box<Vec<Jid>>>);

impl Blocked {
    /// A list that was read, sorted.
    pub(crate) fn of(list: &[Jid]) -> Blocked {
        Blocked((!list.is_empty()).then(|| Box::new(list.to_vec())))
    }

    /// Bytes that it takes beside its own size.
    pub fn bytes(&self) -> usize {
        let of = |jid: &Jid| size_of::<Jid>() + jid.as_str().len();
        self.iter().map(of).sum()
    }

    /// All of them, sorted.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Jid> {
        self.0.iter().flat_map(|list| list.iter())
    }

    /// Whether this address is blocked: it, the account or the server that it belongs to, or this resource of a server (XEP-0191 §2.4).
    pub(crate) fn has(&self, jid: &Jid) -> bool {
        self.0.as_ref().is_some_and(|list| is_covered_by(jid, list))
    }

    /// Whether an entry is this address.
    pub(crate) fn names(&self, jid: &Jid) -> bool {
        self.0.as_ref().is_some_and(|list| list.binary_search(jid).is_ok())
    }

    /// The list was changed.
    pub(crate) fn change(&mut self, change: &BlockListChange) {
        let kept = self.iter().filter(|jid| change.unblocked.binary_search(jid).is_err()).cloned();
        let mut list: Vec<Jid> = kept.chain(change.blocked.iter().cloned()).collect();
        list.sort();
        list.dedup();
        *self = Blocked::of(&list);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::testing::proves;

    #[test]
    fn an_entry_covers_what_xep_0191_says() {
        let cases = [
            ("bob@example.org/phone", [true, false, false, false]),
            ("bob@example.org", [true, true, false, false]),
            ("example.org/phone", [true, false, true, false]),
            ("example.org", [true, true, true, false]),
        ];
        let jids = [
            "bob@example.org/phone",
            "bob@example.org/desk",
            "ann@example.org/phone",
            "bob@sub.example.org/phone",
        ];
        for (entry, expected) in cases {
            let list = Blocked::of(&[Jid::new(entry).unwrap()]);
            assert_eq!(jids.map(|jid| list.has(&Jid::new(jid).unwrap())), expected, "{entry}");
        }
        assert_eq!((size_of::<Blocked>(), Blocked::default().bytes()), (8, 0));
    }

    #[test]
    fn its_form() {
        proves("blocking", &BlockListInterest { is_interested: true });
    }
}
