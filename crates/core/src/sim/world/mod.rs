//! One or several nodes: shards, their inboxes, a store, links, time. Nodes are joined by a bus that loses nothing. Everything that is under way waits until it is picked.
//!
//! What an input causes at its shard (a flush, an overflow, a connection that is closed) is told to the shard at once, as the
//! server does it; whatever goes to another shard, to the store, or over a link is a [`Choice`]. [`World::settle`] takes them in one
//! order until there are none left; a program picks them by its seed.

mod choices;
mod effects;
mod leaving;
mod link;
mod losing;
mod moving;
mod operator;
mod time;

pub use choices::Choice;
pub use effects::Meters;
pub use leaving::Estate;
pub use link::Link;

use super::dice::Dice;
use super::store::{Committed, Disk, Engine};
use super::trace::Trace;
use crate::command::{Outcome, StateChange};
use crate::connection::QueueBound;
use crate::event::Kinds;
use crate::machine::ShardMachine;
use crate::model::{ConnId, Domains, Hop, Mono, NodeId, Now, Place, ShardId, States, UnixMs};
use crate::ports::Computed;
use crate::ports::modules::ActiveModule;
use crate::sasl::ChannelBinding;
use crate::settings::Settings;
use crate::shard::{Counters, Member};
use crate::{Effects, Input, Opened, Security};
use carillon_wire::Framing;
use link::{Heard, Stage};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

/// What a node is made of.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many nodes there are, which share the store and divide the homes among them.
    pub nodes: u16,
    /// How many shards each has.
    pub shards: u16,
    /// Its settings.
    pub settings: Settings,
    /// What its shards' randomness is made of.
    pub seed: u64,
    /// Bytes that may wait for one connection.
    pub queue_bytes_max: usize,
    /// Whether a link carries at once what it is given; otherwise each piece is a choice.
    pub links_are_instant: bool,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            nodes: 1,
            shards: 2,
            settings: Settings::default(),
            seed: 1,
            // The default of `limits.out_queue_bytes`.
            queue_bytes_max: 256 * 1024,
            links_are_instant: true,
        }
    }
}

/// A node, and all that is around it.
pub struct World {
    plan: Plan,
    settings: Arc<Settings>,
    domains: Arc<Domains>,
    dice: Dice,
    shards: Vec<ShardMachine>,
    /// The store.
    pub disk: Disk,
    /// Every connection there ever was.
    links: Vec<Link>,
    /// Who waits for the outcomes of commands.
    replies: Vec<Option<SyncSender<Outcome>>>,
    /// From shard to shard, each in its order.
    posts: Vec<VecDeque<Input<'static>>>,
    /// Keys that were derived and not given to their shard, and whether they are to be.
    derived: Vec<(usize, Input<'static>)>,
    holds_derived: bool,
    /// Whether a shard may have a fan-out under way.
    walking: Vec<bool>,
    /// No connection is read and no timer runs.
    is_frozen: bool,
    /// The shards have not had their first turn.
    is_restoring: bool,
    now: Now,
    /// What happened.
    pub trace: Trace,
    /// What the shards spent, where it is measured.
    pub meters: Option<Box<dyn Meters>>,
    /// What notifications came to, and nobody looked at.
    pub changes: Vec<StateChange>,
    /// Steps of followed notifications that nobody looked at.
    pub hops: Vec<Hop>,
    /// What the event log keeps.
    pub logs: Kinds,
    /// The entries of the event log, encoded, that nobody looked at.
    pub journal: Vec<u8>,
    /// How often keys were derived.
    pub derivations: usize,
    /// How often the shards asked the store for anything.
    pub asked: usize,
    /// Makes the modules of a shard, which it is given whenever it starts.
    modules: Option<Box<dyn Fn() -> Vec<ActiveModule>>>,
    effects: Effects,
}

impl World {
    /// A node with nothing in its store.
    pub fn new(plan: Plan) -> World {
        World::with_store(plan, Box::<Committed>::default())
    }

    /// A node on a store.
    pub fn with_store(plan: Plan, store: Box<dyn Engine>) -> World {
        let count = usize::from(plan.nodes) * usize::from(plan.shards);
        let mut world = World {
            settings: Arc::new(plan.settings.clone()),
            domains: Arc::default(),
            dice: Dice::new(plan.seed),
            shards: Vec::new(),
            disk: Disk::new(store, count),
            links: Vec::new(),
            replies: Vec::new(),
            posts: Vec::new(),
            derived: Vec::new(),
            holds_derived: false,
            walking: Vec::new(),
            is_frozen: false,
            is_restoring: false,
            now: Now { mono: Mono(1_000_000), unix: UnixMs(1_795_167_000_000) },
            trace: Trace::default(),
            meters: None,
            changes: Vec::new(),
            hops: Vec::new(),
            logs: Kinds::default(),
            journal: Vec::new(),
            derivations: 0,
            asked: 0,
            modules: None,
            effects: Effects { watched: States::ALL, ..Effects::default() },
            plan,
        };
        world.start();
        world.first_turn();
        world
    }

    /// Starts the shards, anew if they were there.
    fn start(&mut self) {
        let count = self.planned();
        self.is_restoring = true;
        self.disk.serve(count);
        self.posts = std::iter::repeat_with(VecDeque::new).take(count * count).collect();
        self.walking = vec![false; count];
        let seeds: Vec<_> = (0..count).map(|_| self.dice.seed()).collect();
        let machine = |(shard, seed)| {
            let (settings, domains) = (self.settings.clone(), self.domains.clone());
            ShardMachine::new(self.member(shard), settings, domains, seed)
        };
        self.shards = seeds.into_iter().enumerate().map(machine).collect();
        self.give_modules();
    }

    /// Every shard has these modules from now on, also after it started anew.
    pub fn set_modules(&mut self, make: impl Fn() -> Vec<ActiveModule> + 'static) {
        self.modules = Some(Box::new(make));
        self.give_modules();
    }

    fn give_modules(&mut self) {
        if let Some(make) = &self.modules {
            self.shards.iter_mut().for_each(|shard| shard.set_modules(make()));
        }
    }

    /// The shards run, with what was restored: nodes tell each other what they have.
    pub(super) fn first_turn(&mut self) {
        self.is_restoring = false;
        if self.plan.nodes > 1 {
            self.every_shard(|| Input::Tick);
        }
    }

    /// The node ends without a word, and starts again: what was not committed is forgotten, and every connection is lost.
    pub fn crash(&mut self) {
        self.trace.note(format_args!("crash"));
        self.lose_all();
        self.first_turn();
    }

    /// The same, before anything else is done.
    pub(super) fn lose_all(&mut self) {
        self.derived.clear();
        self.links.iter_mut().for_each(Link::lose);
        self.start();
    }

    /// How many shards there are to be, of all nodes.
    fn planned(&self) -> usize {
        usize::from(self.plan.nodes) * usize::from(self.plan.shards)
    }

    /// Where a shard is. A node that is alone has the number that it has in a process.
    pub(super) fn place(&self, shard: usize) -> Place {
        let shards = usize::from(self.plan.shards);
        Place { node: self.nodes()[shard / shards], shard: ShardId((shard % shards) as u16) }
    }

    /// The shard at a place.
    pub(super) fn at(&self, place: Place) -> usize {
        let node = self.nodes().iter().position(|node| *node == place.node).expect("a node that there is");
        // A home on another node is told by a number that has a remainder there.
        node * usize::from(self.plan.shards) + usize::from(place.shard.0 % self.plan.shards)
    }

    /// The shard that is the home of a topic or a room, by its address.
    pub fn home(&self, name: &str) -> usize {
        self.at(self.member(0).directory.home(name))
    }

    /// The shard of the first node that knows where the home of an account is: where whoever is outside tells it something.
    pub fn home_of_account(&self, account: &str) -> usize {
        self.at(self.member(0).directory.account(account))
    }

    /// The number of the node that a shard is of.
    pub(super) fn node_of(&self, shard: usize) -> usize {
        shard / usize::from(self.plan.shards)
    }

    fn nodes(&self) -> Vec<NodeId> {
        match self.plan.nodes {
            1 => vec![NodeId(0)],
            nodes => (1..=u32::from(nodes)).map(|number| NodeId(number * 1000)).collect(),
        }
    }

    /// What a shard is told of where it is.
    pub(super) fn member(&self, shard: usize) -> Member {
        let (place, shards) = (self.place(shard), self.plan.shards);
        Member { place, shards, directory: Arc::new(Computed::among(&self.nodes(), place.node, shards)) }
    }

    /// How many shards each node has.
    pub fn shards_per_node(&self) -> u16 {
        self.plan.shards
    }

    /// How many shards there are.
    pub fn shard_count(&self) -> usize {
        self.shards.len()
    }

    /// What a shard counts.
    pub fn counters(&self, shard: usize) -> &Counters {
        self.shards[shard].counters()
    }

    /// What time it is.
    pub fn now(&self) -> Now {
        self.now
    }

    // ---- connections

    /// A client connects to one of the shards: its connection, by which it is called from then on.
    pub fn open(&mut self, framing: Framing, secured: bool) -> usize {
        let security =
            if secured { Security::Secured(ChannelBinding::default()) } else { Security::StartTls };
        self.open_from("192.0.2.1", framing, security)
    }

    /// The same from an address, and secured in any way.
    pub fn open_from(&mut self, address: &str, framing: Framing, security: Security) -> usize {
        let (key, shard, conn) = self.link(self.links.len() % self.shards.len(), framing);
        let address = address.parse().expect("the caller's own address");
        self.give(shard, Input::Opened(Opened { conn, address, framing, security }));
        key
    }

    /// A client of the light protocol connects to a shard.
    pub fn open_light(&mut self, shard: usize) -> usize {
        let (key, shard, conn) = self.link(shard, Framing::Tcp);
        self.give(shard, Input::OpenedLight { conn });
        key
    }

    fn link(&mut self, shard: usize, framing: Framing) -> (usize, usize, ConnId) {
        let key = self.links.len();
        let conn = ConnId { slot: key as u32, generation: 7 };
        self.links.push(Link::new(shard, conn, framing));
        (key, shard, conn)
    }

    /// A connection.
    pub fn connection(&self, key: usize) -> &Link {
        &self.links[key]
    }

    /// How many connections there ever were.
    pub fn connections(&self) -> usize {
        self.links.len()
    }

    /// A client sends: a piece of its stream, or a message of WebSocket.
    pub fn bytes(&mut self, key: usize, bytes: &[u8]) {
        let Some(link) = self.links.get_mut(key).filter(|link| link.is_open()) else { return };
        link.said_bytes += bytes.len() as u64;
        if self.plan.links_are_instant && !self.is_frozen && link.to_server.is_empty() && link.is_read() {
            link.heard_bytes += bytes.len() as u64;
            let (shard, conn) = (link.shard, link.conn);
            return self.give(shard, Input::Bytes { conn, bytes });
        }
        link.to_server.push_back(bytes.to_vec());
    }

    /// The next element that a client was sent, as soon as it has left the shard.
    pub fn sent(&mut self, key: usize) -> Option<Vec<u8>> {
        self.links[key].sent()
    }

    /// The next element that has arrived at a client.
    pub fn received(&mut self, key: usize) -> Option<Vec<u8>> {
        self.links[key].received()
    }

    /// From now on the socket of a connection takes so many bytes, or all.
    pub fn has_room(&mut self, key: usize, room: Option<usize>) {
        let heard = self.links[key].has_room(room);
        self.arrive(key);
        self.heard(key, heard);
    }

    /// The client reads what waits for it, and nothing that comes later.
    pub fn reads_once(&mut self, key: usize) {
        let waiting = self.links[key].queued();
        self.has_room(key, Some(waiting));
    }

    /// A connection is lost.
    pub fn lose(&mut self, key: usize) {
        let Link { stage, shard, conn, .. } = self.links[key];
        self.trace.note(format_args!("lost {key}"));
        match stage {
            Stage::Moving { .. } => {
                self.links[key].lose();
                self.links[key].stage = Stage::Moving { lost: true };
            }
            Stage::Open => {
                let unacked = self.links[key].unacked();
                self.links[key].lose();
                self.give(shard, Input::Closed { conn, unacked });
            }
            Stage::Closed | Stage::Lost => self.links[key].lose(),
        }
    }

    /// A connection's queue is full: what a shard hears of a client that reads too slowly, whatever it was sent.
    pub fn overflow(&mut self, key: usize) {
        self.heard(key, Heard::Overflowed);
    }

    /// All queues together are full, and that of this connection is among the largest.
    pub fn overflow_together(&mut self, key: usize) {
        let Link { shard, conn, stage, .. } = self.links[key];
        if stage == Stage::Open {
            self.give(shard, Input::Overflowed { conn, bound: QueueBound::Common });
        }
    }

    /// What a socket took arrives at once, if links are like that.
    fn arrive(&mut self, key: usize) {
        if self.plan.links_are_instant {
            self.links[key].arrive(usize::MAX);
        }
    }

    fn heard(&mut self, key: usize, heard: Heard) {
        let Link { shard, conn, stage, .. } = self.links[key];
        if stage != Stage::Open {
            return;
        }
        match heard {
            Heard::Nothing => {}
            Heard::Flushed => self.give(shard, Input::Flushed { conn }),
            Heard::Overflowed => {
                self.links[key].overflow_reported();
                self.give(shard, Input::Overflowed { conn, bound: QueueBound::Own });
            }
        }
    }
}
