//! SCRAM, the server's side (RFC 5802, RFC 7677), over stored keys.

use super::Failure;
use super::Hashes;
use super::mechanism::{Hash, Mechanism};
use crate::model::{Credentials, ScramKeys};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The fewest iterations that are accepted for keys (RFC 7677 §4).
pub const ITERATIONS_MIN: u32 = 4096;

/// The longest first message of a client: a name of 1023 bytes twice, escaped, a nonce and the rest. Anyone can send one, and
/// it is kept until the proof.
const FIRST_BYTES_MAX: usize = 8 * 1024;

/// A client's first message, parsed.
#[derive(Debug)]
pub struct ClientFirst {
    hash: Hash,
    /// `gs2-header` as it came: the client repeats it in its final message.
    gs2: String,
    binding: ChannelBinding,
    /// The data of the channel for its type of channel binding; empty without.
    data: Box<[u8]>,
    /// The authorization identity: must be the client's own.
    pub authzid: Option<String>,
    /// The user name, unescaped.
    pub username: String,
    nonce: String,
    /// The message without its `gs2-header`.
    bare: String,
}

crate::form! { struct ClientFirst { hash, gs2, binding, data, authzid, username, nonce, bare } }

/// What the client says of channel binding (RFC 5802 §7, `gs2-cbind-flag`).
#[derive(Debug, PartialEq, Eq)]
enum ChannelBinding {
    /// `n`: the client does not support channel binding.
    None,
    /// `y`: the client supports it and believes that the server does not.
    ServerLacks,
    /// `p`: channel binding of this type is used.
    Used(String),
}

crate::form! { enum ChannelBinding { 0 = None, 1 = ServerLacks, 2 = Used(kind) } }

/// Awaits the client's final message.
#[derive(Debug)]
pub struct Challenged {
    hash: Hash,
    /// Whether the login is bound to its channel.
    is_bound: bool,
    keys: ScramKeys,
    nonce: String,
    /// `c=` as the client must send it: base 64 of the `gs2-header` and the channel's binding.
    binding: String,
    /// `client-first-message-bare,server-first-message`.
    transcript: String,
}

impl ClientFirst {
    /// Parses the first message. `offered_plus` says whether mechanisms with channel binding were offered.
    pub fn parse(
        mechanism: Mechanism,
        hash: Hash,
        message: &str,
        offered_plus: bool,
    ) -> Result<ClientFirst, Failure> {
        let malformed = Failure::MalformedRequest;
        if message.len() > FIRST_BYTES_MAX {
            return Err(malformed);
        }
        let (flag, rest) = message.split_once(',').ok_or(malformed)?;
        let (authzid, bare) = rest.split_once(',').ok_or(malformed)?;
        let binding = match flag {
            "n" => ChannelBinding::None,
            "y" => ChannelBinding::ServerLacks,
            _ => ChannelBinding::Used(flag.strip_prefix("p=").ok_or(malformed)?.to_owned()),
        };
        // A client that thinks we lack channel binding while we offered it was lied to (RFC 5802 §6).
        if binding == ChannelBinding::ServerLacks && offered_plus {
            return Err(Failure::NotAuthorized);
        }
        if matches!(binding, ChannelBinding::Used(_)) != mechanism.binds_channel() {
            return Err(malformed);
        }
        let authzid = match authzid {
            "" => None,
            some => Some(unescape(some.strip_prefix("a=").ok_or(malformed)?)?),
        };
        // A reserved extension `m=` must fail, so the user name comes first or not at all.
        let mut attributes = bare.split(',');
        let username = attributes.next().and_then(|a| a.strip_prefix("n=")).ok_or(malformed)?;
        let nonce = attributes.next().and_then(|a| a.strip_prefix("r=")).ok_or(malformed)?;
        if nonce.is_empty() || !nonce.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(malformed);
        }
        Ok(ClientFirst {
            hash,
            gs2: message.strip_suffix(bare).unwrap_or_default().to_owned(),
            binding,
            data: Box::default(),
            authzid,
            username: unescape(username)?,
            nonce: nonce.to_owned(),
            bare: bare.to_owned(),
        })
    }

    /// The hash of its mechanism.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// Takes the data of this connection for the client's type of channel binding.
    pub fn bind(&mut self, channel: &super::ChannelBinding) -> Result<(), Failure> {
        self.data = match &self.binding {
            ChannelBinding::None | ChannelBinding::ServerLacks => return Ok(()),
            ChannelBinding::Used(name) => match name.as_str() {
                "tls-exporter" => channel.exporter.as_ref().map(|e| Box::from(&e[..])),
                "tls-server-end-point" => channel.end_point.as_deref().map(Box::from),
                _ => None,
            }
            .ok_or(Failure::UnknownBinding)?,
        };
        Ok(())
    }

    /// The server's first message, and the state that awaits the client's answer. `nonce` is our part of the nonce.
    pub fn challenge(self, keys: ScramKeys, nonce: &str) -> (String, Challenged) {
        let binding = BASE64.encode([self.gs2.as_bytes(), &self.data].concat());
        let nonce = format!("{}{nonce}", self.nonce);
        let first = format!("r={nonce},s={},i={}", BASE64.encode(&keys.salt), keys.iterations);
        let transcript = format!("{},{first}", self.bare);
        let is_bound = matches!(self.binding, ChannelBinding::Used(_));
        (first, Challenged { hash: self.hash, is_bound, keys, nonce, binding, transcript })
    }
}

impl Challenged {
    /// The mechanism.
    pub fn mechanism(&self) -> Mechanism {
        Mechanism::scram(self.hash, self.is_bound)
    }

    /// Checks the client's final message. Returns the server's final message if the proof is right.
    pub fn verify(self, message: &str) -> Result<String, Failure> {
        let malformed = Failure::MalformedRequest;
        let (unproven, proof) = message.rsplit_once(",p=").ok_or(malformed)?;
        let mut attributes = unproven.split(',');
        let binding = attributes.next().and_then(|a| a.strip_prefix("c=")).ok_or(malformed)?;
        let nonce = attributes.next().and_then(|a| a.strip_prefix("r=")).ok_or(malformed)?;
        let proof = BASE64.decode(proof).map_err(|_| Failure::IncorrectEncoding)?;
        if proof.len() != self.keys.stored_key.len() {
            return Err(malformed);
        }
        if nonce != self.nonce || binding != self.binding {
            return Err(Failure::NotAuthorized);
        }
        let transcript = format!("{},{unproven}", self.transcript);
        let signature = hmac(self.hash, &self.keys.stored_key, transcript.as_bytes());
        let client_key: Vec<u8> = proof.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
        if !bool::from(digest(self.hash, &client_key).ct_eq(&self.keys.stored_key)) {
            return Err(Failure::NotAuthorized);
        }
        let signature = hmac(self.hash, &self.keys.server_key, transcript.as_bytes());
        Ok(format!("v={}", BASE64.encode(signature)))
    }
}

/// The keys of a password, for both hashes. Costs `iterations` × 4 hash blocks: milliseconds. No shard does it: see
/// [`crate::Effect::Derive`].
///
/// # Errors
/// When the password cannot be prepared (RFC 4013): empty, or with characters that have no place in one.
pub fn keys(password: &str, salt: &[u8], iterations: u32) -> Result<Credentials, UnusablePassword> {
    derive_keys(password, salt, iterations, Hashes::Both)
}

/// The keys of a password, for the hashes that are wanted.
pub fn derive_keys(
    password: &str,
    salt: &[u8],
    iterations: u32,
    hashes: Hashes,
) -> Result<Credentials, UnusablePassword> {
    let password = prepare(password)?;
    let derive = |hash| hashes.include(hash).then(|| derive(hash, &password, salt, iterations));
    Ok(Credentials { sha1: derive(Hash::Sha1), sha256: derive(Hash::Sha256) })
}

/// Whether these are the keys of a password. As costly as [`keys`].
pub fn is_password(password: &str, credentials: &Credentials) -> bool {
    let Ok(password) = prepare(password) else { return false };
    let (hash, keys) = match (&credentials.sha256, &credentials.sha1) {
        (Some(keys), _) => (Hash::Sha256, keys),
        (None, Some(keys)) => (Hash::Sha1, keys),
        (None, None) => return false,
    };
    let derived = derive(hash, &password, &keys.salt, keys.iterations);
    derived.stored_key.ct_eq(&keys.stored_key).into()
}

/// Keys for an account that does not exist: the same each time for the same name, so that guessing names reveals nothing.
/// `secret` is the node's.
#[expect(clippy::indexing_slicing, reason = "an HMAC-SHA-256 has 32 bytes")]
pub fn decoy(hash: Hash, secret: &[u8], name: &str, iterations: u32) -> ScramKeys {
    let salt = hmac(Hash::Sha256, secret, name.as_bytes());
    let size = if hash == Hash::Sha1 { 20 } else { 32 };
    ScramKeys {
        salt: salt[..16].into(),
        iterations,
        stored_key: hmac(Hash::Sha256, secret, &salt)[..size].into(),
        server_key: hmac(Hash::Sha256, &salt, secret)[..size].into(),
    }
}

/// The password cannot be prepared (RFC 4013).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the password is empty or has characters that RFC 4013 forbids")]
pub struct UnusablePassword;

fn prepare(password: &str) -> Result<String, UnusablePassword> {
    let prepared = stringprep::saslprep(password).map_err(|_| UnusablePassword)?;
    if prepared.is_empty() { Err(UnusablePassword) } else { Ok(prepared.into_owned()) }
}

fn derive(hash: Hash, password: &str, salt: &[u8], iterations: u32) -> ScramKeys {
    let mut salted = [0u8; 32];
    let salted = match hash {
        Hash::Sha1 => {
            pbkdf2::pbkdf2_hmac::<Sha1>(password.as_bytes(), salt, iterations, &mut salted[..20]);
            &salted[..20]
        }
        Hash::Sha256 => {
            pbkdf2::pbkdf2_hmac::<Sha256>(password.as_bytes(), salt, iterations, &mut salted);
            &salted[..]
        }
    };
    let client_key = hmac(hash, salted, b"Client Key");
    ScramKeys {
        salt: salt.into(),
        iterations,
        stored_key: digest(hash, &client_key).into(),
        server_key: hmac(hash, salted, b"Server Key").into(),
    }
}

fn hmac(hash: Hash, key: &[u8], data: &[u8]) -> Vec<u8> {
    fn with<M: Mac + KeyInit>(key: &[u8], data: &[u8]) -> Vec<u8> {
        let mut mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes a key of any length");
        mac.update(data);
        mac.finalize().into_bytes().to_vec()
    }
    match hash {
        Hash::Sha1 => with::<Hmac<Sha1>>(key, data),
        Hash::Sha256 => with::<Hmac<Sha256>>(key, data),
    }
}

fn digest(hash: Hash, data: &[u8]) -> Vec<u8> {
    match hash {
        Hash::Sha1 => Sha1::digest(data).to_vec(),
        Hash::Sha256 => Sha256::digest(data).to_vec(),
    }
}

/// `saslname`: `=2C` is a comma and `=3D` an equals sign; no other `=` may stand (RFC 5802 §5.1).
fn unescape(name: &str) -> Result<String, Failure> {
    let mut parts = name.split('=');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (code, rest) = part.split_at_checked(2).ok_or(Failure::MalformedRequest)?;
        out.push(match code {
            "2C" => ',',
            "3D" => '=',
            _ => return Err(Failure::MalformedRequest),
        });
        out.push_str(rest);
    }
    if out.is_empty() { Err(Failure::MalformedRequest) } else { Ok(out) }
}

#[cfg(test)]
#[path = "scram_tests.rs"]
mod tests;
