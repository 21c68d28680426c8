//! What clients keep for themselves.

use super::ground::*;
use bytes::Bytes;
use carillon_core::model::*;
use carillon_core::ports::Store;
use carillon_core::ports::store::private::*;

pub(super) fn element(name: &str, ns: &str, xml: &str) -> PrivateElement {
    PrivateElement { name: name.into(), ns: ns.into(), xml: Bytes::copy_from_slice(xml.as_bytes()) }
}

pub(super) fn keep(domain: DomainId, local: &str, elements: Vec<PrivateElement>) -> StorePrivate {
    StorePrivate { domain, local: local.into(), elements, bytes_max: 100 }
}

fn read(store: &dyn Store, domain: DomainId, local: &str, name: &str, ns: &str) -> Option<String> {
    let asked = ReadPrivate { domain, local: local.into(), name: name.into(), ns: ns.into() };
    let found = ask(store, asked).expect("the account is there");
    found.map(|xml| String::from_utf8(xml.to_vec()).unwrap())
}

pub(super) fn is_kept_by_name_and_namespace(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    account(store, domain, "bob");
    assert_eq!(read(store, domain, "alice", "a", "n"), None);
    let two = vec![element("a", "n", "<one/>"), element("a", "m", "<tw\u{1F514}o/>")];
    assert_eq!(ask(store, keep(domain, "alice", two)), StorePrivateAnswer::Stored);
    assert_eq!(read(store, domain, "alice", "a", "n").as_deref(), Some("<one/>"));
    assert_eq!(read(store, domain, "alice", "a", "m").as_deref(), Some("<tw\u{1F514}o/>"));
    assert_eq!(read(store, domain, "alice", "b", "n"), None);
    assert_eq!(read(store, domain, "bob", "a", "n"), None);
    // In place of what was there; of two the later; and empty for not at all.
    let again = vec![element("a", "n", "<two/>"), element("a", "n", "<three/>"), element("a", "m", "")];
    assert_eq!(ask(store, keep(domain, "alice", again)), StorePrivateAnswer::Stored);
    assert_eq!(read(store, domain, "alice", "a", "n").as_deref(), Some("<three/>"));
    assert_eq!(read(store, domain, "alice", "a", "m"), None);
    missing(store, ReadPrivate { domain, local: "nobody".into(), name: "a".into(), ns: "n".into() });
    assert_eq!(ask(store, keep(domain, "nobody", vec![])), StorePrivateAnswer::NoAccount);
}

pub(super) fn is_listed(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    account(store, domain, "bob");
    let all = |local: &str| ask(store, PrivateElements { domain, local: local.into() });
    assert_eq!(all("alice"), []);
    let kept = vec![element("b", "m", "<b/>"), element("a", "n", "<a/>"), element("a", "m", "<am/>")];
    assert_eq!(ask(store, keep(domain, "alice", kept)), StorePrivateAnswer::Stored);
    let sorted = [element("a", "m", "<am/>"), element("b", "m", "<b/>"), element("a", "n", "<a/>")];
    assert_eq!(all("alice"), sorted);
    assert_eq!((all("bob"), all("nobody")), (vec![], vec![]));
}

pub(super) fn is_bounded_in_bytes(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    let of = |name: &str, bytes: usize| element(name, "n", &"x".repeat(bytes));
    assert_eq!(ask(store, keep(domain, "alice", vec![of("a", 60)])), StorePrivateAnswer::Stored);
    // All or nothing.
    let more = vec![of("b", 30), of("c", 30)];
    assert_eq!(ask(store, keep(domain, "alice", more)), StorePrivateAnswer::Full);
    assert_eq!(read(store, domain, "alice", "b", "n"), None);
    // What is replaced makes room: 98 bytes with two of each for the names.
    assert_eq!(ask(store, keep(domain, "alice", vec![of("a", 98)])), StorePrivateAnswer::Stored);
    assert_eq!(ask(store, keep(domain, "alice", vec![of("a", 99)])), StorePrivateAnswer::Full);
    assert_eq!(ask(store, keep(domain, "alice", vec![of("a", 0), of("b", 98)])), StorePrivateAnswer::Stored);
}

pub(super) fn goes_with_its_account(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    ask(store, keep(domain, "alice", vec![element("a", "n", "<one/>")]));
    done(store, DeleteAccount { domain, local: "alice".into(), now: T, held_until: T, rows_max: u32::MAX });
    account(store, domain, "alice");
    assert_eq!(read(store, domain, "alice", "a", "n"), None);
}

pub(super) fn write_lasting(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    ask(store, keep(domain, "alice", vec![element("a", "n", "<one/>")]));
}

pub(super) fn check_lasting(store: &dyn Store) {
    assert_eq!(read(store, domains(store)[0].id, "alice", "a", "n").as_deref(), Some("<one/>"));
}
