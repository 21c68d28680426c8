//! The simulated node in the words of conversations: everything that somebody causes is done when it returns.

use allocation_counter::AllocationInfo;
use carillon_backend::sqlite::{Options, SqliteStore};
use carillon_core::command::{Command, Outcome};
use carillon_core::event::{Kinds, Record, Value, records};
use carillon_core::message::{RoomOp, ShardMessage};
use carillon_core::model::*;
use carillon_core::ports::modules::ActiveModule;
use carillon_core::ports::store::accounts::{DeleteAccount, Identity, Login};
use carillon_core::ports::store::broadcasts::EndBroadcasts;
use carillon_core::ports::store::notifications::{EndNotifications, Pending, StoreNotification};
use carillon_core::ports::store::offline::{DeleteOffline, ExpiredOffline, Offline, StoreOffline};
use carillon_core::ports::store::roster::ReadRecord;
use carillon_core::ports::store::{ReadAsk, WriteAsk};
use carillon_core::ports::{Answer, Ask, Fault, Page, Question, Store};
use carillon_core::settings::Settings;
use carillon_core::shard::ModuleFigures;
use carillon_core::sim::store::{Asks, Committed, Engine, Mood};
use carillon_core::sim::{Meters, Plan, World as Node};
use carillon_core::{Input, Security};
use carillon_wire::Framing;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::mpsc;
use std::sync::mpsc::Receiver;

/// PBKDF2 iterations of passwords: as many as a client has to accept.
const ITERATIONS: u32 = 4096;

/// A node of two shards, and what is counted of it.
pub(crate) struct World {
    node: Node,
    counts: Rc<RefCell<Counts>>,
    logged: VecDeque<String>,
}

/// What was counted.
#[derive(Default)]
struct Counts {
    asked: Questions,
    spent: AllocationInfo,
    spent_on_walks: AllocationInfo,
}

/// What the store was asked at logins.
#[derive(Default)]
pub(crate) struct Questions {
    /// How often who somebody is.
    pub identities: usize,
    /// How often what belongs to an account.
    pub logins: usize,
    /// Which parts of it.
    pub parts: LoginParts,
    /// How often for records.
    pub records: usize,
}

/// The store of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// The simulation's.
    InMemory,
    /// A real one, in a folder of its own.
    BySqlite,
}

impl World {
    /// A node with a store in memory.
    pub(crate) fn new(settings: Settings) -> World {
        World::with_store(settings, Kept::InMemory, 1)
    }

    /// On so many nodes, which have two shards in all.
    pub(crate) fn with_store(settings: Settings, kept: Kept, nodes: u16) -> World {
        let counts = Rc::<RefCell<Counts>>::default();
        let store: Box<dyn Engine> = match kept {
            Kept::InMemory => Box::new(Counted { store: Committed::default(), counts: counts.clone() }),
            Kept::BySqlite => Box::new(Counted { store: Sqlite::new(), counts: counts.clone() }),
        };
        let mut node =
            Node::with_store(Plan { nodes, shards: 2 / nodes, settings, ..Plan::default() }, store);
        node.meters = Some(Box::new(Counting { counts: counts.clone() }));
        World { node, counts, logged: VecDeque::new() }
    }

    pub(crate) fn ask<Q: Question>(&mut self, question: Q) -> Q::Answer {
        self.node.ask(question)
    }

    pub(crate) fn domain(&mut self, name: &str, policy: Policy) {
        self.node.domain(name, policy);
        self.node.settle();
    }

    pub(crate) fn domain_id(&self, name: &str) -> DomainId {
        self.node.domain_id(name)
    }

    pub(crate) fn account(&mut self, domain: &str, local: &str, password: &str) {
        self.node.account(domain, local, password, ITERATIONS);
    }

    /// Makes an invitation.
    pub(crate) fn invite(&mut self, token: &str, like: &Invitation) {
        self.node.invite(token, like);
    }

    /// Changes a password as the HTTP API does when the sessions may go on.
    pub(crate) fn password(&mut self, domain: &str, local: &str, password: &str) {
        self.node.password(domain, local, password);
    }

    /// Opens a connection on a shard that is no one's home in particular.
    pub(crate) fn open(&mut self, framing: Framing, secured: bool) -> usize {
        let key = self.node.open(framing, secured);
        self.node.settle();
        key
    }

    /// The same from an address, and secured in any way.
    pub(crate) fn open_from(&mut self, address: &str, framing: Framing, security: Security) -> usize {
        let key = self.node.open_from(address, framing, security);
        self.node.settle();
        key
    }

    pub(crate) fn bytes(&mut self, key: usize, bytes: &[u8]) {
        self.node.bytes(key, bytes);
        self.node.settle();
    }

    /// A shard says that it is behind with giving what a room says, or has caught up.
    pub(crate) fn keep_pace(&mut self, room: &str, is_behind: bool) {
        let (name, host) = room.split_once('@').expect("ROOM@rooms.DOMAIN");
        let (kind, domain) = RoomKind::of_host(host).expect("rooms.DOMAIN");
        let node = if self.node.node_count() == 1 { NodeId(0) } else { NodeId(1000) };
        let place = Place { node, shard: ShardId(0) };
        let (domain, op) = (self.node.domain_id(domain), RoomOp::Pace { place, is_behind });
        let message = ShardMessage::Room { domain, kind, name: name.into(), op };
        let home = self.node.home(room);
        self.node.give(home, Input::Message(message));
        self.node.settle();
    }

    /// Everything that happened, as a number.
    pub(crate) fn history(&self) -> u64 {
        self.node.trace.hash()
    }

    /// The next thing a connection was sent.
    pub(crate) fn received(&mut self, key: usize) -> Option<Vec<u8>> {
        self.node.sent(key)
    }

    /// The client reads nothing more: what it is sent waits in a bounded queue.
    pub(crate) fn stop_reading(&mut self, key: usize) {
        self.node.has_room(key, Some(0));
    }

    /// The client reads all that waits, and nothing that comes later.
    pub(crate) fn read_once(&mut self, key: usize) {
        self.node.reads_once(key);
        self.node.settle();
    }

    /// The client reads again.
    pub(crate) fn read_on(&mut self, key: usize) {
        self.node.has_room(key, None);
        self.node.settle();
    }

    /// Bytes that wait for a client that does not read.
    pub(crate) fn unread(&self, key: usize) -> usize {
        self.node.connection(key).queued()
    }

    pub(crate) fn is_closed(&self, key: usize) -> bool {
        !self.node.connection(key).is_open()
    }

    /// The connection is lost.
    pub(crate) fn drop_connection(&mut self, key: usize) {
        self.node.lose(key);
        self.node.settle();
    }

    /// All queues together are full, and this connection's is among the largest.
    pub(crate) fn overflow_together(&mut self, key: usize) {
        self.node.overflow_together(key);
        self.node.settle();
    }

    /// The node ends and starts again: how many sessions went on, and how many ended.
    pub(crate) fn restart(&mut self, away_ms: u64) -> (u32, u32) {
        let restored = self.node.restart(away_ms);
        (restored.restored, restored.expired + restored.refused)
    }

    /// Parked sessions leave their shards as bytes, and come back.
    pub(crate) fn hand_over(&mut self) {
        self.node.hand_over();
    }

    pub(crate) fn move_parked(&mut self) {
        self.node.move_parked();
    }

    pub(crate) fn pass(&mut self, ms: u64) {
        self.node.pass(ms);
        self.end_messages();
    }

    /// Messages whose time is over end, as the jobs of a node have them ended every second.
    fn end_messages(&mut self) {
        let now = self.node.now().unix;
        for expired in
            self.node.ask(ExpiredOffline { now, page: Page { entries: 100, bytes: 1 << 20 } }).entries
        {
            let to = expired.to.clone();
            self.node.message(to.as_str(), ShardMessage::MessageExpired(Box::new(expired)));
        }
        self.node.settle();
    }

    pub(crate) fn now(&self) -> UnixMs {
        self.node.now().unix
    }

    /// Gives one shard a message, and waits for all that comes of it.
    pub(crate) fn tell(&mut self, message: ShardMessage) {
        self.node.message("anybody", message);
        self.node.settle();
    }

    /// Has a command carried out at the home of `name`.
    pub(crate) fn command(&mut self, name: &str, command: Command) -> Outcome {
        self.node.command(name, command)
    }

    /// The same; the outcome may come later.
    pub(crate) fn begin(&mut self, name: &str, command: Command) -> Receiver<Outcome> {
        let outcome = self.node.begin(name, command);
        self.node.settle();
        outcome
    }

    /// Gives every shard an input, and waits for all that comes of it.
    pub(crate) fn every_shard(&mut self, input: &dyn Fn() -> Input<'static>) {
        self.node.every_shard(input);
        self.node.settle();
    }

    /// Holds derived keys from now on, as if those who derive them took long.
    pub(crate) fn hold_derived(&mut self) {
        self.node.hold_derived(true);
    }

    /// Gives the shards the keys that were held.
    pub(crate) fn let_derived_go(&mut self) {
        self.node.hold_derived(false);
        self.node.settle();
    }
}

// ---- modules

impl World {
    /// Every shard has these modules from now on.
    pub(crate) fn set_modules(&mut self, make: impl Fn() -> Vec<ActiveModule> + 'static) {
        self.node.set_modules(make);
    }

    /// The steps of followed notifications that nobody has looked at.
    pub(crate) fn hops(&mut self) -> &mut Vec<Hop> {
        &mut self.node.hops
    }

    /// How a module does, over all shards.
    pub(crate) fn module(&self, name: &str) -> String {
        let mut sum = Vec::new();
        for shard in 0..self.node.shard_count() {
            ModuleFigures::add_all(&mut sum, self.node.counters(shard).modules.clone());
        }
        let Some(module) = sum.into_iter().find(|module| *module.name == *name) else {
            return "no figures".into();
        };
        let mut found = module.standing.name().to_owned();
        let mut counts: Vec<_> = module.verdicts.iter().chain(module.failures.iter()).collect();
        counts.extend([("same", module.same), ("different", module.different)]);
        counts.sort_unstable();
        for (word, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            found.push_str(&format!(" {word}={count}"));
        }
        found
    }
}

// ---- the store

impl World {
    /// From now on the store refuses questions of this kind.
    pub(crate) fn store_refuses(&mut self, kind: &str) -> Result<(), String> {
        self.node.disk.is(meant(kind)?, Mood::Refuses(Fault::Busy));
        Ok(())
    }

    /// From now on it does them or not, and answers that this is unknown.
    pub(crate) fn store_loses(&mut self, kind: &str, is_done: bool) -> Result<(), String> {
        let mood = if is_done { Mood::LosesAnswer } else { Mood::Refuses(Fault::Unknown) };
        self.node.disk.is(meant(kind)?, mood);
        Ok(())
    }

    /// From now on it keeps them back.
    pub(crate) fn store_holds(&mut self, kind: &str) -> Result<(), String> {
        self.node.disk.is(meant(kind)?, Mood::Holds);
        Ok(())
    }

    /// From now on it answers them again, first those that it kept back.
    pub(crate) fn store_goes_on_with(&mut self, kind: &str) -> Result<(), String> {
        self.node.disk.goes_on_with(meant(kind)?);
        self.node.settle();
        Ok(())
    }

    /// The store does everything again, first what it kept back.
    pub(crate) fn store_goes_on(&mut self) {
        self.node.disk.goes_on();
        self.node.settle();
    }
}

/// The questions that conversations have a word for.
fn meant(kind: &str) -> Result<Asks, String> {
    match kind {
        "logins" => Ok(|ask| Login::of(ask).is_some()),
        "pages" => Ok(|ask| Pending::of(ask).is_some() || Offline::of(ask).is_some()),
        "ends" => Ok(|ask| {
            EndNotifications::of(ask).is_some()
                || DeleteOffline::of(ask).is_some()
                || EndBroadcasts::of(ask).is_some()
        }),
        "messages" => Ok(|ask| StoreOffline::of(ask).is_some()),
        "notifications" => Ok(|ask| StoreNotification::of(ask).is_some()),
        "archives" => Ok(|ask| match ask {
            Ask::Read(ask) => matches!(ask, ReadAsk::Archive(_) | ReadAsk::Inbox(_)),
            Ask::Write(ask) | Ask::Once(_, ask) => matches!(ask, WriteAsk::Archive(_) | WriteAsk::Inbox(_)),
        }),
        "records" => Ok(|ask| matches!(ask, Ask::Read(ReadAsk::Roster(_)))),
        "rosters" => Ok(|ask| matches!(ask, Ask::Write(WriteAsk::Roster(_) | WriteAsk::Blocking(_)))),
        "rooms" => Ok(|ask| match ask {
            Ask::Read(ask) => matches!(ask, ReadAsk::Rooms(_)),
            Ask::Write(ask) | Ask::Once(_, ask) => matches!(ask, WriteAsk::Rooms(_)),
        }),
        "removals" => Ok(|ask| DeleteAccount::of(ask).is_some()),
        "vcards" => Ok(|ask| matches!(ask, Ask::Read(ReadAsk::Vcard(_)) | Ask::Write(WriteAsk::Vcard(_)))),
        other => Err(format!("no questions are called {other}")),
    }
}

/// A store that counts what it is asked.
struct Counted<E> {
    store: E,
    counts: Rc<RefCell<Counts>>,
}

impl<E: Engine> Engine for Counted<E> {
    fn answer(&mut self, ask: &Ask) -> Answer {
        let asked = &mut self.counts.borrow_mut().asked;
        asked.identities += usize::from(Identity::of(ask).is_some());
        if let Some(login) = Login::of(ask) {
            asked.logins += 1;
            asked.parts = asked.parts.and(login.parts);
        }
        // One without parts asks for the generation alone.
        let is_record = |read: &ReadRecord| read.parts != RecordParts::default();
        asked.records += usize::from(ReadRecord::of(ask).is_some_and(is_record));
        self.store.answer(ask)
    }
}

/// A real store, waited for.
struct Sqlite {
    store: SqliteStore,
    _folder: tempfile::TempDir,
}

impl Sqlite {
    fn new() -> Sqlite {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = SqliteStore::open(Options::new(folder.path().join("chat.db"))).expect("a new store");
        Sqlite { store, _folder: folder }
    }
}

impl Engine for Sqlite {
    fn answer(&mut self, ask: &Ask) -> Answer {
        let (sender, receiver) = mpsc::channel();
        self.store.ask(ask.clone(), Box::new(move |answer| sender.send(answer).expect("the test waits")));
        receiver.recv().expect("one answer")
    }
}

// ---- what is counted and logged

impl World {
    /// What the store was asked since somebody looked.
    pub(crate) fn questions(&mut self) -> Questions {
        std::mem::take(&mut self.counts.borrow_mut().asked)
    }

    /// How often the shards asked the store for anything.
    pub(crate) fn asked(&self) -> usize {
        self.node.asked
    }

    /// How often keys were derived.
    pub(crate) fn derived(&self) -> usize {
        self.node.derivations
    }

    /// How often the shards allocated, without what they did in the walks of fan-outs.
    pub(crate) fn spent(&self) -> u64 {
        self.counts.borrow().spent.count_total
    }

    /// How often they did in the walks.
    pub(crate) fn spent_on_walks(&self) -> u64 {
        self.counts.borrow().spent_on_walks.count_total
    }

    /// The event log keeps these from now on.
    pub(crate) fn log(&mut self, kinds: Kinds) {
        self.node.logs = kinds;
    }

    /// The next line of the event log.
    pub(crate) fn logged(&mut self) -> Option<String> {
        self.logged.extend(records(&self.node.journal).map(|record| line(&record)));
        self.node.journal.clear();
        self.logged.pop_front()
    }
}

struct Counting {
    counts: Rc<RefCell<Counts>>,
}

impl Meters for Counting {
    fn handles(&mut self, run: &mut dyn FnMut()) {
        let spent = allocation_counter::measure(run);
        self.counts.borrow_mut().spent += spent;
    }

    fn walks(&mut self, run: &mut dyn FnMut()) {
        let spent = allocation_counter::measure(run);
        self.counts.borrow_mut().spent_on_walks += spent;
    }
}

/// An entry of the event log as conversations write it: its kind, and the fields that say something.
fn line(record: &Record<'_>) -> String {
    let mut line = record.kind.as_str().to_owned();
    for (field, value) in record.fields() {
        let value = match value {
            Value::Text("") => continue,
            Value::Text(text) => text.to_owned(),
            Value::Number(number) => number.to_string(),
            Value::Notification(id) => id.to_string(),
            Value::Address(address) => address.to_string(),
            Value::Flag(None) => continue,
            Value::Flag(Some(flag)) => flag.to_string(),
        };
        line.push_str(&format!(" {}={value}", field.name));
    }
    line
}
