//! Random programs against the interpreter: whatever is sent, watched, moved and closed, and however the peers read, each
//! peer gets what was taken, whole and in order, and the core hears of the end of each connection once.

use super::*;
use crate::testing::Rig;
use carillon_core::model::Mono;
use socket2::{Socket, Type};
use std::io::{ErrorKind, Read};

/// One connection as the program knows it.
struct Peer {
    id: ConnId,
    /// Which of the two sides has it.
    side: usize,
    socket: Option<Socket>,
    /// What was sent and taken.
    taken: Vec<u8>,
    got: Vec<u8>,
    /// Bytes taken when each watch was set.
    watches: Vec<usize>,
    /// The core has closed it, or has heard of its end.
    ended: bool,
}

struct Program {
    random: u64,
    sides: [Rig; 2],
    peers: Vec<Peer>,
}

const QUEUE_BYTES: usize = 12 * 1024;

impl Program {
    /// One of the two sides sends by a ring, if the system allows one.
    fn new(seed: u64) -> Program {
        Program { random: seed | 1, sides: Rig::both(QUEUE_BYTES), peers: Vec::new() }
    }

    /// xorshift64
    fn below(&mut self, n: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 33) as usize % n
    }

    fn connect(&mut self) {
        let side = self.below(2);
        let (id, socket) = self.sides[side].connect(Type::STREAM, Protocol::Stream);
        socket.set_nonblocking(true).unwrap();
        let socket = Some(socket);
        self.peers.push(Peer { id, side, socket, taken: vec![], got: vec![], watches: vec![], ended: false });
    }

    fn step(&mut self) {
        if self.peers.len() < 4 {
            return self.connect();
        }
        let n = self.below(self.peers.len());
        match self.below(100) {
            0..30 => self.send(n),
            30..50 => self.send_to_many(),
            50..75 => drop(self.read(n)),
            75..85 => self.watch(n),
            85..95 => self.move_to_shard(n),
            95..97 => self.close(n),
            97 => self.peers[n].socket = None,
            _ => self.connect(),
        }
        self.writable();
        self.hear();
    }

    fn send(&mut self, n: usize) {
        let len = 1 + self.below(3000);
        let peer = &mut self.peers[n];
        let element: Vec<u8> = (0..len).map(|i| (peer.taken.len() + i) as u8).collect();
        let (id, io) = (peer.id, &mut self.sides[peer.side].io);
        let mut effects = Effects::default();
        effects.send(id, |out| out.extend_from_slice(&element));
        let before = io.counters;
        io.carry_out(&mut effects);
        if io.counters.bytes_out > before.bytes_out {
            assert!(!peer.ended, "the core has let it go");
            peer.taken.extend(element);
        }
    }

    /// One batch, sometimes with two parts for one peer, sometimes with an end in the middle.
    fn send_to_many(&mut self) {
        let (side, len) = (self.below(2), 1 + self.below(1500));
        let (twice, closed) = (self.below(self.peers.len()), self.below(8 * self.peers.len()));
        let mut effects = Effects::default();
        for (n, peer) in self.peers.iter_mut().enumerate() {
            let io = &mut self.sides[side].io;
            let Some(conn) = io.conns.get_mut(peer.id).filter(|_| peer.side == side && !peer.ended) else {
                continue;
            };
            // What has room is taken, unless the peer is gone.
            if peer.socket.is_none() || queued(conn) + 2 * len > QUEUE_BYTES {
                continue;
            }
            for _ in 0..if n == twice { 2 } else { 1 } {
                let element: Vec<u8> = (0..len).map(|i| (peer.taken.len() + i) as u8).collect();
                effects.send(peer.id, |out| out.extend_from_slice(&element));
                peer.taken.extend(element);
            }
            if n == closed {
                effects.push(Effect::Close { conn: peer.id });
            }
        }
        self.sides[side].io.carry_out(&mut effects);
    }

    fn watch(&mut self, n: usize) {
        let peer = &mut self.peers[n];
        if !peer.ended {
            peer.watches = vec![peer.taken.len()];
            let id = peer.id;
            self.sides[peer.side].carry_out(|effects| effects.push(Effect::WatchFlush { conn: id }));
        }
    }

    fn close(&mut self, n: usize) {
        let (id, side) = (self.peers[n].id, self.peers[n].side);
        self.sides[side].carry_out(|effects| effects.push(Effect::Close { conn: id }));
    }

    /// What [`ShardIo::move_to_shard`] does, the session apart.
    fn move_to_shard(&mut self, n: usize) {
        let peer = &mut self.peers[n];
        if !peer.ended
            && let Some(conn) = self.sides[peer.side].io.detach(peer.id)
        {
            peer.side = 1 - peer.side;
            peer.id = self.sides[peer.side].io.attach(conn).unwrap();
        }
    }

    fn read(&mut self, n: usize) -> bool {
        let len = 1 + self.below(8000);
        let peer = &mut self.peers[n];
        let Some(socket) = &peer.socket else { return false };
        let mut bytes = vec![0; len];
        match (&mut &*socket).read(&mut bytes) {
            Ok(len) => {
                peer.got.extend_from_slice(&bytes[..len]);
                len > 0
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                true
            }
        }
    }

    /// Writes the queues of the sockets that can be written.
    fn writable(&mut self) {
        for Rig { poll, io, .. } in &mut self.sides {
            let mut events = mio::Events::with_capacity(64);
            poll.poll(&mut events, Some(std::time::Duration::ZERO)).unwrap();
            let writable = events.iter().filter(|event| event.is_writable());
            writable
                .filter_map(|event| crate::shard_io::conn_of(event.token()))
                .for_each(|id| io.writable(id));
        }
    }

    /// Handles the upcalls as the core would, and the upcalls that this causes.
    fn hear(&mut self) {
        for side in [0, 1, 0, 1] {
            for upcall in std::mem::take(&mut self.sides[side].io.upcalls) {
                let of = |id| move |peer: &&mut Peer| peer.side == side && peer.id == id;
                match upcall {
                    Upcall::Closed(id, _) => {
                        let peer = self.peers.iter_mut().find(of(id)).unwrap();
                        assert!(!std::mem::replace(&mut peer.ended, true), "heard twice");
                    }
                    Upcall::Flushed(id) => {
                        let peer = self.peers.iter_mut().find(of(id)).unwrap();
                        let watched = peer.watches.pop().expect("nothing was watched");
                        let queued = self.sides[side].io.conns.get_mut(id).map_or(0, queued);
                        assert!(peer.taken.len() - queued >= watched, "told too early");
                    }
                    Upcall::Unacked(..) => unreachable!("nobody asks"),
                    Upcall::Overflowed(id, _) => {
                        // It may be gone already; then its end is heard of next.
                        if let Some(conn) = self.sides[side].io.conns.get_mut(id) {
                            conn.send_queue.overflow_reported();
                        }
                        self.sides[side].carry_out(|effects| effects.push(Effect::Close { conn: id }));
                    }
                }
            }
        }
    }

    /// Closes everything and lets every peer read to its end.
    fn finish(mut self) {
        for n in 0..self.peers.len() {
            self.close(n);
            self.hear();
            while self.read(n) {
                self.writable();
            }
            let peer = &self.peers[n];
            assert!(peer.ended, "the core never heard of the end");
            let whole = peer.socket.is_some();
            assert!(if whole { peer.got == peer.taken } else { peer.taken.starts_with(&peer.got) });
        }
        for Rig { io, .. } in &mut self.sides {
            io.mono = Mono(1 << 40);
            io.expire();
        }
        for Rig { io, admission, .. } in &self.sides {
            assert_eq!((io.conns.ids().len(), admission.open(), io.counters.out_queue_bytes), (0, 0, 0));
        }
    }
}

fn queued(conn: &mut crate::conn::Conn) -> usize {
    conn.send_queue.queued()
}

#[test]
fn random_programs() {
    for seed in 1..=60u64 {
        let mut program = Program::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        (0..400).for_each(|_| program.step());
        program.finish();
    }
}
