//! TLS for the client: what it trusts, and a TLS connection as a layer bytes go through.

use std::io::{BufRead, Write};
use std::sync::Arc;

use super::event::Security;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, ProtocolVersion, SignatureScheme};

/// Whom a client believes to be the server.
#[derive(Clone, Debug, Default)]
pub enum Trust {
    /// Anyone: no certificate or signature is checked. For load tests only.
    #[default]
    Anyone,
    /// A server that shows one of these certificates, or one issued by one of them for its name.
    Certificates(Vec<CertificateDer<'static>>),
}

/// TLS cannot be set up as asked.
#[derive(Debug, thiserror::Error)]
pub enum TlsSetupError {
    /// The PEM text holds no certificate, or one that cannot be decoded.
    #[error("no usable certificate in the PEM text given")]
    Pem,
    /// A trusted certificate or a parameter is not acceptable to the TLS library.
    #[error("TLS settings: {0}")]
    Settings(#[from] rustls::Error),
    /// The verifier cannot be built from the certificates given.
    #[error("trusted certificates: {0}")]
    Verifier(#[from] rustls::client::VerifierBuilderError),
}

impl Trust {
    /// Trust in the certificates of a PEM text: an authority, or the server's own.
    pub fn from_pem(pem: &[u8]) -> Result<Self, TlsSetupError> {
        let certificates: Vec<_> =
            CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|_| TlsSetupError::Pem)?;
        if certificates.is_empty() { Err(TlsSetupError::Pem) } else { Ok(Self::Certificates(certificates)) }
    }
}

/// The TLS configuration all clients of a profile share.
///
/// With `resumption`, tickets are kept for the whole configuration: any client may return with any ticket of the
/// same server name.
pub fn config(
    trust: &Trust,
    alpn: Option<&[u8]>,
    resumption: bool,
) -> Result<Arc<ClientConfig>, TlsSetupError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = verifier(trust, &provider)?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = alpn.map(<[u8]>::to_vec).into_iter().collect();
    config.resumption = if resumption { Resumption::default() } else { Resumption::disabled() };
    Ok(Arc::new(config))
}

fn verifier(
    trust: &Trust,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsSetupError> {
    let Trust::Certificates(certificates) = trust else {
        return Ok(Arc::new(Unverified { provider: Arc::clone(provider) }));
    };
    let mut roots = rustls::RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate.clone())?;
    }
    let authority =
        rustls::client::WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
            .build()?;
    Ok(Arc::new(Pinned { certificates: certificates.clone(), authority }))
}

/// A TLS connection as a layer: records in, plain text out, and the reverse.
pub(crate) struct TlsLayer {
    connection: ClientConnection,
}

/// The peer ended its side of the TLS connection in good order, or not yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerState {
    /// More may come.
    Open,
    /// `close_notify` was received: nothing more will come.
    Closed,
}

impl TlsLayer {
    pub(crate) fn new(config: &Arc<ClientConfig>, name: ServerName<'static>) -> Result<Self, rustls::Error> {
        let mut connection = ClientConnection::new(Arc::clone(config), name)?;
        // What is written before the handshake ends is ours, small and bounded by the login.
        connection.set_buffer_limit(None);
        Ok(Self { connection })
    }

    /// Takes records off the network, appends what they protect to `plain` and what must be answered to `output`.
    pub(crate) fn receive(
        &mut self,
        mut records: &[u8],
        plain: &mut Vec<u8>,
        output: &mut Vec<u8>,
    ) -> Result<PeerState, rustls::Error> {
        while !records.is_empty() {
            let taken = self.connection.read_tls(&mut records).map_err(|_| rustls::Error::DecryptError)?;
            let state = self.connection.process_new_packets();
            self.flush(output);
            let state = state?;
            self.drain(plain);
            if state.peer_has_closed() {
                return Ok(PeerState::Closed);
            }
            if taken == 0 {
                break;
            }
        }
        Ok(PeerState::Open)
    }

    /// Protects `plain` and appends the records to `output`.
    pub(crate) fn send(&mut self, plain: &[u8], output: &mut Vec<u8>) {
        self.connection.writer().write_all(plain).expect("the writer's buffer is unlimited");
        self.flush(output);
    }

    /// Announces that nothing more will be sent.
    pub(crate) fn close(&mut self, output: &mut Vec<u8>) {
        self.connection.send_close_notify();
        self.flush(output);
    }

    /// Appends what the connection wants on the network to `output`.
    pub(crate) fn flush(&mut self, output: &mut Vec<u8>) {
        while self.connection.wants_write() {
            self.connection.write_tls(output).expect("writing to memory does not fail");
        }
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// What the handshake agreed on; `None` before it has.
    pub(crate) fn security(&self) -> Option<Security> {
        Some(Security {
            version: format!("{:?}", self.connection.protocol_version()?),
            alpn: self.connection.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned()),
            resumed: self.connection.handshake_kind() == Some(rustls::HandshakeKind::Resumed),
        })
    }

    /// Keying material for the channel binding `tls-exporter`; TLS 1.3 only.
    pub(crate) fn exporter(&self) -> Option<[u8; 32]> {
        // RFC 9266 §4.2: with TLS 1.2 it is safe only under conditions not worth checking for a tester.
        if self.connection.protocol_version() != Some(ProtocolVersion::TLSv1_3) {
            return None;
        }
        self.connection.export_keying_material([0; 32], b"EXPORTER-Channel-Binding", Some(&[])).ok()
    }

    fn drain(&mut self, plain: &mut Vec<u8>) {
        let mut reader = self.connection.reader();
        // `WouldBlock` says that nothing is left, `UnexpectedEof` that nothing will come.
        while let Ok(chunk) = reader.fill_buf() {
            if chunk.is_empty() {
                break;
            }
            plain.extend_from_slice(chunk);
            let length = chunk.len();
            reader.consume(length);
        }
    }
}

/// Believes everything, and does not even spend time on the signature.
#[derive(Debug)]
struct Unverified {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Believes a server that shows exactly a trusted certificate; asks the authority about any other.
#[derive(Debug)]
struct Pinned {
    certificates: Vec<CertificateDer<'static>>,
    authority: Arc<rustls::client::WebPkiServerVerifier>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        // RFC 6125 §6.6.2: a pinned certificate is the server's whatever name it carries. It also spares users of
        // self-signed certificates the rule that an authority's certificate must not identify a server.
        if self.certificates.contains(end_entity) {
            return Ok(ServerCertVerified::assertion());
        }
        self.authority.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authority.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authority.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authority.supported_verify_schemes()
    }
}
