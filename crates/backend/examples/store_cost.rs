//! What the SQLite store costs on this machine: `cargo run --release -p carillon-backend --example store_cost [FOLDER [notifications|parked]]`.
//!
//! FOLDER is where the databases go and decides which disk is measured; a temporary folder when it is not given. Every
//! figure is through the store's own queue and threads, except the comparison of ways to read a login, which is one
//! thread on one connection.

use bytes::Bytes;
use carillon_backend::sqlite::{Options, SqliteStore};
use carillon_core::model::*;
use carillon_core::ports::store::accounts;
use carillon_core::ports::store::accounts::{ImportAccounts, ImportedAccount};
use carillon_core::ports::store::domains::PutDomain;
use carillon_core::ports::store::items::Publish;
use carillon_core::ports::store::notifications::{
    EndNotifications, NotificationChange, NotificationQuery, StoreNotification, Whose,
};
use carillon_core::ports::store::parked::{
    ForgetParked, ParkedGroup, ParkedGroups, StoreParked, StoreParkedAnswer,
};
use carillon_core::ports::store::subscriptions::Subscribe;
use carillon_core::ports::store::topics::{CreateTopic, CreateTopicAnswer};
use carillon_core::ports::{Answer, Ask, Page, Question, Store};
use carillon_wire::jid::BareJid;
use rusqlite::types::Value;
use rusqlite::{Connection, params};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

const NOW: UnixMs = UnixMs(1_795_167_000_000);
const NOTIFICATIONS: u64 = 200_000;
const LOGINS: u64 = 20_000;
/// Accounts that get the notifications, in turn.
const DEVICES: u64 = 100_000;
/// Lists of accounts that are read.
const LISTS: u64 = 2_000;
/// Questions in flight, as from many sessions at once.
const IN_FLIGHT: usize = 4_000;

fn main() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = std::env::args().nth(1).map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    let only = std::env::args().nth(2);
    if only.as_deref() != Some("notifications") {
        parked(&folder.join("parked.db"));
    }
    if only.as_deref() == Some("parked") {
        return;
    }
    notifications(&folder.join("notifications.db"));
    if only.is_some() {
        return;
    }
    logins(&folder.join("logins.db"));
    opening(&folder.join("opening.db"));
}

// ---- notifications

fn notifications(path: &Path) {
    let store = SqliteStore::open(Options::new(path)).expect("opens");
    let domain = prepare(&store, DEVICES);
    let commits = store.stats().commits;
    let mut stored = Clock::start();
    let mut window = Window::new(&store);
    for n in 0..NOTIFICATIONS {
        window.ask(store_ask(domain, n));
    }
    window.drain();
    stored.stop();
    let groups = store.stats().commits - commits;
    println!(
        "stored                    {} (groups of {})",
        stored.rate(NOTIFICATIONS),
        NOTIFICATIONS / groups.max(1)
    );

    let mut ended = Clock::start();
    for n in 0..NOTIFICATIONS {
        window.ask(end_ask(n));
    }
    window.drain();
    ended.stop();
    println!("ended, one a question     {}", ended.rate(NOTIFICATIONS));

    let mut both = Clock::start();
    for n in NOTIFICATIONS..2 * NOTIFICATIONS {
        window.ask(store_ask(domain, n));
        if n >= NOTIFICATIONS + IN_FLIGHT as u64 {
            window.ask(end_ask(n - IN_FLIGHT as u64));
        }
    }
    window.drain();
    both.stop();
    println!("stored and ended, mixed   {}", both.rate(NOTIFICATIONS));
    let mut listed = Clock::start();
    for n in 0..LISTS {
        window.ask(list_ask(domain, n));
        window.drain();
    }
    listed.stop();
    println!("lists of an account       {}", listed.rate(LISTS));
    paced(&store, domain);
    println!("size after it             {} MiB", store.stats().bytes >> 20);
}

/// The latency of a store at half of what is asked of it (P10): 10,000 stored and ended a second.
fn paced(store: &SqliteStore, domain: DomainId) {
    let start = Instant::now();
    let count = 30_000;
    let (sender, receiver) = sync_channel(count as usize);
    for n in 0..count {
        let due = start + Duration::from_micros(100) * n as u32;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let sender = sender.clone();
        let asked = Instant::now();
        store.ask(
            store_ask(domain, 1_000_000 + n).into(),
            Box::new(move |_| sender.send(asked.elapsed()).expect("someone counts")),
        );
        store.ask(end_ask(900_000 + n).into(), Box::new(|_| ()));
    }
    let mut times: Vec<Duration> = (0..count).map(|_| receiver.recv().expect("answers")).collect();
    times.sort();
    let at = |share: f64| times[(share * (times.len() - 1) as f64) as usize];
    println!("stored at 10,000/s        p50 {:?}, p99 {:?}, worst {:?}", at(0.5), at(0.99), at(1.0));
}

fn store_ask(domain: DomainId, n: u64) -> StoreNotification {
    let notification = Notification {
        id: id(n),
        domain,
        to: jid(n.wrapping_mul(7919) % DEVICES),
        audience: Audience::Always,
        priority: Priority::Normal,
        expires: Some(NOW.plus(86_400_000)),
        collapse_key: None,
        key: None,
        payload: Payload::Json(format!("{{\"n\":{n},\"text\":\"{}\"}}", "x".repeat(370)).into()),
        accepted: NOW.plus(n / 20),
        send_at: None,
    };
    StoreNotification { notification: notification.into(), queue_max: 1000, now: NOW, wake: None }
}

fn end_ask(n: u64) -> EndNotifications {
    EndNotifications {
        changes: vec![NotificationChange {
            id: id(n),
            state: NotificationState::Acknowledged,
            sent: Some(NOW),
            at: NOW.plus(n),
            acknowledged_by: Some(AcknowledgedBy::StreamManagement),
            reason: None,
        }],
    }
}

fn list_ask(domain: DomainId, n: u64) -> NotificationQuery {
    NotificationQuery {
        whose: Whose::Account(domain, local(n.wrapping_mul(7919) % DEVICES)),
        states: States::ALL,
        key: None,
        from: NotificationId(0),
        before: NotificationId(u128::MAX),
        limit: 50,
    }
}

fn id(n: u64) -> NotificationId {
    NotificationId::new(NOW.plus(n / 20), 7, n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

// ---- parked sessions

/// What a node writes when it ends, and reads when it starts: 15,000 sessions of 1.5 KiB, in groups of 256 KiB.
fn parked(path: &Path) {
    let groups = (PARKED * PARKED_BYTES).div_ceil(GROUP_BYTES);
    let store = SqliteStore::open(Options::new(path)).expect("opens");
    let start = Instant::now();
    let (sender, answers) = sync_channel(groups);
    for number in 0..groups {
        let group = ParkedGroup {
            number: number as u32,
            shard: 0,
            shards: 1,
            sessions: (PARKED / groups) as u32,
            written: NOW,
            bytes: vec![number as u8; GROUP_BYTES].into(),
        };
        let sender = sender.clone();
        let question = StoreParked { group, bytes_max: u64::MAX };
        store.ask(question.into(), Box::new(move |answer| sender.send(answer).expect("someone counts")));
    }
    for _ in 0..groups {
        let answer = StoreParked::answer(answers.recv().expect("answers"));
        assert_eq!(answer, Ok(StoreParkedAnswer::Stored));
    }
    println!("{PARKED} sessions parked    {:?} ({groups} groups)", start.elapsed());
    store.close();

    let store = SqliteStore::open(Options::new(path)).expect("opens");
    let start = Instant::now();
    let (mut after, mut read) = (None, 0);
    loop {
        let page = Page { entries: u16::MAX, bytes: 8 << 20 };
        let part = wait(&store, ParkedGroups { after, page });
        read += part.entries.len();
        after = part.entries.last().map(|group| group.number);
        if !part.more {
            break;
        }
    }
    wait(&store, ForgetParked);
    assert_eq!(read, groups);
    println!("read and forgotten        {:?}", start.elapsed());
}

const PARKED: usize = 15_000;
const PARKED_BYTES: usize = 1536;
const GROUP_BYTES: usize = 256 * 1024;

// ---- logins

fn logins(path: &Path) {
    let store = SqliteStore::open(Options::new(path)).expect("opens");
    let domain = prepare(&store, LOGINS);
    let topics = topics(&store, domain, 3);
    let mut window = Window::new(&store);
    for n in 0..LOGINS {
        for topic in &topics {
            window.ask(Subscribe { topic: *topic, domain, local: local(n), max: u32::MAX, now: NOW });
        }
    }
    window.drain();
    for round in 1..=3 {
        let mut clock = Clock::start();
        for n in 0..LOGINS {
            // Not in the order of the table.
            window.ask(identity_ask(domain, n.wrapping_mul(7919) % LOGINS));
        }
        window.drain();
        clock.stop();
        println!("identities, round {round}       {}", clock.rate(LOGINS));
        let mut clock = Clock::start();
        for n in 0..LOGINS {
            // The accounts of a new store are numbered from 1.
            window.ask(login_ask(1 + n.wrapping_mul(7919) % LOGINS));
        }
        window.drain();
        clock.stop();
        println!("logins, round {round}           {}", clock.rate(LOGINS));
    }
    store.close();
    compare(path, domain);
}

fn identity_ask(domain: DomainId, n: u64) -> accounts::Identity {
    accounts::Identity { domain, local: local(n) }
}

fn login_ask(account: u64) -> accounts::Login {
    accounts::Login { account: AccountId(account), parts: LoginParts::ALL, now: NOW }
}

/// The same reads by four prepared statements a login, and by four statements for all of a batch.
fn compare(path: &Path, domain: DomainId) {
    let db = Connection::open(path).expect("opens");
    db.set_prepared_statement_cache_capacity(64);
    rusqlite::vtab::array::load_module(&db).expect("rarray");
    let names: Vec<Box<str>> = (0..LOGINS).map(|n| local(n.wrapping_mul(7919) % LOGINS)).collect();
    for batch in [16, 64, 256] {
        for (way, read) in [("point", point as fn(&Connection, DomainId, &[Box<str>]) -> usize), ("set", set)]
        {
            let mut clock = Clock::start();
            for names in names.chunks(batch) {
                db.execute_batch("BEGIN").expect("begins");
                let found = read(&db, domain, names);
                assert_eq!(found, names.len() * 3, "three subscriptions a login");
                db.execute_batch("COMMIT").expect("ends");
            }
            clock.stop();
            println!("{way:>5} queries, batch of {batch:<4} {}", clock.rate(LOGINS));
        }
    }
}

const ACCOUNT: &str =
    "id, disabled, sha1_salt, sha1_iterations, sha1_stored_key, sha1_server_key, sha256_salt,
    sha256_iterations, sha256_stored_key, sha256_server_key";

fn point(db: &Connection, domain: DomainId, names: &[Box<str>]) -> usize {
    let mut found = 0;
    for name in names {
        let sql = format!("SELECT {ACCOUNT} FROM account WHERE domain = ?1 AND local = ?2");
        let mut query = db.prepare_cached(&sql).expect("account");
        let id: i64 = query.query_row(params![domain.0, name], read_account).expect("account").0;
        let mut query = db
            .prepare_cached("SELECT topic FROM subscription WHERE account = ?1 ORDER BY topic")
            .expect("subscription");
        found += query.query_map([id], |row| row.get::<_, u32>(0)).expect("subscription").count();
        for sql in [
            "SELECT id, payload FROM notification WHERE account = ?1 AND due IS NULL ORDER BY rank, seq",
            "SELECT seq, stanza FROM offline WHERE account = ?1 ORDER BY seq",
        ] {
            assert!(!db.prepare_cached(sql).expect("waiting").exists([id]).expect("waiting"));
        }
    }
    found
}

fn set(db: &Connection, domain: DomainId, names: &[Box<str>]) -> usize {
    let list = Rc::new(names.iter().map(|name| Value::from(name.to_string())).collect::<Vec<_>>());
    let sql = format!(
        "SELECT {ACCOUNT}, value FROM rarray(?2) CROSS JOIN account ON domain = ?1 AND local = value"
    );
    let mut query = db.prepare_cached(&sql).expect("accounts");
    let accounts: Vec<(i64, Keys)> = query
        .query_map(params![domain.0, list], read_account)
        .expect("accounts")
        .map(|row| row.expect("account"))
        .collect();
    let ids = Rc::new(accounts.iter().map(|(id, _)| Value::from(*id)).collect::<Vec<_>>());
    let mut query = db
        .prepare_cached("SELECT account, topic FROM rarray(?1) CROSS JOIN subscription ON account = value")
        .expect("subscriptions");
    let found = query
        .query_map([ids.clone()], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, u32>(1)?)))
        .expect("subscriptions")
        .count();
    for sql in [
        "SELECT value FROM rarray(?1) WHERE EXISTS (SELECT 1 FROM notification WHERE account = value AND due IS NULL)",
        "SELECT value FROM rarray(?1) WHERE EXISTS (SELECT 1 FROM offline WHERE account = value)",
    ] {
        assert!(!db.prepare_cached(sql).expect("waiting").exists([ids.clone()]).expect("waiting"));
    }
    found
}

type Keys = [Option<Box<[u8]>>; 6];

fn read_account(row: &rusqlite::Row<'_>) -> rusqlite::Result<(i64, Keys)> {
    let blob = |column| row.get::<_, Option<Vec<u8>>>(column).map(|bytes| bytes.map(Vec::into_boxed_slice));
    Ok((row.get(0)?, [blob(2)?, blob(4)?, blob(5)?, blob(6)?, blob(8)?, blob(9)?]))
}

// ---- opening

fn opening(path: &Path) {
    let store = SqliteStore::open(Options::new(path)).expect("opens");
    let mut clock = Clock::start();
    let domain = prepare(&store, 1_000_000);
    clock.stop();
    println!("imported accounts         {}", clock.rate(1_000_000));
    let mut clock = Clock::start();
    topics(&store, domain, 100_000);
    clock.stop();
    println!("created topics            {}", clock.rate(100_000));
    let bytes = store.stats().bytes;
    store.close();
    for way in ["after a clean end", "again"] {
        let start = Instant::now();
        let store = SqliteStore::open(Options::new(path)).expect("opens");
        let opened = start.elapsed();
        wait(&store, identity_ask(domain, 777_777)).expect("it is there");
        println!("open, {way:<19} {opened:?}, first login after {:?} ({} MiB)", start.elapsed(), bytes >> 20);
    }
}

// ---- what all of them need

fn prepare(store: &SqliteStore, accounts: u64) -> DomainId {
    let put = PutDomain { name: "example.org".into(), policy: Policy::default() };
    let domain = wait(store, put).domain;
    let keys = |size| ScramKeys {
        salt: Box::from([7; 16]),
        iterations: 4096,
        stored_key: vec![8; size].into(),
        server_key: vec![9; size].into(),
    };
    let credentials = Credentials { sha1: Some(keys(20)), sha256: Some(keys(32)) };
    for first in (0..accounts).step_by(10_000) {
        let accounts = (first..accounts.min(first + 10_000))
            .map(|n| ImportedAccount { local: local(n), credentials: credentials.clone() })
            .collect();
        wait(store, ImportAccounts { domain: domain.id, accounts, now: NOW }).expect("the domain is there");
    }
    domain.id
}

fn topics(store: &SqliteStore, domain: DomainId, count: u32) -> Vec<TopicId> {
    let mut window = Window::new(store);
    for n in 0..count {
        let (name, config) = (format!("topic-{n}").into(), TopicConfig::default());
        window.ask(CreateTopic { domain, name, config, affiliations: Vec::new(), owned_max: 0, now: NOW });
    }
    let topics: Vec<TopicId> = window
        .drain()
        .into_iter()
        .map(|answer| match CreateTopic::answer(answer) {
            Ok(CreateTopicAnswer::Created(topic)) => topic.id,
            other => panic!("{other:?}"),
        })
        .collect();
    for topic in &topics {
        let item = Item {
            topic: *topic,
            domain,
            name: Arc::from("topic"),
            id: "current".into(),
            publisher: None,
            published: NOW,
            payload: Bytes::from(vec![b'x'; 400]),
            revision: Revision(0),
        };
        window.ask(Publish { item, keep: 1, bytes_max: u64::MAX });
    }
    window.drain();
    topics
}

fn local(n: u64) -> Box<str> {
    format!("device-{n}").into()
}

fn jid(n: u64) -> BareJid {
    BareJid::from_parts(Some(&local(n)), "example.org").expect("an address")
}

fn wait<Q: Question>(store: &SqliteStore, question: Q) -> Q::Answer {
    let (sender, receiver) = sync_channel(1);
    store.ask(question.into(), Q::reply(move |answer| drop(sender.send(answer))));
    receiver.recv().expect("one answer").expect("the store is well")
}

/// Keeps at most [`IN_FLIGHT`] questions asked and not answered.
struct Window<'a> {
    store: &'a SqliteStore,
    sender: SyncSender<Answer>,
    receiver: Receiver<Answer>,
    waiting: usize,
    answers: Vec<Answer>,
}

impl<'a> Window<'a> {
    fn new(store: &'a SqliteStore) -> Window<'a> {
        let (sender, receiver) = sync_channel(IN_FLIGHT);
        Window { store, sender, receiver, waiting: 0, answers: Vec::new() }
    }

    fn ask(&mut self, question: impl Into<Ask>) {
        if self.waiting == IN_FLIGHT {
            self.take();
        }
        let sender = self.sender.clone();
        self.store.ask(question.into(), Box::new(move |answer| sender.send(answer).expect("someone waits")));
        self.waiting += 1;
    }

    fn drain(&mut self) -> Vec<Answer> {
        while self.waiting > 0 {
            self.take();
        }
        std::mem::take(&mut self.answers)
    }

    fn take(&mut self) {
        let answer = self.receiver.recv().expect("one answer each");
        assert!(!matches!(answer, Answer::Failed(_)), "{answer:?}");
        self.waiting -= 1;
        self.answers.push(answer);
    }
}

/// Time on the clock and on this process's processors, and what it wrote.
struct Clock {
    start: Instant,
    cpu: Duration,
    bytes: u64,
    took: Duration,
    used: Duration,
    written: u64,
}

impl Clock {
    fn start() -> Clock {
        let (took, used) = (Duration::ZERO, Duration::ZERO);
        Clock { start: Instant::now(), cpu: cpu(), bytes: written(), took, used, written: 0 }
    }

    fn stop(&mut self) {
        self.took = self.start.elapsed();
        self.used = cpu() - self.cpu;
        self.written = written() - self.bytes;
    }

    fn rate(&self, count: u64) -> String {
        let each = self.used.as_secs_f64() * 1e6 / count as f64;
        let rate = count as f64 / self.took.as_secs_f64();
        let written = self.written as f64 / 1024.0 / count as f64;
        format!("{rate:>9.0}/s, {each:6.1} µs of processor, {written:5.2} KiB written each")
    }
}

/// Bytes that this process gave to the file system so far: the write-ahead log and, by checkpoints, the database.
fn written() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").expect("Linux");
    let count = io.lines().find_map(|line| line.strip_prefix("wchar: ")).expect("the count");
    count.parse().expect("a number")
}

/// User and system time of this process so far, in Linux's hundredths of a second.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let after_name = stat.rsplit(')').next().expect("the fields");
    let ticks: u64 =
        after_name.split_whitespace().skip(11).take(2).map(|n| n.parse::<u64>().expect("a number")).sum();
    Duration::from_millis(ticks * 10)
}
