//! WebSocket over the event loop: the upgrade, the frames, the close.

use super::{client_tls, connect, rest, start};
use crate::listen::Ports;
use crate::options::{Options, WebSocket};
use crate::testing::options;
use carillon_wire::frame::websocket::{Decoder, FrameEvent, Opcode, Role, encode_masked};
use std::io::{Read, Write};
use std::net::TcpStream;

pub(super) const UPGRADE: &str = "GET /xmpp-websocket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\
    Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Protocol: xmpp\r\nSec-WebSocket-Version: 13\r\n\r\n";

/// A WebSocket client.
struct Ws<S> {
    stream: S,
    decoder: Decoder,
    buffer: Vec<u8>,
}

impl<S: Read + Write> Ws<S> {
    /// Upgrades, and sends `frames` in the same write.
    fn upgrade(mut stream: S, frames: &[u8]) -> Ws<S> {
        stream.write_all(&[UPGRADE.as_bytes(), frames].concat()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
        Ws { stream, decoder: Decoder::new(Role::Client, Default::default()), buffer: Vec::new() }
    }

    fn send(&mut self, opcode: Opcode, payload: &[u8]) {
        self.stream.write_all(&frame(opcode, payload)).unwrap();
    }

    fn next(&mut self) -> FrameEvent {
        loop {
            let mut input = &self.buffer[..];
            let event = self.decoder.poll(&mut input).unwrap();
            self.buffer = input.to_vec();
            if let Some(event) = event {
                return event;
            }
            let mut bytes = [0; 4096];
            let n = self.stream.read(&mut bytes).unwrap();
            assert!(n > 0, "ended");
            self.buffer.extend_from_slice(&bytes[..n]);
        }
    }

    fn expect(&mut self, text: &str) {
        let event = self.next();
        assert!(matches!(&event, FrameEvent::Text(t) if t == text.as_bytes()), "{event:?} instead of {text}");
    }

    fn closed_with(&mut self, expected: u16) {
        let event = self.next();
        assert!(matches!(event, FrameEvent::Close { code: Some(code), .. } if code == expected), "{event:?}");
        assert_eq!(rest(&mut self.stream), b"");
    }
}

fn frame(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    encode_masked(&mut frame, opcode, payload, [1, 2, 3, 4]);
    frame
}

fn websocket(ports: Ports) -> Ws<TcpStream> {
    let mut ws = Ws::upgrade(connect(ports.websocket), b"");
    ws.expect("hello WebSocket;");
    ws
}

#[test]
fn websocket_messages_one_by_one_and_many_at_once() {
    let server = start(&options());
    let first = [frame(Opcode::Text, b"<a/>"), frame(Opcode::Text, b"<b/>")].concat();
    let mut ws = Ws::upgrade(connect(server.ports().websocket), &first);
    ["hello WebSocket;", "<a/>", "<b/>"].into_iter().for_each(|text| ws.expect(text));
    // One message in three fragments, a ping in between, in pieces that cut everything.
    let mut fragments = frame(Opcode::Text, b"one");
    fragments[0] &= 0x7f;
    let mut more = frame(Opcode::Continuation, b"two");
    more[0] &= 0x7f;
    fragments.extend(more);
    fragments.extend(frame(Opcode::Ping, b"?"));
    fragments.extend(frame(Opcode::Continuation, b"three"));
    for piece in fragments.chunks(3) {
        ws.stream.write_all(piece).unwrap();
    }
    assert_eq!(ws.next(), FrameEvent::Pong(b"?".to_vec()));
    ws.expect("onetwothree");
}

#[test]
fn websocket_messages_behind_a_pause_come_later_and_in_order() {
    let server = start(&options());
    let mut ws = websocket(server.ports());
    let words: [&[u8]; 5] = [b"<a/>", b"pause", b"<b/>", b"pause", b"<c/>"];
    ws.stream.write_all(&words.map(|word| frame(Opcode::Text, word)).concat()).unwrap();
    ["<a/>", "<b/>", "<c/>"].into_iter().for_each(|text| ws.expect(text));
}

#[test]
fn websocket_ends_as_it_should() {
    let server = start(&options());
    let mut ws = websocket(server.ports());
    ws.send(Opcode::Text, b"close");
    ws.expect("bye;");
    ws.closed_with(1000);
    let mut ws = websocket(server.ports());
    ws.send(Opcode::Close, &1001u16.to_be_bytes());
    ws.closed_with(1001);
    let mut ws = websocket(server.ports());
    ws.stream.write_all(&[0x82, 0x80, 0, 0, 0, 0]).unwrap();
    ws.closed_with(1003);
    let mut ws = websocket(server.ports());
    ws.stream.write_all(&[0x81, 0xff, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    ws.closed_with(1009);
}

#[test]
fn websocket_inside_tls() {
    let websocket = WebSocket { port: 0, tls: true, ..WebSocket::default() };
    let server = start(&Options { websocket, ..options() });
    let mut ws = Ws::upgrade(client_tls(connect(server.ports().websocket), &[b"http/1.1"]), b"");
    ws.expect("hello WebSocket;");
    ws.send(Opcode::Text, b"<a/>");
    ws.expect("<a/>");
    ws.send(Opcode::Text, b"close");
    ws.expect("bye;");
    ws.closed_with(1000);
}

#[test]
fn a_bad_upgrade_is_answered_and_closed() {
    let server = start(&options());
    let mut client = connect(server.ports().websocket);
    client.write_all(b"GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let answer = String::from_utf8(rest(&mut client)).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 404 Not Found\r\n") && answer.ends_with("/xmpp-websocket.\n"),
        "{answer}"
    );
}
