use super::{Upgrade, UpgradeStep, WebSocketEndpoint};
use crate::listen::proxies::TrustedProxies;
use std::net::{IpAddr, Ipv4Addr};

const GOOD: &str = "GET /xmpp-websocket HTTP/1.1\r\nHost: example.com\r\nUpgrade: WebSocket\r\n\
    Connection: keep-alive, Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Protocol: chat, xmpp\r\nSec-WebSocket-Version: 13\r\nOrigin: https://example.com\r\n\r\n";

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

fn ask(request: &str) -> UpgradeStep {
    Upgrade::default().feed(request.as_bytes(), PEER, &endpoint(true, &[]))
}

fn endpoint(secure: bool, proxies: &[&str]) -> WebSocketEndpoint {
    let proxies: Vec<_> = proxies.iter().map(|network| network.parse().unwrap()).collect();
    let proxies = TrustedProxies::new(&proxies);
    WebSocketEndpoint { path: "/xmpp-websocket".into(), secure, proxies, takes_players: true }
}

/// The status line of a refusal, and its body.
fn refused(request: &str) -> (String, String) {
    let UpgradeStep::Answered(response) = ask(request) else { panic!("not refused: {request}") };
    let response = String::from_utf8(response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("Content-Length: {}", body.len())));
    assert!(head.contains("Connection: close"));
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

#[test]
fn a_good_request_is_accepted() {
    let UpgradeStep::Accepted { response, rest, client: None, is_player: false } =
        ask(&format!("{GOOD}frames"))
    else {
        panic!()
    };
    let response = String::from_utf8(response).unwrap();
    assert!(response.starts_with("HTTP/1.1 101 "));
    // The example of RFC 6455 §1.3.
    assert!(response.contains("\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    assert!(response.contains("\r\nSec-WebSocket-Protocol: xmpp\r\n"));
    assert_eq!(rest, b"frames");
}

#[test]
fn it_may_come_byte_by_byte() {
    let endpoint = endpoint(true, &[]);
    let mut upgrade = Upgrade::default();
    let (last, first) = GOOD.as_bytes().split_last().unwrap();
    assert!(first.iter().all(|byte| upgrade.feed(&[*byte], PEER, &endpoint) == UpgradeStep::Partial));
    assert!(
        matches!(upgrade.feed(&[*last], PEER, &endpoint), UpgradeStep::Accepted { rest, .. } if rest.is_empty())
    );
}

#[test]
fn each_bad_request_is_told_what_is_wrong() {
    for (from, to, status, word) in [
        ("GET", "POST", "405 Method Not Allowed", "GET"),
        ("GET", "get it", "400 Bad Request", "HTTP"),
        ("HTTP/1.1", "HTTP/1.0", "400 Bad Request", "HTTP/1.1"),
        ("/xmpp-websocket HTTP", "/other HTTP", "404 Not Found", "/xmpp-websocket"),
        ("Host: example.com\r\n", "", "400 Bad Request", "Host"),
        ("Host: example.com", "Host: <evil>", "400 Bad Request", "Host"),
        ("Upgrade: WebSocket\r\n", "", "426 Upgrade Required", "Upgrade"),
        ("Upgrade: WebSocket", "Upgrade: h2c", "426 Upgrade Required", "Upgrade"),
        ("keep-alive, Upgrade", "keep-alive", "426 Upgrade Required", "Upgrade"),
        ("Version: 13", "Version: 8", "426 Upgrade Required", "13"),
        ("Sec-WebSocket-Version: 13\r\n", "", "426 Upgrade Required", "13"),
        ("dGhlIHNhbXBsZSBub25jZQ==", "c2hvcnQ=", "400 Bad Request", "Sec-WebSocket-Key"),
        ("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZ!==", "400 Bad Request", "Sec-WebSocket-Key"),
        ("chat, xmpp", "chat, XMPP", "400 Bad Request", "subprotocol"),
        ("Sec-WebSocket-Protocol: chat, xmpp\r\n", "", "400 Bad Request", "subprotocol"),
    ] {
        let request = GOOD.replacen(from, to, 1);
        assert_ne!(request, GOOD, "{from}");
        let (line, body) = refused(&request);
        assert_eq!(line, format!("HTTP/1.1 {status}"), "{from} → {to}");
        assert!(body.contains(word), "{from} → {to}: {body}");
    }
}

#[test]
fn a_head_without_end_is_refused() {
    let padding = "x".repeat(9000);
    assert_eq!(
        refused(&GOOD.replace("example.com\r\nUp", &format!("{padding}\r\nUp"))).0,
        "HTTP/1.1 431 Request Header Fields Too Large"
    );
    assert_eq!(refused(&padding).0, "HTTP/1.1 431 Request Header Fields Too Large");
}

#[test]
fn the_host_says_where_the_websocket_is() {
    let xrd = "GET /.well-known/host-meta HTTP/1.1\r\nHost: chat.example:5281\r\n\r\n";
    assert!(refused(xrd).1.contains("href='wss://chat.example:5281/xmpp-websocket'"));
    let jrd = "GET /.well-known/host-meta.json HTTP/1.1\r\nHost: chat.example\r\n\r\n";
    let (line, body) = refused(jrd);
    assert_eq!(line, "HTTP/1.1 200 OK");
    assert_eq!(
        body,
        "{\"links\":[{\"rel\":\"urn:xmpp:alt-connections:websocket\",\
         \"href\":\"wss://chat.example/xmpp-websocket\"}]}\n"
    );
}

#[test]
fn behind_a_proxy_the_scheme_is_the_proxys() {
    let endpoint = WebSocketEndpoint { path: "/ws".into(), ..endpoint(false, &[]) };
    let request = "GET /.well-known/host-meta HTTP/1.1\r\nHost: a\r\nX-Forwarded-Proto: https\r\n\r\n";
    let UpgradeStep::Answered(response) = Upgrade::default().feed(request.as_bytes(), PEER, &endpoint) else {
        panic!()
    };
    assert!(String::from_utf8(response).unwrap().contains("wss://a/ws"));
}

#[test]
fn behind_a_trusted_proxy_the_client_is_whom_the_proxies_saw() {
    let client = |proxies: &[&str], fields: &str| {
        let request = GOOD.replace("Origin:", &format!("{fields}\r\nOrigin:"));
        let head = Upgrade::default().feed(request.as_bytes(), PEER, &endpoint(false, proxies));
        let UpgradeStep::Accepted { client, .. } = head else { panic!() };
        client.map(|address| address.to_string())
    };
    let told = "X-Forwarded-For: 198.51.100.1, 192.0.2.7";
    assert_eq!(client(&[], told), None, "anybody can write the field");
    assert_eq!(client(&["10.0.0.2/32"], told), None, "another proxy is trusted");
    let proxy = &["10.0.0.1/32"];
    assert_eq!(client(proxy, told).as_deref(), Some("192.0.2.7"), "what is before it is hearsay");
    assert_eq!(client(proxy, "X-Forwarded-For: 2001:db8::1").as_deref(), Some("2001:db8::1"));
    assert_eq!(client(proxy, "X-Forwarded-For: 192.0.2.7:4711").as_deref(), Some("192.0.2.7"));
    assert_eq!(client(proxy, "X-Forwarded-For: [2001:db8::1]:4711").as_deref(), Some("2001:db8::1"));
    assert_eq!(client(proxy, "X-Forwarded-For: nonsense"), None);
    assert_eq!(client(proxy, "X-Forwarded-For: 192.0.2.7, nonsense"), None);
    let chain = &["10.0.0.0/8", "192.0.2.0/24"];
    assert_eq!(client(chain, told).as_deref(), Some("198.51.100.1"), "through two proxies");
    let two = "X-Forwarded-For: 203.0.113.9, 198.51.100.1\r\nX-Forwarded-For: 192.0.2.7";
    assert_eq!(client(chain, two).as_deref(), Some("198.51.100.1"));
    assert_eq!(client(chain, "X-Forwarded-For: 10.1.1.1, 192.0.2.7").as_deref(), Some("10.1.1.1"));
}
