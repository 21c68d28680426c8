//! Block lists.

use super::{Committed, answers};
use crate::model::BlockListChange;
use crate::ports::store::blocking::{ChangeBlockList, ChangeBlockListAnswer};

answers! {
    ChangeBlockList => change;
}

fn change(store: &mut Committed, asked: &ChangeBlockList) -> ChangeBlockListAnswer {
    let Some(account) = store.account_mut(asked.domain, &asked.local) else {
        return ChangeBlockListAnswer::NoAccount;
    };
    let list: Vec<_> = account.blocked.iter().cloned().collect();
    let Some((blocked, unblocked)) = asked.edit.apply(&list, asked.bounds) else {
        return ChangeBlockListAnswer::Full;
    };
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
