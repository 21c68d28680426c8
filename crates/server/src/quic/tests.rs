//! An endpoint on real sockets, without a core: what is kept for whom, and what strange packets do.

use super::*;
use crate::listen::Bounds;
use crate::testing::{Rig, certificate, client_config_of, counting};
use carillon_wire::frame::game;
use proptest::prelude::*;
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{ClientConfig, Connection, EndpointConfig, Event};
use std::net::Ipv4Addr;
use std::time::Duration;

/// A shard with QUIC, and the address of its socket.
struct Node {
    rig: Rig,
    at: SocketAddr,
}

impl Node {
    fn new(bounds: Bounds) -> Node {
        let mut rig = Rig::new(1 << 20);
        rig.admission = Arc::new(Admission::new(bounds));
        let socket = Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM.nonblocking(), None).unwrap();
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
        let at = socket.local_addr().unwrap().as_socket().unwrap();
        let keys = QuicKeys::new().unwrap();
        let server = keys.server(&certificate()).unwrap();
        let place = (rig.io.place, 1);
        let quic = Quic::new(vec![socket], place, Clock::start(), &keys, server).unwrap();
        rig.io.quic = Some(Box::new(quic));
        Node { rig, at }
    }

    fn quic(&mut self) -> &mut Quic {
        self.rig.io.quic.as_deref_mut().unwrap()
    }

    /// A turn; what the core is told, by a letter each.
    fn turn(&mut self, told: &mut String) {
        let Rig { io, admission, .. } = &mut self.rig;
        let (quic, mut around) = io.quic(admission, true).unwrap();
        quic.edge();
        quic.receive(&mut around);
        quic.run_timers(Instant::now());
        while let Some(key) = io.quic_next() {
            while let Some(step) = io.quic_step(key) {
                match step {
                    QuicStep::Opened { datagrams, .. } => told.push(if datagrams { 'O' } else { 'o' }),
                    QuicStep::Bytes(_, bytes) => told.push_str(str::from_utf8(&bytes).unwrap()),
                    QuicStep::Datagram(_, bytes) => told.push_str(str::from_utf8(&bytes).unwrap()),
                    QuicStep::Ended(_) => told.push('E'),
                    QuicStep::Told => {}
                }
            }
        }
        let (quic, mut around) = io.quic(admission, true).unwrap();
        quic.flush(&mut around);
    }

    fn packet(&mut self, bytes: &[u8], from: SocketAddr) {
        let Rig { io, admission, .. } = &mut self.rig;
        let (quic, mut around) = io.quic(admission, true).unwrap();
        let packet = Packet { via: 0, remote: from, local: None, ecn: None, bytes: BytesMut::from(bytes) };
        quic.packet(packet, &mut around);
        quic.flush(&mut around);
    }
}

struct Client {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    inner: Connection,
    socket: std::net::UdpSocket,
    lost: bool,
    connected: bool,
}

impl Client {
    fn new(at: SocketAddr) -> Client {
        let tls = client_config_of(&[&rustls::version::TLS13], &[game::ALPN]);
        let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
        let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, false, None);
        let (handle, inner) = endpoint.connect(Instant::now(), config, at, "localhost").unwrap();
        let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        Client { endpoint, handle, inner, socket, lost: false, connected: false }
    }

    /// The packets that it sends now.
    fn packets(&mut self) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        let mut packet = Vec::new();
        while let Some(transmit) = self.inner.poll_transmit(Instant::now(), 1, &mut packet) {
            packets.push(packet[..transmit.size].to_vec());
            packet.clear();
        }
        packets
    }

    fn turn(&mut self, at: SocketAddr) {
        let mut buffer = [0; 2048];
        let mut answer = Vec::new();
        while let Ok((len, _)) = self.socket.recv_from(&mut buffer) {
            let bytes = BytesMut::from(&buffer[..len]);
            if let Some(DatagramEvent::ConnectionEvent(_, event)) =
                self.endpoint.handle(Instant::now(), at, None, None, bytes, &mut answer)
            {
                self.inner.handle_event(event);
            }
        }
        while let Some(event) = self.inner.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.inner.handle_event(event);
            }
        }
        if self.inner.poll_timeout().is_some_and(|due| due <= Instant::now()) {
            self.inner.handle_timeout(Instant::now());
        }
        while let Some(event) = self.inner.poll() {
            self.lost |= matches!(event, Event::ConnectionLost { .. });
            self.connected |= matches!(event, Event::Connected);
        }
        for packet in self.packets() {
            self.socket.send_to(&packet, at).unwrap();
        }
    }
}

/// Turns of both, until something is so; not for ever.
fn until(node: &mut Node, client: &mut Client, told: &mut String, done: impl Fn(&Client, &str) -> bool) {
    for _ in 0..2000 {
        client.turn(node.at);
        node.turn(told);
        client.turn(node.at);
        if done(client, told) {
            return;
        }
        std::thread::yield_now();
    }
    panic!("told {told:?}, connected {}, lost {}", client.connected, client.lost);
}

fn connected(node: &mut Node, told: &mut String) -> Client {
    let mut client = Client::new(node.at);
    let opened = told.matches('O').count();
    until(node, &mut client, told, |_, told| told.matches('O').count() > opened);
    client
}

#[test]
fn the_stream_and_datagrams_reach_the_core_and_the_end_too() {
    let (mut node, mut told) = (Node::new(Bounds::NONE), String::new());
    let mut client = connected(&mut node, &mut told);
    let stream = client.inner.streams().open(quinn_proto::Dir::Bi).unwrap();
    client.inner.send_stream(stream).write(b"join").unwrap();
    until(&mut node, &mut client, &mut told, |_, told| told == "Ojoin");
    client.inner.datagrams().send(bytes::Bytes::from_static(b"+input"), true).unwrap();
    until(&mut node, &mut client, &mut told, |_, told| told == "Ojoin+input");
    client.inner.send_stream(stream).finish().unwrap();
    until(&mut node, &mut client, &mut told, |_, told| told == "Ojoin+inputE");
    assert_eq!(node.rig.io.counters.quic.retried, 1);
}

#[test]
fn a_place_is_taken_by_whoever_proved_an_address_and_is_free_again() {
    let mut node = Node::new(Bounds { connections: 1, ..Bounds::NONE });
    let mut told = String::new();
    let first = Client::new(node.at).packets();
    // Nobody answers to the Retry of these: nothing is kept for them.
    for port in 1..200 {
        node.packet(&first[0], (Ipv4Addr::LOCALHOST, port).into());
    }
    assert_eq!((node.rig.admission.open(), node.quic().conns.len()), (0, 0));
    assert_eq!(node.quic().endpoint.open_connections(), 0);
    let mut one = connected(&mut node, &mut told);
    let mut other = Client::new(node.at);
    until(&mut node, &mut other, &mut told, |client, _| client.lost);
    assert_eq!(node.rig.admission.open(), 1);
    one.inner.close(Instant::now(), quinn_proto::VarInt::from_u32(0), bytes::Bytes::new());
    let began = Instant::now();
    while node.rig.admission.open() > 0 && began.elapsed() < Duration::from_secs(10) {
        one.turn(node.at);
        node.turn(&mut told);
    }
    assert_eq!((node.rig.admission.open(), node.quic().conns.len()), (0, 0));
    connected(&mut node, &mut told);
}

/// What a connection takes in memory while nothing happens on it.
#[test]
fn an_idle_connection_has_a_bound() {
    let (mut node, mut told) = (Node::new(Bounds::NONE), String::new());
    let mut clients = vec![connected(&mut node, &mut told)];
    let (mut kept, count) = (0, 32);
    for _ in 0..count {
        let mut client = Client::new(node.at);
        let opened = told.matches('O').count();
        for _ in 0..2000 {
            client.turn(node.at);
            kept -= counting::BYTES.get();
            node.turn(&mut told);
            kept += counting::BYTES.get();
            if told.matches('O').count() > opened {
                break;
            }
        }
        assert!(told.matches('O').count() > opened);
        clients.push(client);
    }
    // Acknowledgements of the handshake, and what is dropped with its keys.
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(1500) {
        clients.iter_mut().for_each(|client| client.turn(node.at));
        kept -= counting::BYTES.get();
        node.turn(&mut told);
        kept += counting::BYTES.get();
    }
    let each = kept / count;
    println!("{each} bytes of Rust per idle connection, {} of them its struct", size_of::<QuicConn>());
    assert!(each > 0 && each < IDLE_BYTES_MAX, "{each} bytes");
}

/// What an idle connection may take, without what aws-lc allocates by itself.
const IDLE_BYTES_MAX: isize = 24 * 1024;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 200 } else { 20_000 }))]

    /// Packets that are made up, or of a client and then changed, bring no connection about, and nothing is kept for them.
    #[test]
    fn made_up_packets_are_answered_by_less_and_keep_nothing(
        made_up in prop::collection::vec(any::<u8>(), 0..1500),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut node = Node::new(Bounds::NONE);
        let from = (Ipv4Addr::LOCALHOST, 9).into();
        node.packet(&made_up, from);
        let first = Client::new(node.at).packets().remove(0);
        let mut changed = first.clone();
        for (at, byte) in changes {
            let at = at.index(changed.len());
            changed[at] = byte;
        }
        node.packet(&changed, from);
        node.packet(&changed[..cut.index(changed.len())], from);
        prop_assert_eq!((node.quic().conns.len(), node.quic().away.len()), (0, 0));
        prop_assert_eq!(node.quic().endpoint.open_connections(), 0);
        prop_assert_eq!(node.rig.admission.open(), 0);
        prop_assert!(node.rig.io.counters.quic.packets_out <= 3);
    }
}
