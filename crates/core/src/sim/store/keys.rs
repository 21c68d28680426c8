//! API keys.

use super::{Committed, answers, tables};
use crate::model::{ApiKey, KeyId};
use crate::ports::Missing;
use crate::ports::store::keys::{CreateKey, CreateKeyAnswer, DeleteKey, ExpireKey, Key, Keys, NoteKeyUse};

answers! {
    Key => find;
    Keys => list;
    CreateKey => create;
    DeleteKey => delete;
    ExpireKey => expire;
    NoteKeyUse => note_use;
}

fn find(store: &Committed, asked: &Key) -> Option<ApiKey> {
    store.keys.values().find(|key| key.hash == asked.hash).map(|key| key.key.clone())
}

fn list(store: &Committed, asked: &Keys) -> Vec<ApiKey> {
    let keys = store.keys.values().map(|key| &key.key);
    keys.filter(|key| asked.domain.is_none() || key.domain == asked.domain).cloned().collect()
}

fn create(store: &mut Committed, asked: &CreateKey) -> CreateKeyAnswer {
    if asked.domain.is_some_and(|domain| !store.domains.contains_key(&domain)) {
        return CreateKeyAnswer::NoDomain;
    }
    let of_domain = store.keys.values().filter(|key| key.key.domain == asked.domain).count();
    let max = asked.domain.map_or(asked.node_keys_max, |domain| store.domains[&domain].policy.keys_max);
    if of_domain >= max as usize {
        return CreateKeyAnswer::Full;
    }
    if store.keys.values().any(|key| key.hash == asked.hash) {
        return CreateKeyAnswer::Exists;
    }
    let key = ApiKey {
        id: KeyId(store.number()),
        name: asked.name.clone(),
        domain: asked.domain,
        scopes: asked.scopes,
        created: asked.now,
        expires: asked.expires,
        networks: asked.networks.clone(),
        certificates: asked.certificates.clone(),
        used: None,
    };
    store.keys.insert(key.id, tables::Key { hash: asked.hash, key: key.clone() });
    CreateKeyAnswer::Created(key)
}

fn delete(store: &mut Committed, asked: &DeleteKey) -> Result<(), Missing> {
    store.keys.remove(&asked.id).ok_or(Missing)?;
    store.reserved.retain(|(key, _), _| *key != asked.id);
    Ok(())
}

fn expire(store: &mut Committed, asked: &ExpireKey) -> Result<ApiKey, Missing> {
    let key = &mut store.keys.get_mut(&asked.id).ok_or(Missing)?.key;
    key.expires = asked.expires;
    Ok(key.clone())
}

fn note_use(store: &mut Committed, asked: &NoteKeyUse) {
    if let Some(key) = store.keys.get_mut(&asked.id) {
        key.key.used = key.key.used.max(Some(asked.at));
    }
}
