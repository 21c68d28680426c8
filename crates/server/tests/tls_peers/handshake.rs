//! Handshakes with a rustls client.

use std::io::Write;
use std::sync::Arc;

use carillon_server::tls::{
    Blame, Circumstances, Fault, Handshake, Keys, Link, Progress, Settings, Version, Violation,
};
use rustls::crypto::aws_lc_rs::{ALL_CIPHER_SUITES, kx_group};
use rustls::{AlertDescription, ClientConfig, ClientConnection, NamedGroup};

use super::support::{
    HOST, Offer, Pair, TLS12, client, client_config, data, give, pair, server, settings, shake_hands, take,
};

#[test]
fn in_pieces_of_any_length() {
    let config = client_config(Offer::default());
    // The first flight of the client is some 250 bytes, the second 74.
    for chunk in 1..=300 {
        let mut pair = shake_hands(settings(), &config, chunk).unwrap();
        assert_eq!(pair.up(b"up"), b"up");
        assert_eq!(pair.down(b"down"), b"down");
    }
}

#[test]
fn with_every_cipher_suite() {
    for suite in ALL_CIPHER_SUITES {
        let config = client_config(Offer { suites: Some(vec![*suite]), ..Offer::default() });
        let Ok(mut pair) = shake_hands(settings(), &config, usize::MAX) else {
            // Ours is an ECDSA certificate.
            assert!(suite.suite().as_str().unwrap().contains("_RSA_"));
            continue;
        };
        assert_eq!(pair.secured.cipher, suite.suite().as_str().unwrap());
        let tls13 = pair.secured.version == Version::Tls13;
        assert_eq!(tls13, suite.tls13().is_some());
        assert_eq!(tls13, matches!(pair.link, Link::Extracted(_)));
        assert_eq!(pair.up(&data(20_000)), data(20_000));
        assert_eq!(pair.down(&data(20_000)), data(20_000));
    }
}

#[test]
fn the_cheapest_suite_is_taken_whatever_the_client_prefers() {
    let mut suites = ALL_CIPHER_SUITES.to_vec();
    suites.reverse();
    suites.rotate_left(5);
    let offered = client_config(Offer { suites: Some(suites), ..Offer::default() });
    assert_eq!(pair(&offered).secured.cipher, "TLS13_AES_128_GCM_SHA256");
}

#[test]
fn the_hybrid_key_exchange_is_for_those_who_have_no_other() {
    let agreed = |groups: Vec<&'static dyn rustls::crypto::SupportedKxGroup>| {
        let pair = pair(&client_config(Offer { groups: Some(groups), ..Offer::default() }));
        pair.client.negotiated_key_exchange_group().unwrap().name()
    };
    assert_eq!(agreed(vec![kx_group::X25519MLKEM768, kx_group::X25519]), NamedGroup::X25519);
    assert_eq!(agreed(vec![kx_group::X25519MLKEM768, kx_group::SECP256R1]), NamedGroup::secp256r1);
    assert_eq!(agreed(vec![kx_group::X25519MLKEM768]), NamedGroup::X25519MLKEM768);
    // Its only key share is of no use: the server asks for another (HelloRetryRequest).
    assert_eq!(agreed(vec![kx_group::MLKEM1024, kx_group::X25519]), NamedGroup::X25519);
}

#[test]
fn a_retried_one_in_pieces_of_any_length() {
    let groups: Vec<&'static dyn rustls::crypto::SupportedKxGroup> =
        vec![kx_group::MLKEM1024, kx_group::X25519];
    let config = client_config(Offer { groups: Some(groups), ..Offer::default() });
    for chunk in [1, 2, 3, 5, 7, 100, 1000] {
        let mut pair = shake_hands(settings(), &config, chunk).unwrap();
        assert_eq!(pair.up(b"up"), b"up");
        assert_eq!(pair.down(b"down"), b"down");
    }
}

#[test]
fn both_ends_know_the_same_about_it() {
    let settings = settings().alpn(&[b"xmpp-client", b"http/1.1"]);
    let config = client_config(Offer { alpn: vec![b"http/1.1".to_vec()], ..Offer::default() });
    let Pair { client, secured, .. } = shake_hands(&settings, &config, usize::MAX).unwrap();
    let exported = client.export_keying_material([0; 32], b"EXPORTER-Channel-Binding", None).unwrap();
    assert_eq!(**secured.exporter.as_ref().unwrap(), exported);
    assert_eq!(secured.server_name.as_deref(), Some(HOST));
    assert_eq!(secured.alpn.as_deref(), Some(&b"http/1.1"[..]));
    assert!(!secured.resumed);
}

#[test]
fn application_protocols_must_meet_if_both_name_them() {
    let strict = settings().alpn(&[b"xmpp-client"]);
    let none = client_config(Offer::default());
    assert_eq!(shake_hands(&strict, &none, usize::MAX).unwrap().secured.alpn, None);
    let other = client_config(Offer { alpn: vec![b"h2".to_vec()], ..Offer::default() });
    assert_eq!(shake_hands(settings(), &other, usize::MAX).unwrap().secured.alpn, None);
    let Err((fault, out)) = shake_hands(&strict, &other, usize::MAX) else {
        panic!("a client that speaks only h2 was let in");
    };
    assert_eq!((fault.blame(), fault.label()), (Blame::Peer, "tls"));
    assert!(matches!(fault, Fault::Tls(rustls::Error::NoApplicationProtocol)) && !out.is_empty());
}

#[test]
fn tickets_resume_sessions() {
    for versions in [rustls::ALL_VERSIONS, TLS12] {
        let config = client_config(Offer { versions: Some(versions), ..Offer::default() });
        let resumed = |settings: &Settings| {
            let mut pair = shake_hands(settings, &config, usize::MAX).unwrap();
            // The client meets its tickets with the first data.
            assert_eq!(pair.down(b"hello"), b"hello");
            assert_eq!(pair.up(b"hello"), b"hello");
            pair.secured.resumed
        };
        assert!(!resumed(settings()));
        assert!(resumed(settings()));
        // As listeners of one server they share tickets.
        assert!(resumed(&settings().alpn(&[b"xmpp-client"])));
        let reloaded = reloaded();
        assert!(resumed(&reloaded.sharing_tickets_of(settings())));
        assert!(!resumed(&reloaded));
    }
}

#[test]
fn tickets_resume_sessions_at_another_server_with_the_same_keys() {
    for versions in [rustls::ALL_VERSIONS, TLS12] {
        let config = client_config(Offer { versions: Some(versions), ..Offer::default() });
        let resumed = |settings: &Settings| {
            let mut pair = shake_hands(settings, &config, usize::MAX).unwrap();
            assert_eq!(pair.down(b"hello"), b"hello");
            assert_eq!(pair.up(b"hello"), b"hello");
            pair.secured.resumed
        };
        let (old, new) = (reloaded(), reloaded());
        assert!(!resumed(&old));
        // Its ticket is foreign there: a full handshake, with another ticket.
        assert!(!resumed(&new));
        assert!(resumed(&new));
        let heir = reloaded().with_ticket_keys(&new.ticket_keys()).unwrap();
        assert!(resumed(&heir));
        assert!(resumed(&heir.alpn(&[b"xmpp-client"])));
        assert!(resumed(&reloaded().sharing_tickets_of(&heir)));
        // It has the same keys still, not others.
        assert!(resumed(&new));
        assert!(!resumed(&old));
    }
}

#[test]
fn what_is_no_ticket_keys_is_refused_and_changes_nothing() {
    let settings = reloaded();
    let keys = settings.ticket_keys();
    for wrong in [&[][..], &keys[..keys.len() - 1], &[&[9], &keys[1..]].concat()] {
        let error = settings.with_ticket_keys(wrong).unwrap_err();
        assert!(error.to_string().contains("ticket keys"), "{error}");
    }
    assert_eq!(settings.ticket_keys()[..49], keys[..49]);
}

/// The same certificate, read again.
fn reloaded() -> Settings {
    let (_, cert, key) = server();
    Settings::from_pem(cert, key).unwrap()
}

#[test]
fn data_right_behind_it_is_left_for_the_link() {
    let config = client_config(Offer::default());
    let mut client = client(&config);
    let handshake = answer_hello(&mut client);
    client.writer().write_all(b"<stream:stream>").unwrap();
    let mut wire = take(&mut client);
    let Progress::Done { mut link, consumed, .. } = handshake.feed(&wire, &mut Vec::new()).unwrap() else {
        panic!("the handshake is not done");
    };
    assert!(consumed < wire.len());
    let (mut plain, mut reply) = (Vec::new(), Vec::new());
    let opened = link.open(&mut wire[consumed..], &mut plain, &mut reply, Circumstances::default()).unwrap();
    assert_eq!((plain, opened.consumed), (b"<stream:stream>".to_vec(), wire.len() - consumed));
}

/// A handshake whose client has got everything but not yet sent its last flight.
fn answer_hello(client: &mut ClientConnection) -> Handshake {
    let mut out = Vec::new();
    let hello = take(client);
    let Progress::Pending { handshake, consumed } =
        Handshake::new(settings()).feed(&hello, &mut out).unwrap()
    else {
        panic!("done too early");
    };
    assert_eq!(consumed, hello.len());
    give(client, &out).unwrap();
    handshake
}

#[test]
fn many_at_once_on_one_thread_keep_their_secrets_apart() {
    let config = client_config(Offer::default());
    let mut clients: Vec<_> = (0..20).map(|_| client(&config)).collect();
    let answered: Vec<_> = clients.iter_mut().map(answer_hello).collect();
    for (client, handshake) in clients.iter_mut().zip(answered) {
        let mut out = Vec::new();
        let Progress::Done { mut link, .. } = handshake.feed(&take(client), &mut out).unwrap() else {
            panic!("the handshake is not done");
        };
        // Only the right secret leads to the right next key.
        let Link::Extracted(keys) = &mut link else { panic!("TLS 1.2?") };
        Keys::refresh(keys, &mut out).unwrap();
        keys.seal(b"new key", &mut out).unwrap();
        assert_eq!(give(client, &out).unwrap(), b"new key");
    }
}

#[test]
fn what_is_no_tls_is_refused_at_once() {
    let decode_error = [21, 3, 3, 0, 2, 2, 50];
    for garbage in
        [&b"<?xml version='1.0'?><stream:stream>"[..], b"GET / HTTP/1.1\r\n\r\n", &[0; 5], &[255; 64]]
    {
        let mut out = Vec::new();
        let fault = Handshake::new(settings()).feed(garbage, &mut out).unwrap_err();
        assert_eq!(fault.blame(), Blame::Peer);
        assert_eq!(out, decode_error, "{fault}");
    }
    // In the middle, the alert is encrypted.
    let mut client = client(&client_config(Offer::default()));
    let handshake = answer_hello(&mut client);
    let mut out = Vec::new();
    handshake.feed(b"</stream:stream>", &mut out).unwrap_err();
    assert_eq!(give(&mut client, &out), Err(rustls::Error::AlertReceived(AlertDescription::DecodeError)));
}

#[test]
fn a_client_that_gives_up_is_not_answered() {
    let mut client = client(&client_config(Offer::default()));
    let handshake = answer_hello(&mut client);
    client.send_close_notify();
    let alert = [21, 3, 3, 0, 2, 2, 42];
    let mut out = Vec::new();
    let fault = handshake.feed(&alert, &mut out).unwrap_err();
    assert!(matches!(fault, Fault::Alerted(AlertDescription::BadCertificate)));
    assert!(out.is_empty());
}

#[test]
fn an_endless_one_is_refused() {
    // A ClientHello that says it is 64 KB long, a little at a time.
    let mut record = vec![22, 3, 1, 1, 0, 1, 0, 255, 255];
    record.resize(5 + 256, 0);
    let mut handshake = Handshake::new(settings());
    for _ in 0..1000 {
        let mut out = Vec::new();
        match handshake.feed(&record, &mut out) {
            Ok(Progress::Pending { handshake: going, .. }) => handshake = going,
            Ok(done) => panic!("{done:?}"),
            Err(fault) => {
                assert!(matches!(fault, Fault::Violation(Violation::HandshakeOverflow)), "{fault}");
                assert_eq!(out, [21, 3, 3, 0, 2, 2, 10]);
                return;
            }
        }
        record = [&[22, 3, 1, 1, 0][..], &[0; 256]].concat();
    }
    panic!("it never ended");
}

#[test]
fn any_corrupted_byte_of_the_last_flight_is_noticed() {
    let config = client_config(Offer::default());
    let len = {
        let mut client = client(&config);
        answer_hello(&mut client);
        take(&mut client).len()
    };
    for at in 0..len {
        let mut client = client(&config);
        let handshake = answer_hello(&mut client);
        let mut wire = take(&mut client);
        wire[at] ^= 4;
        let mut out = Vec::new();
        match handshake.feed(&wire, &mut out) {
            // A length that has grown: the rest never comes.
            Ok(Progress::Pending { .. }) => assert!([3, 9, 10].contains(&at), "byte {at}"),
            // The version of a record is ignored (RFC 8446 §5.1): that of the compatibility CCS, and the next.
            Ok(Progress::Done { .. }) => assert!([2, 8].contains(&at), "byte {at}"),
            Err(_) => {
                let told = give(&mut client, &out);
                assert!(matches!(told, Err(rustls::Error::AlertReceived(_))), "byte {at}: {told:?}");
            }
        }
    }
}

#[test]
fn corrupted_hellos_harm_nobody() {
    let config = client_config(Offer::default());
    let hello = take(&mut client(&config));
    for at in 0..hello.len() {
        for flip in [1, 0x80, 0xff] {
            let mut wire = hello.clone();
            wire[at] ^= flip;
            let mut out = Vec::new();
            match Handshake::new(settings()).feed(&wire, &mut out) {
                Ok(Progress::Done { .. }) => panic!("byte {at}: done without the client"),
                Ok(Progress::Pending { .. }) => {}
                Err(_) => assert!(!out.is_empty(), "byte {at}: no alert"),
            }
            let mut out = Vec::new();
            let cut = Handshake::new(settings()).feed(&hello[..at], &mut out);
            assert!(matches!(cut, Ok(Progress::Pending { consumed: 0, .. })) && out.is_empty());
        }
    }
}

#[test]
fn random_records_harm_nobody() {
    let config = client_config(Offer::default());
    let mut state = 1_u64;
    let mut dice = |sides: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % sides
    };
    for round in 0..4000 {
        let mut handshake = match round % 10 {
            0 => answer_hello(&mut client(&config)),
            _ => Handshake::new(settings()),
        };
        for _ in 0..4 {
            let len = dice(60);
            let mut wire = vec![20 + dice(4) as u8, 3, dice(4) as u8, 0, len as u8];
            wire.extend((0..len).map(|_| [0, 1, 2, 20, 22, dice(256) as u8][dice(6) as usize]));
            match handshake.feed(&wire, &mut Vec::new()) {
                Ok(Progress::Pending { handshake: going, .. }) => handshake = going,
                Ok(Progress::Done { .. }) => panic!("done by random bytes"),
                Err(_) => break,
            }
        }
    }
}

#[test]
fn tls_1_2_has_no_exporter_and_works() {
    let config = client_config(Offer { versions: Some(TLS12), ..Offer::default() });
    for chunk in [1, 2, 50, usize::MAX] {
        let mut pair = shake_hands(settings(), &config, chunk).unwrap();
        assert_eq!(pair.secured.version, Version::Tls12);
        assert!(pair.secured.exporter.is_none());
        assert_eq!(pair.up(&data(50_000)), data(50_000));
        assert_eq!(pair.down(&data(50_000)), data(50_000));
    }
}

#[test]
fn handshakes_and_links_are_small_to_hold() {
    assert_eq!(size_of::<Handshake>(), 16);
    assert_eq!(size_of::<Link>(), 16);
    let config: Arc<ClientConfig> = client_config(Offer::default());
    let Pair { link, .. } = pair(&config);
    drop(link);
}
