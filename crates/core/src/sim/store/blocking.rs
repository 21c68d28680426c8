//! Block lists and privacy lists.

use super::{Committed, answers};
use crate::model::{BlockList, BlockListBounds, BlockListChange};
use crate::ports::store::blocking::{
    ChangeBlockList, ChangeBlockListAnswer, ChangePrivacyLists, ChangePrivacyListsAnswer,
};
use carillon_wire::jid::Jid;
use std::collections::BTreeSet;
use std::convert::Infallible;

answers! {
    ChangeBlockList => change;
    ChangePrivacyLists => change_privacy;
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

    fn first(&mut self, max: usize) -> Result<Vec<Jid>, Infallible> {
        Ok(self.iter().take(max).cloned().collect())
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
    ChangeBlockListAnswer::Changed(Box::new(BlockListChange {
        account,
        before,
        after,
        blocked,
        unblocked,
        by_lists: false,
    }))
}

fn change_privacy(store: &mut Committed, asked: &ChangePrivacyLists) -> ChangePrivacyListsAnswer {
    let Some(account) = store.account_mut(asked.domain, &asked.local) else {
        return ChangePrivacyListsAnswer::NoAccount;
    };
    let Ok(edited) =
        account.privacy.edited(&asked.edit, &mut account.blocked, asked.bounds, asked.block_list);
    let edited = match edited {
        Ok(edited) => edited,
        Err(refusal) => return ChangePrivacyListsAnswer::Refused(refusal),
    };
    let answer = asked.changed(&account.jid, account.record, &account.privacy, &edited);
    account.record = answer.generation().unwrap_or(account.record);
    account.blocked.extend(edited.blocked);
    account.blocked.retain(|jid| edited.unblocked.binary_search(jid).is_err());
    account.privacy = edited.lists;
    answer
}
