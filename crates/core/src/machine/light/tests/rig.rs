//! A node of two shards in a test, and connections of the light protocol to it. What one shard sends another, and what the
//! store answers, waits until [`Rig::settle`].

use crate::Input;
use crate::command::{Actor, Command, Outcome, TopicOp};
use crate::model::topic_address;
use crate::model::*;
use crate::ports::Fault;
use crate::settings::Settings;
use crate::shard::Counters;
use crate::sim::client::LightClient;
use crate::sim::{Plan, World};
use std::sync::mpsc::Receiver;

pub(super) const OPENING: &str = LightClient::OPENING;

/// A node with a domain `d`.
pub(super) struct Rig {
    pub world: World,
}

impl Rig {
    pub(super) fn new(settings: Settings) -> Rig {
        let light = crate::settings::Light { domain: "d".into(), ..settings.light };
        let mut world = World::new(Plan { settings: Settings { light, ..settings }, ..Plan::default() });
        world.domain("d", Policy::default());
        Rig { world }
    }

    /// A node with an open topic `t`.
    pub(super) fn with_topic() -> Rig {
        let mut rig = Rig::new(Settings::default());
        rig.topic("t", TopicOp::Create { config: TopicConfig::default() });
        rig
    }

    /// A new connection on a shard.
    pub(super) fn connect(&mut self, shard: usize) -> usize {
        self.world.open_light(shard)
    }

    /// A connection whose opening was answered.
    pub(super) fn opened(&mut self, shard: usize) -> usize {
        let client = self.connect(shard);
        self.send(client, OPENING);
        assert!(self.got(client).starts_with("{\"timestamp\":1795167000000,\"token\":\""));
        client
    }

    /// A connection that follows topics, which have no item.
    pub(super) fn following(&mut self, shard: usize, topics: &[&str]) -> usize {
        let client = self.opened(shard);
        for topic in topics {
            self.subscribe(client, topic);
            self.settle();
            assert_eq!(self.got(client), "ACK;");
        }
        client
    }

    pub(super) fn subscribe(&mut self, client: usize, topic: &str) {
        self.send(client, LightClient::subscribe(topic));
    }

    pub(super) fn unsubscribe(&mut self, client: usize, topic: &str) {
        self.send(client, LightClient::unsubscribe(topic));
    }

    pub(super) fn send(&mut self, client: usize, bytes: impl AsRef<[u8]>) {
        assert!(self.world.connection(client).is_read(), "a connection that waits is not read");
        self.world.bytes(client, bytes.as_ref());
    }

    /// What a client got since it was last asked; frames end in `;` and the NUL of `PUBLISH` is a blank.
    pub(super) fn got(&mut self, client: usize) -> String {
        let frames: Vec<Vec<u8>> = std::iter::from_fn(|| self.world.received(client)).collect();
        String::from_utf8(frames.concat()).expect("text").replace('\u{1}', ";").replace('\0', " ")
    }

    pub(super) fn is_closed(&self, client: usize) -> bool {
        !self.world.connection(client).is_open()
    }

    pub(super) fn is_paused(&self, client: usize) -> bool {
        !self.world.connection(client).is_read()
    }

    /// The connection is lost.
    pub(super) fn lose(&mut self, client: usize) {
        self.world.lose(client);
    }

    pub(super) fn overflow(&mut self, client: usize) {
        self.world.overflow(client);
    }

    pub(super) fn every_shard(&mut self, input: impl Fn() -> Input<'static>) {
        self.world.every_shard(input);
    }

    /// Time passes.
    pub(super) fn after(&mut self, ms: u64) {
        self.world.leap(ms);
        self.every_shard(|| Input::Tick);
    }

    /// A provider does something with a topic; until all is told.
    pub(super) fn topic(&mut self, name: &str, op: TopicOp) {
        let done = self.begin(name, op);
        self.settle();
        let outcome = done.try_recv().expect("an outcome");
        assert!(matches!(outcome, Outcome::Topic(Ok(_))), "{outcome:?}");
    }

    /// The same, and nothing waits for it.
    pub(super) fn begin(&mut self, name: &str, op: TopicOp) -> Receiver<Outcome> {
        let domain = self.world.domain_id("d");
        let command = Command::Topic { domain, name: name.into(), actor: Actor::Provider, op };
        self.world.begin(&topic_address(name, "d"), command)
    }

    pub(super) fn publish(&mut self, name: &str, id: &str, json: &str) {
        self.topic(name, publish(id, json));
    }

    pub(super) fn counters(&self, shard: usize) -> &Counters {
        self.world.counters(shard)
    }

    /// The first question to the store fails.
    pub(super) fn fail(&mut self) {
        assert!(self.world.fail_oldest(Fault::Busy), "a question");
    }

    /// Messages are delivered and walks done, but the store says nothing.
    pub(super) fn deliver(&mut self) {
        self.world.settle_without_store();
    }

    /// Until nothing is under way.
    pub(super) fn settle(&mut self) {
        self.world.settle();
    }
}

pub(super) fn publish(id: &str, json: &str) -> TopicOp {
    TopicOp::Publish { id: Some(id.into()), payload: Payload::Json(json.into()), operation: None }
}

pub(super) fn domains() -> Domains {
    Domains::new([Domain::new(DomainId(1), "d", Policy::default())])
}
