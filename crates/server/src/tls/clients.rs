//! Clients that show certificates of their own (mTLS), and the names in them.

use super::certificate;
use super::settings_error::{SettingsError, read};
use aws_lc_rs::digest;
use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs as provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use std::path::Path;
use std::sync::Arc;

/// The authorities by which clients' certificates are known, and whether every client has to show one.
#[derive(Clone, Debug)]
pub struct ClientAuthority(Arc<dyn ClientCertVerifier>);

impl ClientAuthority {
    /// Reads the certificates of authorities (PEM).
    ///
    /// # Errors
    /// The file cannot be read, or has no certificate that can be used.
    pub fn load(path: &Path, required: bool) -> Result<ClientAuthority, SettingsError> {
        let of = |error| SettingsError::Of { path: path.to_owned(), error: Box::new(error) };
        ClientAuthority::from_pem(&read(path)?, required).map_err(of)
    }

    /// The same of the contents of a file.
    ///
    /// # Errors
    /// There is no certificate that can be used.
    pub fn from_pem(pem: &[u8], required: bool) -> Result<ClientAuthority, SettingsError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            roots.add(certificate.map_err(SettingsError::Certificate)?)?;
        }
        let provider = Arc::new(provider::default_provider());
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let builder = if required { builder } else { builder.allow_unauthenticated() };
        let verifier = builder.build().map_err(|error| SettingsError::X509(error.to_string()))?;
        Ok(ClientAuthority(verifier))
    }

    pub(super) fn verifier(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::clone(&self.0)
    }
}

/// The names of a client's certificate, each with its kind: `dns:`, `uri:`, `email:` and `ip:` of its subjectAltName, `cn:` of its subject, and
/// `sha256:`, the hash of it all.
pub fn client_names(der: &[u8]) -> Vec<String> {
    let hash = digest::digest(&digest::SHA256, der);
    let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let mut names = certificate::kinds_of_names(der);
    names.push(format!("sha256:{hash}"));
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    #[test]
    fn all_names_of_a_certificate_are_told_by_their_kinds() {
        let mut params = CertificateParams::new(["Shop.example.org".to_owned()]).expect("a name");
        params.distinguished_name.push(DnType::CommonName, "The Shop");
        params.subject_alt_names.push(SanType::URI("spiffe://example.org/shop".try_into().expect("ASCII")));
        params.subject_alt_names.push(SanType::Rfc822Name("shop@example.org".try_into().expect("ASCII")));
        params.subject_alt_names.push(SanType::IpAddress("2001:db8::1".parse().expect("an address")));
        let made = params.self_signed(&KeyPair::generate().expect("a key")).expect("a certificate");
        let names = client_names(made.der());
        let (hash, names) = names.split_last().expect("there is a hash");
        assert!(hash.starts_with("sha256:") && hash.len() == 7 + 64, "{hash}");
        let wanted = [
            "cn:The Shop",
            "dns:shop.example.org",
            "uri:spiffe://example.org/shop",
            "email:shop@example.org",
            "ip:2001:db8::1",
        ];
        assert_eq!(names, wanted);
        assert_eq!(client_names(b"no certificate").len(), 1);
    }

    #[test]
    fn a_file_without_authorities_is_refused() {
        assert!(ClientAuthority::from_pem(b"", true).is_err());
    }
}
