//! An extracted connection: the state of its record layer, as plain data of a fixed size.

use aws_lc_rs::aead::{LessSafeKey, Nonce, UnboundKey};
use zeroize::{Zeroize, Zeroizing};

use super::fault::Fault;
use super::schedule::Secret;
use super::suite::Suite;

/// A TLS 1.3 connection after its handshake: keys, secrets and sequence numbers of both directions, and the counters of
/// the record layer. It cannot be cloned, since two owners would use a nonce twice; it is wiped when dropped.
pub struct Keys {
    pub(super) rx: Half,
    pub(super) tx: Half,
    pub(super) suite: Suite,
    pub(super) reading: DirectionState,
    pub(super) writing: DirectionState,
    /// How many bytes of a KeyUpdate message have come: it may be fragmented. The bytes are not kept, as all but the last
    /// are always the same.
    pub(super) update_seen: u8,
    /// Consecutive records without data.
    pub(super) empty_records: u8,
    /// The peer asked for a KeyUpdate and has not been sent one.
    pub(super) owes_update: bool,
    /// KeyUpdates of the peer in `updates_minute`.
    pub(super) updates: u8,
    pub(super) updates_minute: u32,
}

/// One direction of a connection.
pub(super) struct Half {
    /// Sequence number of the next record.
    pub(super) seq: u64,
    secret: [u8; SECRET_MAX],
    key: [u8; KEY_MAX],
    iv: [u8; IV_LEN],
}

/// Whether a direction still carries records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum DirectionState {
    /// It does.
    Open = 0,
    /// Its sender ended it by `close_notify`.
    Ended = 1,
    /// A fault ended the connection.
    Broken = 2,
}

/// Bytes that [`Keys::to_bytes`] cannot have made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the keys of a TLS connection")]
pub struct Malformed;

impl Keys {
    /// Bytes of a serialised connection.
    pub const BYTES: usize = HEAD_BYTES + 2 * Half::BYTES;

    /// A connection with these two halves.
    pub(super) fn new(suite: Suite, rx: Half, tx: Half) -> Keys {
        Keys {
            rx,
            tx,
            suite,
            reading: DirectionState::Open,
            writing: DirectionState::Open,
            update_seen: 0,
            empty_records: 0,
            owes_update: false,
            updates: 0,
            updates_minute: 0,
        }
    }

    /// Serialises the connection so that another process can carry it on. From then on only one of the two may be used: both would
    /// use the same nonces.
    pub fn to_bytes(&self) -> Zeroizing<[u8; Keys::BYTES]> {
        let mut bytes = Zeroizing::new([0; Keys::BYTES]);
        let (head, halves) = bytes.split_at_mut(HEAD_BYTES);
        head.copy_from_slice(&[
            LAYOUT,
            self.suite as u8,
            self.reading as u8,
            self.writing as u8,
            self.update_seen,
            self.empty_records,
            self.owes_update.into(),
        ]);
        let (rx, tx) = halves.split_at_mut(Half::BYTES);
        self.rx.write_to(rx);
        self.tx.write_to(tx);
        bytes
    }

    /// Takes over a connection that [`Keys::to_bytes`] serialised. The bytes are secret: wipe them afterwards.
    pub fn from_bytes(bytes: &[u8]) -> Result<Keys, Malformed> {
        let bytes: &[u8; Keys::BYTES] = bytes.try_into().map_err(|_| Malformed)?;
        let (head, halves) = bytes.split_at(HEAD_BYTES);
        let (rx, tx) = halves.split_at(Half::BYTES);
        let &[layout, suite, reading, writing, update_seen, empty_records, owes_update] = head else {
            return Err(Malformed);
        };
        if layout != LAYOUT || usize::from(update_seen) >= super::key_update::LEN || owes_update > 1 {
            return Err(Malformed);
        }
        Ok(Keys {
            rx: Half::read_from(rx)?,
            tx: Half::read_from(tx)?,
            suite: Suite::from_byte(suite).ok_or(Malformed)?,
            reading: DirectionState::from_byte(reading).ok_or(Malformed)?,
            writing: DirectionState::from_byte(writing).ok_or(Malformed)?,
            update_seen,
            empty_records,
            owes_update: owes_update == 1,
            // The clock is specific to a process.
            updates: 0,
            updates_minute: 0,
        })
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys")
            .field("suite", &self.suite)
            .field("rx_seq", &self.rx.seq)
            .field("tx_seq", &self.tx.seq)
            .finish_non_exhaustive()
    }
}

impl Half {
    const BYTES: usize = 8 + SECRET_MAX + KEY_MAX + IV_LEN;

    /// The direction with this traffic secret, whose next record is number `seq`.
    pub(super) fn from_secret(suite: Suite, secret: &[u8], seq: u64) -> Result<Half, Fault> {
        let mut half = Half { seq, secret: [0; SECRET_MAX], key: [0; KEY_MAX], iv: [0; IV_LEN] };
        half.secret
            .get_mut(..suite.secret_len())
            .filter(|own| own.len() == secret.len())
            .ok_or(Fault::Extraction("a traffic secret of another length"))?
            .copy_from_slice(secret);
        half.derive(suite)?;
        Ok(half)
    }

    /// Whether these are the direction's key and IV.
    pub(super) fn is_keyed_with(&self, suite: Suite, key: &[u8], iv: &[u8]) -> bool {
        self.key[..suite.key_len()] == *key && self.iv == *iv
    }

    /// The cipher of this direction: created for a burst, dropped after it.
    pub(super) fn cipher(&self, suite: Suite) -> Result<LessSafeKey, Fault> {
        UnboundKey::new(suite.aead(), &self.key[..suite.key_len()])
            .map(LessSafeKey::new)
            .map_err(|_| Fault::Cipher)
    }

    /// The nonce of the next record: the IV, the sequence number XORed into its end (RFC 8446 §5.3).
    pub(super) fn nonce(&self) -> Nonce {
        let mut nonce = self.iv;
        for (byte, seq) in nonce[IV_LEN - 8..].iter_mut().zip(self.seq.to_be_bytes()) {
            *byte ^= seq;
        }
        Nonce::assume_unique_for_key(nonce)
    }

    /// Moves on to the next generation of keys (RFC 8446 §7.2); the sequence numbers start again at 0.
    pub(super) fn update(&mut self, suite: Suite) -> Result<(), Fault> {
        let mut next = Zeroizing::new([0; SECRET_MAX]);
        let len = suite.secret_len();
        Secret::new(suite, &self.secret[..len]).expand_label(b"traffic upd", &mut next[..len])?;
        self.secret = *next;
        self.seq = 0;
        self.derive(suite)
    }

    /// Derives key and IV from the secret (RFC 8446 §7.3).
    fn derive(&mut self, suite: Suite) -> Result<(), Fault> {
        let secret = Secret::new(suite, &self.secret[..suite.secret_len()]);
        secret.expand_label(b"key", &mut self.key[..suite.key_len()])?;
        secret.expand_label(b"iv", &mut self.iv)
    }

    fn write_to(&self, bytes: &mut [u8]) {
        let (seq, rest) = bytes.split_at_mut(8);
        let (secret, rest) = rest.split_at_mut(SECRET_MAX);
        let (key, iv) = rest.split_at_mut(KEY_MAX);
        seq.copy_from_slice(&self.seq.to_be_bytes());
        secret.copy_from_slice(&self.secret);
        key.copy_from_slice(&self.key);
        iv.copy_from_slice(&self.iv);
    }

    fn read_from(bytes: &[u8]) -> Result<Half, Malformed> {
        let (seq, rest) = bytes.split_first_chunk().ok_or(Malformed)?;
        let (secret, rest) = rest.split_first_chunk().ok_or(Malformed)?;
        let (key, iv) = rest.split_first_chunk().ok_or(Malformed)?;
        Ok(Half {
            seq: u64::from_be_bytes(*seq),
            secret: *secret,
            key: *key,
            iv: iv.try_into().map_err(|_| Malformed)?,
        })
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        self.secret.zeroize();
        self.key.zeroize();
        self.iv.zeroize();
    }
}

impl DirectionState {
    fn from_byte(byte: u8) -> Option<DirectionState> {
        [DirectionState::Open, DirectionState::Ended, DirectionState::Broken]
            .into_iter()
            .find(|flow| *flow as u8 == byte)
    }
}

/// Version of the serialised form.
const LAYOUT: u8 = 2;
/// Bytes before the two halves.
const HEAD_BYTES: usize = 7;
/// Bytes of the longest traffic secret: SHA-384's output.
const SECRET_MAX: usize = 48;
/// Bytes of the longest traffic key.
const KEY_MAX: usize = 32;
/// Bytes of an IV, in every suite.
const IV_LEN: usize = 12;
