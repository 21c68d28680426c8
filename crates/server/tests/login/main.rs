//! The whole server, store apart, as a client sees it.

mod cell;
mod client;
mod store;

use carillon_core::command::{Command, KickReason, Outcome};
use carillon_server::{Options, Server, Tcp, WebSocket, tls};
use carillon_wire::frame::websocket::{Opcode, encode_masked};
use client::{BIND, Client, HEADER, auth};
use std::io::{Read, Write};
use std::sync::{Arc, mpsc};
use std::time::Duration;

fn options(shards: u16) -> (Options, tls::Settings) {
    let dir = tempfile::tempdir().unwrap();
    let tls = tls::Settings::self_signed_in(dir.path(), &["localhost".to_owned()]).unwrap();
    let options = Options {
        c2s: Tcp { enabled: true, port: 0 },
        c2s_tls: Tcp { enabled: true, port: 0 },
        websocket: WebSocket { port: 0, tls: true, ..WebSocket::default() },
        shards,
        ..Options::default()
    };
    (options, tls)
}

fn start() -> Server {
    let (options, tls) = options(3);
    Server::start(&options, &tls, &Arc::default(), Arc::new(store::Accounts::new())).unwrap()
}

fn ask(server: &Server, command: Command) -> Outcome {
    let (sender, outcome) = mpsc::channel();
    server.node().command(command, Box::new(move |outcome| sender.send(outcome).unwrap()));
    outcome.recv_timeout(Duration::from_secs(20)).unwrap()
}

#[test]
fn ten_log_in_by_starttls_and_talk() {
    let server = start();
    let mut clients: Vec<_> = (0..10)
        .map(|n| {
            let mut client = Client::connect(server.ports().c2s.unwrap()).starttls();
            client.login(&format!("u{n}"));
            client
        })
        .collect();
    for n in 0..10 {
        let to = (n + 1) % 10;
        let message = format!("<message to='u{to}@localhost' type='chat'><body>hello {to}</body></message>");
        clients[n].send(&message);
        clients[to].until(&format!("<body>hello {to}</body>"));
        clients[to].until("</message>");
    }
    let Outcome::Sessions(sessions) =
        ask(&server, Command::Sessions { domain: None, account: None, limit: 99 })
    else {
        panic!()
    };
    assert_eq!(sessions.len(), 10);
    let u3 = carillon_wire::jid::Jid::new("u3@localhost").unwrap();
    let kicked = ask(&server, Command::Kick { jid: u3, reason: KickReason::Operator });
    assert!(matches!(kicked, Outcome::Count(1)));
    clients[3].until("</stream:stream>");
    clients[4].send("</stream:stream>");
    clients[4].until("</stream:stream>");
}

#[test]
fn direct_tls_with_everything_in_one_breath() {
    let server = start();
    for n in 0..10 {
        let mut client = Client {
            stream: client::tls(Client::connect(server.ports().c2s_tls.unwrap()).stream),
            read: String::new(),
        };
        // Nothing waits for an answer: the login is asked of the store, and some move, with all of this unread.
        let user = format!("u{n}");
        client.send(&[HEADER, &auth(&user), HEADER, BIND, "<presence/>"].concat());
        client.ping();
        client.send("</stream:stream>");
        client.until("</stream:stream>");
    }
}

#[test]
fn websocket_with_everything_in_one_breath() {
    let server = start();
    for n in 0..10 {
        websocket_in_one_breath(server.ports().websocket.unwrap(), &format!("u{n}"));
    }
}

/// Logs in over WebSocket without waiting for an answer, and waits for that to a ping.
fn websocket_in_one_breath(port: u16, user: &str) {
    let mut stream = client::tls(Client::connect(port).stream);
    let messages = [OPEN, &auth(user), OPEN, BIND_WS, "<presence xmlns='jabber:client'/>", PING_WS];
    let mut sent = UPGRADE.as_bytes().to_vec();
    messages.iter().for_each(|m| encode_masked(&mut sent, Opcode::Text, m.as_bytes(), [9, 8, 7, 6]));
    stream.write_all(&sent).unwrap();
    let mut got = Vec::new();
    while !got.windows(9).any(|w| w == b"id='ping'") {
        let mut bytes = [0; 4096];
        let n = stream.read(&mut bytes).unwrap();
        assert!(n > 0, "{}", String::from_utf8_lossy(&got));
        got.extend_from_slice(&bytes[..n]);
    }
}

const OPEN: &str = "<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' to='localhost' version='1.0'/>";
const BIND_WS: &str = "<iq xmlns='jabber:client' type='set' id='bind'>\
    <bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>";
const PING_WS: &str = "<iq xmlns='jabber:client' type='get' id='ping' to='localhost'>\
    <ping xmlns='urn:xmpp:ping'/></iq>";
const UPGRADE: &str = "GET /xmpp-websocket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\
    Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Protocol: xmpp\r\nSec-WebSocket-Version: 13\r\n\r\n";

#[test]
fn the_server_says_goodbye() {
    let server = start();
    let mut client = Client::connect(server.ports().c2s.unwrap()).starttls();
    client.login("u1");
    let reader = std::thread::spawn(move || client.until("</stream:stream>"));
    assert!(server.drain(Duration::from_secs(20), Duration::ZERO));
    assert!(reader.join().unwrap().contains("<system-shutdown"));
}
