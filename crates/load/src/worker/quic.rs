//! Connections of players over QUIC: all on one UDP socket.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use carillon_wire::frame::game::ALPN;
use mio::net::UdpSocket;
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, EndpointConfig,
    EndpointEvent, Event, ReadError, StreamEvent, StreamId, TransportConfig, VarInt,
};
use quinn_udp::{RecvMeta, UdpSocketState};

use crate::client::tls::{Trust, quic_config};

/// The connections of all players.
pub(super) struct QuicLines {
    endpoint: Endpoint,
    config: ClientConfig,
    pub(super) socket: UdpSocket,
    state: UdpSocketState,
    lines: HashMap<ConnectionHandle, Line>,
    by_seat: HashMap<usize, ConnectionHandle>,
    timers: BinaryHeap<Reverse<(Instant, usize)>>,
    touched: Vec<ConnectionHandle>,
    packet: Vec<u8>,
    scratch: Box<[u8]>,
}

struct Line {
    seat: usize,
    inner: Connection,
    stream: Option<StreamId>,
    unsent: Vec<u8>,
    wake: Option<Instant>,
    is_touched: bool,
}

/// How something is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// It must arrive.
    Stream,
    /// What follows makes up for it.
    Datagram,
}

/// What happened to a player's connection.
pub(super) enum Happened {
    Connected,
    Stream(Bytes),
    Datagram(Bytes),
    Lost(String),
}

impl QuicLines {
    pub(super) fn new(trust: &Trust, target: SocketAddr) -> Result<QuicLines, String> {
        let tls = quic_config(trust, ALPN).map_err(|error| error.to_string())?;
        let tls = QuicClientConfig::try_from(tls).map_err(|error| error.to_string())?;
        let mut config = ClientConfig::new(Arc::new(tls));
        let mut transport = TransportConfig::default();
        transport
            .mtu_discovery_config(None)
            .receive_window(VarInt::from_u32(256 * 1024))
            .datagram_receive_buffer_size(Some(64 * 1024))
            .datagram_send_buffer_size(16 * 1024);
        config.transport_config(Arc::new(transport));
        let any: SocketAddr = match target {
            SocketAddr::V4(_) => ([0; 4], 0).into(),
            SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
        };
        let socket = UdpSocket::bind(any).map_err(|error| error.to_string())?;
        let state = UdpSocketState::new((&socket).into()).map_err(|error| error.to_string())?;
        let _ = state.set_recv_buffer_size((&socket).into(), SOCKET_BYTES);
        let _ = state.set_send_buffer_size((&socket).into(), SOCKET_BYTES);
        Ok(QuicLines {
            endpoint: Endpoint::new(Arc::new(EndpointConfig::default()), None, false, None),
            config,
            socket,
            state,
            lines: HashMap::new(),
            by_seat: HashMap::new(),
            timers: BinaryHeap::new(),
            touched: Vec::new(),
            packet: Vec::new(),
            scratch: vec![0; PARTS * PART_BYTES].into(),
        })
    }

    pub(super) fn connect(&mut self, seat: usize, target: SocketAddr, name: &str) -> Result<(), String> {
        let connected = self.endpoint.connect(Instant::now(), self.config.clone(), target, name);
        let (handle, inner) = connected.map_err(|error| error.to_string())?;
        let line = Line { seat, inner, stream: None, unsent: Vec::new(), wake: None, is_touched: false };
        self.lines.insert(handle, line);
        self.by_seat.insert(seat, handle);
        self.touch(handle);
        Ok(())
    }

    /// Sends something of a player who is connected.
    pub(super) fn say(&mut self, seat: usize, bytes: &[u8], way: Way) {
        let Some(handle) = self.by_seat.get(&seat).copied() else { return };
        let Some(line) = self.lines.get_mut(&handle) else { return };
        let datagram = || Bytes::copy_from_slice(bytes);
        if way == Way::Stream || line.inner.datagrams().send(datagram(), true).is_err() {
            line.unsent.extend_from_slice(bytes);
            line.write();
        }
        self.touch(handle);
    }

    /// A player's connection is lost, and nobody is told.
    pub(super) fn forget(&mut self, seat: usize) {
        if let Some(handle) = self.by_seat.remove(&seat)
            && self.lines.remove(&handle).is_some()
        {
            self.endpoint.handle_event(handle, EndpointEvent::drained());
        }
    }

    /// When something is to be done by itself.
    pub(super) fn due(&self) -> Option<Instant> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    fn touch(&mut self, handle: ConnectionHandle) {
        if let Some(line) = self.lines.get_mut(&handle)
            && !std::mem::replace(&mut line.is_touched, true)
        {
            self.touched.push(handle);
        }
    }

    /// Receives packets, has the timers run, and says what happened.
    pub(super) fn receive(&mut self, happened: &mut Vec<(usize, Happened)>) -> io::Result<()> {
        let now = Instant::now();
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut about = [RecvMeta::default(); PARTS];
        let result = loop {
            let mut chunks = scratch.chunks_mut(PART_BYTES);
            let mut parts: [_; PARTS] =
                std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
            match self.state.recv((&self.socket).into(), &mut parts, &mut about) {
                Ok(count) => {
                    for (about, bytes) in about.iter().zip(scratch.chunks(PART_BYTES)).take(count) {
                        let all = bytes.get(..about.len).unwrap_or_default();
                        all.chunks(about.stride.max(1)).for_each(|packet| self.packet(now, about, packet));
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break Ok(()),
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => break Err(error),
            }
        };
        self.scratch = scratch;
        while let Some(&Reverse((at, handle))) = self.timers.peek()
            && at <= now
        {
            self.timers.pop();
            let handle = ConnectionHandle(handle);
            let Some(line) = self.lines.get_mut(&handle).filter(|line| line.wake == Some(at)) else {
                continue;
            };
            line.wake = None;
            line.inner.handle_timeout(now);
            self.touch(handle);
        }
        for at in 0..self.touched.len() {
            let Some(line) = self.touched.get(at).and_then(|handle| self.lines.get_mut(handle)) else {
                continue;
            };
            line.drive(happened);
        }
        result
    }

    fn packet(&mut self, now: Instant, about: &RecvMeta, packet: &[u8]) {
        let ecn = about.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8));
        self.packet.clear();
        let event =
            self.endpoint.handle(now, about.addr, None, ecn, BytesMut::from(packet), &mut self.packet);
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(line) = self.lines.get_mut(&handle) {
                    line.inner.handle_event(event);
                    self.touch(handle);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
            Some(DatagramEvent::Response(_)) | None => {}
        }
    }

    /// Sends what there is to send, and sets the timers.
    pub(super) fn flush(&mut self) {
        let now = Instant::now();
        for handle in std::mem::take(&mut self.touched) {
            let Some(line) = self.lines.get_mut(&handle) else { continue };
            line.is_touched = false;
            loop {
                self.packet.clear();
                while let Some(transmit) = line.inner.poll_transmit(now, 1, &mut self.packet) {
                    let contents = self.packet.get(..transmit.size).unwrap_or_default();
                    let ecn = transmit.ecn.and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8));
                    let destination = transmit.destination;
                    let transmit =
                        quinn_udp::Transmit { destination, ecn, contents, segment_size: None, src_ip: None };
                    // What the system does not take is lost, as on the way.
                    let _ = self.state.try_send((&self.socket).into(), &transmit);
                    self.packet.clear();
                }
                let mut was_told = false;
                while let Some(event) = line.inner.poll_endpoint_events() {
                    if let Some(event) = self.endpoint.handle_event(handle, event) {
                        line.inner.handle_event(event);
                        was_told = true;
                    }
                }
                if !was_told {
                    break;
                }
            }
            if line.inner.is_drained() {
                let seat = line.seat;
                self.lines.remove(&handle);
                if self.by_seat.get(&seat) == Some(&handle) {
                    self.by_seat.remove(&seat);
                }
                continue;
            }
            if let Some(due) = line.inner.poll_timeout()
                && line.wake.is_none_or(|wake| due < wake)
            {
                line.wake = Some(due);
                self.timers.push(Reverse((due, handle.0)));
            }
        }
    }
}

impl Line {
    fn write(&mut self) {
        let Some(stream) = self.stream else { return };
        let taken = self.inner.send_stream(stream).write(&self.unsent).unwrap_or(0);
        self.unsent.drain(..taken);
    }

    fn drive(&mut self, happened: &mut Vec<(usize, Happened)>) {
        while let Some(event) = self.inner.poll() {
            match event {
                Event::Connected => {
                    self.stream = self.inner.streams().open(Dir::Bi);
                    happened.push((self.seat, Happened::Connected));
                }
                Event::ConnectionLost { reason } => {
                    happened.push((self.seat, Happened::Lost(reason.to_string())))
                }
                Event::Stream(StreamEvent::Writable { .. }) => self.write(),
                Event::Stream(_)
                | Event::HandshakeDataReady
                | Event::DatagramReceived
                | Event::DatagramsUnblocked => {}
            }
        }
        if let Some(stream) = self.stream
            && let Ok(mut chunks) = self.inner.recv_stream(stream).read(true)
        {
            loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => happened.push((self.seat, Happened::Stream(chunk.bytes))),
                    Ok(None) | Err(ReadError::Blocked | ReadError::Reset(_)) => break,
                }
            }
            let _ = chunks.finalize();
        }
        while let Some(datagram) = self.inner.datagrams().recv() {
            happened.push((self.seat, Happened::Datagram(datagram)));
        }
    }
}

/// Parts that are received by a call, and their bytes: what the kernel puts together at most.
const PARTS: usize = 16;
const PART_BYTES: usize = 64 * 1024;
/// What the kernel keeps for the socket.
const SOCKET_BYTES: usize = 8 << 20;
