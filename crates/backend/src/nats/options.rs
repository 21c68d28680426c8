//! How a bus over NATS is opened, and why it may not open.

use crate::bus;
use crate::secret::{Secret, SecretError};
use crate::tls_fault;
use std::fmt::Display;
use std::path::PathBuf;

/// How a bus over NATS is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The servers, `nats://HOST:PORT` or `tls://HOST:PORT`: one of them is connected to, and those that it names.
    pub servers: Vec<Box<str>>,
    /// What all subjects of the cell begin with: words of letters, digits, `-` and `_`, with dots between.
    pub prefix: Box<str>,
    /// How the node says who it is.
    pub auth: Auth,
    /// TLS, which is used where a server demands it or its address begins with `tls://`.
    pub tls: Tls,
    /// Bounds and intervals.
    pub bus: bus::Options,
}

impl Options {
    /// The defaults for a server: subjects `carillon.…`, no authentication, the certificates of the system.
    pub fn new(server: &str) -> Options {
        Options {
            servers: vec![server.into()],
            prefix: "carillon".into(),
            auth: Auth::None,
            tls: Tls::default(),
            bus: bus::Options::default(),
        }
    }
}

/// How a node says who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// It does not, or the address of the server has a user and a password.
    None,
    /// By a user and a password.
    Password {
        /// The user.
        user: Box<str>,
        /// The password.
        password: Secret,
    },
    /// By a token.
    Token(Secret),
    /// By the seed of an nkey, which begins with `SU`.
    Nkey(Secret),
    /// By a file of credentials: a JWT with its nkey.
    Credentials(Secret),
}

/// What TLS knows whom by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Whether a server without TLS is refused.
    pub required: bool,
    /// A file with the certificates that servers are known by; those of the system where there is none.
    pub authorities: Option<PathBuf>,
    /// Files with the certificate and the key of this node, where servers ask for one.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

impl Options {
    /// Why there is no connection, with the setting that mends it where TLS is why.
    pub(super) fn explained(&self, error: &dyn Display) -> String {
        let is_secured = self.tls.required || self.servers.iter().any(|server| server.starts_with("tls://"));
        if !is_secured {
            return error.to_string();
        }
        tls_fault::explained(error, &SETTINGS, self.tls.certificate.is_some())
    }
}

const SETTINGS: tls_fault::Settings = tls_fault::Settings {
    address: "cell.nats",
    authorities: "cell.nats_ca_file",
    certificate: "cell.nats_certificate and cell.nats_key",
};

/// Why a bus or a queue did not open. A server that cannot be reached is no reason: it is tried again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// An address of a server cannot be read.
    #[error("the address of a NATS server is not of the form nats://HOST:PORT: {0}")]
    Address(String),
    /// A stream or a consumer cannot have this name.
    #[error("{0:?} is no name of a stream or a consumer: these have letters, digits, `-` and `_`")]
    Name(Box<str>),
    /// The subjects' prefix is none.
    #[error("the prefix of subjects is not words of letters, digits, - and _, with dots between")]
    Prefix,
    /// What the node says who it is by cannot be read.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The credentials are none.
    #[error("the credentials: {0}")]
    Credentials(std::io::Error),
}

/// Whether subjects may begin with this.
pub(super) fn is_prefix(prefix: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    prefix.len() <= 100 && prefix.split('.').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_words() {
        assert!(["carillon", "a.b-c.d_9"].into_iter().all(is_prefix));
        assert!(!["", ".", "a.", "a..b", "a b", "a.*", "a.>", "ä"].into_iter().any(is_prefix));
    }
}
