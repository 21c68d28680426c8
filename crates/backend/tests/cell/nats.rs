//! Over NATS.

use crate::certificates::Certificates;
use crate::proxy::{Fault, Proxy, Upstream};
use crate::server::Nats;
use carillon_backend::conformance::bus::{self, CASES};
use carillon_backend::nats::{self, Auth, OpenError, Options, Tls};
use carillon_backend::{BusOptions, Secret};
use carillon_core::model::Epoch;
use carillon_core::ports::bus::Hears;
use carillon_core::ports::{Bus, Heard, Subject};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// A server, and each node behind a proxy of its own.
struct Engine<'a> {
    server: RefCell<Nats>,
    proxies: RefCell<BTreeMap<Epoch, Proxy>>,
    runtime: &'a Runtime,
}

fn upstream(server: &Nats) -> Upstream {
    Upstream::Tcp(server.address)
}

impl bus::Engine for Engine<'_> {
    fn join(&self, own: Epoch, options: BusOptions, hears: Hears) -> Arc<dyn Bus> {
        let proxy = Proxy::new(upstream(&self.server.borrow()));
        let options = Options { bus: options, ..Options::new(&format!("nats://127.0.0.1:{}", proxy.port)) };
        self.proxies.borrow_mut().insert(own, proxy);
        nats::open(&options, own, hears, self.runtime.handle()).expect("it opens")
    }

    fn fault(&self, of: Epoch, fault: Fault) {
        self.proxies.borrow()[&of].fault(fault);
    }

    fn restart(&self) {
        *self.server.borrow_mut() = Nats::start("");
        self.proxies.borrow().values().for_each(|proxy| proxy.moves(upstream(&self.server.borrow())));
    }
}

fn runtime() -> Runtime {
    runtime_of(2)
}

fn runtime_of(threads: usize) -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .expect("a runtime")
}

#[test]
fn conforms() {
    let runtime = runtime();
    crate::each(CASES.iter().map(|case| {
        let runtime = &runtime;
        let run = move || {
            let engine = Engine { server: Nats::start("").into(), proxies: RefCell::default(), runtime };
            (case.run)(&engine);
        };
        (case.name, Box::new(run) as Box<dyn FnOnce()>)
    }));
}

/// A node on a server, and what it hears.
struct Node {
    bus: Arc<dyn Bus>,
    heard: Receiver<Heard>,
}

impl Node {
    fn open(options: &Options, epoch: u64, runtime: &Runtime) -> Node {
        let (sender, heard) = channel();
        let sender = Mutex::new(sender);
        let hears: Hears = Arc::new(move |heard| {
            let _ = sender.lock().expect("nobody panics with it").send(heard);
        });
        let options = Options {
            bus: BusOptions { beat_every: Duration::from_millis(40), ..options.bus.clone() },
            ..options.clone()
        };
        Node { bus: nats::open(&options, Epoch(epoch), hears, runtime.handle()).expect("it opens"), heard }
    }

    /// Waits until it hears something such.
    fn hears(&self, is_it: impl Fn(&Heard) -> bool) -> Heard {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let heard = self.heard.recv_timeout(until - Instant::now()).expect("it is heard");
            if is_it(&heard) {
                return heard;
            }
        }
    }

    fn hears_beat_of(&self, epoch: u64) {
        self.hears(|heard| matches!(heard, Heard::Beat { from, .. } if *from == Epoch(epoch)));
    }
}

fn address(server: &Nats) -> String {
    format!("nats://{}", server.address)
}

#[test]
fn nodes_say_who_they_are() {
    let runtime = runtime();
    let given = |secret: &str| Secret::Given(secret.into());
    let password = |password| Auth::Password { user: "node".into(), password: given(password) };
    // The example of NATS' documentation.
    let seed = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
    let public = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";
    let cases = [
        ("user: node, password: secret".to_owned(), password("secret"), password("wrong")),
        ("token: secret".to_owned(), Auth::Token(given("secret")), Auth::None),
        (format!("users: [ {{ nkey: {public} }} ]"), Auth::Nkey(given(seed)), Auth::None),
    ];
    for (number, (config, right, wrong)) in (1..).zip(cases) {
        let server = Nats::start(&format!("authorization {{ {config} }}"));
        let options = Options { auth: wrong, ..Options::new(&address(&server)) };
        let refused = Node::open(&options, 100 + number, &runtime);
        let node = Node::open(&Options { auth: right, ..options }, number, &runtime);
        node.hears(|heard| *heard == Heard::Back);
        (0..5).for_each(|_| node.hears_beat_of(number));
        assert!(refused.heard.try_recv().is_err(), "{config}");
    }
}

#[test]
fn what_cannot_be_used_does_not_open() {
    let runtime = runtime();
    let hears: Hears = Arc::new(|_| {});
    let of = |options: Options| {
        nats::open(&options, Epoch(1), hears.clone(), runtime.handle()).err().map(|e| e.to_string())
    };
    let good = Options::new("nats://127.0.0.1:1");
    let prefix = Options { prefix: "a.*".into(), ..good.clone() };
    assert_eq!(of(prefix), Some(OpenError::Prefix.to_string()));
    assert!(of(Options::new("http://127.0.0.1:1")).is_some());
    let no_file = Secret::File("/nowhere/at/all".into());
    assert!(of(Options { auth: Auth::Token(no_file), ..good.clone() }).is_some());
    let no_credentials = Auth::Credentials(Secret::Given("nothing".into()));
    assert!(of(Options { auth: no_credentials, ..good.clone() }).is_some());
    assert_eq!(of(good), None, "a server that is not there is tried again");
}

#[test]
fn tls_has_certificates_on_both_sides() {
    let (runtime, certificates) = (runtime(), Certificates::new());
    let server = Nats::start(&format!(
        "tls {{ cert_file: \"{}\", key_file: \"{}\", ca_file: \"{}\", verify: true }}",
        certificates.text("server"),
        certificates.text("server-key"),
        certificates.text("authority")
    ));
    let tls = Tls {
        required: true,
        authorities: Some(certificates.path("authority")),
        certificate: Some((certificates.path("client"), certificates.path("client-key"))),
    };
    let options = Options { tls, ..Options::new(&format!("tls://localhost:{}", server.address.port())) };
    let without = Tls { certificate: None, ..options.tls.clone() };
    let refused = Node::open(&Options { tls: without, ..options.clone() }, 2, &runtime);
    let node = Node::open(&options, 1, &runtime);
    (0..5).for_each(|_| node.hears_beat_of(1));
    assert!(!refused.heard.try_iter().any(|heard| matches!(heard, Heard::Beat { .. })));
}

#[test]
fn cells_on_one_server_do_not_hear_each_other() {
    let (runtime, server) = (runtime(), Nats::start(""));
    let of = |prefix: &str| Options { prefix: prefix.into(), ..Options::new(&address(&server)) };
    let (a, b) = (Node::open(&of("a"), 1, &runtime), Node::open(&of("b"), 2, &runtime));
    (0..5).for_each(|_| a.hears_beat_of(1));
    b.hears_beat_of(2);
    a.bus.post(Subject::All, vec![1]);
    (0..5).for_each(|_| a.hears_beat_of(1));
    let is_of_a = |heard: &Heard| matches!(heard, Heard::Beat { from, .. } | Heard::Record { from, .. } | Heard::Gap { from, .. } if *from == Epoch(1));
    assert!(!b.heard.try_iter().any(|heard| is_of_a(&heard)));
}

#[test]
fn a_connection_through_which_nothing_comes_counts_as_lost() {
    let (runtime, server) = (runtime(), Nats::start(""));
    let proxy = Proxy::new(upstream(&server));
    let node = Node::open(&Options::new(&format!("nats://127.0.0.1:{}", proxy.port)), 1, &runtime);
    node.hears_beat_of(1);
    proxy.fault(Fault::Stalled);
    node.hears(|heard| *heard == Heard::Away);
    proxy.fault(Fault::None);
    node.hears(|heard| *heard == Heard::Back);
    node.hears_beat_of(1);
}

// By hand: on a machine that is busy it was seen not to end, and why is not known yet.
#[test]
#[ignore = "not reliable on a busy machine"]
fn what_the_client_drops_silently_is_told() {
    const RECORDS: u32 = 2000;
    let (runtime, server) = (runtime(), Nats::start(""));
    let options = Options {
        bus: BusOptions { waiting_bytes_max: 1 << 30, ..BusOptions::default() },
        ..Options::new(&address(&server))
    };
    // It looks at nothing while this is held.
    let (gate, notes) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(Vec::new())));
    let (waits, noted) = (gate.clone(), notes.clone());
    let hears: Hears = Arc::new(move |heard| {
        // The thread is given to other tasks meanwhile: the client goes on reading.
        tokio::task::block_in_place(|| drop(waits.lock().expect("nobody panics with it")));
        noted.lock().expect("nobody panics with it").push(heard);
    });
    let of_slow = runtime_of(4);
    let slow = nats::open(&options, Epoch(3), hears, of_slow.handle()).expect("it opens");
    let [a, b] = [1, 2].map(|epoch| Node::open(&options, epoch, &runtime));
    b.hears_beat_of(1);
    b.hears_beat_of(3);
    let number_of = |heard: &Heard| match heard {
        Heard::Record { record, .. } => record.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)),
        _ => None,
    };
    let held = gate.lock().expect("nobody panics with it");
    for number in 0..RECORDS {
        // Each fills an envelope. The other node has room for what is under way.
        a.bus.post(Subject::All, [&number.to_be_bytes()[..], &[0; 65_536]].concat());
        if number % 100 == 99 {
            b.hears(|heard| number_of(heard) == Some(number));
        }
    }
    drop(held);
    let has_come = || {
        notes.lock().expect("nobody panics with it").iter().any(|heard| number_of(heard) == Some(u32::MAX))
    };
    let until = Instant::now() + Duration::from_secs(60);
    while !has_come() {
        assert!(Instant::now() < until, "what is posted later does not come");
        // It may come before there is room again.
        a.bus.post(Subject::All, u32::MAX.to_be_bytes().to_vec());
        b.hears_beat_of(1);
    }
    let heard = notes.lock().expect("nobody panics with it");
    let count = heard.iter().filter_map(number_of).filter(|number| *number < RECORDS).count();
    assert!(count < RECORDS as usize, "the client has dropped some");
    assert!(heard.iter().any(|heard| matches!(heard, Heard::Gap { from: Epoch(1), subject: Subject::All })));
    slow.close();
}
