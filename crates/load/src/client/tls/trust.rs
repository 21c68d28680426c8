//! Whom a client believes to be the server, and the TLS configuration made of that.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};

use super::exporter::ExporterLog;
use super::tickets::Tickets;

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

    /// Trust in the authorities that this system trusts, `SSL_CERT_FILE` and `SSL_CERT_DIR` included. None when the system
    /// has none.
    pub fn system() -> Option<Self> {
        let mut roots = rustls::RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs().certs;
        // An authority that the TLS library cannot use is of no use here.
        let usable = |certificate: &CertificateDer<'static>| roots.add(certificate.clone()).is_ok();
        let usable: Vec<_> = found.into_iter().filter(usable).collect();
        (!usable.is_empty()).then_some(Self::Certificates(usable))
    }

    /// Trust in these and those.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Certificates(some), Self::Certificates(others)) => {
                Self::Certificates(some.into_iter().chain(others).collect())
            }
            _ => Self::Anyone,
        }
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
    config.resumption =
        if resumption { Resumption::store(Arc::new(Tickets::new())) } else { Resumption::disabled() };
    config.key_log = Arc::new(ExporterLog);
    Ok(Arc::new(config))
}

/// The TLS configuration of clients of QUIC (RFC 9001).
pub fn quic_config(trust: &Trust, alpn: &[u8]) -> Result<ClientConfig, TlsSetupError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = verifier(trust, &provider)?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(config)
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
