//! What a node makes sure of before it serves: that its domain is in the store, and the key of its data folder.

use super::reload::policy;
use crate::config::Config;
use crate::files::AdminKey;
use carillon_core::model::{Scope, Scopes, UnixMs};
use carillon_core::ports::store::domains::{Domains, PutDomain};
use carillon_core::ports::store::keys::{CreateKey, CreateKeyAnswer, Key};
use carillon_core::ports::{Question, Store};
use std::path::Path;
use std::sync::mpsc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Makes sure that the configured domain is there, with its policy; whether it was not.
pub(super) fn ensure_domain(store: &dyn Store, config: &Config) -> Result<bool, String> {
    let name = carillon_wire::jid::prepare_domain(&config.settings.node.domain)
        .map_err(|e| format!("domain: {e}"))?;
    let domains = ask(store, Domains)?;
    let present = domains.iter().find(|d| *d.name == *name).map(|d| d.granted);
    let policy = present.map_or(config.settings.policy, |present| policy(config, present));
    if present == Some(policy) {
        return Ok(false);
    }
    ask(store, PutDomain { name: name.into(), policy })?;
    Ok(present.is_none())
}

/// The key of the data folder, which the store knows then. One that the store knew before was removed: it may have leaked, so
/// another takes its place.
pub(super) fn ensure_admin_key(store: &dyn Store, data_dir: &Path) -> Result<AdminKey, String> {
    let mut key = AdminKey::read_or_create(data_dir).map_err(|e| e.to_string())?;
    let mut hash = hash(&key)?;
    let known = ask(store, Key { hash })?.is_some();
    if !known && AdminKey::was_known(data_dir, &hash).map_err(|e| e.to_string())? {
        key = AdminKey::replace(data_dir).map_err(|e| e.to_string())?;
        hash = self::hash(&key)?;
        let path = AdminKey::path(data_dir);
        tracing::warn!(path = %path.display(), "the admin key was removed; another one was made");
    }
    if !known {
        create_admin_key(store, hash)?;
    }
    AdminKey::note_known(data_dir, &hash).map_err(|e| e.to_string())?;
    Ok(key)
}

fn hash(key: &AdminKey) -> Result<[u8; 32], String> {
    let hash = carillon_http::key_hash(key.as_str());
    hash.ok_or_else(|| "the admin key is not a key; remove the file to have a new one".to_owned())
}

fn create_admin_key(store: &dyn Store, hash: [u8; 32]) -> Result<(), String> {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = UnixMs(elapsed.as_millis() as u64);
    let scopes = Scopes::of(&[Scope::Admin]);
    // The operator of the machine is not locked out by the keys that were made over HTTP.
    let node_keys_max = u32::MAX;
    let create = CreateKey {
        hash,
        name: "admin.key".into(),
        domain: None,
        scopes,
        expires: None,
        networks: Box::default(),
        certificates: Box::default(),
        node_keys_max,
        now,
    };
    match ask(store, create)? {
        CreateKeyAnswer::Created(_) => Ok(()),
        answer => Err(format!("the admin key cannot be written: {answer:?}")),
    }
}

/// Asks and waits: before anything else runs.
fn ask<Q: Question>(store: &dyn Store, question: Q) -> Result<Q::Answer, String> {
    let (sender, answers) = mpsc::sync_channel(1);
    store.ask(question.into(), Q::reply(move |answer| drop(sender.send(answer))));
    let answer = answers.recv().map_err(|_| "the store does not answer")?;
    answer.map_err(|fault| fault.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_backend::StoreOptions;
    use carillon_core::ports::store::keys::DeleteKey;

    #[test]
    fn an_admin_key_that_was_removed_stays_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let store =
            carillon_backend::open(StoreOptions::new(folder.path().join("carillon.db"))).expect("a store");
        let first = ensure_admin_key(&*store, folder.path()).expect("made");
        assert_eq!(ensure_admin_key(&*store, folder.path()).expect("known"), first);
        let hash = hash(&first).expect("a key");
        let Ok(Some(known)) = ask(&*store, Key { hash }) else { panic!("the store knows it") };
        assert_eq!(ask(&*store, DeleteKey { id: known.id }), Ok(Ok(())));
        let second = ensure_admin_key(&*store, folder.path()).expect("another");
        assert_ne!(second, first);
        assert_eq!(AdminKey::read(folder.path()).expect("written"), second);
        assert_eq!(ask(&*store, Key { hash }), Ok(None), "the first is gone for good");
        assert_eq!(ensure_admin_key(&*store, folder.path()).expect("known"), second);
    }

    #[test]
    fn a_key_that_the_operator_put_there_is_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        let store =
            carillon_backend::open(StoreOptions::new(folder.path().join("carillon.db"))).expect("a store");
        let own = AdminKey::read_or_create(folder.path()).expect("made");
        assert_eq!(ensure_admin_key(&*store, folder.path()).expect("taken"), own);
    }
}
