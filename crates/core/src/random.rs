//! Randomness as an argument: one generator per shard, seeded from outside. HMAC-SHA-256 over a counter, keyed by the seed:
//! unpredictable without the seed, and reproducible with it (simulation).

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// A seeded generator of unpredictable bytes.
pub struct Random {
    /// Keyed by the seed: what depends on the key alone is computed once, which is half of the work of a short message.
    mac: Hmac<Sha256>,
    counter: u64,
}

impl std::fmt::Debug for Random {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Random")
    }
}

impl Random {
    /// The generator of this seed. In production 32 bytes of the operating system's entropy.
    pub fn new(seed: [u8; 32]) -> Random {
        let mac = Hmac::new_from_slice(&seed).expect("HMAC takes a key of any length");
        Random { mac, counter: 0 }
    }

    /// The next 32 bytes.
    pub fn bytes(&mut self) -> [u8; 32] {
        self.counter += 1;
        let mut mac = self.mac.clone();
        mac.update(&self.counter.to_be_bytes());
        mac.finalize().into_bytes().into()
    }

    /// A number that cannot be guessed.
    pub fn number(&mut self) -> u64 {
        let bytes = self.bytes();
        u64::from_be_bytes(bytes[..8].try_into().expect("eight of 32 bytes"))
    }

    /// A short token for ids and nonces: 24 characters of base 64 (URL alphabet), 144 bits.
    pub fn token(&mut self) -> String {
        use base64::Engine;
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(&self.bytes()[..18])
    }
}
