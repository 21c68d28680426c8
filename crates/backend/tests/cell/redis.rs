//! In Redis.

use crate::certificates::Certificates;
use crate::proxy::{Fault, Proxy, Upstream};
use crate::server::{Redis, free_port};
use carillon_backend::Secret;
use carillon_backend::conformance::claims::{self, CASES};
use carillon_backend::conformance::session_log;
use carillon_backend::redis::{self, Options};
use carillon_core::model::Epoch;
use carillon_core::ports::claims::{KEPT_MS, Reached, Reaches};
use carillon_core::ports::{Claimed, Claims, LogHears, Policy, SessionLog, Unavailable};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Runtime;

/// A server, and each node behind a proxy of its own.
struct Engine<'a> {
    server: RefCell<Redis>,
    proxies: RefCell<BTreeMap<Epoch, Proxy>>,
    runtime: &'a Runtime,
}

fn upstream(server: &Redis) -> Upstream {
    Upstream::Unix(server.socket.clone())
}

fn options(proxy: &Proxy) -> Options {
    let url = format!("redis://127.0.0.1:{}", proxy.port);
    Options { deadline: Duration::from_millis(500), ..Options::new(&url) }
}

impl claims::Engine for Engine<'_> {
    fn open(&self, own: Epoch, reaches: Reaches) -> Arc<dyn Claims> {
        let proxy = Proxy::new(upstream(&self.server.borrow()));
        let claims = redis::open(&options(&proxy), own, reaches, self.runtime.handle()).expect("it opens");
        self.proxies.borrow_mut().insert(own, proxy);
        claims
    }

    fn fault(&self, of: Epoch, fault: Fault) {
        self.proxies.borrow()[&of].fault(fault);
    }

    fn lose(&self) {
        *self.server.borrow_mut() = Redis::start(&[]);
        self.proxies.borrow().values().for_each(|proxy| proxy.moves(upstream(&self.server.borrow())));
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

#[test]
fn conforms() {
    let runtime = runtime();
    crate::each(CASES.iter().map(|case| {
        let runtime = &runtime;
        let run = move || {
            let engine = Engine { server: Redis::start(&[]).into(), proxies: RefCell::default(), runtime };
            (case.run)(&engine);
        };
        (case.name, Box::new(run) as Box<dyn FnOnce()>)
    }));
}

impl session_log::Engine for Engine<'_> {
    fn open(&self, own: Epoch, hears: LogHears) -> Arc<dyn SessionLog> {
        let proxy = Proxy::new(upstream(&self.server.borrow()));
        let log = redis::open_log(&options(&proxy), own, hears, self.runtime.handle()).expect("it opens");
        self.proxies.borrow_mut().insert(own, proxy);
        log
    }

    fn set_away(&self, of: Epoch, is_away: bool) {
        self.proxies.borrow()[&of].fault(if is_away { Fault::Cut } else { Fault::None });
    }
}

#[test]
fn the_log_of_sessions_conforms() {
    let runtime = runtime();
    crate::each(session_log::CASES.iter().map(|case| {
        let runtime = &runtime;
        let run = move || {
            let engine = Engine { server: Redis::start(&[]).into(), proxies: RefCell::default(), runtime };
            (case.run)(&engine);
        };
        (case.name, Box::new(run) as Box<dyn FnOnce()>)
    }));
}

/// The claims of a node, and what it is told of the engine.
struct Node {
    claims: Arc<dyn Claims>,
    reached: Receiver<Reached>,
}

impl Node {
    fn open(options: &Options, epoch: u64, runtime: &Runtime) -> Node {
        let (sender, reached) = channel();
        let sender = Mutex::new(sender);
        let reaches: Reaches = Arc::new(move |reached| {
            let _ = sender.lock().expect("nobody panics with it").send(reached);
        });
        Node {
            claims: redis::open(options, Epoch(epoch), reaches, runtime.handle()).expect("it opens"),
            reached,
        }
    }

    fn claim(&self, account: &str) -> Result<Claimed, Unavailable> {
        let (sender, answer) = channel();
        let reply = move |claimed| {
            let _ = sender.send(claimed);
        };
        self.claims.claim(account.into(), Policy::Single, Box::new(reply));
        answer.recv_timeout(Duration::from_secs(60)).expect("it is answered")
    }

    fn locate(&self, account: &str) -> Result<Option<Epoch>, Unavailable> {
        let (sender, answer) = channel();
        let reply = move |located| {
            let _ = sender.send(located);
        };
        self.claims.locate(account.into(), Box::new(reply));
        answer.recv_timeout(Duration::from_secs(60)).expect("it is answered")
    }

    /// Waits until it is told so.
    fn told(&self, wanted: Reached) {
        while self.reached.recv_timeout(Duration::from_secs(60)).expect("it is told") != wanted {}
    }
}

const BACK: Reached = Reached::Back { lost: false };

fn socket(server: &Redis) -> Options {
    Options::new(&format!("unix://{}", server.socket.display()))
}

#[test]
fn a_claim_is_a_small_key_for_seven_days() {
    let (runtime, server) = (runtime(), Redis::start(&[]));
    let node = Node::open(&socket(&server), 7, &runtime);
    assert_eq!(node.claim("alice@example.org"), Ok(Claimed::Fresh));
    let said = server.say(
        "GET carillon:a:{alice@example.org}\r\nOBJECT ENCODING carillon:a:{alice@example.org}\r\n",
        "int",
    );
    assert_eq!(said, "$1\r\n7\r\n$3\r\nint\r\n");
    let said = server.say("PTTL carillon:a:{alice@example.org}\r\n", "\n");
    let left: u64 = said.trim().trim_start_matches(':').parse().expect("a number");
    assert!((KEPT_MS - 60_000..=KEPT_MS).contains(&left), "{left}");
    // What is no epoch counts for nothing, and what is no string is refused for that account alone.
    server.say("SET carillon:a:{b@x} nonsense\r\nLPUSH carillon:a:{c@x} 1\r\n", ":1");
    assert_eq!(node.locate("b@x"), Ok(None));
    assert_eq!(node.claim("b@x"), Ok(Claimed::Fresh));
    assert_eq!((node.claim("c@x"), node.locate("c@x")), (Err(Unavailable), Err(Unavailable)));
    assert_eq!(node.claim("b@x"), Ok(Claimed::Mine));
}

#[test]
fn a_replacement_whose_answer_is_lost_is_told() {
    let (runtime, server) = (runtime(), Redis::start(&[]));
    let proxy = Proxy::new(upstream(&server));
    let (a, b) = (Node::open(&socket(&server), 1, &runtime), Node::open(&options(&proxy), 2, &runtime));
    b.told(BACK);
    for account in ["alice@x", "bob@x"] {
        assert_eq!(a.claim(account), Ok(Claimed::Fresh));
        proxy.lose_answer();
        assert_eq!(b.claim(account), Ok(Claimed::Replaced(Epoch(1))), "asked again by itself");
        assert_eq!(b.claim(account), Ok(Claimed::Mine));
        b.told(Reached::Away);
        b.told(BACK);
    }
}

#[test]
fn scripts_that_are_gone_are_given_again() {
    let (runtime, server) = (runtime(), Redis::start(&[]));
    let node = Node::open(&socket(&server), 1, &runtime);
    assert_eq!(node.claim("alice@x"), Ok(Claimed::Fresh));
    server.say("SCRIPT FLUSH\r\n", "OK");
    assert_eq!(node.claim("alice@x"), Ok(Claimed::Mine));
}

#[test]
fn a_server_that_becomes_a_replica_is_left() {
    let (runtime, server) = (runtime(), Redis::start(&[]));
    let node = Node::open(&Options { deadline: Duration::from_millis(300), ..socket(&server) }, 1, &runtime);
    assert_eq!(node.claim("alice@x"), Ok(Claimed::Fresh));
    server.say("REPLICAOF 127.0.0.1 1\r\n", "OK");
    assert_eq!(node.claim("alice@x"), Err(Unavailable));
    server.say("REPLICAOF NO ONE\r\n", "OK");
    node.told(Reached::Away);
    node.told(BACK);
    assert_eq!(node.claim("alice@x"), Ok(Claimed::Mine));
}

#[test]
fn a_failover_that_loses_the_last_writes_is_told() {
    let runtime = runtime();
    let port = free_port();
    let primary = Redis::start(&["--port", &port.to_string()]);
    // The replica hears of its primary through a proxy.
    let link = Proxy::new(Upstream::Tcp(([127, 0, 0, 1], port).into()));
    let replica = Redis::start(&["--replicaof", "127.0.0.1", &link.port.to_string()]);
    let nodes = Proxy::new(upstream(&primary));
    let node = Node::open(&options(&nodes), 1, &runtime);
    assert_eq!(node.claim("early@x"), Ok(Claimed::Fresh));
    while !replica.say("EXISTS carillon:a:{early@x}\r\n", "\n").contains(":1") {
        std::thread::yield_now();
    }
    link.fault(Fault::Stalled);
    assert_eq!(node.claim("late@x"), Ok(Claimed::Fresh));
    replica.say("REPLICAOF NO ONE\r\n", "OK");
    nodes.moves(upstream(&replica));
    node.told(Reached::Back { lost: true });
    let found = ["early@x", "late@x"].map(|account| node.locate(account));
    assert_eq!(found, [Ok(Some(Epoch(1))), Ok(None)]);
    assert_eq!(node.claim("late@x"), Ok(Claimed::Fresh));
}

#[test]
fn nodes_say_who_they_are() {
    let runtime = runtime();
    let user = ["--user", "node", "on", ">other", "~carillon:*", "+@all"];
    let server = Redis::start(&[&["--requirepass", "secret"], &user[..]].concat());
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("password");
    std::fs::write(&file, "secret\n").expect("it is written");
    let proxy = Proxy::new(upstream(&server));
    let with = |user: &str, password| Options {
        url: format!("redis://{user}127.0.0.1:{}", proxy.port).into(),
        password: Some(password),
        ..options(&proxy)
    };
    for options in [with("", Secret::File(file)), with("node@", Secret::Given("other".into()))] {
        let node = Node::open(&options, 1, &runtime);
        node.told(BACK);
        assert!(node.claim("alice@x").is_ok());
    }
    let refused = Node::open(&with("node@", Secret::Given("wrong".into())), 2, &runtime);
    assert_eq!(refused.claim("alice@x"), Err(Unavailable));
    assert!(refused.reached.try_recv().is_err());
}

#[test]
fn tls_has_certificates_on_both_sides() {
    let (runtime, certificates) = (runtime(), Certificates::new());
    let port = free_port();
    let [cert, key, ca] = ["server", "server-key", "authority"].map(|name| certificates.text(name));
    let port = port.to_string();
    let tls =
        ["--tls-port", &port, "--tls-cert-file", &cert, "--tls-key-file", &key, "--tls-ca-cert-file", &ca];
    let _server = Redis::start(&tls);
    let options = Options {
        authorities: Some(certificates.path("authority")),
        certificate: Some((certificates.path("client"), certificates.path("client-key"))),
        ..Options::new(&format!("rediss://localhost:{port}"))
    };
    let node = Node::open(&options, 1, &runtime);
    assert_eq!(node.claim("alice@x"), Ok(Claimed::Fresh));
    let without = Options { certificate: None, deadline: Duration::from_millis(300), ..options };
    assert_eq!(Node::open(&without, 2, &runtime).claim("alice@x"), Err(Unavailable));
}
