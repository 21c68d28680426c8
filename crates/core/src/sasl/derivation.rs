//! Deriving SCRAM keys from passwords (PBKDF2). Each takes milliseconds of a processor, so it is done on other threads than
//! the shards'.

use super::{Hash, scram};
use crate::model::{Credentials, DomainId};
use std::fmt;

/// Keys to be derived.
#[derive(Clone, Debug)]
pub struct Derivation {
    /// The domain on whose behalf: domains take turns where many derivations wait.
    pub domain: DomainId,
    /// The password.
    pub password: Password,
    /// The salt.
    pub salt: Box<[u8]>,
    /// PBKDF2 iterations.
    pub iterations: u32,
    /// The hashes for which keys are wanted.
    pub hashes: Hashes,
}

/// For which hashes keys are derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hashes {
    /// For one.
    One(Hash),
    /// For both.
    Both,
}

/// The result of a derivation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Derived {
    /// The keys.
    Keys(Credentials),
    /// The password cannot be prepared (RFC 4013).
    Unusable,
    /// Too many derivations wait; try again later.
    Busy,
}

/// A password in clear text, of bounded length.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Box<str>);

crate::form! { struct Password(text) }

impl Derivation {
    /// Derives the keys.
    pub fn run(&self) -> Derived {
        let Derivation { domain: _, password, salt, iterations, hashes } = self;
        scram::derive_keys(&password.0, salt, *iterations, *hashes).map_or(Derived::Unusable, Derived::Keys)
    }
}

impl Hashes {
    /// Whether keys are wanted for `hash`.
    pub fn include(self, hash: Hash) -> bool {
        match self {
            Hashes::One(one) => one == hash,
            Hashes::Both => true,
        }
    }
}

impl Password {
    /// The longest password, in bytes; it bounds the memory of derivations that wait.
    pub const BYTES_MAX: usize = 1024;

    /// A password, if it is not too long.
    pub fn new(password: &str) -> Option<Password> {
        (password.len() <= Password::BYTES_MAX).then(|| Password(password.into()))
    }
}

// Passwords never reach a log.
impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}
