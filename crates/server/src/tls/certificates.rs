//! The certificates of a listener: each client is shown the one for the host that it asks for.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::certificate::{self, Leaf};
use super::settings_error::SettingsError;

/// A certificate with its chain and key.
#[derive(Debug)]
pub(super) struct Certificate {
    key: Arc<CertifiedKey>,
    pub(super) leaf: Leaf,
}

impl Certificate {
    /// Reads a chain, the server's own certificate first, and its private key.
    pub(super) fn from_pem(chain: &[u8], key: &[u8]) -> Result<Certificate, SettingsError> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<_, _>>()
            .map_err(SettingsError::Certificate)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(SettingsError::Key)?;
        let Some(leaf) = chain.first() else {
            return Err(SettingsError::Certificate(rustls::pki_types::pem::Error::NoItemsFound));
        };
        let leaf = certificate::read(leaf)?;
        let key = Arc::new(CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider())?);
        Ok(Certificate { key, leaf })
    }
}

/// All of them.
#[derive(Debug)]
pub(super) struct Certificates {
    /// Clients that ask for no host, or for one that none is for, are shown the first.
    first: Arc<Certificate>,
    others: Vec<Arc<Certificate>>,
    /// By the names that they are for, wildcards (`*.example.org`) among them.
    by_name: HashMap<String, Arc<Certificate>>,
}

impl Certificates {
    pub(super) fn new(first: Arc<Certificate>, others: Vec<Arc<Certificate>>) -> Certificates {
        let mut by_name: HashMap<String, Arc<Certificate>> = HashMap::new();
        for certificate in std::iter::once(&first).chain(&others) {
            for name in &certificate.leaf.names {
                let known = by_name.entry(name.clone()).or_insert_with(|| Arc::clone(certificate));
                if known.leaf.not_after < certificate.leaf.not_after {
                    *known = Arc::clone(certificate);
                }
            }
        }
        Certificates { first, others, by_name }
    }

    /// The first of them.
    pub(super) fn first(&self) -> &Arc<Certificate> {
        &self.first
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Certificate>> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The one for this host.
    pub(super) fn of(&self, host: Option<&str>) -> &Arc<Certificate> {
        let found = host.filter(|_| !self.others.is_empty()).and_then(|host| {
            let host = host.to_ascii_lowercase();
            let wildcard = || self.by_name.get(&format!("*.{}", host.split_once('.')?.1));
            self.by_name.get(&host).or_else(wildcard)
        });
        found.unwrap_or(&self.first)
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.of(hello.server_name()).key))
    }
}

/// Certificates and their keys in a folder that has a folder for each, as certbot's `live`: `NAME/fullchain.pem` and `NAME/privkey.pem`.
///
/// # Errors
/// If the folder cannot be read.
pub fn certificate_files(folder: &Path) -> Result<Vec<(PathBuf, PathBuf)>, SettingsError> {
    let failed = |source| SettingsError::File { path: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        // Not the files beside them, such as certbot's README.
        if path.is_dir() {
            files.push((path.join("fullchain.pem"), path.join("privkey.pem")));
        }
    }
    files.sort_unstable();
    Ok(files)
}
