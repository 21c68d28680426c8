//! The loop, driven over real sockets with a machine that echoes.

use crate::listen::Ports;
use crate::metrics::Status;
use crate::options::{Options, WebSocket};
use crate::server::Server;
use crate::testing::{Bare, Echo, certificate, options};
use carillon_core::settings::{Settings, Timeouts};
use carillon_wire::frame::websocket::{Decoder, Event, Opcode, Role, encode_masked};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::Duration;

fn start(options: &Options) -> Server {
    Server::start_with(options, Arc::new(Bare::default()), |_, _, _| Echo::default()).unwrap()
}

fn connect(port: Option<u16>) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port.unwrap())).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn expect(stream: &mut impl Read, expected: &str) {
    let mut got = vec![0; expected.len()];
    stream.read_exact(&mut got).unwrap();
    assert_eq!(String::from_utf8_lossy(&got), expected);
}

/// What comes until the end, however that comes.
fn rest(stream: &mut impl Read) -> Vec<u8> {
    let mut all = Vec::new();
    match stream.read_to_end(&mut all) {
        Ok(_) => {}
        Err(error) => assert_ne!(error.kind(), ErrorKind::WouldBlock, "nothing came"),
    }
    all
}

fn status(server: &Server) -> Status {
    let (sender, status) = mpsc::channel();
    server.node().fresh_status(Box::new(move |status| sender.send(status).unwrap()));
    status.recv().unwrap()
}

/// Waits until the figures are as they should be. Every look is answered by all shards, so that this is no busy loop.
fn until(server: &Server, good: impl Fn(&Status) -> bool) -> Status {
    std::iter::repeat_with(|| status(server)).take(100_000).find(|status| good(status)).expect("never came")
}

#[test]
fn what_is_sent_comes_back() {
    let server = start(&options());
    let mut clients: Vec<_> = (0..50).map(|_| connect(server.ports().c2s)).collect();
    for client in &mut clients {
        expect(client, "hello Tcp;");
    }
    for n in 0..3 {
        clients.iter_mut().for_each(|client| client.write_all(format!("<m{n}/>").as_bytes()).unwrap());
        clients.iter_mut().for_each(|client| expect(client, &format!("<m{n}/>")));
    }
    let status = until(&server, |status| status.bytes_in == 50 * 15);
    assert_eq!((status.connections, status.accepted, status.shards), (50, 50, 2));
    drop(clients);
    until(&server, |status| status.connections == 0);
}

#[test]
fn starttls_then_tls() {
    let server = start(&options());
    let mut plain = connect(server.ports().c2s);
    expect(&mut plain, "hello Tcp;");
    plain.write_all(b"secure").unwrap();
    expect(&mut plain, "proceed;");
    let mut tls = client_tls(plain, &[]);
    expect(&mut tls, "secured true;");
    tls.write_all(b"close").unwrap();
    // A clean end: close_notify came, else this is an error.
    let mut end = String::new();
    tls.read_to_string(&mut end).unwrap();
    assert_eq!(end, "bye;");
    assert_eq!(until(&server, |status| status.connections == 1).handshakes, 1);
}

#[test]
fn direct_tls_with_its_protocol() {
    let server = start(&options());
    let mut tls = client_tls(connect(server.ports().c2s_tls), &[b"xmpp-client"]);
    expect(&mut tls, "hello Tcp;");
    tls.write_all(&[b'x'; 40_000]).unwrap();
    expect(&mut tls, &"x".repeat(40_000));
    assert_eq!(tls.conn.alpn_protocol(), Some(&b"xmpp-client"[..]));
}

#[test]
fn another_certificate_is_used_from_then_on() {
    let server = start(&options());
    let certificate_of = |server: &Server| {
        let mut tls = client_tls(connect(server.ports().c2s_tls), &[]);
        expect(&mut tls, "hello Tcp;");
        tls.conn.peer_certificates().unwrap()[0].clone()
    };
    let before = certificate_of(&server);
    assert_eq!(certificate_of(&server), before);
    server.reload_tls(&certificate());
    // Orders are obeyed in order.
    status(&server);
    assert_ne!(certificate_of(&server), before);
}

#[test]
fn what_is_no_tls_is_told_so_and_closed() {
    let server = start(&options());
    let mut client = connect(server.ports().c2s_tls);
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let alert = rest(&mut client);
    assert_eq!(alert.first(), Some(&21), "{alert:?}");
    drop(client);
    until(&server, |status| status.connections == 0);
}

#[test]
fn a_paused_client_is_read_on_later() {
    let server = start(&options());
    let mut client = connect(server.ports().c2s);
    expect(&mut client, "hello Tcp;");
    client.write_all(b"pause").unwrap();
    until(&server, |status| status.bytes_in == 5);
    client.write_all(b"after").unwrap();
    expect(&mut client, "after");
}

#[test]
fn who_half_closes_still_gets_what_was_sent() {
    let server = start(&options());
    let mut client = connect(server.ports().c2s);
    expect(&mut client, "hello Tcp;");
    client.write_all(b"burst").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(rest(&mut client).len(), 16 * 4096);
}

#[test]
fn a_slow_reader_is_disconnected_and_told() {
    let server = start(&Options { out_queue_bytes: 32 * 1024, ..options() });
    let mut client = connect(server.ports().c2s);
    expect(&mut client, "hello Tcp;");
    client.set_nonblocking(true).unwrap();
    until(&server, |status| {
        // Each is answered with 64 KiB that nobody reads.
        let _ = (&client).write(b"burst");
        status.overflows == 1
    });
    client.set_nonblocking(false).unwrap();
    let all = rest(&mut client);
    assert!(all.ends_with(b"overflow;"), "{}", String::from_utf8_lossy(&all[all.len() - 20..]));
    drop(client);
    assert_eq!(until(&server, |status| status.connections == 0).overflows, 1);
}

#[test]
fn refusals_close_and_are_counted() {
    for options in [
        Options { max_connections: 1, ..options() },
        Options { connections_per_address: 1, ..options() },
        Options { connect_rate_per_second: 1, ..options() },
    ] {
        let server = start(&options);
        let mut first = connect(server.ports().c2s);
        expect(&mut first, "hello Tcp;");
        let mut others: Vec<_> = (0..3).map(|_| connect(server.ports().c2s)).collect();
        if options.connect_rate_per_second == 0 {
            others.iter_mut().for_each(|other| assert_eq!(rest(other), b""));
            let status = status(&server);
            assert_eq!((status.accepted, status.refused, status.connections), (1, 3, 1));
        } else {
            until(&server, |status| status.refused > 0);
        }
    }
}

#[test]
fn who_says_nothing_before_the_core_knows_it_is_closed() {
    let timeouts = Timeouts { auth_ms: 50, ..Timeouts::default() };
    let core = Arc::new(Settings { timeouts, ..Settings::default() });
    let server = start(&Options { core, ..options() });
    assert_eq!(rest(&mut connect(server.ports().c2s_tls)), b"");
    assert_eq!(rest(&mut connect(server.ports().websocket)), b"");
}

#[test]
fn draining_waits_for_those_who_go_and_closes_the_rest() {
    let store = Arc::new(Bare::default());
    let server = Server::start_with(&options(), store.clone(), |_, _, _| Echo::default()).unwrap();
    let (node, ports) = (server.node(), server.ports());
    assert!(node.is_ready());
    let mut stays = connect(ports.c2s);
    expect(&mut stays, "hello Tcp;");
    assert!(!server.drain(Duration::from_millis(20)));
    assert_eq!(rest(&mut stays), b"");
    assert!(!node.is_ready() && store.closed.load(Ordering::SeqCst));
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, ports.c2s.unwrap())).is_err());
    let (sender, outcome) = mpsc::channel();
    let command = carillon_core::command::Command::Trace { id: carillon_core::model::NotificationId(1) };
    node.command(command, Box::new(move |outcome| sender.send(outcome).unwrap()));
    assert!(matches!(outcome.recv().unwrap(), carillon_core::command::Outcome::Unavailable));
}

#[test]
fn domains_are_read_again() {
    let server = start(&options());
    assert!(server.node().domains().named("localhost").is_some());
    let (sender, done) = mpsc::channel();
    server.node().reload_domains(Box::new(move |()| sender.send(()).unwrap()));
    done.recv().unwrap();
}

const UPGRADE: &str = "GET /xmpp-websocket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\
    Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Protocol: xmpp\r\nSec-WebSocket-Version: 13\r\n\r\n";

/// A WebSocket client.
struct Ws<S> {
    stream: S,
    decoder: Decoder,
    buffer: Vec<u8>,
}

impl<S: Read + Write> Ws<S> {
    /// Upgrades, and sends `frames` in the same breath.
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

    fn next(&mut self) -> Event {
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
        assert!(matches!(&event, Event::Text(t) if t == text.as_bytes()), "{event:?} instead of {text}");
    }

    fn closed_with(&mut self, expected: u16) {
        let event = self.next();
        assert!(matches!(event, Event::Close { code: Some(code), .. } if code == expected), "{event:?}");
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
    assert_eq!(ws.next(), Event::Pong(b"?".to_vec()));
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
    let websocket = Some(WebSocket { port: 0, ..WebSocket::default() });
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

type TlsClient = rustls::StreamOwned<rustls::ClientConnection, TcpStream>;

fn client_tls(stream: TcpStream, alpn: &[&[u8]]) -> TlsClient {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Trusting(provider)))
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    let name = "localhost".try_into().unwrap();
    TlsClient::new(rustls::ClientConnection::new(Arc::new(config), name).unwrap(), stream)
}

/// Takes any certificate.
#[derive(Debug)]
struct Trusting(Arc<rustls::crypto::CryptoProvider>);

mod trusting {
    use super::Trusting;
    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use rustls::{DigitallySignedStruct, Error, SignatureScheme};

    impl ServerCertVerifier for Trusting {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, Error> {
            Ok(ServerCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.0.signature_verification_algorithms.supported_schemes()
        }
    }
}
