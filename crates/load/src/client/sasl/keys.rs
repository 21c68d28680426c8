//! SCRAM keys derived from a password, and a cache of them that many clients share.
//!
//! Deriving a key is slow by design (4,096 or more rounds of HMAC). A load tester that logs in thousands of
//! accounts would measure itself, so keys are cached under a hash of everything they depend on.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::{Digest as _, Sha256};

use super::digest::{Digest, HashFunction};

/// The two keys a client proves itself and checks the server with (RFC 5802 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScramKeys {
    /// `ClientKey`: proves the client to the server.
    pub client: Digest,
    /// `ServerKey`: lets the client check the server's signature.
    pub server: Digest,
}

/// What a pair of keys depends on.
#[derive(Clone, Copy, Debug)]
pub struct Derivation<'a> {
    /// The hash function of the mechanism.
    pub hash: HashFunction,
    /// The prepared password (SASLprep, RFC 4013).
    pub password: &'a str,
    /// The salt the server sent.
    pub salt: &'a [u8],
    /// The rounds the server asked for.
    pub iterations: u32,
}

/// Keys already derived; share one with `Arc` between all clients of a process.
#[derive(Default)]
pub struct KeyCache {
    keys: Mutex<HashMap<[u8; 32], ScramKeys>>,
}

impl Derivation<'_> {
    /// Runs the derivation; costs `iterations` rounds.
    pub fn derive(&self) -> ScramKeys {
        let salted = self.hash.salted_password(self.password.as_bytes(), self.salt, self.iterations);
        ScramKeys {
            client: self.hash.hmac(salted.as_bytes(), b"Client Key"),
            server: self.hash.hmac(salted.as_bytes(), b"Server Key"),
        }
    }

    // Every variable part is preceded by its length, so that no two derivations share a name.
    fn fingerprint(&self) -> [u8; 32] {
        let mut hasher = Sha256::new();
        hasher.update([self.hash.length() as u8]);
        hasher.update(self.iterations.to_be_bytes());
        hasher.update((self.salt.len() as u64).to_be_bytes());
        hasher.update(self.salt);
        hasher.update(self.password.as_bytes());
        hasher.finalize().into()
    }
}

impl KeyCache {
    /// The keys of a derivation, derived now if nobody asked for them before.
    pub fn keys(&self, derivation: &Derivation<'_>) -> ScramKeys {
        let fingerprint = derivation.fingerprint();
        if let Some(keys) = self.lock().get(&fingerprint) {
            return *keys;
        }
        // Derived outside the lock: two clients may do the same work once, nobody waits for it.
        let keys = derivation.derive();
        self.lock().insert(fingerprint, keys);
        keys
    }

    /// Adds keys that were written by [`KeyCache::write`], so that a new process need not derive them again.
    pub fn read(&self, reader: impl BufRead) -> io::Result<()> {
        for line in reader.lines() {
            let (fingerprint, keys) = read_line(&line?).ok_or(io::ErrorKind::InvalidData)?;
            self.lock().insert(fingerprint, keys);
        }
        Ok(())
    }

    /// Writes all keys, a line each. Who has them can log in: they are as secret as the passwords.
    pub fn write(&self, mut writer: impl Write) -> io::Result<()> {
        for (fingerprint, keys) in self.lock().iter() {
            let parts = [&fingerprint[..], keys.client.as_bytes(), keys.server.as_bytes()];
            writeln!(writer, "{}", parts.map(|part| BASE64.encode(part)).join(" "))?;
        }
        Ok(())
    }

    /// How many pairs of keys are remembered.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether nothing was derived yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 32], ScramKeys>> {
        // The map is whole between calls whatever panicked elsewhere.
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_line(line: &str) -> Option<([u8; 32], ScramKeys)> {
    let mut parts = line.split(' ').map(|part| BASE64.decode(part).ok());
    let fingerprint = parts.next()??.try_into().ok()?;
    let client = Digest::from_bytes(&parts.next()??)?;
    let server = Digest::from_bytes(&parts.next()??)?;
    Some((fingerprint, ScramKeys { client, server }))
}

impl std::fmt::Debug for KeyCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyCache").field("len", &self.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DERIVATION: Derivation<'_> =
        Derivation { hash: HashFunction::Sha256, password: "pencil", salt: b"salt", iterations: 2 };

    #[test]
    fn a_derivation_is_remembered_once() {
        let cache = KeyCache::default();
        assert_eq!(cache.keys(&DERIVATION), DERIVATION.derive());
        assert_eq!(cache.keys(&DERIVATION), DERIVATION.derive());
        assert_eq!(cache.len(), 1);
    }

    #[test]
    fn every_part_of_a_derivation_tells_keys_apart() {
        let cache = KeyCache::default();
        cache.keys(&DERIVATION);
        cache.keys(&Derivation { hash: HashFunction::Sha1, ..DERIVATION });
        cache.keys(&Derivation { password: "pencils", ..DERIVATION });
        cache.keys(&Derivation { salt: b"saltp", password: "encil", ..DERIVATION });
        cache.keys(&Derivation { iterations: 3, ..DERIVATION });
        assert_eq!(cache.len(), 5);
    }

    #[test]
    fn keys_outlive_the_process() {
        let cache = KeyCache::default();
        cache.keys(&DERIVATION);
        cache.keys(&Derivation { hash: HashFunction::Sha1, ..DERIVATION });
        let mut file = Vec::new();
        cache.write(&mut file).expect("memory");
        let copy = KeyCache::default();
        copy.read(file.as_slice()).expect("just written");
        assert_eq!(copy.len(), 2);
        assert_eq!(copy.keys(&DERIVATION), DERIVATION.derive());
        assert_eq!(copy.len(), 2);
        assert!(copy.read(b"nonsense".as_slice()).is_err());
    }
}
