//! Items that do not come from a topic's home to a shard that has followers.

use crate::Input;
use crate::command::{Actor, Command, Outcome, TopicOp, TopicOutcome};
use crate::model::*;
use crate::ports::Fault;
use crate::settings::{Light, Settings};
use crate::sim::client::{Got, Kind, LightClient, PASSWORD, XmppClient};
use crate::sim::{Plan, World};
use carillon_wire::Framing;
use carillon_wire::jid::BareJid;
use std::sync::mpsc::Receiver;

const USER: &str = "u";
/// The shards, each of a node of its own.
const THERE: usize = 0;
const HOME: usize = 1;

/// Two nodes: one is the home of a topic, and on the other are its followers.
struct Rig {
    world: World,
    domain: DomainId,
    name: Box<str>,
    follower: (XmppClient, usize),
    light: (LightClient, usize),
}

impl Rig {
    fn new(max_items: u32) -> Rig {
        let settings =
            Settings { light: Light { domain: "d".into(), ..Light::default() }, ..Settings::default() };
        let mut world = World::new(Plan { nodes: 2, shards: 1, settings, ..Plan::default() });
        let domain = world.domain("d", Policy::default());
        world.settle();
        let mut names = (0..).map(|n| format!("t{n}"));
        let name = names.find(|name| world.home(&topic_address(name, "d")) == HOME);
        world.account("d", USER, PASSWORD, 1);
        let kind = Kind { framing: Framing::Tcp, is_managed: false, resumes: false, sends_receipts: false };
        let follower = (XmppClient::new(USER, "d", kind), world.open(Framing::Tcp, true));
        let light = (LightClient::default(), world.open_light(THERE));
        let name = name.expect("one is at home there").into();
        let mut rig = Rig { world, domain, name, follower, light };
        let config = TopicConfig { max_items, ..TopicConfig::default() };
        rig.topic(TopicOp::Create { config });
        rig.topic(TopicOp::Subscribe { account: BareJid::new("u@d").expect("an address") });
        let link = rig.follower.1;
        for piece in rig.follower.0.login() {
            rig.world.bytes(link, piece.as_bytes());
            rig.world.settle();
        }
        let presence = rig.follower.0.becomes_available("");
        rig.world.bytes(link, presence.as_bytes());
        let says = [LightClient::OPENING, &LightClient::subscribe(&rig.name)].concat();
        rig.world.bytes(rig.light.1, says.as_bytes());
        rig.world.settle();
        assert_eq!(rig.world.counters(THERE).sessions, 1);
        rig
    }

    fn address(&self) -> String {
        topic_address(&self.name, "d")
    }

    fn begin(&mut self, op: TopicOp) -> Receiver<Outcome> {
        let command =
            Command::Topic { domain: self.domain, name: self.name.clone(), actor: Actor::Provider, op };
        self.world.begin(&self.address(), command)
    }

    fn topic(&mut self, op: TopicOp) -> TopicOutcome {
        let outcome = self.begin(op);
        self.world.settle();
        match outcome.try_recv() {
            Ok(Outcome::Topic(Ok(outcome))) => outcome,
            other => panic!("{other:?}"),
        }
    }

    fn publish(&mut self, id: &str) {
        self.topic(op(id));
    }

    /// Publishes an item of which the followers' node hears nothing.
    fn publish_and_lose(&mut self, id: &str) {
        let outcome = self.begin(op(id));
        let lost = HOME * self.world.shard_count() + THERE;
        while !self.world.publications().contains(&lost) {
            assert!(self.world.step(0), "it is published");
        }
        assert_eq!(self.world.lose_publications(lost, 0), THERE);
        self.world.settle();
        assert!(matches!(outcome.try_recv(), Ok(Outcome::Topic(Ok(_)))));
    }

    fn hears_of_a_loss(&mut self) {
        self.world.give(THERE, Input::RecordsLost);
        self.world.settle();
    }

    /// The items that a new session of the follower's account is given.
    fn given_at_login(&mut self) -> Vec<String> {
        let kind = Kind { framing: Framing::Tcp, is_managed: false, resumes: false, sends_receipts: false };
        let mut client = XmppClient::new(USER, "d", kind);
        let link = self.world.open(Framing::Tcp, true);
        for piece in client.login() {
            self.world.bytes(link, piece.as_bytes());
            self.world.settle();
        }
        let presence = client.becomes_available("");
        self.world.bytes(link, presence.as_bytes());
        self.world.settle();
        while let Some(element) = self.world.received(link) {
            client.hears(&element);
        }
        items(&client.got)
    }

    /// The items that both followers were given, in order.
    fn given(&mut self) -> Vec<String> {
        let (client, link) = &mut self.follower;
        while let Some(element) = self.world.received(*link) {
            client.hears(&element);
        }
        let (light, link) = &mut self.light;
        while let Some(frame) = self.world.received(*link) {
            light.hears(&frame);
        }
        let given = items(&self.follower.0.got);
        assert_eq!(items(&self.light.0.got), given);
        given
    }
}

fn items(got: &[Got]) -> Vec<String> {
    let items = got.iter().filter_map(|got| match got {
        Got::Item { id, .. } => Some(id.clone()),
        _ => None,
    });
    items.collect()
}

fn op(id: &str) -> TopicOp {
    TopicOp::Publish { id: Some(id.into()), payload: Payload::Json("1".into()), operation: None }
}

#[test]
fn what_is_lost_comes_before_what_is_published_next() {
    let mut rig = Rig::new(100);
    rig.publish("a");
    rig.publish_and_lose("b");
    rig.publish_and_lose("c");
    assert_eq!(rig.given(), ["a"]);
    rig.publish("d");
    assert_eq!(rig.given(), ["a", "b", "c", "d"]);
    assert_eq!(rig.world.counters(THERE).items_recovered, 3, "with the one that shows it");
    // Whoever says later that something was lost has nothing read twice.
    rig.hears_of_a_loss();
    rig.publish("e");
    assert_eq!(rig.given(), ["a", "b", "c", "d", "e"]);
}

#[test]
fn what_is_lost_of_a_topic_that_rests_is_read_when_that_is_heard() {
    let mut rig = Rig::new(100);
    rig.publish("a");
    ["b", "c", "d"].into_iter().for_each(|id| rig.publish_and_lose(id));
    rig.hears_of_a_loss();
    assert_eq!(rig.given(), ["a", "b", "c", "d"]);
    rig.publish("e");
    assert_eq!(rig.given(), ["a", "b", "c", "d", "e"]);
}

#[test]
fn what_comes_while_the_store_cannot_be_read_waits_for_what_is_before_it() {
    let mut rig = Rig::new(100);
    rig.publish("a");
    rig.publish_and_lose("b");
    let _outcome = rig.begin(op("c"));
    rig.world.settle_without_store();
    // It is published, and what is missing before it cannot be read.
    assert!(rig.world.answer_oldest());
    rig.world.settle_without_store();
    assert!(rig.world.fail_oldest(Fault::Busy));
    rig.world.settle();
    assert_eq!(rig.given(), ["a"]);
    rig.topic(TopicOp::Retract { id: "a".into(), notify: None });
    rig.world.pass(1000);
    rig.world.settle();
    assert_eq!(rig.given(), ["a", "b", "c"]);
    rig.publish("d");
    assert_eq!(rig.given(), ["a", "b", "c", "d"]);
}

#[test]
fn an_older_change_that_was_held_back_takes_no_newer_items_place_at_logins() {
    let mut rig = Rig::new(100);
    rig.publish("a");
    rig.publish_and_lose("b");
    let _outcome = rig.begin(op("c"));
    rig.world.settle_without_store();
    assert!(rig.world.answer_oldest());
    rig.world.settle_without_store();
    assert!(rig.world.fail_oldest(Fault::Busy));
    rig.world.settle();
    // Held back behind "c": the retraction, which makes "b" the last item, and "d".
    rig.topic(TopicOp::Retract { id: "c".into(), notify: None });
    rig.publish("d");
    // The read finds "d", whose event is behind them.
    rig.world.pass(1000);
    rig.world.settle();
    assert_eq!(rig.given(), ["a", "b", "c", "d"]);
    assert_eq!(rig.given_at_login(), ["d"]);
    // What comes later counts again.
    rig.topic(TopicOp::Retract { id: "d".into(), notify: None });
    assert_eq!(rig.given_at_login(), ["b"]);
    rig.publish("e");
    assert_eq!(rig.given_at_login(), ["e"]);
}

#[test]
fn where_the_store_has_it_no_more_what_comes_next_is_given() {
    let mut rig = Rig::new(1);
    rig.publish("a");
    rig.publish_and_lose("b");
    rig.publish("c");
    assert_eq!(rig.given(), ["a", "c"]);
}

/// The home after a dead one tells what that one may have told nobody, before the next item takes its place in the store.
#[test]
fn the_last_item_of_a_home_that_died_is_told_by_the_next_one() {
    let mut rig = Rig::new(1);
    rig.publish("a");
    rig.publish_and_lose("b");
    // The topic is at home elsewhere for a moment.
    for from in [Some(HOME), None] {
        rig.world.move_topics(from);
        rig.world.settle();
    }
    rig.world.give(HOME, Input::RecordsLost);
    rig.publish("c");
    assert_eq!(rig.given(), ["a", "b", "c"]);
}

#[test]
fn what_is_being_published_when_its_home_moves_is_told() {
    let mut rig = Rig::new(100);
    rig.publish("a");
    let outcome = rig.begin(op("b"));
    rig.world.settle_without_store();
    rig.world.move_topics(Some(HOME));
    rig.world.settle_without_store();
    rig.world.settle();
    assert!(matches!(outcome.try_recv(), Ok(Outcome::Topic(Ok(_)))));
    assert_eq!(rig.given(), ["a", "b"]);
    rig.publish("c");
    assert_eq!(rig.given(), ["a", "b", "c"]);
}

#[test]
fn while_nothing_is_lost_nothing_is_read() {
    let mut rig = Rig::new(100);
    rig.publish("a");
    let before = rig.world.asked;
    for n in 0..50 {
        rig.publish(&format!("i{n}"));
    }
    // Changes of a topic have revisions, too.
    rig.topic(TopicOp::Retract { id: "i3".into(), notify: None });
    rig.topic(TopicOp::Retract { id: "i49".into(), notify: None });
    rig.publish("b");
    // An edit that may change what logins are given looks at the newest items.
    assert_eq!(rig.world.asked - before, 51 + 2 * 2);
    assert_eq!(rig.world.counters(THERE).items_recovered, 0);
}
