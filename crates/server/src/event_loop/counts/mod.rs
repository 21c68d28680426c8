//! Counts what the loop costs: allocations per message, bytes per idle connection, writes per login. The loop runs on the
//! test's own thread, so that nothing else is counted.

mod flights;

use super::{EventLoop, Shared};
use crate::channels::inbox::{Control, ITEMS_MAX, InboxItem};
use crate::channels::watch::Watcher;
use crate::clock::Clock;
use crate::conn::{Conn, Protocol, Transport};
use crate::events::{EventLog, Producer};
use crate::listen::Service;
use crate::metrics::ShardFigures;
use crate::sends::SendBatch;
use crate::testing::counting::{BYTES, CALLS};
use crate::testing::{Echo, Rig, client_config};
use carillon_core::event::{Entry, Journal, Kind};
use carillon_core::message::ShardMessage;
use carillon_core::model::{ConnId, Mono, NotificationId, States, UnixMs};
use rustls::{ClientConfig, ClientConnection};
use socket2::{Domain, Socket, Type};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// An event loop whose turns the test runs.
struct Bench {
    shard: EventLoop<Echo>,
    /// Allocations made in turns.
    calls: usize,
    /// Bytes allocated and not freed in turns.
    bytes: isize,
}

impl Bench {
    fn new() -> Bench {
        let Rig { poll, io, admission } = Rig::new(1 << 20);
        let inbox = Arc::clone(&io.outboxes.inboxes[0]);
        let shared = Shared {
            admission,
            inbox,
            figures: Arc::new(ShardFigures::default()),
            producer: None,
            io_uring: false,
            clock: Clock::start(),
            left_parked: Arc::default(),
            handed: Default::default(),
            log: None,
        };
        let shard = EventLoop::new(Echo::default(), io, poll, Vec::new(), shared).unwrap();
        Bench { shard, calls: 0, bytes: 0 }
    }

    fn connect(&mut self, service: Service) -> (ConnId, Socket) {
        self.connect_by(service, Type::STREAM)
    }

    fn connect_by(&mut self, service: Service, kind: Type) -> (ConnId, Socket) {
        let (ours, theirs) = Socket::pair(Domain::UNIX, kind, None).unwrap();
        ours.set_nonblocking(true).unwrap();
        theirs.set_nonblocking(true).unwrap();
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let permit = self.shard.admission.admit(address, Mono(0)).unwrap();
        let (bytes, calls) = (BYTES.get(), CALLS.get());
        let transport = match service {
            Service::StartTls => Transport::Plain,
            _ => self.shard.io.start_handshake(service),
        };
        let conn = Conn::new(ours, address, transport, Protocol::Stream, permit);
        let id = self.shard.io.attach(conn).unwrap();
        if service == Service::StartTls {
            self.shard.open(id, carillon_wire::Framing::Tcp, carillon_core::Security::StartTls);
        }
        self.bytes += BYTES.get() - bytes;
        self.calls += CALLS.get() - calls;
        (id, theirs)
    }

    fn turn(&mut self) {
        let (bytes, calls) = (BYTES.get(), CALLS.get());
        self.shard.turn();
        self.bytes += BYTES.get() - bytes;
        self.calls += CALLS.get() - calls;
    }

    /// Sends and waits for an answer of as many bytes.
    fn ask<S: Read + Write>(&mut self, stream: &mut S, words: &[u8]) {
        stream.write_all(words).unwrap();
        self.expect(stream, words);
    }

    fn expect<S: Read>(&mut self, stream: &mut S, words: &[u8]) {
        let mut got = vec![0; words.len()];
        let mut len = 0;
        while len < got.len() {
            match stream.read(&mut got[len..]) {
                Ok(n) => len += n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.turn(),
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(got, words);
    }

    fn secure(
        &mut self,
        config: &Arc<ClientConfig>,
        mut socket: Socket,
    ) -> rustls::StreamOwned<ClientConnection, Socket> {
        let mut tls = ClientConnection::new(config.clone(), "localhost".try_into().unwrap()).unwrap();
        while tls.is_handshaking() {
            match tls.complete_io(&mut socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.turn(),
                Err(error) => panic!("{error}"),
            }
        }
        rustls::StreamOwned::new(tls, socket)
    }
}

/// The figures are published ten times per second: an allocation each time, which belongs to no message.
const PUBLISHING: usize = 16;

#[test]
fn a_message_in_the_clear_allocates_nothing() {
    let mut bench = Bench::new();
    let (_, mut socket) = bench.connect(Service::StartTls);
    bench.expect(&mut socket, b"hello Tcp;");
    (0..100).for_each(|_| bench.ask(&mut socket, &[b'x'; 421]));
    bench.calls = 0;
    (0..1000).for_each(|_| bench.ask(&mut socket, &[b'x'; 421]));
    assert!(bench.calls <= PUBLISHING, "{} allocations for 1000 messages", bench.calls);
}

#[test]
fn a_message_under_tls_allocates_nothing() {
    let mut bench = Bench::new();
    let (_, socket) = bench.connect(Service::DirectTls);
    let mut tls = bench.secure(&client_config(&[]), socket);
    bench.expect(&mut tls, b"hello Tcp;");
    (0..100).for_each(|_| bench.ask(&mut tls, &[b'x'; 421]));
    bench.calls = 0;
    (0..1000).for_each(|_| bench.ask(&mut tls, &[b'x'; 421]));
    assert!(bench.calls <= PUBLISHING, "{} allocations for 1000 messages", bench.calls);
}

#[test]
fn those_who_are_read_together_are_answered_by_one_call() {
    const CLIENTS: usize = 64;
    let mut bench = Bench::new();
    bench.shard.io.sends = SendBatch::by_ring();
    let config = client_config(&[]);
    let mut clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (_, socket) = bench.connect(Service::DirectTls);
            let mut tls = bench.secure(&config, socket);
            bench.expect(&mut tls, b"hello Tcp;");
            bench.ask(&mut tls, b"<a/>");
            tls
        })
        .collect();
    let (sends, calls) = (bench.shard.io.counters.sends, bench.shard.io.counters.send_calls);
    clients.iter_mut().for_each(|tls| tls.write_all(b"<b/>").unwrap());
    bench.turn();
    clients.iter_mut().for_each(|tls| bench.expect(tls, b"<b/>"));
    let counters = &bench.shard.io.counters;
    let expected = if bench.shard.io.sends.has_ring() { 1 } else { CLIENTS as u64 };
    assert_eq!((counters.sends - sends, counters.send_calls - calls), (CLIENTS as u64, expected));
}

#[test]
fn an_event_allocates_nothing_and_without_a_log_nothing_is_noted() {
    const EVENTS: u64 = 100_000;
    let folder = tempfile::tempdir().unwrap();
    let (log, mut producer, figures) = EventLog::of_one(folder.path());
    let mut journal = Journal::default();
    let ring = |journal: &mut Journal, producer: &mut Producer| {
        for n in 0..EVENTS {
            let id = NotificationId(u128::from(n));
            let entry = || Entry::Deliver { id, to: "alice@localhost/phone", after_ms: 1 };
            journal.note(UnixMs(n), Kind::Deliver, entry);
            producer.turn_ended(journal, Mono(0));
            while figures.status().held_bytes > 4 << 20 {
                std::thread::yield_now();
            }
        }
    };
    // Nobody wants any.
    let calls = CALLS.get();
    ring(&mut journal, &mut producer);
    assert_eq!((CALLS.get() - calls, journal.bytes().len()), (0, 0));
    producer.begin(&mut journal, UnixMs(0));
    ring(&mut journal, &mut producer);
    let calls = CALLS.get();
    ring(&mut journal, &mut producer);
    let calls = CALLS.get() - calls;
    // Some doublings of each buffer that did not come back in time.
    assert!(calls < EVENTS as usize / 100, "{calls} allocations for {EVENTS} events");
    producer.end(&mut journal, UnixMs(EVENTS));
    drop(log);
    assert_eq!((figures.status().lines, figures.status().dropped), (2 * EVENTS + 2, 0));
}

#[test]
fn clients_wait_while_another_shard_is_behind() {
    let mut bench = Bench::new();
    let other = Arc::clone(&bench.shard.io.outboxes.inboxes[1]);
    (0..ITEMS_MAX).for_each(|_| other.push(InboxItem::Control(Control::Drain)));
    let (_, mut poster) = bench.connect(Service::StartTls);
    let (_, mut waiter) = bench.connect(Service::StartTls);
    bench.expect(&mut poster, b"hello Tcp;");
    bench.expect(&mut waiter, b"hello Tcp;");
    bench.ask(&mut waiter, b"<a/>");
    poster.write_all(b"post").unwrap();
    while !bench.shard.io.outboxes.is_held_back() {
        bench.turn();
    }
    waiter.write_all(b"<b/>").unwrap();
    (0..10).for_each(|_| bench.turn());
    assert_eq!(waiter.read(&mut [0; 4]).unwrap_err().kind(), ErrorKind::WouldBlock);
    // The other shard catches up: the message is there, and clients are read again.
    let mut mail = VecDeque::new();
    other.take(&mut mail);
    mail.clear();
    bench.expect(&mut waiter, b"<b/>");
    other.take(&mut mail);
    assert_eq!(mail.len(), 1);
}

#[test]
fn what_comes_behind_a_watcher_in_the_same_mail_is_for_it() {
    let mut bench = Bench::new();
    let message =
        || InboxItem::ShardMessage(ShardMessage::LoginFailed { address: IpAddr::V4(Ipv4Addr::LOCALHOST) });
    let inbox = Arc::clone(&bench.shard.io.outboxes.inboxes[0]);
    inbox.push(message());
    bench.turn();
    assert_eq!(bench.shard.machine.watched, Some(States::NONE));
    let watcher = Watcher::new(None, States::ALL, Box::new(|_| true));
    inbox.push(InboxItem::Control(Control::Watch(watcher)));
    inbox.push(message());
    bench.turn();
    assert_eq!(bench.shard.machine.watched, Some(States::ALL));
}

#[test]
fn an_idle_connection_under_tls_costs_its_keys_and_a_slot() {
    const CONNECTIONS: usize = 512;
    let mut bench = Bench::new();
    let config = client_config(&[]);
    let connected = |bench: &mut Bench| {
        let (_, socket) = bench.connect(Service::DirectTls);
        let mut tls = bench.secure(&config, socket);
        bench.expect(&mut tls, b"hello Tcp;");
        bench.ask(&mut tls, b"<a/>");
        tls
    };
    // The scratch buffers grow to what is needed.
    let _first = connected(&mut bench);
    bench.bytes = 0;
    let _others: Vec<_> = (0..CONNECTIONS).map(|_| connected(&mut bench)).collect();
    let each = bench.bytes as usize / CONNECTIONS;
    let floor = size_of::<crate::tls::Keys>() + size_of::<Conn>();
    assert!((floor..floor + 48).contains(&each), "{each} bytes a connection, {floor} of them named");
}
