//! Counts the writes of a login, over a socket that keeps what each system call wrote apart.

use super::{Bench, client_config};
use crate::listen::Service;
use rustls::ClientConnection;
use socket2::{Socket, Type};
use std::io::{ErrorKind, Read, Write};

/// Sends all that a client has to send at once.
fn say(tls: &mut ClientConnection, socket: &Socket) {
    let mut flight = Vec::new();
    while tls.wants_write() {
        tls.write_tls(&mut flight).unwrap();
    }
    assert_eq!(socket.send(&flight).unwrap(), flight.len());
}

/// What the server wrote by one system call, if it wrote anything.
fn heard(socket: &Socket) -> Option<Vec<u8>> {
    let mut flight = vec![0; 64 * 1024];
    match (&mut &*socket).read(&mut flight) {
        Ok(len) => {
            flight.truncate(len);
            Some(flight)
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        Err(error) => panic!("{error}"),
    }
}

/// Waits until the server has written something.
fn hear(bench: &mut Bench, socket: &Socket) -> Vec<u8> {
    loop {
        match heard(socket) {
            Some(flight) => return flight,
            None => bench.turn(),
        }
    }
}

#[test]
fn a_login_is_answered_by_two_writes() {
    let mut bench = Bench::new();
    let config = client_config(&[]);
    for resumed in [false, true] {
        let (_, socket) = bench.connect_by(Service::DirectTls, Type::SEQPACKET);
        let mut tls = ClientConnection::new(config.clone(), "localhost".try_into().unwrap()).unwrap();
        say(&mut tls, &socket);
        let hello = hear(&mut bench, &socket);
        tls.read_tls(&mut &hello[..]).unwrap();
        tls.process_new_packets().unwrap();
        assert_eq!(tls.handshake_kind(), Some(kind(resumed)));
        // A returning client sends its first element together with the end of its handshake.
        tls.writer().write_all(b"<authenticate/>").unwrap();
        say(&mut tls, &socket);
        let answer = hear(&mut bench, &socket);
        let mut rest = &answer[..];
        while !rest.is_empty() {
            tls.read_tls(&mut rest).unwrap();
            tls.process_new_packets().unwrap();
        }
        let mut words = [0; 64];
        let len = tls.reader().read(&mut words).unwrap();
        assert_eq!(&words[..len], b"hello Tcp;<authenticate/>");
        assert_eq!(tls.tls13_tickets_received(), 1);
        assert_eq!(heard(&socket), None);
    }
}

fn kind(resumed: bool) -> rustls::HandshakeKind {
    if resumed { rustls::HandshakeKind::Resumed } else { rustls::HandshakeKind::Full }
}
