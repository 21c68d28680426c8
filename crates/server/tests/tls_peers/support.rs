//! A rustls client, and the two ends shaking hands over a pair of buffers.

use std::io::{Read, Write};
use std::sync::{Arc, OnceLock};

use carillon_server::tls::{Circumstances, Fault, Handshake, Link, Progress, Secured, Settings};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedCipherSuite, SupportedProtocolVersion};

pub(crate) const HOST: &str = "chat.example";
pub(crate) const TLS12: &[&SupportedProtocolVersion] = &[&rustls::version::TLS12];

/// The server of all tests, its certificate and its key as PEM.
pub(crate) fn server() -> &'static (Settings, Vec<u8>, Vec<u8>) {
    static SERVER: OnceLock<(Settings, Vec<u8>, Vec<u8>)> = OnceLock::new();
    SERVER.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings::self_signed_in(dir.path(), &[HOST.to_owned()]).unwrap();
        let read = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
        (settings, read("self-signed.crt"), read("self-signed.key"))
    })
}

pub(crate) fn settings() -> &'static Settings {
    &server().0
}

/// What a client of a test offers.
#[derive(Default)]
pub(crate) struct Offer {
    pub(crate) suites: Option<Vec<SupportedCipherSuite>>,
    pub(crate) groups: Option<Vec<&'static dyn SupportedKxGroup>>,
    pub(crate) versions: Option<&'static [&'static SupportedProtocolVersion]>,
    pub(crate) alpn: Vec<Vec<u8>>,
}

pub(crate) fn client_config(offer: Offer) -> Arc<ClientConfig> {
    let mut provider: CryptoProvider = aws_lc_rs::default_provider();
    if let Some(suites) = offer.suites {
        provider.cipher_suites = suites;
    }
    if let Some(groups) = offer.groups {
        provider.kx_groups = groups;
    }
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&server().1).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(offer.versions.unwrap_or(rustls::ALL_VERSIONS))
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = offer.alpn;
    Arc::new(config)
}

pub(crate) fn client(config: &Arc<ClientConfig>) -> ClientConnection {
    let mut client = ClientConnection::new(Arc::clone(config), ServerName::try_from(HOST).unwrap()).unwrap();
    client.set_buffer_limit(None);
    client
}

/// A connection that is set up, both ends of it.
pub(crate) struct Pair {
    pub(crate) client: ClientConnection,
    pub(crate) link: Link,
    pub(crate) secured: Box<Secured>,
}

/// Shakes hands; the server gets its input `chunk` bytes at a time.
pub(crate) fn shake_hands(
    settings: &Settings,
    config: &Arc<ClientConfig>,
    chunk: usize,
) -> Result<Pair, (Fault, Vec<u8>)> {
    let mut client = client(config);
    let mut handshake = Handshake::new(settings);
    let mut pending = Vec::new();
    loop {
        let from_client = take(&mut client);
        assert!(!from_client.is_empty(), "the handshake is stuck");
        let mut chunks = from_client.chunks(chunk);
        while let Some(chunk) = chunks.next() {
            let mut out = Vec::new();
            pending.extend_from_slice(chunk);
            let progress = handshake.feed(&pending, &mut out).map_err(|fault| (fault, out.clone()))?;
            give(&mut client, &out).unwrap();
            match progress {
                Progress::Pending { handshake: going, consumed } => {
                    handshake = going;
                    pending.drain(..consumed);
                }
                Progress::Done { link, secured, consumed } => {
                    assert_eq!(consumed, pending.len());
                    assert!(chunks.next().is_none());
                    assert!(!client.is_handshaking());
                    return Ok(Pair { client, link, secured });
                }
            }
        }
    }
}

pub(crate) fn pair(config: &Arc<ClientConfig>) -> Pair {
    shake_hands(settings(), config, usize::MAX).unwrap()
}

impl Pair {
    /// The client writes, the server reads.
    pub(crate) fn up(&mut self, data: &[u8]) -> Vec<u8> {
        self.client.writer().write_all(data).unwrap();
        let mut wire = take(&mut self.client);
        let (mut plain, mut reply) = (Vec::new(), Vec::new());
        let opened = self.link.open(&mut wire, &mut plain, &mut reply, Circumstances::default()).unwrap();
        assert_eq!(opened.consumed, wire.len());
        give(&mut self.client, &reply).unwrap();
        plain
    }

    /// The server writes, the client reads.
    pub(crate) fn down(&mut self, data: &[u8]) -> Vec<u8> {
        let mut wire = Vec::new();
        self.link.seal(data, &mut wire).unwrap();
        give(&mut self.client, &wire).unwrap()
    }
}

/// What the client wants to send.
pub(crate) fn take(client: &mut ClientConnection) -> Vec<u8> {
    let mut wire = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut wire).unwrap();
    }
    wire
}

/// Gives the client what the server sent; returns the data that was in it.
pub(crate) fn give(client: &mut ClientConnection, mut wire: &[u8]) -> Result<Vec<u8>, rustls::Error> {
    let mut data = Vec::new();
    while !wire.is_empty() {
        client.read_tls(&mut wire).unwrap();
        let state = client.process_new_packets()?;
        let start = data.len();
        data.resize(start + state.plaintext_bytes_to_read(), 0);
        client.reader().read_exact(&mut data[start..]).unwrap();
        if state.peer_has_closed() {
            break;
        }
    }
    Ok(data)
}

/// Bytes that differ from place to place.
pub(crate) fn data(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}
