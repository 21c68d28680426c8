//! Session tickets (RFC 5077, RFC 8446 §4.6.1), with keys that can go along when the node moves to another process.
//!
//! A ticket is the name of its key (16 bytes), a nonce (12 bytes), and the session sealed with AES-256-GCM, tag included. The name
//! is authenticated with it. A key seals for six hours and opens for twelve.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::rand;
use rustls::server::ProducesTickets;
use zeroize::Zeroizing;

/// Seals and opens tickets.
pub(super) struct Ticketer {
    /// Held to look a key up or to replace one; not while a ticket is sealed or opened or a key is made.
    keys: Mutex<Keys>,
}

#[derive(Clone)]
struct Keys {
    current: Arc<Key>,
    previous: Option<Arc<Key>>,
}

struct Key {
    /// Says in the clear which key a ticket needs.
    name: [u8; NAME_BYTES],
    secret: Zeroizing<[u8; SECRET_BYTES]>,
    /// The same secret, expanded.
    aead: RandomizedNonceKey,
    /// The monotonic clock: a step of the wall clock changes no lifetime.
    born: Instant,
}

/// The bytes are not the keys of session tickets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedTicketKeys {
    /// Another release wrote them.
    #[error("version {0} of ticket keys is not known")]
    Version(u8),
    /// They are cut off, or something else.
    #[error("{0} bytes are no ticket keys")]
    Length(usize),
    /// The cryptography refused a key.
    #[error("a ticket key cannot be used")]
    Unusable,
}

impl Ticketer {
    /// With a new key. `None` if the system has no random numbers.
    pub(super) fn new() -> Option<Ticketer> {
        let current = Arc::new(Key::random(Instant::now())?);
        Some(Ticketer { keys: Mutex::new(Keys { current, previous: None }) })
    }

    /// The keys: a version, then for each key its name, its secret and its age in milliseconds. They are only for a process that goes
    /// on in place of this one.
    pub(super) fn to_bytes(&self, now: Instant) -> Zeroizing<Vec<u8>> {
        let keys = self.lock().clone();
        // Reserved, so that no copy stays behind.
        let mut out = Zeroizing::new(Vec::with_capacity(1 + 2 * KEY_BYTES));
        out.push(FORM);
        for key in [Some(&keys.current), keys.previous.as_ref()].into_iter().flatten() {
            out.extend_from_slice(&key.name);
            out.extend_from_slice(&*key.secret);
            out.extend_from_slice(&(key.age(now).as_millis() as u64).to_be_bytes());
        }
        out
    }

    /// Reads what [`Ticketer::to_bytes`] wrote.
    pub(super) fn from_bytes(bytes: &[u8], now: Instant) -> Result<Ticketer, MalformedTicketKeys> {
        let length = MalformedTicketKeys::Length(bytes.len());
        let (&form, keys) = bytes.split_first().ok_or(length)?;
        if form != FORM {
            return Err(MalformedTicketKeys::Version(form));
        }
        let (keys, []) = keys.as_chunks::<KEY_BYTES>() else { return Err(length) };
        let (current, previous) = match keys {
            [current] => (current, None),
            [current, previous] => (current, Some(previous)),
            _ => return Err(length),
        };
        let key = |bytes: &[u8; KEY_BYTES]| Key::from_bytes(bytes, now).map(Arc::new);
        let keys = Keys { current: key(current)?, previous: previous.map(key).transpose()? };
        Ok(Ticketer { keys: Mutex::new(keys) })
    }

    /// The ticket for a session. `None` if no key can be made or the session is too large.
    fn seal(&self, session: &[u8], now: Instant) -> Option<Vec<u8>> {
        if session.len() + OVERHEAD_BYTES > TICKET_BYTES_MAX {
            return None;
        }
        let key = self.key_to_seal(now)?;
        // In place, behind a hole for the nonce, which is known afterwards.
        let mut ticket = Vec::with_capacity(session.len() + OVERHEAD_BYTES);
        ticket.extend_from_slice(&key.name);
        ticket.resize(HEAD_BYTES, 0);
        ticket.extend_from_slice(session);
        let (head, body) = ticket.split_at_mut(HEAD_BYTES);
        let (nonce, tag) = key.aead.seal_in_place_separate_tag(Aad::from(&key.name), body).ok()?;
        head[NAME_BYTES..].copy_from_slice(nonce.as_ref());
        ticket.extend_from_slice(tag.as_ref());
        Some(ticket)
    }

    /// The session of a ticket. `None` if it is not from here, or too old.
    fn open(&self, ticket: &[u8], now: Instant) -> Option<Vec<u8>> {
        if ticket.len() > TICKET_BYTES_MAX {
            return None;
        }
        let (name, rest) = ticket.split_first_chunk::<NAME_BYTES>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        let key = self.key_named(name, now)?;
        let mut session = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = key.aead.open_in_place(nonce, Aad::from(name), &mut session).ok()?.len();
        session.truncate(opened);
        Some(session)
    }

    fn key_named(&self, name: &[u8; NAME_BYTES], now: Instant) -> Option<Arc<Key>> {
        let keys = self.lock();
        [Some(&keys.current), keys.previous.as_ref()]
            .into_iter()
            .flatten()
            .find(|key| key.name == *name && key.age(now) < LIFETIME)
            .cloned()
    }

    /// The current key, or a new one if it is time.
    fn key_to_seal(&self, now: Instant) -> Option<Arc<Key>> {
        {
            let keys = self.lock();
            if keys.current.age(now) < ROTATION {
                return Some(Arc::clone(&keys.current));
            }
        }
        let new = Arc::new(Key::random(now)?);
        let mut keys = self.lock();
        // Another thread may have been faster.
        if keys.current.age(now) >= ROTATION {
            keys.previous = Some(std::mem::replace(&mut keys.current, new));
        }
        Some(Arc::clone(&keys.current))
    }

    fn lock(&self) -> MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProducesTickets for Ticketer {
    fn enabled(&self) -> bool {
        true
    }

    /// In seconds.
    fn lifetime(&self) -> u32 {
        LIFETIME.as_secs() as u32
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.seal(plain, Instant::now())
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.open(cipher, Instant::now())
    }
}

impl fmt::Debug for Ticketer {
    /// Without the keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticketer").finish_non_exhaustive()
    }
}

impl Key {
    fn random(now: Instant) -> Option<Key> {
        let (mut name, mut secret) = ([0; NAME_BYTES], Zeroizing::new([0; SECRET_BYTES]));
        rand::fill(&mut name).ok()?;
        rand::fill(&mut *secret).ok()?;
        Key::new(name, secret, now)
    }

    fn new(name: [u8; NAME_BYTES], secret: Zeroizing<[u8; SECRET_BYTES]>, born: Instant) -> Option<Key> {
        let aead = RandomizedNonceKey::new(&AES_256_GCM, &*secret).ok()?;
        Some(Key { name, secret, aead, born })
    }

    fn from_bytes(bytes: &[u8; KEY_BYTES], now: Instant) -> Result<Key, MalformedTicketKeys> {
        let (mut name, mut secret) = ([0; NAME_BYTES], Zeroizing::new([0; SECRET_BYTES]));
        let mut age = [0; 8];
        name.copy_from_slice(&bytes[..NAME_BYTES]);
        secret.copy_from_slice(&bytes[NAME_BYTES..NAME_BYTES + SECRET_BYTES]);
        age.copy_from_slice(&bytes[NAME_BYTES + SECRET_BYTES..]);
        // One that is older opens no more than one of this age.
        let age = Duration::from_millis(u64::from_be_bytes(age)).min(LIFETIME);
        let born = now.checked_sub(age).ok_or(MalformedTicketKeys::Unusable)?;
        Key::new(name, secret, born).ok_or(MalformedTicketKeys::Unusable)
    }

    fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.born)
    }
}

/// How long a key seals.
const ROTATION: Duration = Duration::from_hours(6);
/// How long a key opens: a ticket is valid for six hours at least, and twelve at most.
const LIFETIME: Duration = Duration::from_hours(12);
const NAME_BYTES: usize = 16;
const SECRET_BYTES: usize = 32;
const HEAD_BYTES: usize = NAME_BYTES + NONCE_LEN;
const OVERHEAD_BYTES: usize = HEAD_BYTES + 16;
/// A session of a client without a certificate has some 150 bytes, and at most the names of a host and a protocol besides.
const TICKET_BYTES_MAX: usize = 2048;
/// The version of the bytes.
const FORM: u8 = 1;
/// A key in the bytes: name, secret, age.
const KEY_BYTES: usize = NAME_BYTES + SECRET_BYTES + 8;

#[cfg(test)]
mod tests;
