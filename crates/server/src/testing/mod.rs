//! What the tests of this crate share: an empty store, a machine that echoes, a shard's I/O without its loop.

pub(crate) mod counting;
mod trusting;

pub(crate) use trusting::{client_config, client_config_of};

use crate::cell::{CellIo, Unsettled};
use crate::channels::inbox::Inbox;
use crate::channels::replies::Replies;
use crate::channels::taps::TapSinks;
use crate::channels::watch::Watchers;
use crate::conn::deadlines::Deadlines;
use crate::conn::plaintext::Plaintext;
use crate::conn::{Conn, Protocol, Transport};
use crate::derivers::Derivers;
use crate::listen::proxies::TrustedProxies;
use crate::listen::{Admission, Bounds};
use crate::listener_tls::ListenerTls;
use crate::machine::Machine;
use crate::metrics::IoCounters;
use crate::options::{Options, OutQueues, Tcp, WebSocket};
use crate::sends::SendBatch;
use crate::shard_io::{Deferred, Outboxes, QueuedBytes, Ready, Scratch, ShardIo, special};
use crate::tls;
use crate::websocket::WebSocketEndpoint;
use carillon_core::form::Unreadable;
use carillon_core::machine::{
    Group, HandedGroup, HandedSession, HandedTrace, HeavyAccount, LogTurn, Restored,
};
use carillon_core::model::{ConnId, Domain, DomainId, Mono, NodeId, Now, Place, Policy, ShardId, States};
use carillon_core::ports::modules::ActiveModule;
use carillon_core::ports::store::domains::Domains;
use carillon_core::ports::store::notifications::{ClaimDue, Sweep};
use carillon_core::ports::store::offline::ExpiredOffline;
use carillon_core::ports::store::parked::ParkedGroups;
use carillon_core::ports::{Answer, Ask, Fault, Part, Question, Reply, Store, StoreStats};
use carillon_core::settings::Settings;
use carillon_core::shard::Counters;
use carillon_core::tap::Order;
use carillon_core::{Effect, Effects, Input};
use carillon_wire::jid::BareJid;
use mio::{Poll, Waker};
use socket2::{Socket, Type};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A store with the domain `localhost` and nothing in it.
#[derive(Default)]
pub(crate) struct EmptyStore {
    pub(crate) closed: AtomicBool,
}

impl Store for EmptyStore {
    fn ask(&self, ask: Ask, reply: Reply<Answer>) {
        let domain = Domain::new(DomainId(1), "localhost", Policy::default());
        reply(if Domains::of(&ask).is_some() {
            Domains::wrap(vec![domain])
        } else if ClaimDue::of(&ask).is_some() {
            ClaimDue::wrap(Part::default())
        } else if ParkedGroups::of(&ask).is_some() {
            ParkedGroups::wrap(Part::default())
        } else if Sweep::of(&ask).is_some() {
            Sweep::wrap(Part::default())
        } else if ExpiredOffline::of(&ask).is_some() {
            ExpiredOffline::wrap(Part::default())
        } else {
            Answer::Failed(Fault::Broken)
        });
    }

    fn stats(&self) -> StoreStats {
        StoreStats::default()
    }

    fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }
}

/// Echoes its input. A few words do more: `secure`, `close`, `pause` (until the next tick, 20 ms later), `burst` (64 KiB,
/// as sixteen elements), `address` (of the client).
#[derive(Default)]
pub(crate) struct Echo {
    counters: Counters,
    paused: Vec<ConnId>,
    /// Clients from elsewhere: a connection from this host is to cost nothing here.
    addresses: Vec<(ConnId, IpAddr)>,
    wake: Option<Mono>,
    /// What events were wanted when the last message came.
    pub(crate) watched: Option<States>,
}

impl Machine for Echo {
    fn handle(&mut self, now: Now, input: Input<'_>, effects: &mut Effects) {
        match input {
            Input::Opened(opened) => {
                self.counters.connections += 1;
                if !opened.address.is_loopback() {
                    self.addresses.push((opened.conn, opened.address));
                }
                let hello = format!("hello {:?};", opened.framing);
                effects.send(opened.conn, |out| out.extend_from_slice(hello.as_bytes()));
            }
            Input::Secured { conn, binding } => {
                let words = format!("secured {};", binding.exporter.is_some());
                effects.send(conn, |out| out.extend_from_slice(words.as_bytes()));
            }
            Input::Bytes { conn, bytes } => self.bytes(now, conn, bytes, effects),
            Input::Overflowed { conn, .. } => {
                effects.send(conn, |out| out.extend_from_slice(b"overflow;"));
                effects.push(Effect::Close { conn });
            }
            Input::Closed { .. } => self.counters.connections -= 1,
            Input::Tick => {
                self.wake = None;
                self.paused.drain(..).for_each(|conn| effects.push(Effect::Resume { conn }));
            }
            Input::Message(_) => self.watched = Some(effects.watched),
            _ => {}
        }
    }

    fn walk(&mut self, _: Now, _: &mut Effects) -> bool {
        false
    }

    fn message_bytes_max(&self, _: ConnId) -> usize {
        256 * 1024
    }

    fn next_wake(&self) -> Option<Mono> {
        self.wake
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn reload(&mut self, _: Arc<Settings>) {}

    fn set_modules(&mut self, _: Vec<ActiveModule>) {}

    fn tap(&mut self, _: Order) {}

    fn untap(&mut self, _: u64) {}

    fn spent(&mut self, _: ConnId, _: u64) {}

    fn top(&mut self, _: Mono, _: &[(ConnId, u64)]) -> Vec<HeavyAccount> {
        Vec::new()
    }

    fn awaited(&self) -> usize {
        0
    }

    fn write_parked(&mut self, _: Now, _: usize, _: &mut Effects) -> Option<Group> {
        None
    }

    fn restore(&mut self, _: Now, _: u64, _: &[u8], _: &mut Effects) -> Result<Restored, Unreadable> {
        Err(Unreadable::NotOurs)
    }

    fn keep_log(&mut self, _keeps: bool) {}

    fn log(&mut self, _now: Now, _sent_to: &[ConnId], _turn: &mut LogTurn) {}

    fn unbound(&self) -> usize {
        0
    }

    fn prepare_hand_over(&mut self, _: Now, _: &mut Effects) {}

    fn held_accounts(&self) -> Vec<BareJid> {
        Vec::new()
    }

    fn hold_accounts(&mut self, _: Now, _: &[BareJid], _: &mut Effects) {}

    fn hand_over(&mut self, _: Now, _: usize, _: &mut Effects) -> Option<HandedGroup> {
        None
    }

    fn take_over(
        &mut self,
        _: Now,
        _: bool,
        _: Vec<HandedTrace>,
        _: Vec<(HandedSession, Option<ConnId>)>,
        _: &mut Effects,
    ) -> Restored {
        Restored::default()
    }
}

fn place(shard: u16) -> Place {
    Place { node: NodeId(0), shard: ShardId(shard) }
}

impl Echo {
    fn bytes(&mut self, now: Now, conn: ConnId, bytes: &[u8], effects: &mut Effects) {
        match bytes {
            b"secure" => {
                effects.send(conn, |out| out.extend_from_slice(b"proceed;"));
                effects.push(Effect::Secure { conn });
            }
            b"post" => {
                let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
                let message = carillon_core::message::ShardMessage::LoginFailed { address };
                effects.push(Effect::Post { to: place(1), message });
            }
            b"secure and say" => {
                effects.send(conn, |out| out.extend_from_slice(b"proceed;"));
                effects.push(Effect::Secure { conn });
                effects.send(conn, |out| out.extend_from_slice(b"in the clear;"));
                effects.push(Effect::Close { conn });
            }
            b"close" => {
                effects.send(conn, |out| out.extend_from_slice(b"bye;"));
                effects.push(Effect::Close { conn });
            }
            b"address" => {
                let found = self.addresses.iter().rfind(|(of, _)| *of == conn);
                let address =
                    found.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |(_, address)| *address).to_string();
                effects.send(conn, |out| out.extend_from_slice(address.as_bytes()));
            }
            b"pause" => {
                self.paused.push(conn);
                self.wake = Some(now.mono.plus(20));
                effects.push(Effect::Pause { conn });
            }
            b"burst" => {
                (0..16u8).for_each(|i| effects.send(conn, |out| out.resize(out.len() + 4096, b'a' + i)));
            }
            _ => effects.send(conn, |out| out.extend_from_slice(bytes)),
        }
    }
}

/// TLS settings of a certificate made for the test.
pub(crate) fn certificate() -> tls::Settings {
    let dir = tempfile::tempdir().unwrap();
    tls::Settings::self_signed_in(dir.path(), &["localhost".to_owned()]).unwrap()
}

/// A server on every kind of port, chosen by the system.
pub(crate) fn options() -> Options {
    Options {
        c2s: Tcp { enabled: true, port: 0 },
        c2s_tls: Tcp { enabled: true, port: 0 },
        websocket: WebSocket { port: 0, ..WebSocket::default() },
        shards: 2,
        bounds: Bounds::NONE,
        ..Options::default()
    }
}

/// A shard's I/O without its loop, and what keeps it alive.
pub(crate) struct Rig {
    pub(crate) poll: Poll,
    pub(crate) io: ShardIo,
    pub(crate) admission: Arc<Admission>,
}

impl Rig {
    /// I/O with queues of so many bytes, and a system call per send.
    pub(crate) fn new(out_queue_bytes: usize) -> Rig {
        Rig::sending(SendBatch::default(), out_queue_bytes)
    }

    /// The same twice: once with a ring, if the system allows one.
    pub(crate) fn both(out_queue_bytes: usize) -> [Rig; 2] {
        [SendBatch::default(), SendBatch::by_ring()].map(|sends| Rig::sending(sends, out_queue_bytes))
    }

    fn sending(sends: SendBatch, out_queue_bytes: usize) -> Rig {
        let poll = Poll::new().unwrap();
        let inbox = |poll: &Poll| Arc::new(Inbox::new(Waker::new(poll.registry(), special(255)).unwrap()));
        let io = ShardIo {
            place: place(0),
            conns: Default::default(),
            scratch: Scratch::new(),
            sends,
            plaintext: Plaintext::default(),
            upcalls: Vec::new(),
            ready: Ready::default(),
            deadlines: Deadlines::default(),
            // Its own, and that of a shard that does nothing.
            outboxes: Outboxes::new(Arc::new([inbox(&poll), inbox(&Poll::new().unwrap())]), place(0)),
            cell: CellIo::new(None, Arc::new(Unsettled::new(NodeId::default(), 1))),
            deferred: Deferred::default(),
            replies: Arc::new(Replies::new(NodeId(0), 1)),
            store: Arc::new(EmptyStore::default()),
            derivers: Derivers::start().unwrap(),
            watchers: Watchers::default(),
            tap_sinks: TapSinks::default(),
            hops: Default::default(),
            tls: Arc::new(ListenerTls::new(&certificate(), true)),
            quic: None,
            websocket: Arc::new(WebSocketEndpoint {
                path: "/xmpp-websocket".into(),
                secure: true,
                proxies: TrustedProxies::new(&[]),
                takes_players: true,
            }),
            proxies: TrustedProxies::new(&[]),
            settings: Arc::default(),
            out_queues: OutQueues { each_bytes: out_queue_bytes, ..OutQueues::default() },
            waiting: QueuedBytes::default(),
            registry: poll.registry().try_clone().unwrap(),
            counters: IoCounters::default(),
            mono: Mono(0),
        };
        Rig { poll, io, admission: Arc::new(Admission::new(Bounds::NONE)) }
    }

    /// An open connection with a small buffer in the system, and its peer, which blocks.
    pub(crate) fn connect(&mut self, kind: Type, protocol: Protocol) -> (ConnId, Socket) {
        let (ours, theirs) = Socket::pair(socket2::Domain::UNIX, kind, None).unwrap();
        ours.set_nonblocking(true).unwrap();
        ours.set_send_buffer_size(4096).unwrap();
        let permit = self.admission.admit(IpAddr::V4(Ipv4Addr::LOCALHOST), Mono(0)).unwrap();
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let mut conn = Conn::new(ours, address, Transport::Plain, protocol, permit);
        conn.mark_open();
        (self.io.attach(conn).unwrap(), theirs)
    }

    /// The same over TCP, where what has arrived can be counted.
    pub(crate) fn connect_tcp(&mut self) -> (ConnId, Socket) {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let theirs: Socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap().into();
        let (ours, address) = listener.accept().unwrap();
        let ours: Socket = ours.into();
        ours.set_nonblocking(true).unwrap();
        let permit = self.admission.admit(address.ip(), Mono(0)).unwrap();
        let mut conn = Conn::new(ours, address.ip(), Transport::Plain, Protocol::Stream, permit);
        conn.mark_open();
        (self.io.attach(conn).unwrap(), theirs)
    }

    /// Carries out what `effects` collects.
    pub(crate) fn carry_out(&mut self, collect: impl FnOnce(&mut Effects)) {
        let mut effects = Effects::default();
        collect(&mut effects);
        self.io.carry_out(&mut effects);
    }
}
