//! The event loop over real sockets, with a machine that echoes.

mod key_updates;
mod proxied;
mod pulse;
mod starved;
mod websocket;

use crate::listen::Bounds;
use crate::metrics::Status;
use crate::options::{Options, OutQueues};
use crate::server::{Beginning, Server};
use crate::testing::{Echo, EmptyStore, certificate, client_config, options};
use carillon_core::settings::{Settings, Timeouts};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

fn start(options: &Options) -> Server {
    start_with(options, &Arc::default())
}

fn start_with(options: &Options, core: &Arc<Settings>) -> Server {
    let (tls, store) = (certificate(), Arc::new(EmptyStore::default()));
    Server::start_with(options, &tls, core, store, |_, _| Echo::default(), Beginning::default()).unwrap()
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

/// What comes until the end of the connection, even if that is a reset.
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

/// How long is waited for what must come, on a machine that is busy with other things, too.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until the figures are as expected. All shards answer every look, so that this is not a busy loop.
fn until(server: &Server, mut good: impl FnMut(&Status) -> bool) -> Status {
    let deadline = Instant::now() + PATIENCE;
    std::iter::repeat_with(|| status(server))
        .take_while(|_| Instant::now() < deadline)
        .find(|status| good(status))
        .expect("never came")
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
    // Without a close_notify this is an error.
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
fn who_takes_leave_in_tls_gets_the_same_in_return() {
    let server = start(&options());
    let mut tls = client_tls(connect(server.ports().c2s_tls), &[]);
    expect(&mut tls, "hello Tcp;");
    tls.conn.send_close_notify();
    tls.flush().unwrap();
    // Without a close_notify this would be an error.
    assert_eq!(tls.read(&mut [0; 16]).unwrap(), 0);
    drop(tls);
    until(&server, |status| status.connections == 0);
}

#[test]
fn nothing_is_said_in_the_clear_once_tls_has_begun() {
    let server = start(&options());
    let mut plain = connect(server.ports().c2s);
    expect(&mut plain, "hello Tcp;");
    // The core sends and closes while the handshake waits for the client.
    plain.write_all(b"secure and say").unwrap();
    assert_eq!(rest(&mut plain), b"proceed;");
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
    // Control messages are handled in order.
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
    let server = start(&Options {
        out_queues: OutQueues { each_bytes: 32 * 1024, ..OutQueues::default() },
        ..options()
    });
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
fn slow_readers_together_do_not_take_more_than_their_bound() {
    let out_queues = OutQueues { each_bytes: 1 << 20, all_bytes: 4 << 20 };
    let server = start(&Options { out_queues, ..options() });
    let slow: Vec<_> = (0..30).map(|_| connect(server.ports().c2s)).collect();
    slow.iter().for_each(|client| client.set_nonblocking(true).unwrap());
    let mut most = 0;
    let status = until(&server, |status| {
        slow.iter().for_each(|mut client| drop(client.write(b"burst")));
        most = most.max(status.out_queue_bytes);
        status.common_overflows + status.overflows == 30
    });
    assert!(status.common_overflows > 20, "{} of them", status.common_overflows);
    assert!((2 << 20..=4 << 20).contains(&most), "{most} bytes");
    let mut well = connect(server.ports().c2s);
    expect(&mut well, "hello Tcp;");
    drop(slow);
    until(&server, |status| (status.connections, status.out_queue_bytes) == (1, 0));
}

#[test]
fn refusals_say_why_and_are_counted() {
    let none = Bounds::NONE;
    for options in [
        Options { bounds: Bounds { connections: 1, ..none }, ..options() },
        Options { bounds: Bounds { connections_per_address: 1, ..none }, ..options() },
        Options { bounds: Bounds { handshakes_in_flight: 1, ..none }, ..options() },
        Options { bounds: Bounds { connects_per_second: 1, ..none }, ..options() },
    ] {
        let server = start(&options);
        let mut first = connect(server.ports().c2s);
        expect(&mut first, "hello Tcp;");
        let mut others: Vec<_> = (0..3).map(|_| connect(server.ports().c2s)).collect();
        if options.bounds.connects_per_second == 0 {
            for other in &mut others {
                let text = String::from_utf8(rest(other)).unwrap();
                assert!(text.contains("<resource-constraint ") && text.contains("<retry-after "), "{text}");
                assert!(text.ends_with("</stream:stream>"), "{text}");
            }
            let status = status(&server);
            assert_eq!((status.accepted, status.refused, status.connections), (1, 3, 1));
            assert_eq!(status.refusals.iter().map(|(_, n)| n).sum::<u64>(), 3);
            // Bounds that are lifted let the next one in.
            server.reload_bounds(none, options.out_queues);
            expect(&mut connect(server.ports().c2s), "hello Tcp;");
        } else {
            until(&server, |status| status.refused > 0);
        }
    }
}

#[test]
fn who_says_nothing_before_the_core_knows_it_is_closed() {
    let timeouts = Timeouts { auth_ms: 50, ..Timeouts::default() };
    let core = Arc::new(Settings { timeouts, ..Settings::default() });
    let server = start_with(&options(), &core);
    assert_eq!(rest(&mut connect(server.ports().c2s_tls)), b"");
    assert_eq!(rest(&mut connect(server.ports().websocket)), b"");
}

#[test]
fn draining_waits_for_those_who_go_and_closes_the_rest() {
    let store = Arc::new(EmptyStore::default());
    let (tls, core) = (certificate(), Arc::default());
    let server = Server::start_with(
        &options(),
        &tls,
        &core,
        store.clone(),
        |_, _| Echo::default(),
        Beginning::default(),
    )
    .unwrap();
    let (node, ports) = (server.node(), server.ports());
    assert!(node.is_ready());
    let mut stays = connect(ports.c2s);
    expect(&mut stays, "hello Tcp;");
    assert!(!server.drain(Duration::from_millis(20), Duration::ZERO));
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

type TlsClient = rustls::StreamOwned<rustls::ClientConnection, TcpStream>;

fn client_tls(stream: TcpStream, alpn: &[&[u8]]) -> TlsClient {
    let name = "localhost".try_into().unwrap();
    TlsClient::new(rustls::ClientConnection::new(client_config(alpn), name).unwrap(), stream)
}
