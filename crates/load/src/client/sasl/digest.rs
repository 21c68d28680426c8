//! The hash functions of SCRAM, chosen at run time, and their fixed-size outputs.

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// A hash function SCRAM is defined over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HashFunction {
    /// SHA-1 (RFC 5802).
    Sha1,
    /// SHA-256 (RFC 7677).
    Sha256,
}

/// The output of a [`HashFunction`], kept inline: 20 or 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest {
    bytes: [u8; 32],
    length: u8,
}

impl Digest {
    fn new(output: &[u8]) -> Self {
        let mut bytes = [0; 32];
        for (byte, value) in bytes.iter_mut().zip(output) {
            *byte = *value;
        }
        Self { bytes, length: output.len() as u8 }
    }

    /// A hash from its bytes; `None` if no function here has so many.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        [HashFunction::Sha1, HashFunction::Sha256]
            .iter()
            .any(|hash| hash.length() == bytes.len())
            .then(|| Self::new(bytes))
    }

    /// The bytes of the hash.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// This hash combined with another by exclusive or.
    pub fn xor(mut self, other: &Self) -> Self {
        for (left, right) in self.bytes.iter_mut().zip(&other.bytes) {
            *left ^= right;
        }
        self
    }
}

impl std::fmt::Debug for Digest {
    // Keys are digests: never printed.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Digest({} bytes)", self.length)
    }
}

impl HashFunction {
    /// Bytes of output.
    pub fn length(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    /// `H(data)` of RFC 5802 §2.2.
    pub fn hash(self, data: &[u8]) -> Digest {
        match self {
            Self::Sha1 => Digest::new(&Sha1::digest(data)),
            Self::Sha256 => Digest::new(&Sha256::digest(data)),
        }
    }

    /// `HMAC(key, data)` of RFC 5802 §2.2.
    pub fn hmac(self, key: &[u8], data: &[u8]) -> Digest {
        match self {
            Self::Sha1 => Digest::new(&authenticate::<Hmac<Sha1>>(key, data)),
            Self::Sha256 => Digest::new(&authenticate::<Hmac<Sha256>>(key, data)),
        }
    }

    /// `Hi(password, salt, iterations)` of RFC 5802 §2.2: the costly one.
    pub fn salted_password(self, password: &[u8], salt: &[u8], iterations: u32) -> Digest {
        let mut output = [0; 32];
        let output = output.get_mut(..self.length()).unwrap_or_default();
        match self {
            Self::Sha1 => pbkdf2::pbkdf2_hmac::<Sha1>(password, salt, iterations, output),
            Self::Sha256 => pbkdf2::pbkdf2_hmac::<Sha256>(password, salt, iterations, output),
        }
        Digest::new(output)
    }
}

fn authenticate<M: Mac + KeyInit>(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(data);
    mac.finalize().into_bytes().to_vec()
}
