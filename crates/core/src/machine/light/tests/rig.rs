//! A node of two shards in a test, and connections of the light protocol to it. What one shard sends another, and what the
//! store answers, waits until [`Rig::settle`].

use crate::command::{Actor, Command, Outcome, ReplyTo, TopicOp};
use crate::machine::ShardMachine;
use crate::message::ShardMessage;
use crate::model::topic_address;
use crate::model::*;
use crate::ports::{Answer, Ask};
use crate::settings::Settings;
use crate::shard::{Counters, home};
use crate::topic::tests::store::Store;
use crate::{Effect, Effects, Input};
use std::collections::VecDeque;
use std::sync::Arc;

pub const OPENING: &str = "<regular-socket/>\0";
const SHARDS: u16 = 2;

/// A node and its store.
pub struct Rig {
    pub shards: Vec<ShardMachine>,
    store: Store,
    pub asks: VecDeque<(usize, Ticket, Ask)>,
    messages: VecDeque<(usize, ShardMessage)>,
    clients: Vec<Client>,
    now: Now,
}

/// A connection.
struct Client {
    shard: usize,
    conn: ConnId,
    got: String,
    paused: bool,
    closed: bool,
}

impl Rig {
    pub fn new(settings: Settings) -> Rig {
        let settings =
            Settings { light: crate::settings::Light { domain: "d".into(), ..settings.light }, ..settings };
        let (settings, domains) = (Arc::new(settings), Arc::new(domains()));
        let shard =
            |id| ShardMachine::new(ShardId(id), SHARDS, settings.clone(), domains.clone(), [id as u8; 32]);
        Rig {
            shards: (0..SHARDS).map(shard).collect(),
            store: Store::new(),
            asks: VecDeque::new(),
            messages: VecDeque::new(),
            clients: Vec::new(),
            now: Now { mono: Mono(0), unix: UnixMs(1_795_167_000_000) },
        }
    }

    /// A node with an open topic `t`.
    pub fn with_topic() -> Rig {
        let mut rig = Rig::new(Settings::default());
        rig.topic("t", TopicOp::Create { config: TopicConfig::default() });
        rig
    }

    /// A new connection on a shard.
    pub fn connect(&mut self, shard: usize) -> usize {
        let slot = self.clients.len() as u32;
        let conn = ConnId { slot, generation: 7 };
        self.clients.push(Client { shard, conn, got: String::new(), paused: false, closed: false });
        self.give(shard, Input::OpenedLight { conn });
        slot as usize
    }

    /// A connection whose opening was answered.
    pub fn opened(&mut self, shard: usize) -> usize {
        let client = self.connect(shard);
        self.send(client, OPENING);
        assert!(self.got(client).starts_with("{\"timestamp\":1795167000000,\"token\":\""));
        client
    }

    /// A connection that follows topics, which have no item.
    pub fn following(&mut self, shard: usize, topics: &[&str]) -> usize {
        let client = self.opened(shard);
        for topic in topics {
            self.subscribe(client, topic);
            self.settle();
            assert_eq!(self.got(client), "ACK;");
        }
        client
    }

    pub fn subscribe(&mut self, client: usize, topic: &str) {
        self.send(client, format!("{{\"action\":\"subscribe\",\"data\":\"{topic}\"}}\0"));
    }

    pub fn unsubscribe(&mut self, client: usize, topic: &str) {
        self.send(client, format!("{{\"action\":\"unsubscribe\",\"data\":\"{topic}\"}}\0"));
    }

    pub fn send(&mut self, client: usize, bytes: impl AsRef<[u8]>) {
        let Client { shard, conn, paused, .. } = self.clients[client];
        assert!(!paused, "a connection that waits is not read");
        self.give(shard, Input::Bytes { conn, bytes: bytes.as_ref() });
    }

    /// What a client got since it was last asked; frames end in `;` and the NUL of `PUBLISH` is a blank.
    pub fn got(&mut self, client: usize) -> String {
        std::mem::take(&mut self.clients[client].got).replace('\u{1}', ";").replace('\0', " ")
    }

    pub fn is_closed(&self, client: usize) -> bool {
        self.clients[client].closed
    }

    pub fn is_paused(&self, client: usize) -> bool {
        self.clients[client].paused
    }

    /// The connection is lost.
    pub fn lose(&mut self, client: usize) {
        let Client { shard, conn, .. } = self.clients[client];
        self.clients[client].closed = true;
        self.give(shard, Input::Closed { conn });
    }

    pub fn overflow(&mut self, client: usize) {
        let Client { shard, conn, .. } = self.clients[client];
        self.give(shard, Input::Overflowed { conn });
    }

    pub fn every_shard(&mut self, input: impl Fn() -> Input<'static>) {
        (0..self.shards.len()).for_each(|shard| self.give(shard, input()));
    }

    /// Time passes.
    pub fn after(&mut self, ms: u64) {
        self.now = Now { mono: self.now.mono.plus(ms), unix: self.now.unix.plus(ms) };
        self.every_shard(|| Input::Tick);
    }

    /// A provider does something with a topic; until all is told.
    pub fn topic(&mut self, name: &str, op: TopicOp) {
        let done = self.begin(name, op);
        self.settle();
        let outcome = done.try_recv().expect("an outcome");
        assert!(matches!(outcome, Outcome::Topic(Ok(_))), "{outcome:?}");
    }

    /// The same, and nothing waits for it.
    pub fn begin(&mut self, name: &str, op: TopicOp) -> std::sync::mpsc::Receiver<Outcome> {
        let (sender, done) = std::sync::mpsc::channel();
        let reply = ReplyTo(Box::new(move |outcome| drop(sender.send(outcome))));
        let command = Command::Topic { domain: DomainId(1), name: name.into(), actor: Actor::Provider, op };
        let at = usize::from(home(&topic_address(name, "d"), SHARDS).0);
        self.give(at, Input::Message(ShardMessage::Command { command, reply }));
        done
    }

    pub fn publish(&mut self, name: &str, id: &str, json: &str) {
        self.topic(name, publish(id, json));
    }

    pub fn counters(&self, shard: usize) -> &Counters {
        self.shards[shard].counters()
    }

    /// The first question to the store is answered.
    pub fn answer(&mut self) {
        let (shard, ticket, ask) = self.asks.pop_front().expect("a question");
        let answer = self.store.answer(&ask);
        self.give(shard, Input::Answer { ticket, answer });
    }

    /// The first question to the store fails.
    pub fn fail(&mut self) {
        let (shard, ticket, _) = self.asks.pop_front().expect("a question");
        self.give(shard, Input::Answer { ticket, answer: Answer::Failed(crate::ports::Fault::Busy) });
    }

    /// Letters are delivered and walks done, but the store says nothing.
    pub fn deliver(&mut self) {
        while let Some((shard, message)) = self.messages.pop_front() {
            self.give(shard, Input::Message(message));
        }
        for shard in 0..self.shards.len() {
            let mut walking = true;
            while walking {
                let mut effects = Effects::default();
                walking = self.shards[shard].walk(self.now, &mut effects);
                self.interpret(shard, effects);
            }
        }
    }

    /// Until nothing is under way.
    pub fn settle(&mut self) {
        self.deliver();
        while !self.asks.is_empty() {
            self.answer();
            self.deliver();
        }
    }

    fn give(&mut self, shard: usize, input: Input<'_>) {
        let mut effects = Effects::default();
        self.shards[shard].handle(self.now, input, &mut effects);
        self.interpret(shard, effects);
    }

    fn interpret(&mut self, shard: usize, effects: Effects) {
        let mut gone = Vec::new();
        for effect in effects.list {
            match effect {
                Effect::Send { conn, range } => {
                    let client = &mut self.clients[conn.slot as usize];
                    assert!(!client.closed && client.shard == shard && client.conn == conn);
                    client.got += std::str::from_utf8(&effects.bytes[range]).expect("text");
                }
                Effect::Pause { conn } => self.clients[conn.slot as usize].paused = true,
                Effect::Resume { conn } => self.clients[conn.slot as usize].paused = false,
                Effect::Close { conn } => {
                    self.clients[conn.slot as usize].closed = true;
                    gone.push(conn);
                }
                Effect::Post { to, message } => self.messages.push_back((usize::from(to.0), message)),
                Effect::Ask { ticket, ask } => self.asks.push_back((shard, ticket, ask)),
                Effect::Reply { to, outcome } => (to.0)(outcome),
                other => panic!("{other:?}"),
            }
        }
        gone.into_iter().for_each(|conn| self.give(shard, Input::Closed { conn }));
    }
}

pub fn publish(id: &str, json: &str) -> TopicOp {
    TopicOp::Publish { id: Some(id.into()), payload: Payload::Json(json.into()) }
}

pub fn domains() -> Domains {
    Domains::new([Domain { id: DomainId(1), name: "d".into(), policy: Policy::default() }])
}
