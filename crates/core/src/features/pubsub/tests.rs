//! What a session is given when what its login read is out of date.

use crate::command::{Actor, Command, Outcome, TopicOp, TopicOutcome};
use crate::message::ShardMessage;
use crate::model::*;
use crate::ports::Question;
use crate::ports::store::accounts::Login;
use crate::ports::store::items::Publish;
use crate::shard::IDLE_BYTES_MAX;
use crate::sim::client::{Got, Kind, PASSWORD, XmppClient};
use crate::sim::store::Step;
use crate::sim::{Choice, Plan, World};
use carillon_wire::Framing;
use carillon_wire::jid::BareJid;
use std::sync::Arc;

const ALICE: &str = "alice@d";

fn item(topic: TopicId, domain: DomainId, id: &str, payload: String) -> Item {
    Item {
        topic,
        domain,
        name: "news".into(),
        id: id.into(),
        publisher: None,
        published: UnixMs(1_795_167_000_000),
        payload: payload.into(),
        revision: Revision(0),
    }
}

/// The event of an item that is sent at logins, at the home of alice.
fn told(world: &mut World, item: &Item) {
    let last = Arc::new(PubsubEvent::last_item(item, "d", true));
    let event = Arc::new(PubsubEvent::published(item, "d", Retained::Last(last)));
    world.message(ALICE, ShardMessage::Publication(event));
}

#[test]
fn a_login_that_read_an_item_before_its_successor_was_given_up_reads_again() {
    let mut world = World::new(Plan::default());
    let domain = world.domain("d", Policy::default());
    world.account("d", "alice", PASSWORD, 1);
    let topic = |world: &mut World, op| {
        let command = Command::Topic { domain, name: "news".into(), actor: Actor::Provider, op };
        world.command("news@pubsub.d", command)
    };
    let created = topic(&mut world, TopicOp::Create { config: TopicConfig::default() });
    let Outcome::Topic(Ok(TopicOutcome::Record { record, .. })) = created else { panic!("{created:?}") };
    world.ask(Publish {
        item: item(record.id, domain, "1", "<x xmlns='urn:x'/>".into()),
        keep: 1,
        bytes_max: u64::MAX,
    });
    topic(&mut world, TopicOp::Subscribe { account: BareJid::new(ALICE).expect("an address") });

    let kind = Kind { framing: Framing::Tcp, is_managed: false, resumes: false, sends_receipts: false };
    let (mut client, conn) = (XmppClient::new("alice", "d", kind), world.open(Framing::Tcp, true));
    client.login().iter().for_each(|piece| world.bytes(conn, piece.as_bytes()));
    world.settle_without_store();
    while !world.disk.waiting().iter().any(|ask| Login::of(ask).is_some()) {
        assert!(world.step(0));
        world.settle_without_store();
    }
    world.choose(Choice::Store(Step::Read(0)));
    // It is read. Before it is heard, the next item comes, and others that are more than is remembered.
    let next = item(record.id, domain, "2", "<x xmlns='urn:x'/>".into());
    let next = world.ask(Publish { item: next, keep: 1, bytes_max: u64::MAX }).expect("the topic is there");
    told(&mut world, &next);
    for n in 0..=IDLE_BYTES_MAX as u32 / 200_000 {
        let payload = format!("<x xmlns='urn:x'>{}</x>", "x".repeat(200_000));
        told(&mut world, &Item { revision: Revision(1), ..item(TopicId(1000 + n), domain, "1", payload) });
    }
    world.settle();
    world.bytes(conn, client.becomes_available("").as_bytes());
    world.settle();
    while let Some(element) = world.received(conn) {
        client.hears(&element);
    }
    let items = client.got.iter().filter_map(|got| match got {
        Got::Item { id, .. } => Some(&**id),
        _ => None,
    });
    assert_eq!(items.collect::<Vec<_>>(), ["2"]);
}

#[test]
fn a_session_that_is_given_a_newer_last_item_is_not_given_older_ones_that_are_on_their_way() {
    let mut world = World::new(Plan::default());
    let domain = world.domain("d", Policy::default());
    world.account("d", "alice", PASSWORD, 1);
    let alice = BareJid::new(ALICE).expect("an address");
    let topic = |world: &mut World, op| {
        let command = Command::Topic { domain, name: "news".into(), actor: Actor::Provider, op };
        world.command("news@pubsub.d", command)
    };
    let created = topic(&mut world, TopicOp::Create { config: TopicConfig::default() });
    let Outcome::Topic(Ok(TopicOutcome::Record { record, .. })) = created else { panic!("{created:?}") };
    topic(&mut world, TopicOp::Subscribe { account: alice.clone() });
    let kind = Kind { framing: Framing::Tcp, is_managed: false, resumes: false, sends_receipts: false };
    let (mut client, conn) = (XmppClient::new("alice", "d", kind), world.open(Framing::Tcp, true));
    for piece in client.login() {
        world.bytes(conn, piece.as_bytes());
        world.settle();
    }
    world.bytes(conn, client.becomes_available("").as_bytes());
    world.settle();

    let of = |id: &str, revision| {
        let payload = "<x xmlns='urn:x'/>".into();
        Item { revision: Revision(revision), ..item(record.id, domain, id, payload) }
    };
    // The walk of the first is queued. It subscribed a second time, and the answer comes by another way than publications.
    told(&mut world, &of("1", 1));
    let last = Some(Arc::new(PubsubEvent::last_item(&of("2", 2), "d", true)));
    world.message(ALICE, ShardMessage::Subscribed { account: alice, topic: record.id, last });
    told(&mut world, &of("2", 2));
    told(&mut world, &of("3", 3));
    world.settle();
    while let Some(element) = world.received(conn) {
        client.hears(&element);
    }
    let items = client.got.iter().filter_map(|got| match got {
        Got::Item { id, .. } => Some(&**id),
        _ => None,
    });
    assert_eq!(items.collect::<Vec<_>>(), ["2", "3"]);
}
