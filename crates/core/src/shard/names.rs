//! The names of sessions that came from another process.

use super::Recipients;
use crate::model::{AccountId, Map, SessionId};
use std::sync::Arc;

/// The names that sessions had in the process that wrote them, and those that they have here.
#[derive(Debug, Default)]
pub struct Names {
    /// By account, too: a name means one session of one shard, and those of several shards may come into one.
    names: Map<(AccountId, SessionId), SessionId>,
    /// What the sessions wait for of others, and others of them, is settled as before.
    stay: bool,
    /// By the address of what was read, which is kept so that nothing else gets it.
    recipients: Map<usize, [Arc<Recipients>; 2]>,
}

impl Names {
    /// No session yet. `stay`: whether what they wait for of others, and others of them, is settled as before: what waits for them by a name that
    /// changes is settled already.
    pub fn new(stay: bool) -> Names {
        Names { stay, ..Names::default() }
    }

    /// Whether what the sessions wait for of others, and others of them, is settled as before.
    pub fn stay(&self) -> bool {
        self.stay
    }

    /// A session of an account was called `old`, and is called `new` here.
    pub fn add(&mut self, account: AccountId, old: SessionId, new: SessionId) {
        self.names.insert((account, old), new);
    }

    /// The same sessions of an account by their names here, without those that did not come along. What was shared stays shared.
    pub fn renamed(&mut self, account: AccountId, read: &Arc<Recipients>) -> Arc<Recipients> {
        let names = &self.names;
        let rename = || [read.clone(), Arc::new(read.renamed(|old| names.get(&(account, old)).copied()))];
        let [_, renamed] = self.recipients.entry(Arc::as_ptr(read).addr()).or_insert_with(rename);
        renamed.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a live upgrade to fewer shards, a message was taken for one of another account's sessions.
    #[test]
    fn sessions_of_two_shards_with_one_name_are_told_apart() {
        let name = |slot| SessionId { slot, generation: 1 };
        let (ann, bob) = (AccountId(1), AccountId(2));
        let mut names = Names::default();
        names.add(ann, name(0), name(10));
        names.add(bob, name(0), name(11));
        let of = |sessions: &Recipients| sessions.sessions.to_vec();
        let (to_ann, to_bob) = (Recipients::of([name(0)]), Recipients::of([name(0), name(5)]));
        assert_eq!(of(&names.renamed(ann, &to_ann)), [name(10)]);
        assert_eq!(of(&names.renamed(bob, &to_bob)), [name(11)]);
        assert!(Arc::ptr_eq(&names.renamed(ann, &to_ann), &names.renamed(ann, &to_ann)));
    }
}
