//! Records to and from a rustls client.

use std::io::Write;

use carillon_server::tls::{Blame, Circumstances, Fault, Keys, Link};
use rustls::crypto::aws_lc_rs::cipher_suite;
use rustls::{AlertDescription, SupportedCipherSuite};

use super::support::{Offer, Pair, TLS12, client_config, data, give, pair, take};

const SUITES: [SupportedCipherSuite; 3] = [
    cipher_suite::TLS13_AES_128_GCM_SHA256,
    cipher_suite::TLS13_AES_256_GCM_SHA384,
    cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
];

fn pair_with(suite: SupportedCipherSuite) -> Pair {
    pair(&client_config(Offer { suites: Some(vec![suite]), ..Offer::default() }))
}

fn tls12_pair() -> Pair {
    pair(&client_config(Offer { versions: Some(TLS12), ..Offer::default() }))
}

fn keys(link: &mut Link) -> &mut Keys {
    match link {
        Link::Extracted(keys) => keys,
        Link::Buffered(_) => panic!("not extracted"),
    }
}

#[test]
fn data_of_every_size_both_ways() {
    let bytes = data(40_000);
    let mut pair = pair_with(SUITES[0]);
    for len in 0..=bytes.len() {
        assert!(pair.up(&bytes[..len]) == bytes[..len], "{len} bytes up");
        assert!(pair.down(&bytes[..len]) == bytes[..len], "{len} bytes down");
    }
}

#[test]
fn data_of_many_sizes_with_every_suite() {
    let bytes = data(40_000);
    let pairs = [pair_with(SUITES[1]), pair_with(SUITES[2]), tls12_pair()];
    for mut pair in pairs {
        let around = |mid: usize| mid - 40..mid + 40;
        for len in (0..600).chain(around(16_384)).chain(around(32_768)).chain([40_000]) {
            assert!(pair.up(&bytes[..len]) == bytes[..len], "{len} bytes up");
            assert!(pair.down(&bytes[..len]) == bytes[..len], "{len} bytes down");
        }
    }
}

#[test]
fn either_side_updates_keys() {
    for suite in SUITES {
        let mut pair = pair_with(suite);
        for round in 0..100 {
            // Never more in a minute than a peer may ask for.
            let now = Circumstances { minute: round as u32 / 30, ..Circumstances::default() };
            let mut wire = Vec::new();
            match round % 3 {
                0 => pair.client.refresh_traffic_keys().unwrap(),
                1 => keys(&mut pair.link).refresh(&mut wire).unwrap(),
                _ => {
                    // Both at once: their messages cross.
                    pair.client.refresh_traffic_keys().unwrap();
                    keys(&mut pair.link).refresh(&mut wire).unwrap();
                }
            }
            let update = take(&mut pair.client);
            give(&mut pair.client, &wire).unwrap();
            // With TLS 1.3's order of things the client's answer is behind its own update.
            let update = [update, take(&mut pair.client)].concat();
            let (mut plain, mut reply) = (Vec::new(), Vec::new());
            let opened = pair.link.open(&mut update.clone(), &mut plain, &mut reply, now).unwrap();
            assert_eq!((opened.consumed, plain.len()), (update.len(), 0));
            give(&mut pair.client, &reply).unwrap();
            assert_eq!(pair.up(&data(round)), data(round));
            assert_eq!(pair.down(&data(round + 1)), data(round + 1));
        }
    }
}

#[test]
fn bytes_come_as_they_like() {
    for mut pair in [pair_with(SUITES[0]), tls12_pair()] {
        let bytes = data(5000);
        for _ in 0..3 {
            pair.client.writer().write_all(&bytes).unwrap();
            let wire = take(&mut pair.client);
            let (mut pending, mut plain, mut reply) = (Vec::new(), Vec::new(), Vec::new());
            for byte in wire {
                pending.push(byte);
                let opened =
                    pair.link.open(&mut pending, &mut plain, &mut reply, Circumstances::default()).unwrap();
                pending.drain(..opened.consumed);
            }
            assert!(pending.is_empty() && reply.is_empty());
            assert_eq!(plain, bytes);
        }
    }
}

#[test]
fn the_client_closes() {
    for mut pair in [pair_with(SUITES[0]), tls12_pair()] {
        pair.client.writer().write_all(b"last").unwrap();
        pair.client.send_close_notify();
        let mut wire = take(&mut pair.client);
        wire.extend(b"ignored");
        let (mut plain, mut reply) = (Vec::new(), Vec::new());
        let opened = pair.link.open(&mut wire, &mut plain, &mut reply, Circumstances::default()).unwrap();
        assert_eq!((opened.consumed, opened.closed), (wire.len(), true));
        assert_eq!(plain, b"last");
        assert!(reply.is_empty());
        assert_eq!(pair.down(b"farewell"), b"farewell");
    }
}

#[test]
fn the_server_closes() {
    for mut pair in [pair_with(SUITES[0]), tls12_pair()] {
        let mut wire = Vec::new();
        pair.link.seal(b"last", &mut wire).unwrap();
        pair.link.close_notify(&mut wire);
        let len = wire.len();
        pair.link.close_notify(&mut wire);
        assert_eq!(wire.len(), len, "it is said once");
        assert_eq!(give(&mut pair.client, &wire).unwrap(), b"last");
        assert!(pair.client.process_new_packets().unwrap().peer_has_closed());
        assert!(pair.link.seal(b"more", &mut wire).is_err());
        assert_eq!(pair.up(b"still there?"), b"still there?");
    }
}

#[test]
fn corruption_is_answered_with_an_alert() {
    for at in [0, 2, 5, 20, 40] {
        for (mut pair, tls12) in [(pair_with(SUITES[0]), false), (tls12_pair(), true)] {
            pair.client.writer().write_all(&data(30)).unwrap();
            let mut wire = take(&mut pair.client);
            wire[at] ^= 0x40;
            let (mut plain, mut reply) = (Vec::new(), Vec::new());
            let fault =
                pair.link.open(&mut wire, &mut plain, &mut reply, Circumstances::default()).unwrap_err();
            assert_eq!((fault.blame(), plain.len()), (Blame::Peer, 0), "byte {at}");
            let told = give(&mut pair.client, &reply).unwrap_err();
            let expected = match (at, tls12) {
                (0, true) => AlertDescription::DecodeError,
                (0, false) => AlertDescription::UnexpectedMessage,
                _ => AlertDescription::BadRecordMac,
            };
            assert_eq!(told, rustls::Error::AlertReceived(expected), "byte {at}");
            assert!(pair.link.open(&mut wire, &mut plain, &mut reply, Circumstances::default()).is_err());
        }
    }
}

#[test]
fn the_client_notices_corruption_and_says_so() {
    for mut pair in [pair_with(SUITES[0]), tls12_pair()] {
        let mut wire = Vec::new();
        pair.link.seal(b"hello", &mut wire).unwrap();
        wire[8] ^= 1;
        give(&mut pair.client, &wire).unwrap_err();
        let mut alert = take(&mut pair.client);
        let (mut plain, mut reply) = (Vec::new(), Vec::new());
        let fault = pair.link.open(&mut alert, &mut plain, &mut reply, Circumstances::default()).unwrap_err();
        assert!(matches!(fault, Fault::Alerted(AlertDescription::BadRecordMac)), "{fault}");
        assert!(reply.is_empty());
    }
}

#[test]
fn a_connection_moves_to_another_process() {
    for suite in SUITES {
        let mut pair = pair_with(suite);
        for round in 0..20 {
            let Link::Extracted(keys) = pair.link else { panic!("not extracted") };
            let bytes = keys.to_bytes();
            pair.link = Link::Extracted(Box::new(Keys::from_bytes(&*bytes).unwrap()));
            if round % 5 == 4 {
                pair.client.refresh_traffic_keys().unwrap();
            }
            assert_eq!(pair.up(b"up"), b"up");
            assert_eq!(pair.down(b"down"), b"down");
        }
    }
}
