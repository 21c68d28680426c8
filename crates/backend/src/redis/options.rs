//! How claims in Redis are opened, and why they may not open.

use crate::secret::{Secret, SecretError};
use crate::tls_fault;
use redis::{
    Client, ErrorKind, IntoConnectionInfo, ProtocolVersion, RedisError, RedisResult, TlsCertificates,
};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

/// How claims in Redis are opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// `redis://USER@HOST:PORT/DATABASE`, `rediss://…` with TLS, or `unix:///PATH`. `valkey://` and `valkeys://` mean the same.
    pub url: Box<str>,
    /// The password, where it is not in the address.
    pub password: Option<Secret>,
    /// A file with the certificates that servers are known by; those of the system where there is none.
    pub authorities: Option<PathBuf>,
    /// Files with the certificate and the key of this node, where servers ask for one.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// What all keys of the cell begin with.
    pub prefix: Box<str>,
    /// How long a question waits for a server that is away. While it is away for longer, what is asked is answered at once.
    pub deadline: Duration,
    /// Bytes of questions that may wait.
    pub queue_bytes_max: usize,
}

impl Options {
    /// The defaults for a server: keys `carillon:…`, 2 seconds, 16 MiB.
    pub fn new(url: &str) -> Options {
        Options {
            url: url.into(),
            password: None,
            authorities: None,
            certificate: None,
            prefix: "carillon".into(),
            deadline: Duration::from_secs(2),
            queue_bytes_max: 16 << 20,
        }
    }

    /// What makes the next connection. Files are read for each, so that what was replaced is used from then on.
    pub(super) fn next_client(&self) -> RedisResult<Client> {
        let wrong =
            |e: OpenError| RedisError::from((ErrorKind::InvalidClientConfig, "no client", e.to_string()));
        self.client().map_err(wrong)
    }

    /// Why there is no connection, with the setting that mends it where TLS is why.
    pub(super) fn explained(&self, error: &dyn Display) -> String {
        if ["rediss://", "valkeys://"].iter().any(|scheme| self.url.starts_with(scheme)) {
            tls_fault::explained(error, &SETTINGS, self.certificate.is_some())
        } else {
            error.to_string()
        }
    }

    pub(super) fn client(&self) -> Result<Client, OpenError> {
        let address = |e: RedisError| OpenError::Address(e.to_string());
        let info = (&*self.url).into_connection_info().map_err(address)?;
        let mut settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP2);
        if let Some(password) = &self.password {
            settings = settings.set_password(password.read()?);
        }
        let info = info.set_redis_settings(settings);
        if self.authorities.is_none() && self.certificate.is_none() {
            return Client::open(info).map_err(address);
        }
        let client_tls = self.certificate.as_ref().map(|(certificate, key)| {
            Ok::<_, OpenError>(redis::ClientTlsConfig {
                client_cert: read(certificate)?,
                client_key: read(key)?,
            })
        });
        let root_cert = self.authorities.as_deref().map(read).transpose()?;
        let tls = TlsCertificates { client_tls: client_tls.transpose()?, root_cert };
        Client::build_with_tls(info, tls).map_err(address)
    }
}

const SETTINGS: tls_fault::Settings = tls_fault::Settings {
    address: "cell.redis",
    authorities: "cell.redis_ca_file",
    certificate: "cell.redis_certificate and cell.redis_key",
};

fn read(path: &Path) -> Result<Vec<u8>, OpenError> {
    fs::read(path).map_err(|error| OpenError::File { path: path.to_owned(), error })
}

/// Why claims did not open. A server that cannot be reached is no reason: it is tried again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The address or the certificates cannot be read.
    #[error(
        "the address of Redis is not of the form redis://HOST:PORT, rediss://HOST:PORT or unix:///PATH, or its TLS cannot be used: {0}"
    )]
    Address(String),
    /// The password cannot be read.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A certificate or a key cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}
