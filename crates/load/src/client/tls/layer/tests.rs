//! Against rustls' buffered server, in memory.

use std::io::{Read, Write};

use rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, SupportedCipherSuite, SupportedProtocolVersion};

use super::*;
use crate::client::tls::{Trust, config};

/// A layer and a server of rustls' buffered kind, joined in memory.
struct Pair {
    client: TlsLayer,
    server: ServerConnection,
    to_server: Vec<u8>,
    /// What the server has read.
    received: Vec<u8>,
}

fn server(
    version: &'static SupportedProtocolVersion,
    suites: &[SupportedCipherSuite],
) -> (Arc<ServerConfig>, Trust) {
    let certified = rcgen::generate_simple_self_signed(vec!["example.org".to_owned()]).expect("valid");
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.cipher_suites = suites.to_vec();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).expect("PKCS #8");
    let server = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[version])
        .expect("the suites are of this version")
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .expect("the key is the certificate's");
    (Arc::new(server), Trust::Certificates(vec![certified.cert.der().clone()]))
}

fn join(server: &Arc<ServerConfig>, client: &Arc<ClientConfig>) -> Pair {
    let mut to_server = Vec::new();
    let name = ServerName::try_from("example.org").expect("a name");
    let client = TlsLayer::new(client, name, &mut to_server).expect("a client");
    let server = ServerConnection::new(Arc::clone(server)).expect("a server");
    Pair { client, server, to_server, received: Vec::new() }
}

fn pair(version: &'static SupportedProtocolVersion, suites: &[SupportedCipherSuite]) -> Pair {
    let (server, trust) = server(version, suites);
    join(&server, &config(&trust, None, false).expect("valid"))
}

impl Pair {
    /// Carries bytes, some at a time, until nobody has anything to say; gives what the client reads.
    fn settle(&mut self, piece: usize) -> (Vec<u8>, PeerState) {
        let (mut text, mut state) = (Vec::new(), PeerState::Open);
        loop {
            let mut to_client = Vec::new();
            let mut incoming = self.to_server.as_slice();
            while !incoming.is_empty() && self.server.read_tls(&mut incoming).expect("memory") > 0 {
                self.server.process_new_packets().expect("the client is correct");
                // It ends with an error that says that there is no more.
                let _ = self.server.reader().read_to_end(&mut self.received);
            }
            self.to_server.clear();
            while self.server.wants_write() {
                self.server.write_tls(&mut to_client).expect("memory");
            }
            if to_client.is_empty() {
                return (text, state);
            }
            for bytes in to_client.chunks(piece) {
                state = self
                    .client
                    .receive(bytes, &mut text, &mut self.to_server)
                    .expect("the server is correct");
            }
        }
    }
}

#[test]
fn text_goes_both_ways_and_the_exporter_is_rustls_own() {
    use rustls::crypto::aws_lc_rs::cipher_suite;
    for suite in [cipher_suite::TLS13_AES_128_GCM_SHA256, cipher_suite::TLS13_AES_256_GCM_SHA384] {
        for piece in [1, 100, usize::MAX] {
            let mut pair = pair(&rustls::version::TLS13, &[suite]);
            pair.settle(piece);
            assert!(!pair.client.is_handshaking());
            let expected = pair
                .server
                .export_keying_material([0; 32], b"EXPORTER-Channel-Binding", Some(&[]))
                .expect("the handshake is complete");
            assert_eq!(pair.client.take_exporter(), Some(expected));
            assert_eq!(pair.client.take_exporter(), None);

            // More than a record holds.
            let long = vec![b'x'; 20_000];
            pair.client.send(&long, &mut pair.to_server).expect("connected");
            pair.server.writer().write_all(&long).expect("connected");
            assert_eq!(pair.settle(piece), (long.clone(), PeerState::Open));
            assert_eq!(pair.received, long);
            assert!(pair.client.rest.is_empty());

            pair.server.send_close_notify();
            assert_eq!(pair.settle(piece).1, PeerState::Closed);
            pair.client.close(&mut pair.to_server);
            assert!(!pair.to_server.is_empty());
        }
    }
}

#[test]
fn tls_1_2_works_without_exporter() {
    use rustls::crypto::aws_lc_rs::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256;
    let mut pair = pair(&rustls::version::TLS12, &[TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]);
    pair.settle(usize::MAX);
    assert_eq!(pair.client.take_exporter(), None);
    assert_eq!(pair.client.security().map(|security| security.version).as_deref(), Some("TLSv1_2"));
    pair.client.send(b"hello", &mut pair.to_server).expect("connected");
    pair.server.writer().write_all(b"hello too").expect("connected");
    assert_eq!(pair.settle(7).0, b"hello too");
}

#[test]
fn a_ticket_shortens_the_next_handshake() {
    let (server, trust) = server(&rustls::version::TLS13, ALL_CIPHER_SUITES);
    for resumption in [true, false] {
        let config = config(&trust, None, resumption).expect("valid");
        for resumed in [false, resumption] {
            let mut pair = join(&server, &config);
            pair.settle(usize::MAX);
            assert_eq!(pair.client.security().map(|security| security.resumed), Some(resumed));
            assert!(pair.client.take_exporter().is_some());
        }
    }
}

#[test]
fn there_is_a_ticket_for_each_of_many_who_return_at_once() {
    let (server, trust) = server(&rustls::version::TLS13, ALL_CIPHER_SUITES);
    let config = config(&trust, None, true).expect("valid");
    for resumed in [false, true] {
        // All of them say hello before the first has an answer.
        let mut pairs: Vec<_> = (0..20).map(|_| join(&server, &config)).collect();
        for pair in &mut pairs {
            pair.settle(usize::MAX);
            assert_eq!(pair.client.security().map(|security| security.resumed), Some(resumed));
        }
    }
}

#[test]
fn a_stranger_is_told_by_an_alert() {
    let (server, _) = server(&rustls::version::TLS13, ALL_CIPHER_SUITES);
    let other = rcgen::generate_simple_self_signed(vec!["example.org".to_owned()]).expect("valid");
    let trust = Trust::Certificates(vec![other.cert.der().clone()]);
    let mut pair = join(&server, &config(&trust, None, false).expect("valid"));
    pair.server.read_tls(&mut pair.to_server.as_slice()).expect("memory");
    pair.server.process_new_packets().expect("the client is correct so far");
    let mut to_client = Vec::new();
    while pair.server.wants_write() {
        pair.server.write_tls(&mut to_client).expect("memory");
    }
    let mut answer = Vec::new();
    let result = pair.client.receive(&to_client, &mut Vec::new(), &mut answer);
    assert!(matches!(result, Err(Error::InvalidCertificate(_))));
    assert!(!answer.is_empty());
    assert!(pair.client.send(b"secret", &mut answer).is_err());
}

#[test]
fn garbage_is_an_error_and_no_panic() {
    let mut pair = pair(&rustls::version::TLS13, ALL_CIPHER_SUITES);
    let garbage = b"HTTP/1.1 400 Bad Request\r\n\r\n";
    let mut text = Vec::new();
    let result = pair.client.receive(garbage, &mut text, &mut Vec::new());
    assert!(result.is_err());
    assert!(text.is_empty());
}
