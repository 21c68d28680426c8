//! A node in a test, in which whatever may happen in any order does: messages, answers and walks wait until they are picked.

use crate::command::{Actor, Command, ReplyTo, TopicOp};
use crate::machine::ShardMachine;
use crate::message::ShardMessage;
use crate::model::topic_address;
use crate::model::*;
use crate::ports::store::items::Publish;
use crate::ports::store::topics::{CreateTopic, CreateTopicAnswer};
use crate::ports::{Answer, Ask, Question};
use crate::sasl::ChannelBinding;
use crate::settings::{Fanout, Settings};
use crate::shard::home;
use crate::topic::tests::store::{PASSWORD, Store};
use crate::{Effect, Effects, Input, Opened, Security};
use base64::Engine;
use carillon_wire::Framing;
use std::collections::VecDeque;
use std::sync::Arc;

pub const SHARDS: usize = 3;

/// A node, its store, and its clients.
pub struct Cluster {
    shards: Vec<ShardMachine>,
    pub store: Store,
    pub clients: Vec<Client>,
    /// Whether a shard may have a walk under way.
    walking: [bool; SHARDS],
    /// From shard to shard, each in its order.
    messages: Vec<VecDeque<Input<'static>>>,
    /// Writes of each shard, each in its order; then their answers.
    writes: Vec<VecDeque<(Ticket, Ask)>>,
    written: Vec<VecDeque<(Ticket, Answer)>>,
    /// Reads, in no order; then their answers.
    reads: Vec<(usize, Ticket, Ask)>,
    read: Vec<(usize, Ticket, Answer)>,
    /// Items in the order of their commits, by topic.
    pub committed: Vec<(Box<str>, Box<str>)>,
    now: Now,
}

/// A connection.
pub struct Client {
    pub account: String,
    shard: usize,
    conn: ConnId,
    paused: bool,
    pub open: bool,
    pub bound: bool,
    /// Whether presence was sent.
    pub available: bool,
    /// What came since.
    pub got: Vec<Got>,
}

/// What a client was told of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Got {
    pub topic: String,
    /// None for other notices than items.
    pub item: Option<String>,
    /// Whether it was sent as the last item.
    pub is_last: bool,
}

impl Cluster {
    pub fn new() -> Cluster {
        let domain = Domain {
            id: DomainId(1),
            name: "d".into(),
            policy: Policy { sessions_max: 1000, ..Policy::default() },
        };
        let domains = Arc::new(Domains::new([domain]));
        // A walk takes one session at a time.
        let settings =
            Arc::new(Settings { fanout: Fanout { slice: 1, ..Fanout::default() }, ..Settings::default() });
        let shard = |id| {
            ShardMachine::new(ShardId(id), SHARDS as u16, settings.clone(), domains.clone(), [id as u8; 32])
        };
        Cluster {
            shards: (0..SHARDS as u16).map(shard).collect(),
            store: Store::new(),
            clients: Vec::new(),
            walking: [false; SHARDS],
            messages: std::iter::repeat_with(VecDeque::new).take(SHARDS * SHARDS).collect(),
            writes: std::iter::repeat_with(VecDeque::new).take(SHARDS).collect(),
            written: std::iter::repeat_with(VecDeque::new).take(SHARDS).collect(),
            reads: Vec::new(),
            read: Vec::new(),
            committed: Vec::new(),
            now: Now { mono: Mono(0), unix: UnixMs(1_795_167_000_000) },
        }
    }

    /// A topic with one item, of which the store knows and the shards do not.
    pub fn had_before(&mut self, name: &str, id: &str) {
        let (domain, now) = (DomainId(1), self.now.unix);
        let config = TopicConfig::default();
        let create =
            CreateTopic { domain, name: name.into(), config, affiliations: Vec::new(), owned_max: 0, now };
        let Ok(CreateTopicAnswer::Created(record)) = CreateTopic::answer(self.store.answer(&create.into()))
        else {
            panic!("a new topic")
        };
        let item = Item {
            topic: record.id,
            domain,
            name: name.into(),
            id: id.into(),
            publisher: None,
            published: now,
            payload: Default::default(),
            revision: Revision(0),
        };
        self.store.answer(&Publish { item, keep: 1 }.into());
        self.committed.push((name.into(), id.into()));
    }

    /// Begins an operation of the provider's.
    pub fn operate(&mut self, name: &str, op: TopicOp) {
        let command = Command::Topic { domain: DomainId(1), name: name.into(), actor: Actor::Provider, op };
        let reply = ReplyTo(Box::new(|_| {}));
        let at = usize::from(home(&topic_address(name, "d"), SHARDS as u16).0);
        self.give(at, Input::Message(ShardMessage::Command { command, reply }));
    }

    /// A client connects and sends all that a login needs.
    pub fn connect(&mut self, account: &str) {
        let slot = self.clients.len() as u32;
        let (shard, conn) = (slot as usize % SHARDS, ConnId { slot, generation: 0 });
        let (account, got) = (account.to_owned(), Vec::new());
        let plain = base64::engine::general_purpose::STANDARD.encode(format!("\0{account}\0{PASSWORD}"));
        self.clients.push(Client {
            account,
            shard,
            conn,
            paused: false,
            open: true,
            bound: false,
            available: false,
            got,
        });
        let opened = Opened {
            conn,
            address: [192, 0, 2, 1].into(),
            framing: Framing::Tcp,
            security: Security::Secured(ChannelBinding::default()),
        };
        self.give(shard, Input::Opened(opened));
        let open = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='d' version='1.0'>";
        let auth = format!("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>{plain}</auth>");
        let bind = "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>";
        let login = [open, &auth, open, bind].concat();
        self.give(shard, Input::Bytes { conn, bytes: login.as_bytes() });
    }

    /// A client sends initial presence, if it can.
    pub fn available(&mut self, client: usize) {
        let Client { shard, conn, paused, open, available, .. } = self.clients[client];
        if open && !paused && !available && self.clients[client].bound {
            self.clients[client].available = true;
            self.give(shard, Input::Bytes { conn, bytes: b"<presence/>" });
        }
    }

    /// A client is gone. Its slot is not used again.
    pub fn close(&mut self, client: usize) {
        let Client { shard, conn, paused, open, .. } = self.clients[client];
        if open && !paused && self.clients[client].bound {
            (self.clients[client].open, self.clients[client].available) = (false, false);
            self.give(shard, Input::Closed { conn });
        }
    }

    /// Something that is under way goes on; `pick` says what. False when nothing was.
    pub fn step(&mut self, pick: usize) -> bool {
        let ready = |queues: &[VecDeque<(Ticket, Ask)>]| queues.iter().filter(|q| !q.is_empty()).count();
        let messages: Vec<usize> =
            (0..self.messages.len()).filter(|i| !self.messages[*i].is_empty()).collect();
        let writes = ready(&self.writes);
        let written: Vec<usize> = (0..SHARDS).filter(|i| !self.written[*i].is_empty()).collect();
        let walking: Vec<usize> = (0..SHARDS).filter(|i| self.walking[*i]).collect();
        let total =
            messages.len() + writes + written.len() + self.reads.len() + self.read.len() + walking.len();
        if total == 0 {
            return false;
        }
        let mut pick = pick % total;
        if let Some(&queue) = messages.get(pick) {
            let input = self.messages[queue].pop_front().expect("it is not empty");
            self.give(queue % SHARDS, input);
            return true;
        }
        pick -= messages.len();
        if pick < writes {
            let shard = (0..SHARDS).filter(|i| !self.writes[*i].is_empty()).nth(pick).expect("counted");
            self.write(shard);
            return true;
        }
        pick -= writes;
        if let Some(&shard) = written.get(pick) {
            let (ticket, answer) = self.written[shard].pop_front().expect("it is not empty");
            self.give(shard, Input::Answer { ticket, answer });
            return true;
        }
        pick -= written.len();
        if pick < self.reads.len() {
            let (shard, ticket, ask) = self.reads.swap_remove(pick);
            let answer = self.store.answer(&ask);
            self.read.push((shard, ticket, answer));
            return true;
        }
        pick -= self.reads.len();
        if pick < self.read.len() {
            let (shard, ticket, answer) = self.read.swap_remove(pick);
            self.give(shard, Input::Answer { ticket, answer });
            return true;
        }
        let shard = walking[pick - self.read.len()];
        let mut effects = Effects::default();
        self.walking[shard] = self.shards[shard].walk(self.now, &mut effects);
        self.interpret(shard, effects);
        true
    }

    /// Until nothing is under way.
    pub fn settle(&mut self) {
        while self.step(0) {}
    }

    fn write(&mut self, shard: usize) {
        let (ticket, ask) = self.writes[shard].pop_front().expect("it is not empty");
        let answer = self.store.answer(&ask);
        if Publish::of(&ask).is_some()
            && let Ok(Some(item)) = Publish::answer(answer.clone())
        {
            self.committed.push(((*item.name).into(), item.id.clone()));
        }
        self.written[shard].push_back((ticket, answer));
    }

    fn give(&mut self, shard: usize, input: Input<'_>) {
        let mut effects = Effects::default();
        self.shards[shard].handle(self.now, input, &mut effects);
        self.walking[shard] = true;
        self.interpret(shard, effects);
    }

    fn interpret(&mut self, shard: usize, effects: Effects) {
        for effect in effects.list {
            match effect {
                Effect::Send { conn, range } => {
                    let client = &mut self.clients[conn.slot as usize];
                    assert!(client.open, "sent to a client that is gone");
                    client.bound |= effects.bytes[range.clone()].starts_with(b"<iq");
                    client.got.extend(parse(&effects.bytes[range]));
                }
                Effect::Pause { conn } => self.clients[conn.slot as usize].paused = true,
                Effect::Resume { conn } => self.clients[conn.slot as usize].paused = false,
                Effect::Move { conn, to, moving } => {
                    let to = usize::from(to.0);
                    self.clients[conn.slot as usize].shard = to;
                    self.messages[shard * SHARDS + to].push_back(Input::Arrived { conn, moving });
                }
                Effect::Post { to, message } => {
                    self.messages[shard * SHARDS + usize::from(to.0)].push_back(Input::Message(message));
                }
                Effect::Ask { ticket, ask: ask @ Ask::Read(_) } => self.reads.push((shard, ticket, ask)),
                Effect::Ask { ticket, ask } => self.writes[shard].push_back((ticket, ask)),
                Effect::Derive { ticket, derivation } => {
                    let derived = derivation.run();
                    self.messages[shard * SHARDS + shard].push_back(Input::Derived { ticket, derived });
                }
                Effect::Reply { to, outcome } => (to.0)(outcome),
                _ => {}
            }
        }
    }
}

/// What a client is told of a topic.
fn parse(bytes: &[u8]) -> Option<Got> {
    let text = std::str::from_utf8(bytes).expect("text");
    assert!(!text.contains("stream:error") && !text.contains("<failure"), "{text}");
    let after = |what: &str| {
        let rest = &text[text.find(what)? + what.len()..];
        Some(rest[..rest.find('\'').expect("a quote")].to_owned())
    };
    let topic = after("node='")?;
    Some(Got { topic, item: after("<item id='"), is_last: text.contains("<delay") })
}
