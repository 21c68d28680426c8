//! A node in a test: shards, a store, and connections that are buffers.

use allocation_counter::AllocationInfo;
use carillon_backend::sqlite::{Options, SqliteStore};
use carillon_core::command::{Command, Outcome, StateChange};
use carillon_core::event::{Kinds, Record, Value, records};
use carillon_core::machine::ShardMachine;
use carillon_core::message::ShardMessage;
use carillon_core::model::*;
use carillon_core::ports::store::accounts::{
    CreateAccount, CreateAccountAnswer, Identity, Login, SetCredentials,
};
use carillon_core::ports::store::domains::{Domains as AllDomains, PutDomain};
use carillon_core::ports::store::notifications::{EndNotifications, Pending};
use carillon_core::ports::store::offline::{DeleteOffline, Offline};
use carillon_core::ports::{Answer, Ask, Fault, Question, Store};
use carillon_core::sasl::ChannelBinding;
use carillon_core::sasl::scram;
use carillon_core::settings::Settings;
use carillon_core::shard::home;
use carillon_core::{Effect, Effects, Input, Opened, ReplyTo, Security};
use carillon_wire::Framing;
use carillon_wire::jid::BareJid;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, mpsc};

/// How many shards the node has.
const SHARDS: u16 = 2;

/// A node of two shards and a store in a folder of its own.
pub struct World {
    shards: Vec<ShardMachine>,
    store: SqliteStore,
    now: Now,
    conns: HashMap<u32, Conn>,
    next_conn: u32,
    work: VecDeque<(usize, Owned)>,
    outcomes: Arc<Mutex<Vec<Outcome>>>,
    pub changes: Vec<StateChange>,
    /// How often the store was asked who somebody is, since somebody looked.
    pub identities_asked: usize,
    /// The same for what belongs to an account.
    pub logins_asked: usize,
    /// What it was asked for, since somebody looked.
    pub login_parts_asked: LoginParts,
    /// Derived keys that are not given to the shards yet, if they are to be held.
    held: Option<Vec<(usize, Owned)>>,
    /// How often keys were derived.
    pub derived: usize,
    /// How often the shards asked the store for anything.
    pub asked: usize,
    /// What the store does not do now.
    moods: Vec<(String, Mood)>,
    /// Questions that were kept back.
    kept_back: Vec<(usize, Ticket, Ask)>,
    /// What the event log keeps, and what it was told and nobody looked at.
    pub kept: Kinds,
    pub logged: VecDeque<String>,
    /// What the shards allocated, without what they did in the walks of fan-outs.
    pub spent: AllocationInfo,
    /// What they allocated in the walks.
    pub spent_on_walks: AllocationInfo,
    _folder: tempfile::TempDir,
}

/// A connection: where it is, and what it was sent.
struct Conn {
    shard: usize,
    id: ConnId,
    sent: VecDeque<Vec<u8>>,
    closed: bool,
    /// Bytes that came while its session waited.
    held: Vec<u8>,
    paused: bool,
    /// What it was sent since it stopped reading, in bytes; none while it reads.
    unread: Option<usize>,
    /// Its queue overflowed.
    overflowed: bool,
    /// The shard is to be told when it has read.
    watched: bool,
}

/// What becomes of questions to the store of one kind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// They fail.
    Refuses,
    /// They are kept back.
    Holds,
}

/// Bytes that wait for a client that does not read, at most: the default of `limits.out_queue_bytes`.
const QUEUE_BYTES_MAX: usize = 256 * 1024;

/// An input that owns what it carries.
enum Owned {
    Opened(Opened),
    Secured(ConnId),
    Bytes(ConnId, Vec<u8>),
    Closed(ConnId),
    Flushed(ConnId),
    Other(Input<'static>),
}

impl World {
    pub fn new(settings: Settings) -> World {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = SqliteStore::open(Options::new(folder.path().join("chat.db"))).expect("a new store");
        let settings = Arc::new(settings);
        let domains = Arc::new(Domains::default());
        let shards = (0..SHARDS)
            .map(|id| {
                ShardMachine::new(ShardId(id), SHARDS, settings.clone(), domains.clone(), [id as u8 + 1; 32])
            })
            .collect();
        let now = Now { mono: Mono(1_000_000), unix: UnixMs(1_795_167_000_000) };
        World {
            shards,
            store,
            now,
            conns: HashMap::new(),
            next_conn: 0,
            work: VecDeque::new(),
            outcomes: Arc::default(),
            changes: Vec::new(),
            identities_asked: 0,
            logins_asked: 0,
            login_parts_asked: LoginParts::NONE,
            asked: 0,
            moods: Vec::new(),
            kept_back: Vec::new(),
            derived: 0,
            held: None,
            kept: Kinds::default(),
            logged: VecDeque::new(),
            spent: AllocationInfo::default(),
            spent_on_walks: AllocationInfo::default(),
            _folder: folder,
        }
    }

    pub fn ask<Q: Question>(&self, question: Q) -> Q::Answer {
        Q::answer(self.said(question.into())).expect("the store is well")
    }

    /// What the store says.
    fn said(&self, ask: Ask) -> Answer {
        let (sender, receiver) = mpsc::channel();
        self.store.ask(ask, Box::new(move |answer| sender.send(answer).expect("the test waits")));
        receiver.recv().expect("one answer")
    }

    pub fn domain(&mut self, name: &str, policy: Policy) {
        self.ask(PutDomain { name: name.into(), policy });
        let domains = self.ask(AllDomains);
        let domains = Arc::new(Domains::new(domains));
        for shard in 0..self.shards.len() {
            self.give(shard, Owned::Other(Input::Message(ShardMessage::Domains(domains.clone()))));
        }
    }

    pub fn domain_id(&self, name: &str) -> DomainId {
        let domains = self.ask(AllDomains);
        domains.iter().find(|d| &*d.name == name).unwrap_or_else(|| panic!("no domain {name}")).id
    }

    pub fn account(&mut self, domain: &str, local: &str, password: &str) {
        let credentials = scram::keys(password, b"0123456789abcdef", 4096).expect("a password");
        let domain = self.domain_id(domain);
        let answer = self.ask(CreateAccount { domain, local: local.into(), credentials, now: self.now.unix });
        assert!(matches!(answer, CreateAccountAnswer::Created(_)), "{answer:?}");
    }

    /// Changes a password as the HTTP API does when the sessions may go on.
    pub fn password(&mut self, domain: &str, local: &str, password: &str) {
        let credentials = scram::keys(password, b"fedcba9876543210", 4096).expect("a password");
        let id = self.domain_id(domain);
        let answer = self.ask(SetCredentials { domain: id, local: local.into(), credentials });
        answer.expect("the account is there");
        let account = BareJid::from_parts(Some(local), domain).expect("an account");
        let accounts = [account.clone()].into();
        self.command(account.as_str(), Command::Changed { accounts });
    }

    /// Opens a connection on a shard that is no one's home in particular.
    pub fn open(&mut self, framing: Framing, secured: bool) -> u32 {
        let security =
            if secured { Security::Secured(ChannelBinding::default()) } else { Security::StartTls };
        self.open_from("192.0.2.1", framing, security)
    }

    /// The same from an address, and secured in any way.
    pub fn open_from(&mut self, address: &str, framing: Framing, security: Security) -> u32 {
        let key = self.next_conn;
        self.next_conn += 1;
        let shard = key as usize % self.shards.len();
        let id = ConnId { slot: key, generation: 0 };
        self.conns.insert(
            key,
            Conn {
                shard,
                id,
                sent: VecDeque::new(),
                closed: false,
                held: Vec::new(),
                paused: false,
                unread: None,
                overflowed: false,
                watched: false,
            },
        );
        let address = address.parse().expect("an address");
        self.give(shard, Owned::Opened(Opened { conn: id, address, framing, security }));
        key
    }

    pub fn bytes(&mut self, key: u32, bytes: &[u8]) {
        let conn = self.conns.get_mut(&key).expect("a connection");
        if conn.paused {
            conn.held.extend_from_slice(bytes);
            return;
        }
        let (shard, id) = (conn.shard, conn.id);
        self.give(shard, Owned::Bytes(id, bytes.to_vec()));
    }

    /// The next thing a connection was sent.
    pub fn received(&mut self, key: u32) -> Option<Vec<u8>> {
        self.conns.get_mut(&key).expect("a connection").sent.pop_front()
    }

    /// The client reads nothing more: what it is sent waits in a bounded queue.
    pub fn stop_reading(&mut self, key: u32) {
        self.conns.get_mut(&key).expect("a connection").unread = Some(0);
    }

    /// The client reads all that waits; `unread` says whether it reads on.
    pub fn read(&mut self, key: u32, unread: Option<usize>) {
        let conn = self.conns.get_mut(&key).expect("a connection");
        conn.unread = unread;
        let (shard, id) = (conn.shard, conn.id);
        if std::mem::take(&mut conn.watched) {
            self.give(shard, Owned::Flushed(id));
        }
    }

    /// Bytes that wait for a client that does not read.
    pub fn unread(&self, key: u32) -> usize {
        self.conns[&key].unread.unwrap_or(0)
    }

    /// From now on the store does not do questions of this kind: see [`kind`].
    pub fn store_is(&mut self, kind: &str, mood: Mood) {
        self.moods.push((kind.to_owned(), mood));
    }

    /// The store does everything again, first what it kept back.
    pub fn store_goes_on(&mut self) {
        self.moods.clear();
        for (shard, ticket, ask) in std::mem::take(&mut self.kept_back) {
            let answer = self.said(ask);
            self.give(shard, Owned::Other(Input::Answer { ticket, answer }));
        }
    }

    pub fn is_closed(&self, key: u32) -> bool {
        self.conns[&key].closed
    }

    /// The connection is lost.
    pub fn drop_connection(&mut self, key: u32) {
        let conn = self.conns.get_mut(&key).expect("a connection");
        conn.closed = true;
        let (shard, id) = (conn.shard, conn.id);
        self.give(shard, Owned::Closed(id));
    }

    pub fn pass(&mut self, ms: u64) {
        let until = self.now.mono.plus(ms);
        while self.now.mono < until {
            let step = 100.min(until.since(self.now.mono));
            self.now = Now { mono: self.now.mono.plus(step), unix: self.now.unix.plus(step) };
            for shard in 0..self.shards.len() {
                if self.shards[shard].next_wake().is_some_and(|at| at <= self.now.mono) {
                    self.give(shard, Owned::Other(Input::Tick));
                }
            }
        }
    }

    pub fn now(&self) -> UnixMs {
        self.now.unix
    }

    /// Holds derived keys from now on, as if those who derive them took long.
    pub fn hold_derived(&mut self) {
        self.held = Some(Vec::new());
    }

    /// Gives the shards the keys that were held.
    pub fn let_derived_go(&mut self) {
        for (shard, input) in self.held.take().unwrap_or_default() {
            self.give(shard, input);
        }
    }

    /// Has a command carried out at the home of `name`.
    pub fn command(&mut self, name: &str, command: Command) -> Outcome {
        let outcomes = self.outcomes.clone();
        let reply = ReplyTo(Box::new(move |outcome| outcomes.lock().expect("one thread").push(outcome)));
        let shard = usize::from(home(name, SHARDS).0);
        self.give(shard, Owned::Other(Input::Message(ShardMessage::Command { command, reply })));
        self.outcomes.lock().expect("one thread").pop().expect("the command was answered")
    }

    fn give(&mut self, shard: usize, input: Owned) {
        self.work.push_back((shard, input));
        while let Some((shard, input)) = self.work.pop_front() {
            let mut effects = Effects::default();
            effects.journal.keep(self.kept);
            effects.watched = States::ALL;
            let input = match &input {
                Owned::Bytes(conn, bytes) => Input::Bytes { conn: *conn, bytes },
                Owned::Closed(conn) => Input::Closed { conn: *conn },
                Owned::Flushed(conn) => Input::Flushed { conn: *conn },
                Owned::Secured(conn) => Input::Secured { conn: *conn, binding: ChannelBinding::default() },
                Owned::Opened(_) | Owned::Other(_) => match input {
                    Owned::Opened(opened) => Input::Opened(opened),
                    Owned::Other(other) => other,
                    _ => unreachable!("matched above"),
                },
            };
            let (machine, now) = (&mut self.shards[shard], self.now);
            self.spent += allocation_counter::measure(|| machine.handle(now, input, &mut effects));
            self.spent_on_walks += allocation_counter::measure(|| while machine.walk(now, &mut effects) {});
            self.interpret(shard, effects);
        }
    }

    fn interpret(&mut self, shard: usize, effects: Effects) {
        let Effects { list, bytes, journal, .. } = effects;
        self.logged.extend(records(journal.bytes()).map(|record| line(&record)));
        for effect in list {
            match effect {
                Effect::Send { conn, range } => self.send(shard, conn, &bytes[range]),
                Effect::Secure { conn } => self.work.push_back((shard, Owned::Secured(conn))),
                Effect::Pause { conn } => self.conn(conn).paused = true,
                Effect::Resume { conn } => {
                    let conn = self.conn(conn);
                    conn.paused = false;
                    let (id, held) = (conn.id, std::mem::take(&mut conn.held));
                    if !held.is_empty() {
                        self.work.push_back((shard, Owned::Bytes(id, held)));
                    }
                }
                Effect::WatchFlush { conn } => match self.conn(conn) {
                    Conn { unread: None | Some(0), .. } => self.work.push_back((shard, Owned::Flushed(conn))),
                    waiting => waiting.watched = true,
                },
                Effect::CountUnacked { conn } => {
                    let bytes = self.conn(conn).unread.unwrap_or(0) as u64;
                    self.work.push_front((shard, Owned::Other(Input::Unacked { conn, bytes })));
                }
                Effect::Close { conn } => {
                    let conn = self.conn(conn);
                    if !conn.closed {
                        conn.closed = true;
                        let id = conn.id;
                        self.work.push_back((shard, Owned::Closed(id)));
                    }
                }
                Effect::Move { conn, to, moving } => {
                    let to = usize::from(to.0);
                    self.conn(conn).shard = to;
                    self.work.push_back((to, Owned::Other(Input::Arrived { conn, moving })));
                }
                Effect::Post { to, message } => {
                    self.work.push_back((usize::from(to.0), Owned::Other(Input::Message(message))));
                }
                Effect::Ask { ticket, ask } => self.answer(shard, ticket, ask),
                Effect::Derive { ticket, derivation } => {
                    self.derived += 1;
                    let derived = derivation.run();
                    let input = (shard, Owned::Other(Input::Derived { ticket, derived }));
                    match &mut self.held {
                        Some(held) => held.push(input),
                        None => self.work.push_back(input),
                    }
                }
                Effect::Reply { to, outcome } => (to.0)(outcome),
                Effect::StateChange(change) => self.changes.push(change),
            }
        }
    }

    /// Sends bytes to a connection, as far as the queue of one that does not read has room.
    fn send(&mut self, shard: usize, conn: ConnId, bytes: &[u8]) {
        let conn = self.conn(conn);
        assert!(!conn.closed, "sent to a closed connection: {}", String::from_utf8_lossy(bytes));
        if let Some(unread) = &mut conn.unread {
            if conn.overflowed || (*unread > 0 && *unread + bytes.len() > QUEUE_BYTES_MAX) {
                if !std::mem::replace(&mut conn.overflowed, true) {
                    let id = conn.id;
                    self.work.push_back((shard, Owned::Other(Input::Overflowed { conn: id })));
                }
                return;
            }
            *unread += bytes.len();
        }
        conn.sent.push_back(bytes.to_vec());
    }

    /// Has the store answer a question, unless it is in another mood.
    fn answer(&mut self, shard: usize, ticket: Ticket, ask: Ask) {
        self.asked += 1;
        self.identities_asked += usize::from(Identity::of(&ask).is_some());
        if let Some(login) = Login::of(&ask) {
            self.logins_asked += 1;
            self.login_parts_asked = self.login_parts_asked.and(login.parts);
        }
        let mood = self.moods.iter().find(|(mood, _)| mood == kind(&ask)).map(|(_, mood)| *mood);
        let answer = match mood {
            None => self.said(ask),
            Some(Mood::Refuses) => Answer::Failed(Fault::Busy),
            Some(Mood::Holds) => return self.kept_back.push((shard, ticket, ask)),
        };
        self.work.push_back((shard, Owned::Other(Input::Answer { ticket, answer })));
    }

    fn conn(&mut self, conn: ConnId) -> &mut Conn {
        self.conns.get_mut(&conn.slot).expect("a connection that was opened")
    }
}

/// The word of conversations for a question to the store.
fn kind(ask: &Ask) -> &'static str {
    if Login::of(ask).is_some() {
        "logins"
    } else if Pending::of(ask).is_some() || Offline::of(ask).is_some() {
        "pages"
    } else if EndNotifications::of(ask).is_some() || DeleteOffline::of(ask).is_some() {
        "ends"
    } else {
        "others"
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
        };
        line.push_str(&format!(" {}={value}", field.name));
    }
    line
}
