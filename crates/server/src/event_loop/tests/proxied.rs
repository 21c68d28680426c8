//! Connections behind a proxy: whose they are, and whom they count for.

use super::websocket::UPGRADE;
use super::*;
use crate::options::{ClientPort, Light};

/// Version 1, with the address of a client.
fn text(client: &str) -> Vec<u8> {
    format!("PROXY TCP4 {client} 198.51.100.1 4711 5222\r\n").into_bytes()
}

/// Version 2.
fn binary(client: [u8; 4]) -> Vec<u8> {
    [&b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"[..], &client, &[198, 51, 100, 1, 0x12, 0x67, 0x14, 0x66]].concat()
}

/// What a proxy says that speaks for itself.
const LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";

/// A server that takes this host for a proxy.
fn behind_a_proxy() -> Options {
    Options {
        trusted_proxies: vec!["127.0.0.0/8".parse().unwrap()],
        proxy_protocol: vec![ClientPort::C2s, ClientPort::C2sTls, ClientPort::WebSocket, ClientPort::Light],
        light: Light { port: Some(0), tls: false },
        ..options()
    }
}

/// A proxy that writes its header in front of what its client writes first, at once.
struct Proxied {
    stream: TcpStream,
    header: Vec<u8>,
}

impl Read for Proxied {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.stream.read(into)
    }
}

impl Write for Proxied {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.header.extend_from_slice(bytes);
        self.stream.write_all(&std::mem::take(&mut self.header))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}

fn says_address(stream: &mut (impl Read + Write), address: &str) {
    stream.write_all(b"address").unwrap();
    expect(stream, address);
}

fn refused_headers(status: &Status) -> u64 {
    status.refusals.iter().filter(|(reason, _)| *reason == "proxy-header").map(|(_, n)| n).sum()
}

#[test]
fn the_client_is_whom_the_header_names_however_it_is_cut() {
    let server = start(&behind_a_proxy());
    for (header, address) in [
        (text("192.0.2.7"), "192.0.2.7"),
        (binary([192, 0, 2, 7]), "192.0.2.7"),
        (b"PROXY UNKNOWN\r\n".to_vec(), "127.0.0.1"),
        (LOCAL.to_vec(), "127.0.0.1"),
    ] {
        for at in 1..=header.len() {
            let mut client = connect(server.ports().c2s);
            client.set_nodelay(true).unwrap();
            client.write_all(&header[..at]).unwrap();
            client.write_all(&header[at..]).unwrap();
            expect(&mut client, "hello Tcp;");
            says_address(&mut client, address);
        }
    }
    let mut client = connect(server.ports().light);
    client.write_all(&[&binary([192, 0, 2, 7])[..], b"light"].concat()).unwrap();
    expect(&mut client, "light");
}

#[test]
fn tls_may_begin_in_the_packet_of_the_header() {
    let server = start(&behind_a_proxy());
    for header in [text("192.0.2.7"), binary([192, 0, 2, 7])] {
        let proxied = Proxied { stream: connect(server.ports().c2s_tls), header };
        let name = "localhost".try_into().unwrap();
        let conn = rustls::ClientConnection::new(client_config(&[]), name).unwrap();
        let mut tls = rustls::StreamOwned::new(conn, proxied);
        expect(&mut tls, "hello Tcp;");
        says_address(&mut tls, "192.0.2.7");
    }
}

#[test]
fn nobody_else_is_believed() {
    let server =
        start(&Options { trusted_proxies: vec!["192.0.2.0/24".parse().unwrap()], ..behind_a_proxy() });
    let mut client = connect(server.ports().c2s);
    expect(&mut client, "hello Tcp;");
    client.write_all(&text("192.0.2.7")).unwrap();
    expect(&mut client, &String::from_utf8(text("192.0.2.7")).unwrap());
    says_address(&mut client, "127.0.0.1");
}

#[test]
fn a_proxy_without_a_header_is_refused_and_counted() {
    let timeouts = Timeouts { auth_ms: 50, ..Timeouts::default() };
    let core = Arc::new(Settings { timeouts, ..Settings::default() });
    let server = start_with(&behind_a_proxy(), &core);
    let long = [&LOCAL[..14], &[0xff; 2]].concat();
    for (n, first) in
        [&b"<?xml version='1.0'?>"[..], b"PROXY TCP4 nobody", &long, b""].into_iter().enumerate()
    {
        let mut client = connect(server.ports().c2s);
        client.write_all(first).unwrap();
        assert_eq!(rest(&mut client), b"");
        let status = until(&server, |status| refused_headers(status) == n as u64 + 1);
        assert_eq!((status.accepted, status.refused), (0, n as u64 + 1));
    }
}

#[test]
fn limits_per_address_count_the_client() {
    let bounds = Bounds { connections_per_address: 1, ..Bounds::NONE };
    let server = start(&Options { bounds, ..behind_a_proxy() });
    let arrives = |header: &[u8]| {
        let mut client = connect(server.ports().c2s);
        client.write_all(header).unwrap();
        client
    };
    let open = |header: &[u8]| {
        let mut client = arrives(header);
        expect(&mut client, "hello Tcp;");
        client
    };
    let first = open(&text("192.0.2.7"));
    let _others = [open(&binary([192, 0, 2, 8])), open(LOCAL)];
    for header in [&binary([192, 0, 2, 7])[..], b"PROXY UNKNOWN\r\n"] {
        let text = String::from_utf8(rest(&mut arrives(header))).unwrap();
        assert!(text.contains("<resource-constraint ") && text.ends_with("</stream:stream>"), "{text}");
    }
    let counted = until(&server, |status| status.refused == 2);
    assert_eq!((counted.accepted, counted.connections, refused_headers(&counted)), (3, 3, 0));
    drop(first);
    until(&server, |status| status.connections == 2);
    open(&text("192.0.2.7"));
}

#[test]
fn limits_per_address_count_the_client_that_an_http_proxy_names() {
    let bounds = Bounds { connections_per_address: 1, ..Bounds::NONE };
    let server = start(&Options { bounds, proxy_protocol: Vec::new(), ..behind_a_proxy() });
    let status_of = |client: &str| {
        let mut stream = connect(server.ports().websocket);
        let head = UPGRADE.replace("Host:", &format!("X-Forwarded-For: {client}\r\nHost:"));
        stream.write_all(head.as_bytes()).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        (String::from_utf8_lossy(&status).into_owned(), stream)
    };
    let (first, _first) = status_of("192.0.2.7");
    let (other, _other) = status_of("192.0.2.8");
    assert_eq!((&*first, &*other), ("HTTP/1.1 101", "HTTP/1.1 101"));
    assert_eq!(status_of("192.0.2.7").0, "HTTP/1.1 503");
}
