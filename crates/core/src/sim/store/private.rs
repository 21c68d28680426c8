//! What clients keep for themselves.

use super::{Committed, answers};
use crate::ports::Missing;
use crate::ports::store::private::{
    PrivateElement, PrivateElements, ReadPrivate, StorePrivate, StorePrivateAnswer,
};
use bytes::Bytes;

answers! {
    ReadPrivate => read;
    PrivateElements => all;
    StorePrivate => keep;
}

fn read(store: &Committed, asked: &ReadPrivate) -> Result<Option<Bytes>, Missing> {
    let account = store.account(asked.domain, &asked.local).ok_or(Missing)?;
    Ok(account.private.get(&(asked.ns.clone(), asked.name.clone())).cloned())
}

fn all(store: &Committed, asked: &PrivateElements) -> Vec<PrivateElement> {
    let account = store.account(asked.domain, &asked.local);
    let elements = account.into_iter().flat_map(|account| &account.private);
    elements
        .map(|((ns, name), xml)| PrivateElement { name: name.clone(), ns: ns.clone(), xml: xml.clone() })
        .collect()
}

fn keep(store: &mut Committed, asked: &StorePrivate) -> StorePrivateAnswer {
    let Some(account) = store.account_mut(asked.domain, &asked.local) else {
        return StorePrivateAnswer::NoAccount;
    };
    let mut private = account.private.clone();
    for PrivateElement { name, ns, xml } in &asked.elements {
        match xml.is_empty() {
            true => private.remove(&(ns.clone(), name.clone())),
            false => private.insert((ns.clone(), name.clone()), xml.clone()),
        };
    }
    let bytes: usize = private.iter().map(|((ns, name), xml)| ns.len() + name.len() + xml.len()).sum();
    if bytes > asked.bytes_max {
        return StorePrivateAnswer::Full;
    }
    account.private = private;
    StorePrivateAnswer::Stored
}
