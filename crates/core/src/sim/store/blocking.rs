//! Block lists.

use super::{Committed, answers};
use crate::model::{BlockList, BlockListBounds, BlockListChange};
use crate::ports::store::blocking::{ChangeBlockList, ChangeBlockListAnswer};
use carillon_wire::jid::Jid;
use std::collections::BTreeSet;
use std::convert::Infallible;

answers! {
    ChangeBlockList => change;
}

impl BlockList for BTreeSet<Jid> {
    type Error = Infallible;

    fn used(&self) -> BlockListBounds {
        let bytes = self.iter().map(|jid| jid.as_str().len() as u64).sum();
        BlockListBounds { addresses: self.len() as u32, bytes }
    }

    fn has(&mut self, jid: &Jid) -> Result<bool, Infallible> {
        Ok(self.contains(jid))
    }

    fn all(&mut self) -> Result<Vec<Jid>, Infallible> {
        Ok(self.iter().cloned().collect())
    }
}

fn change(store: &mut Committed, asked: &ChangeBlockList) -> ChangeBlockListAnswer {
    let Some(account) = store.account_mut(asked.domain, &asked.local) else {
        return ChangeBlockListAnswer::NoAccount;
    };
    let Ok(changed) = asked.edit.apply(&mut account.blocked, asked.bounds);
    let Some((blocked, unblocked)) = changed else { return ChangeBlockListAnswer::Full };
    let before = account.record;
    if !blocked.is_empty() || !unblocked.is_empty() {
        account.record.0 += 1;
    }
    account.blocked.extend(blocked.iter().cloned());
    for jid in &unblocked {
        account.blocked.remove(jid);
    }
    let (account, after) = (account.jid.clone(), account.record);
    ChangeBlockListAnswer::Changed(Box::new(BlockListChange { account, before, after, blocked, unblocked }))
}
