//! Chat messages kept for accounts that were away.

use super::push::{self, Tells};
use super::{Committed, answers, page};
use crate::model::{ExpiredMessage, OfflineMessage};
use crate::ports::Part;
use crate::ports::store::offline::{
    DeleteOffline, ExpiredOffline, Offline, StoreOffline, StoreOfflineAnswer,
};
use std::ops::Bound;

answers! {
    Offline => waiting;
    ExpiredOffline => expired;
    StoreOffline => keep;
    DeleteOffline => delete;
}

fn waiting(store: &Committed, asked: &Offline) -> Part<OfflineMessage> {
    let Some(account) = store.account(asked.domain, &asked.local) else { return Part::default() };
    let later = account.messages.range((Bound::Excluded(asked.after), Bound::Unbounded));
    page::first(later.map(|(_, message)| (message.stanza.len(), message.clone())), asked.page)
}

fn expired(store: &Committed, asked: &ExpiredOffline) -> Part<ExpiredMessage> {
    let all = store
        .accounts
        .values()
        .flat_map(|account| account.messages.values().map(|message| (&account.jid, message)));
    let mut over: Vec<_> =
        all.filter(|(_, message)| message.expires.is_some_and(|at| at <= asked.now)).collect();
    over.sort_by_key(|(_, message)| (message.expires, message.seq));
    let over = over.into_iter().map(|(to, message)| {
        (message.stanza.len(), ExpiredMessage { to: to.clone(), message: message.clone() })
    });
    page::first(over, asked.page)
}

fn keep(store: &mut Committed, asked: &StoreOffline) -> StoreOfflineAnswer {
    let seq = u64::from(store.number());
    let Some(account) = store.account_mut(asked.domain, &asked.local) else {
        return StoreOfflineAnswer::NoAccount;
    };
    let bytes: usize = account.messages.values().map(|message| message.stanza.len()).sum();
    let is_too_much = (bytes + asked.stanza.len()) as u64 > asked.bytes_max;
    if is_too_much || account.messages.len() >= asked.queue_max as usize {
        return StoreOfflineAnswer::Full;
    }
    let message = OfflineMessage {
        seq,
        received: asked.received,
        stanza: asked.stanza.clone(),
        expires: asked.expires,
    };
    account.messages.insert(seq, message);
    if let Some(account) = store.account_id(asked.domain, &asked.local) {
        push::wake(store, account, asked.wake.as_ref(), Tells::Message(seq));
    }
    StoreOfflineAnswer::Stored(seq)
}

fn delete(store: &mut Committed, asked: &DeleteOffline) {
    if let Some(account) = store.account_mut(asked.domain, &asked.local) {
        asked.seqs.iter().for_each(|seq| drop(account.messages.remove(seq)));
    }
}
