//! The nodes of accounts.

use super::ground::*;
use super::{blocklists, rosters};
use carillon_core::model::*;
use carillon_core::ports::Store;
use carillon_core::ports::store::accounts::DeleteAccount;
use carillon_core::ports::store::items::ItemNamesAnswer;
use carillon_core::ports::store::nodes::{EditNode, EditNodes, LastNodeItems, NodeItemNames, NodeItems};

const BOUNDS: NodeBounds = NodeBounds { nodes: 3, items: 10, bytes: 100 };

pub(super) fn edit(domain: DomainId, node: &str, edit: NodeEdit) -> EditNode {
    EditNode { domain, local: "alice".into(), node: node.into(), edit, bounds: BOUNDS, now: T }
}

pub(super) fn together(domain: DomainId, edits: Vec<NodeEdit>) -> EditNodes {
    EditNodes { domain, local: "alice".into(), node: "n".into(), edits, bounds: BOUNDS, now: T }
}

fn config(max_items: u32) -> TopicConfig {
    TopicConfig { max_items, access_model: Access::Presence, ..TopicConfig::default() }
}

pub(super) fn publish(id: &str, payload: &str) -> NodeEdit {
    let payload = payload.as_bytes().to_vec().into();
    NodeEdit::Publish { id: id.into(), payload, options: ConfigChange::default(), default: config(3) }
}

fn changed(store: &dyn Store, asked: EditNode) -> NodeChange {
    answer!(ask(store, asked), Ok(change) => *change)
}

fn refused(store: &dyn Store, asked: EditNode) -> NodeRefusal {
    answer!(ask(store, asked), Err(refusal) => refusal)
}

fn page(
    store: &dyn Store,
    domain: DomainId,
    ids: &[&str],
    from: ItemsFrom,
    max: u32,
) -> Option<Vec<Box<str>>> {
    let ids = ids.iter().map(|id| (*id).into()).collect();
    let (local, node) = ("alice".into(), "n".into());
    let items = ask(store, NodeItems { domain, local, node, ids, from, max, bytes_max: 1000 })?;
    Some(items.iter().map(|item| item.id.clone()).collect())
}

fn ids(store: &dyn Store, domain: DomainId) -> Option<Vec<Box<str>>> {
    page(store, domain, &[], ItemsFrom::Newest, 10)
}

fn ground(store: &dyn Store) -> DomainId {
    let domain = domain(store);
    account(store, domain, "alice");
    account(store, domain, "bob");
    domain
}

pub(super) fn are_created_by_publishing(store: &dyn Store) {
    let domain = ground(store);
    let change = changed(store, edit(domain, "n", publish("a", "<x/>")));
    let node = Node { name: "n".into(), config: config(3), created: T };
    assert_eq!((change.before, change.after), (Generation(0), Generation(1)));
    assert_eq!((change.was, change.is), (None, Some(node.clone())));
    assert_eq!(change.account, jid("alice@example.org"));
    let item = change.item.expect("the item");
    assert_eq!(
        (&*item.id, &item.payload[..], item.published, item.revision),
        ("a", &b"<x/>"[..], T, Revision(1))
    );
    let record = rosters::record(store, domain, "alice");
    assert_eq!((record.nodes, record.generation), (vec![node.clone()], Generation(1)));
    assert_eq!(rosters::record(store, domain, "bob").nodes, []);
    assert_eq!(login(store, domain, "alice").record, Generation(1));
    // Items alone do not change the record.
    let change = changed(store, edit(domain, "n", publish("b", "<y/>")));
    assert_eq!((change.before, change.after, change.was), (Generation(1), Generation(1), Some(node)));
    assert_eq!(change.item.expect("the item").revision, Revision(2));
}

pub(super) fn keep_the_newest_items(store: &dyn Store) {
    let domain = ground(store);
    for id in ["a", "b", "c", "a", "d"] {
        changed(store, edit(domain, "n", publish(id, "<x/>")));
    }
    assert_eq!(ids(store, domain), Some(vec!["d".into(), "a".into(), "c".into()]));
    let listed = |ids: &[&str], from, max| {
        page(store, domain, ids, from, max).map(|ids| ids.iter().map(ToString::to_string).collect::<String>())
    };
    let is = |text: &str| Some(text.to_owned());
    assert_eq!(listed(&[], ItemsFrom::Newest, 2), is("da"));
    assert_eq!(listed(&[], ItemsFrom::After("d".into()), 1), is("a"));
    assert_eq!(listed(&[], ItemsFrom::Before("c".into()), 1), is("a"));
    assert_eq!(listed(&[], ItemsFrom::Oldest, 2), is("ac"));
    assert_eq!(listed(&[], ItemsFrom::After("b".into()), 2), None);
    assert_eq!(listed(&["c", "x", "d"], ItemsFrom::Newest, 9), is("dc"));
    let (local, node) = (Box::from("alice"), Box::from("n"));
    let names = NodeItemNames { domain, local, node, from: ItemsFrom::Newest, max: 1 };
    assert_eq!(ask(store, names), Some(ItemNamesAnswer { ids: vec!["d".into()], count: 3 }));
    // Fewer, and none.
    let fewer = ConfigChange { max_items: Some(1), ..ConfigChange::default() };
    let change = changed(store, edit(domain, "n", NodeEdit::Configure(fewer)));
    assert_eq!((change.after, change.is.map(|node| node.config)), (Generation(2), Some(config(1))));
    assert_eq!(ids(store, domain), Some(vec!["d".into()]));
    let none = ConfigChange { persist_items: Some(false), ..ConfigChange::default() };
    changed(store, edit(domain, "n", NodeEdit::Configure(none)));
    assert_eq!(
        changed(store, edit(domain, "n", publish("e", "<x/>"))).item.expect("told").revision,
        Revision(6)
    );
    assert_eq!(ids(store, domain), Some(vec!["d".into()]));
}

pub(super) fn are_edited(store: &dyn Store) {
    let domain = ground(store);
    let create = || edit(domain, "n", NodeEdit::Create(config(5)));
    assert_eq!(changed(store, create()).item, None);
    assert_eq!(refused(store, create()), NodeRefusal::Exists);
    for id in ["a", "b"] {
        changed(store, edit(domain, "n", publish(id, "<x/>")));
    }
    changed(store, edit(domain, "n", NodeEdit::Retract("a".into())));
    assert_eq!(ids(store, domain), Some(vec!["b".into()]));
    assert_eq!(refused(store, edit(domain, "n", NodeEdit::Retract("a".into()))), NodeRefusal::NoItem);
    changed(store, edit(domain, "n", NodeEdit::Purge));
    assert_eq!(ids(store, domain), Some(vec![]));
    let change = changed(store, edit(domain, "n", NodeEdit::Delete));
    assert_eq!((change.before, change.after, change.is), (Generation(1), Generation(2), None));
    assert_eq!((ids(store, domain), rosters::record(store, domain, "alice").nodes), (None, vec![]));
    for gone in [NodeEdit::Delete, NodeEdit::Purge, NodeEdit::Configure(ConfigChange::default())] {
        assert_eq!(refused(store, edit(domain, "n", gone)), NodeRefusal::NoNode);
    }
    let nobody = EditNode { local: "nobody".into(), ..create() };
    assert_eq!(refused(store, nobody), NodeRefusal::NoAccount);
}

pub(super) fn are_edited_together(store: &dyn Store) {
    let domain = ground(store);
    let gone = || NodeEdit::Retract("gone".into());
    let answer = ask(store, together(domain, vec![gone(), publish("a", "1"), gone(), publish("b", "2")]));
    let places: Vec<u32> = answer.changes.iter().map(|(place, _)| *place).collect();
    assert_eq!((places, answer.refusal), (vec![1, 3], None), "what is not there is passed over");
    let items: Vec<_> = answer.changes.iter().map(|(_, change)| change.item.as_ref().expect("it")).collect();
    assert_eq!((items[0].revision, items[1].revision), (Revision(1), Revision(2)));
    let generations: Vec<_> =
        answer.changes.iter().map(|(_, change)| (change.before.0, change.after.0)).collect();
    assert_eq!(generations, [(0, 1), (1, 1)], "the first makes the node");
    assert_eq!(ids(store, domain), Some(vec!["b".into(), "a".into()]));
    // What is refused is the last, and what was before it stays.
    let large = "x".repeat(200);
    let edits = vec![NodeEdit::Retract("a".into()), publish("c", &large), publish("d", "4")];
    let answer = ask(store, together(domain, edits));
    assert_eq!((answer.changes.len(), answer.refusal), (1, Some(NodeRefusal::TooManyBytes)));
    assert_eq!(ids(store, domain), Some(vec!["b".into()]));
    let nobody = EditNodes { local: "nobody".into(), ..together(domain, vec![publish("a", "1")]) };
    assert_eq!(ask(store, nobody).refusal, Some(NodeRefusal::NoAccount));
}

pub(super) fn are_as_their_publisher_wants_them(store: &dyn Store) {
    let domain = ground(store);
    let wants = |access| {
        let options = ConfigChange { access_model: Some(access), ..ConfigChange::default() };
        let (id, payload) = ("a".into(), "<x/>".into());
        edit(domain, "n", NodeEdit::Publish { id, payload, options, default: config(1) })
    };
    let change = changed(store, wants(Access::Whitelist));
    assert_eq!(change.is.map(|node| node.config.access_model), Some(Access::Whitelist));
    changed(store, wants(Access::Whitelist));
    let NodeRefusal::Unmet(fields) = refused(store, wants(Access::Open)) else { panic!("it is otherwise") };
    assert_eq!(fields.names().collect::<Vec<_>>(), ["pubsub#access_model"]);
}

pub(super) fn are_bounded(store: &dyn Store) {
    let domain = ground(store);
    for node in ["n", "o"] {
        changed(store, edit(domain, node, publish("1", &"x".repeat(38))));
    }
    assert_eq!(refused(store, edit(domain, "p", publish("1", &"x".repeat(19)))), NodeRefusal::TooManyBytes);
    assert_eq!(refused(store, edit(domain, "n", publish("2", &"x".repeat(20)))), NodeRefusal::TooManyBytes);
    // What takes the place of another counts as the difference; what makes it less is always done.
    changed(store, edit(domain, "n", publish("1", &"x".repeat(58))));
    let tight = |edited| EditNode { bounds: NodeBounds { bytes: 0, ..BOUNDS }, ..edit(domain, "n", edited) };
    changed(store, tight(publish("1", &"x".repeat(57))));
    changed(store, tight(NodeEdit::Retract("1".into())));
    changed(store, edit(domain, "p", publish("1", "x")));
    assert_eq!(refused(store, edit(domain, "q", publish("1", "x"))), NodeRefusal::TooManyNodes);
    assert_eq!(rosters::record(store, domain, "alice").nodes.len(), 3);
}

pub(super) fn go_with_their_account(store: &dyn Store) {
    let domain = ground(store);
    changed(store, edit(domain, "n", publish("a", "<x/>")));
    done(store, DeleteAccount { domain, local: "alice".into(), now: T, held_until: T, rows_max: u32::MAX });
    account(store, domain, "alice");
    assert_eq!((ids(store, domain), rosters::record(store, domain, "alice").nodes), (None, vec![]));
    changed(store, edit(domain, "n", publish("a", "<x/>")));
    done(store, delete_domain(domain));
    assert_eq!(ids(store, domain), None);
}

/// What those are given who become available.
fn last(
    store: &dyn Store,
    reader: &str,
    of: &[(DomainId, &str)],
    bytes_max: usize,
) -> (Vec<(u32, String)>, u32) {
    let nodes = ["m", "n", "o", "p", "q"].map(Box::from).into();
    let of = of.iter().map(|(domain, local)| (*domain, Box::from(*local))).collect();
    let answer = ask(store, LastNodeItems { reader: jid(reader), nodes, of, bytes_max, by_lists: false });
    let item = |(place, item): &(u32, std::sync::Arc<Item>)| (*place, format!("{}/{}", item.name, item.id));
    (answer.items.iter().map(item).collect(), answer.accounts)
}

pub(super) fn give_their_last_items(store: &dyn Store) {
    let domain = ground(store);
    let put = |node: &str, id: &str, access, send| {
        let default = TopicConfig { access_model: access, send_last_published_item: send, ..config(2) };
        let (id, payload, options) = (id.into(), "<x/>".into(), ConfigChange::default());
        let bounds = NodeBounds { nodes: 9, ..BOUNDS };
        changed(
            store,
            EditNode { bounds, ..edit(domain, node, NodeEdit::Publish { id, payload, options, default }) },
        );
    };
    let always = SendLast::OnSubAndPresence;
    put("m", "1", Access::Presence, always);
    put("m", "2", Access::Presence, always);
    put("n", "1", Access::Open, always);
    put("o", "1", Access::Whitelist, always);
    put("p", "1", Access::Presence, SendLast::OnSub);
    put("unwanted", "1", Access::Open, always);
    let alice = [(domain, "alice")];
    let all = |names: &[&str]| names.iter().map(|name| (0, (*name).to_owned())).collect::<Vec<_>>();
    assert_eq!(last(store, "alice@example.org", &alice, 1000), (all(&["m/2", "n/1", "o/1"]), 1));
    // Who is not given its presence is not told, though anybody may read what is open.
    assert_eq!(last(store, "bob@example.org", &alice, 1000), (vec![], 1));
    rosters::subscribe(store, domain, "bob", "alice");
    assert_eq!(last(store, "bob@example.org", &alice, 1000), (all(&["m/2", "n/1"]), 1));
    // As many accounts as there is room for, and one at least.
    let many = [(domain, "nobody"), (domain, "alice"), (domain, "alice")];
    assert_eq!(last(store, "alice@example.org", &many, 0).1, 2);
    assert_eq!(last(store, "alice@example.org", &many, 0).0[0], (1, "m/2".to_owned()));
    drop(ask(store, blocklists::edit(domain, "alice", blocklists::block(&["bob@example.org"]))));
    assert_eq!(last(store, "bob@example.org", &alice, 1000), (vec![], 1));
}

pub(super) fn write_lasting(store: &dyn Store) {
    let domain = ground(store);
    changed(store, edit(domain, "n", publish("a", "<x/>")));
}

pub(super) fn check_lasting(store: &dyn Store) {
    let domain = domains(store)[0].id;
    assert_eq!(ids(store, domain), Some(vec!["a".into()]));
    assert_eq!(rosters::record(store, domain, "alice").nodes.len(), 1);
}

pub(super) fn give_their_last_items_without_payloads_where_they_say_so(store: &dyn Store) {
    let domain = ground(store);
    for (node, deliver_payloads) in [("m", true), ("n", false)] {
        let send_last_published_item = SendLast::OnSubAndPresence;
        let default = TopicConfig { deliver_payloads, send_last_published_item, ..config(2) };
        let (id, payload, options) = ("1".into(), "<x/>".into(), ConfigChange::default());
        changed(store, edit(domain, node, NodeEdit::Publish { id, payload, options, default }));
    }
    let (nodes, of) = (["m", "n"].map(Box::from).into(), vec![(domain, Box::from("alice"))]);
    let asked =
        LastNodeItems { reader: jid("alice@example.org"), nodes, of, bytes_max: 1000, by_lists: false };
    let payloads = |asked: LastNodeItems| {
        let answer = ask(store, asked);
        let payload = |(_, item): &(u32, std::sync::Arc<Item>)| item.payload.to_vec();
        answer.items.iter().map(payload).collect::<Vec<_>>()
    };
    assert_eq!(payloads(asked), [b"<x/>".to_vec(), Vec::new()]);
    // Whoever asks for the item has it whole.
    let (local, node) = ("alice".into(), "n".into());
    let from = ItemsFrom::Newest;
    let asked = NodeItems { domain, local, node, ids: vec!["1".into()], from, max: 1, bytes_max: 1000 };
    assert_eq!(ask(store, asked).expect("the node is there")[0].payload.to_vec(), b"<x/>");
}
