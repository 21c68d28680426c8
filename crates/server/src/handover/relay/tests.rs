//! Relays between a real client of TLS 1.2 and a successor, over pairs of sockets that do not block.

use super::*;
use crate::conn::Relayed;
use crate::testing::{certificate, client_config_of};
use crate::tls::{Handshake, Link, Progress};
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, ClientConnection, Error};
use socket2::{Domain, Type};

/// A relay, and both who speak over it.
struct Rig {
    relay: Relay,
    client: Client,
    /// The successor's end.
    inner: Socket,
}

struct Client {
    tls: ClientConnection,
    socket: Socket,
    /// Written to TLS, and not yet taken by the socket.
    waiting: Vec<u8>,
    read: Vec<u8>,
    /// The server has taken leave.
    has_leave: bool,
}

fn pair() -> (Socket, Socket) {
    Socket::pair(Domain::UNIX, Type::STREAM.nonblocking(), None).unwrap()
}

/// A connection under TLS 1.2 whose handshake is done, both ends.
fn secured() -> (ClientConnection, Link) {
    let config = client_config_of(&[&rustls::version::TLS12], &[]);
    let mut client = ClientConnection::new(config, ServerName::try_from("localhost").unwrap()).unwrap();
    client.set_buffer_limit(None);
    let mut handshake = Handshake::new(&certificate());
    loop {
        let mut out = Vec::new();
        match handshake.feed(&taken(&mut client), &mut out).unwrap() {
            Progress::Pending { handshake: going, .. } => handshake = going,
            Progress::Done { link, .. } => {
                given(&mut client, &out).unwrap();
                assert!(matches!(link, Link::Buffered(_)), "{link:?}");
                return (client, link);
            }
        }
        given(&mut client, &out).unwrap();
    }
}

/// What a client wants to send.
fn taken(client: &mut ClientConnection) -> Vec<u8> {
    let mut wire = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut wire).unwrap();
    }
    wire
}

/// Gives a client what came; returns what was inside of it, and whether the server has taken leave.
fn given(client: &mut ClientConnection, mut wire: &[u8]) -> Result<(Vec<u8>, bool), Error> {
    let (mut data, mut has_leave) = (Vec::new(), false);
    while !wire.is_empty() && !has_leave {
        client.read_tls(&mut wire).unwrap();
        let state = client.process_new_packets()?;
        let start = data.len();
        data.resize(start + state.plaintext_bytes_to_read(), 0);
        client.reader().read_exact(&mut data[start..]).unwrap();
        has_leave = state.peer_has_closed();
    }
    Ok((data, has_leave))
}

/// What a socket has now, and whether it has ended.
fn drained(mut socket: &Socket) -> (Vec<u8>, bool) {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => return (all, true),
            Ok(read) => all.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return (all, false),
            Err(_) => return (all, true),
        }
    }
}

impl Client {
    fn write(&mut self, data: &[u8]) {
        self.tls.writer().write_all(data).unwrap();
        self.waiting.extend(taken(&mut self.tls));
        self.flush();
    }

    /// As much as the socket takes. Whether it took anything.
    fn flush(&mut self) -> bool {
        let taken = (&self.socket).write(&self.waiting).unwrap_or(0);
        self.waiting.drain(..taken);
        taken > 0
    }

    /// Reads all that there is now. Whether there was anything.
    fn read(&mut self) -> bool {
        let (wire, _) = drained(&self.socket);
        let (data, has_leave) = given(&mut self.tls, &wire).unwrap();
        self.read.extend(data);
        self.has_leave |= has_leave;
        !wire.is_empty()
    }
}

impl Rig {
    fn new() -> Rig {
        Rig::with(|_, _| {})
    }

    /// With what waits since before the relay began.
    fn with(before: impl FnOnce(&mut Client, &mut Relayed)) -> Rig {
        let (tls, link) = secured();
        let ((socket, own), (ours, inner)) = (pair(), pair());
        let mut client = Client { tls, socket, waiting: Vec::new(), read: Vec::new(), has_leave: false };
        let mut relayed = Relayed { socket: own, link, record: Vec::new(), sealed: Vec::new() };
        before(&mut client, &mut relayed);
        Rig { relay: Relay::new(relayed, ours), client, inner }
    }

    fn pass(&mut self) -> Fate {
        let fate = self.relay.pass(&mut [0; BUFFER_BYTES]);
        let Relay { to_inner, client, .. } = &self.relay;
        let held = to_inner.capacity() + client.record.capacity() + client.sealed.capacity();
        assert!(held <= 8 * BUFFER_BYTES, "{held} bytes for one connection");
        fate
    }

    /// Until an edge has to come.
    fn settle(&mut self) -> Fate {
        loop {
            match self.pass() {
                Fate::More => {}
                fate => return fate,
            }
        }
    }
}

fn text(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n % 251) as u8).collect()
}

#[test]
fn what_waited_goes_first_and_then_both_go_on() {
    // A record and the half of another came before; one was sealed and not taken.
    let mut rig = Rig::with(|client, relayed| {
        client.write(b"one");
        client.write(b"two");
        let (wire, _) = drained(&relayed.socket);
        relayed.record = wire[..wire.len() - 5].to_vec();
        client.waiting = wire[wire.len() - 5..].to_vec();
        relayed.link.seal(b"before ", &mut relayed.sealed).unwrap();
    });
    assert_eq!(rig.settle(), Fate::Waits);
    assert_eq!(drained(&rig.inner), (b"one".to_vec(), false));
    assert!(rig.client.flush());
    (&rig.inner).write_all(b"after").unwrap();
    assert_eq!(rig.settle(), Fate::Waits);
    rig.client.read();
    assert_eq!((drained(&rig.inner).0, &rig.client.read[..]), (b"two".to_vec(), &b"before after"[..]));
    let Relay { to_inner, client, .. } = &rig.relay;
    let idle = to_inner.capacity() + client.record.capacity() + client.sealed.capacity();
    assert!(idle <= 3 * IDLE_BYTES, "{idle} bytes while nothing waits");
}

#[test]
fn a_successor_that_does_not_read_holds_back_one_direction() {
    let (mut rig, all) = (Rig::new(), text(2 << 20));
    rig.client.write(&all);
    while rig.client.flush() {
        rig.settle();
    }
    assert!(!rig.client.waiting.is_empty(), "the client is held back");
    (&rig.inner).write_all(b"the other direction").unwrap();
    rig.settle();
    rig.client.read();
    assert_eq!(rig.client.read, b"the other direction");
    let mut read = Vec::new();
    while read.len() < all.len() {
        let (more, has_ended) = drained(&rig.inner);
        assert!(!has_ended && !more.is_empty());
        read.extend(more);
        rig.settle();
        rig.client.flush();
        rig.settle();
    }
    assert!(read == all);
}

#[test]
fn a_client_that_does_not_read_holds_back_one_direction() {
    let (mut rig, all) = (Rig::new(), text(2 << 20));
    let mut left = &all[..];
    while let Ok(written) = (&rig.inner).write(left) {
        left = &left[written..];
        rig.settle();
    }
    assert!(!left.is_empty(), "the successor is held back");
    rig.client.write(b"the other direction");
    rig.settle();
    assert_eq!(drained(&rig.inner).0, b"the other direction");
    while rig.client.read.len() < all.len() {
        assert!(rig.client.read());
        rig.settle();
        let written = (&rig.inner).write(left).unwrap_or(0);
        left = &left[written..];
        rig.settle();
    }
    assert!(rig.client.read == all);
}

#[test]
fn a_turn_is_bounded() {
    let mut rig = Rig::new();
    rig.client.write(&text(1 << 20));
    let sent = (1 << 20) - rig.client.waiting.len();
    assert!(sent > TURN_BYTES, "{sent}");
    assert_eq!(rig.pass(), Fate::More);
    let (first, _) = drained(&rig.inner);
    assert!(first.len() <= TURN_BYTES, "{}", first.len());
    assert_eq!(rig.settle(), Fate::Waits);
    assert!(!drained(&rig.inner).0.is_empty());
    // And outwards.
    while (&rig.inner).write(&[0; 4096]).is_ok() {}
    assert_eq!(rig.pass(), Fate::More);
    let mut turns = Turns::new(3);
    [2, 0, 2, 0].into_iter().for_each(|place| turns.add(place));
    assert_eq!((turns.take(), turns.is_empty()), (vec![2, 0], true));
    turns.add(2);
    assert_eq!(turns.take(), [2]);
}

#[test]
fn a_client_that_takes_leave_is_told_what_was_under_way() {
    let mut rig = Rig::new();
    rig.client.write(b"last words");
    rig.client.tls.send_close_notify();
    let leave = taken(&mut rig.client.tls);
    (&rig.client.socket).write_all(&leave).unwrap();
    assert_eq!(rig.settle(), Fate::Waits);
    assert_eq!(drained(&rig.inner), (b"last words".to_vec(), true));
    (&rig.inner).write_all(b"answer").unwrap();
    rig.inner.shutdown(Shutdown::Write).unwrap();
    assert_eq!(rig.settle(), Fate::Over);
    rig.client.read();
    assert_eq!((&rig.client.read[..], rig.client.has_leave), (&b"answer"[..], true));
}

#[test]
fn a_successor_that_ends_is_told_what_was_under_way() {
    let mut rig = Rig::new();
    (&rig.inner).write_all(b"last words").unwrap();
    rig.inner.shutdown(Shutdown::Write).unwrap();
    assert_eq!(rig.settle(), Fate::Waits);
    rig.client.read();
    assert_eq!((&rig.client.read[..], rig.client.has_leave), (&b"last words"[..], true));
    rig.client.write(b"answer");
    rig.client.socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(rig.settle(), Fate::Over);
    assert_eq!(drained(&rig.inner), (b"answer".to_vec(), true));
}

#[test]
fn a_bad_record_is_answered_behind_what_waits() {
    let mut rig = Rig::new();
    rig.client.write(b"good");
    (&rig.inner).write_all(b"waits").unwrap();
    // A record of data that no key opens.
    let bad = [&[23, 3, 3, 0, 40][..], &[0; 40]].concat();
    (&rig.client.socket).write_all(&bad).unwrap();
    rig.relay.outwards(&mut [0; BUFFER_BYTES]).unwrap();
    assert_eq!(rig.settle(), Fate::Over);
    assert_eq!(drained(&rig.inner), (b"good".to_vec(), true));
    let (wire, has_ended) = drained(&rig.client.socket);
    assert!(has_ended);
    let error = given(&mut rig.client.tls, &wire).unwrap_err();
    assert_eq!(error, Error::AlertReceived(AlertDescription::BadRecordMac));
    let mut read = vec![0; 5];
    rig.client.tls.reader().read_exact(&mut read).unwrap();
    assert_eq!(read, b"waits");
}

#[test]
fn either_side_may_be_gone() {
    let mut rig = Rig::new();
    (&rig.inner).write_all(b"unread").unwrap();
    rig.settle();
    drop(std::mem::replace(&mut rig.client.socket, pair().0));
    rig.settle();
    // What the successor says now reaches nobody.
    let _ = (&rig.inner).write(b"more");
    assert_eq!(rig.settle(), Fate::Over);
    assert!(drained(&rig.inner).1);

    let mut rig = Rig::new();
    rig.client.write(b"unread");
    rig.settle();
    // It was killed, and had not read everything.
    drop(std::mem::replace(&mut rig.inner, pair().0));
    rig.settle();
    assert!(rig.client.read() && rig.client.has_leave, "a client that is silent is told, too");
    rig.client.write(b"more");
    assert_eq!(rig.settle(), Fate::Over);
}

#[test]
fn many_end_each_when_it_wants_and_the_rest_when_the_time_is_up() {
    let (mut relays, mut others) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        let Rig { relay, client, inner } = Rig::new();
        relays.push(relay);
        others.push((client, inner));
    }
    let running = std::thread::spawn(|| Relays(relays).run(Duration::from_secs(30)));
    for (client, inner) in &others {
        client.socket.set_nonblocking(false).unwrap();
        inner.set_nonblocking(false).unwrap();
    }
    for (n, (client, inner)) in others.iter_mut().enumerate() {
        let said = format!("client {n}");
        client.write(said.as_bytes());
        let mut heard = vec![0; said.len()];
        (&*inner).read_exact(&mut heard).unwrap();
        assert_eq!(heard, said.as_bytes());
        client.socket.shutdown(Shutdown::Both).unwrap();
        inner.shutdown(Shutdown::Both).unwrap();
    }
    running.join().unwrap().unwrap();

    let mut rig = Rig::new();
    Relays(vec![rig.relay]).run(Duration::ZERO).unwrap();
    assert!(rig.client.read() && rig.client.has_leave, "it is told that its time is up");
    assert!(drained(&rig.inner).1);
}
