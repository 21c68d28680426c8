//! API keys.

use super::ground::*;
use carillon_core::model::*;
use carillon_core::ports::Store;
use carillon_core::ports::store::keys::{ExpireKey, NoteKeyUse};

pub(super) fn create(seed: u8, domain: Option<DomainId>) -> CreateKey {
    let scopes = Scopes::of(&[Scope::Send, Scope::Topics]);
    let (hash, name, node_keys_max) = ([seed; 32], format!("key {seed}").into(), NODE_KEYS_MAX);
    CreateKey {
        hash,
        name,
        domain,
        scopes,
        expires: None,
        networks: Box::default(),
        certificates: Box::default(),
        node_keys_max,
        now: T,
    }
}

fn key(store: &dyn Store, seed: u8, domain: Option<DomainId>) -> ApiKey {
    answer!(ask(store, create(seed, domain)), CreateKeyAnswer::Created(key) => key)
}

fn listed(store: &dyn Store, domain: Option<DomainId>) -> Vec<ApiKey> {
    ask(store, Keys { domain })
}

pub(super) fn are_found_by_hash(store: &dyn Store) {
    let domain = domain(store);
    let made = key(store, 1, Some(domain));
    let scopes = Scopes::of(&[Scope::Send, Scope::Topics]);
    let expected = ApiKey {
        id: made.id,
        name: "key 1".into(),
        domain: Some(domain),
        scopes,
        created: T,
        expires: None,
        networks: Box::default(),
        certificates: Box::default(),
        used: None,
    };
    assert_eq!(made, expected);
    assert_eq!(ask(store, Key { hash: [1; 32] }), Some(made));
    missing(store, Key { hash: [2; 32] });
}

pub(super) fn are_listed(store: &dyn Store) {
    let (domain, other) = (domain(store), domain_named(store, "other.example"));
    let keys = [key(store, 1, None), key(store, 2, Some(domain)), key(store, 3, Some(other))];
    assert_eq!(listed(store, None), keys);
    assert_eq!(listed(store, Some(domain)), keys[1..2]);
    assert!(listed(store, Some(DomainId(99))).is_empty());
}

pub(super) fn are_deleted(store: &dyn Store) {
    let made = key(store, 1, None);
    done(store, DeleteKey { id: made.id });
    missing(store, DeleteKey { id: made.id });
    missing(store, Key { hash: [1; 32] });
    assert_ne!(key(store, 1, None).id, made.id);
}

pub(super) fn are_made_once(store: &dyn Store) {
    let made = key(store, 1, None);
    assert_eq!(ask(store, create(1, None)), CreateKeyAnswer::Exists);
    assert_eq!(listed(store, None), [made]);
}

pub(super) fn need_their_domain(store: &dyn Store) {
    missing(store, create(1, Some(DomainId(9))));
    assert!(listed(store, None).is_empty());
}

pub(super) fn expire_as_they_were_created(store: &dyn Store) {
    let expires = Some(T.plus(5));
    let made = answer!(
        ask(store, CreateKey { expires, ..create(1, None) }), CreateKeyAnswer::Created(key) => key
    );
    assert_eq!(made.expires, expires);
    assert!(!made.is_expired(T.plus(4)) && made.is_expired(T.plus(5)));
    assert_eq!(ask(store, Key { hash: [1; 32] }), Some(made.clone()));
    assert_eq!(listed(store, None), [made]);
}

pub(super) fn are_as_many_as_the_domain_may_have(store: &dyn Store) {
    let policy = Policy { keys_max: 2, ..Policy::default() };
    let domain = ask(store, PutDomain { name: "example.org".into(), policy }).domain.id;
    let first = key(store, 1, Some(domain));
    key(store, 2, Some(domain));
    assert_eq!(ask(store, create(3, Some(domain))), CreateKeyAnswer::Full);
    key(store, 4, None);
    key(store, 5, Some(domain_named(store, "other.example")));
    done(store, DeleteKey { id: first.id });
    key(store, 3, Some(domain));
}

pub(super) fn are_ended_earlier_or_later(store: &dyn Store) {
    let made = key(store, 1, None);
    let expire = |id, expires| ask(store, ExpireKey { id, expires });
    let ends = ApiKey { expires: Some(T.plus(5)), ..made.clone() };
    assert_eq!(expire(made.id, Some(T.plus(5))), Ok(ends.clone()));
    assert_eq!(ask(store, Key { hash: [1; 32] }), Some(ends));
    assert_eq!(expire(made.id, None), Ok(made.clone()));
    assert_eq!(expire(KeyId(99), None), Err(Missing));
}

pub(super) fn have_networks_and_a_time_of_use(store: &dyn Store) {
    let networks: Box<[Box<str>]> = ["192.0.2.0/24".into(), "2001:db8::/32".into()].into();
    let certificates: Box<[Box<str>]> = ["dns:shop.example.org".into(), "cn:Shop".into()].into();
    let made = answer!(
        ask(store, CreateKey { networks: networks.clone(), certificates: certificates.clone(), ..create(1, None) }), CreateKeyAnswer::Created(key) => key
    );
    assert_eq!((&made.networks, &made.certificates, made.used), (&networks, &certificates, None));
    let used = |at| {
        ask(store, NoteKeyUse { id: made.id, at: T.plus(at) });
        ask(store, Key { hash: [1; 32] }).and_then(|key| key.used)
    };
    assert_eq!([used(5), used(3), used(7)], [5, 5, 7].map(|ms| Some(T.plus(ms))));
    assert_eq!(ask(store, Key { hash: [1; 32] }), Some(ApiKey { used: Some(T.plus(7)), ..made }));
    ask(store, NoteKeyUse { id: KeyId(99), at: T });
}

pub(super) fn of_no_domain_are_bounded(store: &dyn Store) {
    let of_node = |seed| CreateKey { node_keys_max: 2, ..create(seed, None) };
    let first = key(store, 1, None);
    key(store, 2, Some(domain(store)));
    assert!(matches!(ask(store, of_node(3)), CreateKeyAnswer::Created(_)));
    assert_eq!(ask(store, of_node(4)), CreateKeyAnswer::Full);
    done(store, DeleteKey { id: first.id });
    assert!(matches!(ask(store, of_node(4)), CreateKeyAnswer::Created(_)));
}
