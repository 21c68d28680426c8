//! Block lists.

use super::ground::*;
use super::rosters;
use carillon_core::model::*;
use carillon_core::ports::Store;
use carillon_core::ports::store::blocking::{ChangeBlockList, ChangeBlockListAnswer};
use carillon_wire::jid::Jid;

const BOUNDS: BlockListBounds = BlockListBounds { addresses: 4, bytes: 100 };

pub(super) fn edit(domain: DomainId, local: &str, edit: BlockListEdit) -> ChangeBlockList {
    ChangeBlockList { domain, local: local.into(), edit, bounds: BOUNDS }
}

pub(super) fn block(jids: &[&str]) -> BlockListEdit {
    BlockListEdit::Block(addresses(jids))
}

fn unblock(jids: &[&str]) -> BlockListEdit {
    BlockListEdit::Unblock(addresses(jids))
}

fn addresses(jids: &[&str]) -> Vec<Jid> {
    jids.iter().map(|jid| Jid::new(jid).unwrap()).collect()
}

fn changed(store: &dyn Store, asked: ChangeBlockList) -> BlockListChange {
    answer!(ask(store, asked), ChangeBlockListAnswer::Changed(change) => *change)
}

fn list(store: &dyn Store, domain: DomainId) -> Vec<Jid> {
    rosters::record(store, domain, "alice").blocked
}

fn ground(store: &dyn Store) -> DomainId {
    let domain = domain(store);
    account(store, domain, "alice");
    account(store, domain, "bob");
    domain
}

/// An address is as long as it can be, and of letters that nothing compresses.
pub(super) fn are_of_addresses_of_any_length(store: &dyn Store) {
    let domain = ground(store);
    let long = |seed: u32| -> String {
        let next = |n: &u32| Some(n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
        let letters: String = std::iter::successors(Some(seed), next)
            .take(1023)
            .map(|n| char::from_digit((n >> 24) % 36, 36).unwrap_or('a'))
            .collect();
        format!("{letters}@{}.example.org/{letters}", [&letters[..63]; 15].join("."))
    };
    let (one, other) = (long(1), long(2));
    let blocking = |edit| ChangeBlockList {
        bounds: BlockListBounds { addresses: 4, bytes: 10_000 },
        ..self::edit(domain, "alice", edit)
    };
    changed(store, blocking(block(&[&one, &other])));
    assert_eq!(changed(store, blocking(block(&[&one]))).blocked, [], "it is there already");
    changed(store, blocking(unblock(&[&one])));
    assert_eq!(list(store, domain), addresses(&[&other]));
}

pub(super) fn are_sorted_and_without_doubles(store: &dyn Store) {
    let domain = ground(store);
    let names =
        ["läufer@example.org", "bob@example.org/phone", "bob@example.org", "example.net", "bob@example.org"];
    let sorted =
        addresses(&["bob@example.org", "bob@example.org/phone", "example.net", "läufer@example.org"]);
    let change = changed(store, edit(domain, "alice", block(&names)));
    let (before, after) = (Generation(0), Generation(1));
    let account = jid("alice@example.org");
    assert_eq!(
        change,
        BlockListChange { account, before, after, blocked: sorted.clone(), unblocked: vec![] }
    );
    assert_eq!(list(store, domain), sorted);
    assert_eq!(login(store, domain, "alice").record, Generation(1));
    assert_eq!(rosters::record(store, domain, "bob").blocked, []);
}

pub(super) fn say_what_changed(store: &dyn Store) {
    let domain = ground(store);
    changed(store, edit(domain, "alice", block(&["a.org", "b.org"])));
    // Only what is new, and what was there.
    let change = changed(store, edit(domain, "alice", block(&["b.org", "c.org"])));
    assert_eq!((change.blocked, change.after), (addresses(&["c.org"]), Generation(2)));
    let change = changed(store, edit(domain, "alice", unblock(&["a.org", "d.org"])));
    assert_eq!((change.unblocked, change.blocked), (addresses(&["a.org"]), vec![]));
    // What changes nothing makes no generation.
    let same = [block(&["b.org"]), unblock(&["a.org"])];
    for same in same {
        let change = changed(store, edit(domain, "alice", same));
        assert_eq!((change.before, change.after), (Generation(3), Generation(3)));
        assert_eq!((change.blocked, change.unblocked), (vec![], vec![]));
    }
    let change = changed(store, edit(domain, "alice", BlockListEdit::UnblockAll));
    assert_eq!((change.unblocked, change.after), (addresses(&["b.org", "c.org"]), Generation(4)));
    assert_eq!(list(store, domain), []);
}

pub(super) fn are_bounded_and_need_their_account(store: &dyn Store) {
    let domain = ground(store);
    let none = ask(store, edit(domain, "nobody", block(&["a.org"])));
    assert_eq!(none, ChangeBlockListAnswer::NoAccount);
    changed(store, edit(domain, "alice", block(&["a.org", "b.org", "c.org"])));
    let full = edit(domain, "alice", block(&["d.org", "e.org"]));
    assert_eq!(ask(store, full), ChangeBlockListAnswer::Full);
    let long = format!("{}.org", "x".repeat(60));
    let full = edit(domain, "bob", block(&[&long, &format!("y@{long}")]));
    assert_eq!(ask(store, full), ChangeBlockListAnswer::Full);
    assert_eq!(list(store, domain), addresses(&["a.org", "b.org", "c.org"]));
    // One that is full can still lose entries, and hears of what it has.
    changed(store, edit(domain, "alice", block(&["d.org"])));
    let less = ChangeBlockList {
        bounds: BlockListBounds { addresses: 0, bytes: 0 },
        ..edit(domain, "alice", unblock(&["d.org"]))
    };
    assert_eq!(changed(store, less).unblocked, addresses(&["d.org"]));
}

pub(super) fn go_with_their_account(store: &dyn Store) {
    let domain = ground(store);
    changed(store, edit(domain, "alice", block(&["a.org"])));
    done(store, DeleteAccount { domain, local: "alice".into(), now: T, held_until: T });
    account(store, domain, "alice");
    assert_eq!(list(store, domain), []);
}

pub(super) fn keep_subscriptions_out(store: &dyn Store) {
    let domain = ground(store);
    changed(store, edit(domain, "bob", block(&["alice@example.org"])));
    ask(store, rosters::says(domain, "alice", "bob@example.org", SubscriptionAction::Subscribe));
    assert_eq!(rosters::record(store, domain, "bob").roster, Roster::default());
}

pub(super) fn write_lasting(store: &dyn Store) {
    let domain = ground(store);
    changed(store, edit(domain, "alice", block(&["a.org", "bob@example.org"])));
}

pub(super) fn check_lasting(store: &dyn Store) {
    let domain = domains(store)[0].id;
    assert_eq!(list(store, domain), addresses(&["a.org", "bob@example.org"]));
}
