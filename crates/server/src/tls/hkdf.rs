//! HKDF (RFC 5869) as TLS 1.3 uses it: two dozen secrets per handshake, each with one or two HMACs over a few bytes. The
//! work is so little that libraries spend most of the time on contexts, buffers and wiping them byte by byte. So HMAC
//! (RFC 2104) is computed here, directly on a hash's compression function; a key is hashed once for all that is derived
//! with it.

use std::marker::PhantomData;

use rustls::crypto::hmac as port;
use rustls::crypto::tls13::HkdfUsingHmac;
use sha2::block_api::{compress256, compress512};
use zeroize::optimization_barrier;

/// HKDF with SHA-256.
pub(super) static WITH_SHA256: HkdfUsingHmac<'static> = HkdfUsingHmac(&Keying::<Sha256>(PhantomData));
/// HKDF with SHA-384.
pub(super) static WITH_SHA384: HkdfUsingHmac<'static> = HkdfUsingHmac(&Keying::<Sha384>(PhantomData));

/// A hash function of the SHA-2 family, by its blocks (FIPS 180-4).
trait Hash: 'static {
    type State: Copy + Default + Send + Sync;
    type Block: Copy + AsMut<[u8]>;
    const INITIAL: Self::State;
    const EMPTY: Self::Block;
    /// Bytes at the end of the last block that hold the length of the message.
    const LENGTH: usize;
    const OUTPUT: usize;

    fn compress(state: &mut Self::State, block: &Self::Block);
    /// The bytes of a state; a digest is the first [`Hash::OUTPUT`] of them.
    fn digest(state: &Self::State) -> [u8; DIGEST_MAX];
}

struct Sha256;
struct Sha384;

impl Hash for Sha256 {
    type State = [u32; 8];
    type Block = [u8; 64];
    const INITIAL: [u32; 8] =
        [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];
    const EMPTY: [u8; 64] = [0; 64];
    const LENGTH: usize = 8;
    const OUTPUT: usize = 32;

    fn compress(state: &mut [u32; 8], block: &[u8; 64]) {
        compress256(state, std::slice::from_ref(block));
    }

    fn digest(state: &[u32; 8]) -> [u8; DIGEST_MAX] {
        let mut digest = [0; DIGEST_MAX];
        for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        digest
    }
}

impl Hash for Sha384 {
    type State = [u64; 8];
    type Block = [u8; 128];
    const INITIAL: [u64; 8] = [
        0xcbbb9d5dc1059ed8,
        0x629a292a367cd507,
        0x9159015a3070dd17,
        0x152fecd8f70e5939,
        0x67332667ffc00b31,
        0x8eb44a8768581511,
        0xdb0c2e0d64f98fa7,
        0x47b5481dbefa4fa4,
    ];
    const EMPTY: [u8; 128] = [0; 128];
    const LENGTH: usize = 16;
    const OUTPUT: usize = 48;

    fn compress(state: &mut [u64; 8], block: &[u8; 128]) {
        compress512(state, std::slice::from_ref(block));
    }

    fn digest(state: &[u64; 8]) -> [u8; DIGEST_MAX] {
        let mut digest = [0; DIGEST_MAX];
        for (bytes, word) in digest.chunks_exact_mut(8).zip(state) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        digest
    }
}

/// A message that is being hashed.
struct Message<H: Hash> {
    state: H::State,
    block: H::Block,
    /// How many bytes of the block are filled.
    filled: usize,
    /// The length of the message so far, in bytes.
    len: u64,
}

impl<H: Hash> Message<H> {
    /// A message that continues from `state`, after so many blocks.
    fn after(state: H::State, blocks: u64) -> Message<H> {
        let len = blocks * size_of::<H::Block>() as u64;
        Message { state, block: H::EMPTY, filled: 0, len }
    }

    fn update(&mut self, mut bytes: &[u8]) {
        self.len += bytes.len() as u64;
        while !bytes.is_empty() {
            let room = &mut self.block.as_mut()[self.filled..];
            let (now, rest) = bytes.split_at(room.len().min(bytes.len()));
            room[..now.len()].copy_from_slice(now);
            self.filled += now.len();
            bytes = rest;
            if self.filled == size_of::<H::Block>() {
                self.compress();
            }
        }
    }

    /// The digest is the first [`Hash::OUTPUT`] bytes.
    fn finish(mut self) -> [u8; DIGEST_MAX] {
        let length = size_of::<H::Block>() - H::LENGTH;
        let block = self.block.as_mut();
        block[self.filled] = 0x80;
        block[self.filled + 1..].fill(0);
        if self.filled >= length {
            self.compress();
            self.block = H::EMPTY;
        }
        let bits = (u128::from(self.len) * 8).to_be_bytes();
        self.block.as_mut()[length..].copy_from_slice(&bits[bits.len() - H::LENGTH..]);
        self.compress();
        H::digest(&self.state)
    }

    fn compress(&mut self) {
        H::compress(&mut self.state, &self.block);
        self.filled = 0;
    }
}

/// The message may be a secret.
impl<H: Hash> Drop for Message<H> {
    fn drop(&mut self) {
        self.block = H::EMPTY;
        self.state = H::State::default();
        optimization_barrier(self);
    }
}

/// An HMAC without a key.
struct Keying<H>(PhantomData<fn() -> H>);

/// An HMAC with a key: the states of the inner and the outer hash after the padded key.
struct Keyed<H: Hash> {
    inner: H::State,
    outer: H::State,
}

impl<H: Hash> Keyed<H> {
    fn new(key: &[u8]) -> Keyed<H> {
        let mut long = [0; DIGEST_MAX];
        let key = match key.len() > size_of::<H::Block>() {
            true => {
                let mut message = Message::<H>::after(H::INITIAL, 0);
                message.update(key);
                long = message.finish();
                &long[..H::OUTPUT]
            }
            false => key,
        };
        let padded = |with: u8| {
            let mut message = Message::<H>::after(H::INITIAL, 0);
            let block = message.block.as_mut();
            block.fill(with);
            block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
            message.compress();
            message.state
        };
        let keyed = Keyed { inner: padded(0x36), outer: padded(0x5c) };
        long.fill(0);
        optimization_barrier(&long);
        keyed
    }
}

impl<H: Hash> Drop for Keyed<H> {
    fn drop(&mut self) {
        self.inner = H::State::default();
        self.outer = H::State::default();
        optimization_barrier(self);
    }
}

impl<H: Hash> port::Hmac for Keying<H> {
    fn with_key(&self, key: &[u8]) -> Box<dyn port::Key> {
        Box::new(Keyed::<H>::new(key))
    }

    fn hash_output_len(&self) -> usize {
        H::OUTPUT
    }
}

impl<H: Hash> port::Key for Keyed<H> {
    fn sign_concat(&self, first: &[u8], middle: &[&[u8]], last: &[u8]) -> port::Tag {
        let mut inside = Message::<H>::after(self.inner, 1);
        inside.update(first);
        middle.iter().for_each(|part| inside.update(part));
        inside.update(last);
        let mut outside = Message::<H>::after(self.outer, 1);
        outside.update(&inside.finish()[..H::OUTPUT]);
        port::Tag::new(&outside.finish()[..H::OUTPUT])
    }

    fn tag_len(&self) -> usize {
        H::OUTPUT
    }
}

/// Bytes of the state of SHA-512; SHA-384's digest is a part of it.
const DIGEST_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::{Keying, Sha256, Sha384};
    use hmac::{Hmac, KeyInit, Mac};
    use rustls::crypto::hmac as port;
    use std::marker::PhantomData;

    fn ours(hmac: &dyn port::Hmac, key: &[u8], parts: &[&[u8]; 4]) -> Vec<u8> {
        hmac.with_key(key).sign_concat(parts[0], &parts[1..3], parts[3]).as_ref().to_vec()
    }

    fn theirs<M: Mac + KeyInit>(key: &[u8], parts: &[&[u8]; 4]) -> Vec<u8> {
        let mut mac = <M as KeyInit>::new_from_slice(key).expect("a key of any length");
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().to_vec()
    }

    /// Keys and messages of every length up to the end of a second block and beyond, where the padding changes; a key
    /// longer than a block is hashed first.
    #[test]
    fn says_what_another_implementation_says() {
        let bytes: Vec<u8> = (0..=255).cycle().take(3 * 128).collect();
        for len in 0..=2 * 128 + 2 {
            let (message, key) = (&bytes[..len], &bytes[100..100 + len]);
            let (start, end) = message.split_at(len / 3);
            let (middle, end) = end.split_at(end.len() / 2);
            let parts = [start, middle, b"", end];
            let sha256 = ours(&Keying::<Sha256>(PhantomData), key, &parts);
            assert_eq!(sha256, theirs::<Hmac<sha2::Sha256>>(key, &parts), "{len} bytes");
            let sha384 = ours(&Keying::<Sha384>(PhantomData), key, &parts);
            assert_eq!(sha384, theirs::<Hmac<sha2::Sha384>>(key, &parts), "{len} bytes");
        }
    }
}
