//! Block lists and privacy lists.

use super::ground::*;
use super::rosters;
use carillon_core::model::*;
use carillon_core::ports::Store;
use carillon_core::ports::store::blocking::{
    ChangeBlockList, ChangeBlockListAnswer, ChangePrivacyLists, ChangePrivacyListsAnswer,
};
use carillon_core::ports::store::roster::{ChangeSubscription, ReadRecord};
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
        BlockListChange {
            account,
            before,
            after,
            blocked: sorted.clone(),
            unblocked: vec![],
            by_lists: false
        }
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

pub(super) fn are_emptied_in_parts(store: &dyn Store) {
    let domain = ground(store);
    let jids: Vec<Jid> = (0..UNBLOCKED_MAX + 5)
        .map(|n| Jid::new(&format!("u{n:05}@a.example")).expect("an address"))
        .collect();
    let bounds = BlockListBounds { addresses: 10_000, bytes: 1 << 20 };
    changed(store, ChangeBlockList { bounds, ..edit(domain, "alice", BlockListEdit::Block(jids.clone())) });
    let part = || changed(store, edit(domain, "alice", BlockListEdit::UnblockAll));
    let (first, last, none) = (part(), part(), part());
    assert_eq!((first.unblocked.len(), last.unblocked.len()), (UNBLOCKED_MAX, 5));
    assert_eq!([first.unblocked, last.unblocked].concat(), jids);
    assert_eq!((first.after, last.before), (Generation(2), Generation(2)));
    assert_eq!((none.before, none.after, none.unblocked), (Generation(3), Generation(3), vec![]));
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
    done(store, DeleteAccount { domain, local: "alice".into(), now: T, held_until: T, rows_max: u32::MAX });
    account(store, domain, "alice");
    assert_eq!(list(store, domain), []);
}

pub(super) fn keep_subscriptions_out(store: &dyn Store) {
    let domain = ground(store);
    changed(store, edit(domain, "bob", block(&["alice@example.org"])));
    ask(store, rosters::says(domain, "alice", "bob@example.org", SubscriptionAction::Subscribe));
    assert_eq!(rosters::record(store, domain, "bob").roster, Roster::default());
}

const LIST_BOUNDS: PrivacyBounds = PrivacyBounds { lists: 3, rules: 4, bytes: 1000 };

pub(super) fn edit_lists(domain: DomainId, edit: PrivacyEdit) -> ChangePrivacyLists {
    ChangePrivacyLists { domain, local: "alice".into(), edit, bounds: LIST_BOUNDS, block_list: BOUNDS }
}

/// A list that denies everything to and from some addresses, and messages of everybody in a group.
pub(super) fn a_list(name: &str, blocked: &[&str], group: Option<&str>) -> PrivacyEdit {
    let about = addresses(blocked).into_iter().map(RuleAbout::Jid).map(|about| (about, StanzaKinds::ALL));
    let messages = StanzaKinds::ALL.and(StanzaKind::Message);
    let group = group.map(|group| (RuleAbout::Group(group.into()), messages));
    let rules = about.chain(group).zip(1..);
    let rules = rules.map(|((about, kinds), order)| PrivacyRule { order, about, denies: true, kinds });
    PrivacyEdit::Put(PrivacyList { name: name.into(), rules: rules.collect() })
}

fn edited(
    store: &dyn Store,
    domain: DomainId,
    edit: PrivacyEdit,
) -> (Option<PrivacyChange>, Option<BlockListChange>) {
    answer!(ask(store, edit_lists(domain, edit)), ChangePrivacyListsAnswer::Changed(lists, blocks) => {
        (lists.map(|change| *change), blocks.map(|change| *change))
    })
}

fn lists(store: &dyn Store, domain: DomainId) -> PrivacyLists {
    rosters::record(store, domain, "alice").privacy.map(|lists| *lists).unwrap_or_default()
}

pub(super) fn and_default_lists_are_one(store: &dyn Store) {
    let domain = ground(store);
    let (change, blocks) = edited(store, domain, a_list("a", &["x.org"], Some("Enemies")));
    let change = change.expect("a change");
    assert_eq!((change.before, change.after, blocks), (Generation(0), Generation(1), None));
    assert_eq!((lists(store, domain), &*change.changed[0]), (change.lists, "a"));
    assert_eq!(list(store, domain), [], "it is not the default list");
    // As the default list it blocks.
    let (change, blocks) = edited(store, domain, PrivacyEdit::Default(Some("a".into())));
    let (change, blocks) = (change.expect("a change"), blocks.expect("a change"));
    assert_eq!((change.before, change.after), (Generation(1), Generation(2)));
    assert_eq!((blocks.before, blocks.after, blocks.by_lists), (Generation(2), Generation(3), true));
    assert_eq!((&blocks.blocked, list(store, domain)), (&addresses(&["x.org"]), addresses(&["x.org"])));
    assert_eq!(login(store, domain, "alice").record, Generation(3));
    // Who is blocked since is in the list, first.
    changed(store, edit(domain, "alice", block(&["b.org"])));
    let rules = lists(store, domain).rules_of("a", &list(store, domain)).expect("the list");
    let about: Vec<RuleAbout> = rules.into_iter().map(|rule| rule.about).collect();
    let [first, second] = [0, 1].map(|n| RuleAbout::Jid(addresses(&["b.org", "x.org"])[n].clone()));
    assert_eq!(about, [first, second, RuleAbout::Group("Enemies".into())]);
    // Another default list blocks others; the one before stays as it was.
    edited(store, domain, a_list("b", &["c.org"], None));
    let (_, blocks) = edited(store, domain, PrivacyEdit::Default(Some("b".into())));
    let blocks = blocks.expect("a change");
    assert_eq!((blocks.blocked, blocks.unblocked), (addresses(&["c.org"]), addresses(&["b.org", "x.org"])));
    assert_eq!(lists(store, domain).kept("a").map(|list| list.rules.len()), Some(3));
    edited(store, domain, PrivacyEdit::Remove("b".into()));
    assert_eq!((list(store, domain), lists(store, domain).default), (vec![], None));
    // What changes nothing makes no generation.
    assert_eq!(edited(store, domain, PrivacyEdit::Default(None)), (None, None));
    edited(store, domain, PrivacyEdit::Remove("a".into()));
    assert_eq!(rosters::record(store, domain, "alice").privacy, None);
}

pub(super) fn of_names_are_bounded_and_go_with_their_account(store: &dyn Store) {
    let domain = ground(store);
    let refused = |edit| match ask(store, edit_lists(domain, edit)) {
        ChangePrivacyListsAnswer::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    };
    let none =
        ChangePrivacyLists { local: "nobody".into(), ..edit_lists(domain, PrivacyEdit::Default(None)) };
    assert_eq!(ask(store, none), ChangePrivacyListsAnswer::NoAccount);
    for name in ["a", "b"] {
        assert_eq!(refused(PrivacyEdit::Remove(name.into())), PrivacyRefusal::NoList);
        assert_eq!(refused(PrivacyEdit::Default(Some(name.into()))), PrivacyRefusal::NoList);
        edited(store, domain, a_list(name, &["x.org"], None));
    }
    assert_eq!(
        refused(a_list("c", &["1.org", "2.org", "3.org", "4.org", "5.org"], None)),
        PrivacyRefusal::Full
    );
    let long = "x".repeat(900);
    assert_eq!(refused(a_list("c", &[], Some(&long))), PrivacyRefusal::Full);
    edited(store, domain, a_list("c", &["x.org"], None));
    assert_eq!(refused(a_list("d", &["x.org"], None)), PrivacyRefusal::Full);
    // The default list blocks as many as the block list holds, with its other rules besides.
    edited(store, domain, PrivacyEdit::Default(Some("c".into())));
    edited(store, domain, a_list("c", &["1.org", "2.org", "3.org", "4.org"], Some("Enemies")));
    assert_eq!(
        refused(a_list("c", &["1.org", "2.org", "3.org", "4.org", "5.org"], None)),
        PrivacyRefusal::Full
    );
    assert_eq!(list(store, domain).len(), 4);
    done(store, DeleteAccount { domain, local: "alice".into(), now: T, held_until: T, rows_max: u32::MAX });
    account(store, domain, "alice");
    assert_eq!((list(store, domain), lists(store, domain)), (vec![], PrivacyLists::default()));
}

pub(super) fn of_groups_are_read_with_who_asks(store: &dyn Store) {
    let domain = ground(store);
    let bob = jid("bob@example.org");
    let groups = vec!["Enemies".into()];
    done(store, PutContact { contact: bob, groups, ..rosters::put(domain, "alice", "bob@example.org", "") });
    let ask_about = |jids: &[&str]| {
        let parts = RecordParts { blocked: true, privacy: true, ..RecordParts::NONE };
        let asked = ReadRecord { domain, local: "alice".into(), parts, about: addresses(jids) };
        let record = ask(store, asked).expect("a record");
        record.roster.contacts.iter().map(|contact| contact.jid.to_string()).collect::<Vec<_>>()
    };
    edited(store, domain, a_list("a", &["x.org"], Some("Enemies")));
    assert_eq!(ask_about(&["bob@example.org/r", "carol@example.org"]), [""; 0], "it is not the default list");
    edited(store, domain, PrivacyEdit::Default(Some("a".into())));
    assert_eq!(ask_about(&["bob@example.org/r", "carol@example.org"]), ["bob@example.org"]);
    edited(store, domain, a_list("a", &["x.org"], None));
    assert_eq!(ask_about(&["bob@example.org/r"]), [""; 0], "no rule is about contacts");
}

pub(super) fn of_names_keep_subscriptions_out(store: &dyn Store) {
    let domain = ground(store);
    let everybody = PrivacyRule { order: 1, about: RuleAbout::All, denies: true, kinds: StanzaKinds::ALL };
    let list = PrivacyList { name: "a".into(), rules: vec![everybody] };
    edited(store, domain, PrivacyEdit::Put(list));
    edited(store, domain, PrivacyEdit::Default(Some("a".into())));
    let subscribes = |by_lists| ChangeSubscription {
        by_lists,
        ..rosters::says(domain, "bob", "alice@example.org", SubscriptionAction::Subscribe)
    };
    ask(store, subscribes(true));
    assert_eq!(rosters::record(store, domain, "alice").roster, Roster::default());
    ask(store, rosters::says(domain, "bob", "alice@example.org", SubscriptionAction::Unsubscribe));
    ask(store, subscribes(false));
    assert_eq!(rosters::record(store, domain, "alice").roster.contacts.len(), 1);
}

pub(super) fn write_lasting(store: &dyn Store) {
    let domain = ground(store);
    changed(store, edit(domain, "alice", block(&["a.org", "bob@example.org"])));
    edited(store, domain, a_list("a", &["x.org"], Some("Enemies")));
}

pub(super) fn check_lasting(store: &dyn Store) {
    let domain = domains(store)[0].id;
    assert_eq!(list(store, domain), addresses(&["a.org", "bob@example.org"]));
    assert_eq!(lists(store, domain).kept("a").map(|list| list.rules.len()), Some(2));
}
