//! The randomness of a client, given at its creation: the same seed makes the same client.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::{Digest as _, Sha256};

/// The source of one client's nonces, keys and masks. TLS has its own source.
#[derive(Clone)]
pub struct Entropy {
    seed: [u8; 32],
    drawn: u64,
}

impl Entropy {
    /// Fresh randomness of the operating system.
    pub fn from_system() -> io::Result<Self> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(io::Error::other)?;
        Ok(Self::from_seed(seed))
    }

    /// A fixed seed, for tests that compare what is sent.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self { seed, drawn: 0 }
    }

    /// A client nonce for SCRAM: 144 bits, in printable characters without comma.
    pub(crate) fn nonce(&mut self) -> String {
        BASE64.encode(&self.draw()[..18])
    }

    /// The key of a WebSocket request (RFC 6455 §4.1).
    pub(crate) fn websocket_key(&mut self) -> [u8; 16] {
        *self.draw().first_chunk().expect("32 bytes are more than 16")
    }

    /// The seed of the generator of masks.
    pub(crate) fn mask_seed(&mut self) -> u64 {
        u64::from_le_bytes(*self.draw().first_chunk().expect("32 bytes are more than 8"))
    }

    fn draw(&mut self) -> [u8; 32] {
        self.drawn += 1;
        Sha256::new().chain_update(self.seed).chain_update(self.drawn.to_le_bytes()).finalize().into()
    }
}

impl std::fmt::Debug for Entropy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Entropy")
    }
}
