//! TLS of connections to PostgreSQL: as `sslmode` says, by the provider that the whole server uses.
//!
//! Files are read for each connection, so that what was replaced is used from the next one on.

use crate::tls_fault;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

const SETTINGS: tls_fault::Settings = tls_fault::Settings {
    address: "store.url",
    authorities: "sslrootcert in store.url",
    certificate: "sslcert and sslkey in store.url",
};

/// How connections are secured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// What is demanded of the server.
    pub mode: Mode,
    /// Authorities, PEM; none for those of the system.
    pub roots: Option<PathBuf>,
    /// The certificate that the server is shown, PEM.
    pub certificate: Option<PathBuf>,
    /// Its private key, PEM.
    pub key: Option<PathBuf>,
}

/// What is demanded of the server. There is nothing that falls back to a connection without TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// No TLS.
    Disable,
    /// TLS with anybody, as libpq has it: with `sslrootcert` it is [`Mode::VerifyCa`].
    Require,
    /// A certificate of one of the authorities, for whatever name.
    VerifyCa,
    /// A certificate of one of the authorities for the name of the host.
    VerifyFull,
}

impl Mode {
    /// The mode of this name.
    pub(super) fn named(name: &str) -> Option<Mode> {
        Some(match name {
            "disable" => Mode::Disable,
            "require" => Mode::Require,
            "verify-ca" => Mode::VerifyCa,
            "verify-full" => Mode::VerifyFull,
            _ => return None,
        })
    }
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unready {
    /// A file holds no certificate or key, or cannot be read.
    #[error("{}: {why}", .file.display())]
    File { file: PathBuf, why: rustls::pki_types::pem::Error },
    /// There is nobody to trust.
    #[error("no authority is trusted: name a file of certificates by sslrootcert")]
    NoRoots,
    /// The TLS library refuses what the files hold.
    #[error("{0}")]
    Refused(#[from] rustls::Error),
    /// The same of the authorities.
    #[error("{0}")]
    Roots(#[from] rustls::client::VerifierBuilderError),
}

impl Tls {
    /// What mends a connection that was not made, where TLS is why; by the text of the error.
    pub(super) fn remedy(&self, error: &str) -> Option<String> {
        (self.mode != Mode::Disable)
            .then(|| tls_fault::remedy(error, &SETTINGS, self.certificate.is_some()))
            .flatten()
    }

    /// What makes TLS connections.
    pub(super) fn connector(&self) -> Result<Connector, Unready> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let checks = match (self.mode, &self.roots) {
            (Mode::Disable, _) | (Mode::Require, None) => Checks::Nothing,
            (Mode::Require | Mode::VerifyCa, _) => Checks::Authority,
            (Mode::VerifyFull, _) => Checks::AuthorityAndName,
        };
        let authority = match checks {
            Checks::Nothing => None,
            _ => Some(
                WebPkiServerVerifier::builder_with_provider(Arc::new(self.trusted()?), provider.clone())
                    .build()?,
            ),
        };
        let verifier = Arc::new(Verifier { provider: provider.clone(), authority, checks });
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                let private = PrivateKeyDer::from_pem_file(key).map_err(in_file(key))?;
                builder.with_client_auth_cert(certificates(certificate)?, private)?
            }
            _ => builder.with_no_client_auth(),
        };
        // What a server that is asked for direct TLS demands (PostgreSQL 17).
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Connector(TlsConnector::from(Arc::new(config))))
    }

    fn trusted(&self) -> Result<RootCertStore, Unready> {
        let mut roots = RootCertStore::empty();
        match &self.roots {
            Some(file) => {
                for certificate in certificates(file)? {
                    roots.add(certificate)?;
                }
            }
            // An authority of the system that the TLS library cannot use is of no use here.
            None => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        if roots.is_empty() { Err(Unready::NoRoots) } else { Ok(roots) }
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Unready> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    let found = found.map_err(in_file(file))?;
    if found.is_empty() {
        return Err(in_file(file)(rustls::pki_types::pem::Error::NoItemsFound));
    }
    Ok(found)
}

fn in_file(file: &Path) -> impl FnOnce(rustls::pki_types::pem::Error) -> Unready {
    move |why| Unready::File { file: file.to_owned(), why }
}

/// What of a server's certificate is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Checks {
    Nothing,
    Authority,
    AuthorityAndName,
}

#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    authority: Option<Arc<WebPkiServerVerifier>>,
    checks: Checks,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(authority) = &self.authority else { return Ok(ServerCertVerified::assertion()) };
        match authority.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            // The name is what is looked at last, when the authority was found right.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.checks == Checks::Authority => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Makes TLS connections for the driver.
#[derive(Clone)]
pub(super) struct Connector(TlsConnector);

/// One that is to be made to a host.
pub(super) struct ToHost {
    connector: TlsConnector,
    host: ServerName<'static>,
}

/// A TLS connection.
pub(super) struct Stream<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Connector {
    type Stream = Stream<S>;
    type TlsConnect = ToHost;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<ToHost, Self::Error> {
        // The driver makes one for Unix sockets too, whose name is empty, and does not use it.
        let host = if host.is_empty() { "localhost" } else { host };
        Ok(ToHost { connector: self.0.clone(), host: ServerName::try_from(host)?.to_owned() })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for ToHost {
    type Stream = Stream<S>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = std::io::Result<Stream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move { self.connector.connect(self.host, stream).await.map(Stream) })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Stream<S> {
    /// None: `verify-full` protects from the same.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
