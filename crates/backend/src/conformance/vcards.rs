//! What accounts tell of themselves.

use super::ground::*;
use bytes::Bytes;
use carillon_core::model::*;
use carillon_core::ports::Store;
use carillon_core::ports::store::vcard::*;

pub(super) fn keep(domain: DomainId, local: &str, xml: &str) -> StoreVcard {
    StoreVcard { domain, local: local.into(), xml: Bytes::copy_from_slice(xml.as_bytes()) }
}

fn read(store: &dyn Store, domain: DomainId, local: &str) -> Option<String> {
    let found = ask(store, ReadVcard { domain, local: local.into() });
    found.map(|xml| String::from_utf8(xml.to_vec()).unwrap())
}

pub(super) fn are_kept_and_replaced(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    account(store, domain, "bob");
    assert_eq!(read(store, domain, "alice"), None);
    done(store, keep(domain, "alice", "<\u{1F514}/>"));
    assert_eq!(read(store, domain, "alice").as_deref(), Some("<\u{1F514}/>"));
    assert_eq!(read(store, domain, "bob"), None);
    assert_eq!(read(store, domain, "nobody"), None);
    done(store, keep(domain, "alice", "<two/>"));
    assert_eq!(read(store, domain, "alice").as_deref(), Some("<two/>"));
    done(store, keep(domain, "alice", ""));
    assert_eq!(read(store, domain, "alice"), None);
    missing(store, keep(domain, "nobody", "<one/>"));
}

pub(super) fn go_with_their_account(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    done(store, keep(domain, "alice", "<one/>"));
    done(store, DeleteAccount { domain, local: "alice".into(), now: T, held_until: T, rows_max: u32::MAX });
    account(store, domain, "alice");
    assert_eq!(read(store, domain, "alice"), None);
}

pub(super) fn write_lasting(store: &dyn Store) {
    let domain = domain(store);
    account(store, domain, "alice");
    done(store, keep(domain, "alice", "<one/>"));
}

pub(super) fn check_lasting(store: &dyn Store) {
    assert_eq!(read(store, domains(store)[0].id, "alice").as_deref(), Some("<one/>"));
}
