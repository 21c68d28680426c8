//! Why TLS settings could not be made.

use std::path::{Path, PathBuf};

/// Why [`Settings`](super::Settings) could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A file could not be read or written.
    #[error("{path}: {source}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// There is no usable certificate in the PEM.
    #[error("no usable certificate in PEM: {0}")]
    Certificate(rustls::pki_types::pem::Error),
    /// There is no usable private key in the PEM.
    #[error("no usable private key in PEM: {0}")]
    Key(rustls::pki_types::pem::Error),
    /// The certificate does not parse.
    #[error("the certificate does not parse: {0}")]
    X509(String),
    /// Certificate and key do not go together, or cannot be used for TLS.
    #[error("certificate and key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
    /// One of several certificates cannot be used.
    #[error("{path}: {error}", path = .path.display())]
    Of {
        /// Its file.
        path: PathBuf,
        /// Why.
        error: Box<SettingsError>,
    },
    /// No certificate could be made for the names.
    #[error("no certificate could be made: {0}")]
    Generate(#[from] rcgen::Error),
    /// A certificate without a name was asked for.
    #[error("a certificate needs a name")]
    NoNames,
}

/// Reads a file of the settings.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, SettingsError> {
    std::fs::read(path).map_err(|source| SettingsError::File { path: path.to_owned(), source })
}
