//! What an idle connection costs, by count: bytes kept, and allocations for each call. These are the guards of budget P1.

#[path = "../src/testing/counting.rs"]
mod counting;

use std::io::Write;
use std::sync::Arc;

use counting::{BYTES, CALLS};

use carillon_server::tls::{Circumstances, Handshake, Keys, Link, Progress, Settings};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

const HOST: &str = "chat.example";
const PUSH: [u8; 421] = [b'x'; 421];

fn configs() -> (Settings, Arc<ClientConfig>) {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings::self_signed_in(dir.path(), &[HOST.to_owned()]).unwrap();
    let cert = CertificateDer::from_pem_file(dir.path().join("self-signed.crt")).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(cert).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (settings, Arc::new(config))
}

/// Connects, and counts the bytes the server's end keeps.
fn connect(settings: &Settings, config: &Arc<ClientConfig>) -> (ClientConnection, Link, isize) {
    let mut client = ClientConnection::new(Arc::clone(config), ServerName::try_from(HOST).unwrap()).unwrap();
    let mut kept = -BYTES.get();
    let mut handshake = Handshake::new(settings);
    kept += BYTES.get();
    loop {
        let mut wire = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut wire).unwrap();
        }
        kept -= BYTES.get();
        let mut out = Vec::new();
        let progress = handshake.feed(&wire, &mut out).unwrap();
        kept += BYTES.get() - out.capacity() as isize;
        client.read_tls(&mut &out[..]).unwrap();
        client.process_new_packets().unwrap();
        match progress {
            Progress::Pending { handshake: going, .. } => handshake = going,
            Progress::Done { link, secured, .. } => {
                kept -= BYTES.get();
                drop(secured);
                kept += BYTES.get();
                return (client, link, kept);
            }
        }
    }
}

#[test]
fn an_idle_connection_keeps_its_keys_only() {
    assert!(size_of::<Keys>() <= 224, "{} bytes", size_of::<Keys>());
    assert_eq!(size_of::<Link>(), 16);
    let (settings, config) = configs();
    // The first one also pays for what is made once a thread or once a configuration.
    connect(&settings, &config);
    for _ in 0..3 {
        let (_client, link, kept) = connect(&settings, &config);
        assert!(matches!(link, Link::Extracted(_)));
        assert_eq!(kept, size_of::<Keys>() as isize);
    }
}

#[test]
fn warm_buffers_make_records_without_an_allocation() {
    let (settings, config) = configs();
    let (mut client, mut link, _) = connect(&settings, &config);
    let (mut out, mut plain) = (Vec::with_capacity(1000), Vec::with_capacity(1000));
    let before = (CALLS.get(), BYTES.get());
    for _ in 0..100 {
        out.clear();
        link.seal(&PUSH, &mut out).unwrap();
    }
    assert_eq!((CALLS.get(), BYTES.get()), before, "sealing");

    for _ in 0..100 {
        client.writer().write_all(&PUSH).unwrap();
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        plain.clear();
        let before = (CALLS.get(), BYTES.get());
        link.open(&mut wire, &mut plain, &mut Vec::new(), Circumstances::default()).unwrap();
        assert_eq!((CALLS.get(), BYTES.get()), before, "opening");
        assert_eq!(plain, PUSH);
    }
}
