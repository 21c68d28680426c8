//! Whole conversations, in any pieces.

use proptest::prelude::*;

use super::*;

const GREETING: &[u8] = b"{\"timestamp\":1700000000000,\"token\":\"t\"}\x01";

fn ready(out: &mut Outbox) -> Client {
    let mut client = Client::default();
    client.start(out);
    client.receive(GREETING, out);
    assert_eq!(std::mem::take(&mut out.bytes), OPENING);
    assert_eq!(std::mem::take(&mut out.events), [LightEvent::Ready]);
    client
}

#[test]
fn a_subscriber_gets_what_is_published() {
    let mut out = Outbox::default();
    let mut client = ready(&mut out);
    client.subscribe("flash\"bot", &mut out);
    client.ping(&mut out);
    let expected = b"{\"action\":\"subscribe\",\"data\":\"flash\\\"bot\"}\0PING\0";
    assert_eq!(std::mem::take(&mut out.bytes), expected);
    client.receive(
        b"ACK\x01PONG\x01PUBLISH\0{\"topic\":\"a\"}\x01{\"error\":\"x\",\"message\":\"y\"}\x01",
        &mut out,
    );
    let expected = [
        LightEvent::Done,
        LightEvent::Pong,
        LightEvent::Published(b"{\"topic\":\"a\"}".to_vec()),
        LightEvent::Error("x".to_owned()),
    ];
    assert_eq!(std::mem::take(&mut out.events), expected);
    client.receive_end(&mut out);
    client.receive_end(&mut out);
    assert_eq!(out.events, [LightEvent::Closed(End::Cut)]);
}

#[test]
fn nothing_is_said_before_the_greeting() {
    let mut out = Outbox::default();
    let mut client = Client::default();
    client.start(&mut out);
    out.bytes.clear();
    client.subscribe("a", &mut out);
    client.ping(&mut out);
    assert!(out.bytes.is_empty());
    client.receive(b"ACK\x01", &mut out);
    assert_eq!(out.events, [LightEvent::Closed(End::Nonsense)]);
    assert!(client.is_over());
}

#[test]
fn an_idle_client_holds_no_buffer() {
    let mut out = Outbox::default();
    let client = ready(&mut out);
    assert_eq!(client.rest.capacity(), 0);
    assert!(size_of::<Client>() <= 32);
}

proptest! {
    #[test]
    fn the_pieces_it_comes_in_do_not_matter(cuts in prop::collection::vec(1..60_usize, 0..8)) {
        let text = [GREETING, b"ACK\x01PUBLISH\0{\"data\":1}\x01PONG\x01"].concat();
        let mut out = Outbox::default();
        let mut client = Client::default();
        client.start(&mut out);
        let mut left = &text[..];
        for cut in cuts {
            let (piece, rest) = left.split_at(cut.min(left.len()));
            client.receive(piece, &mut out);
            left = rest;
        }
        client.receive(left, &mut out);
        let item = LightEvent::Published(b"{\"data\":1}".to_vec());
        prop_assert_eq!(out.events, [LightEvent::Ready, LightEvent::Done, item, LightEvent::Pong]);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut out = Outbox::default();
        let mut client = ready(&mut out);
        client.receive(&bytes, &mut out);
    }
}
