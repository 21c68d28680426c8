//! Tokens: derived from the node's secret and what is known of the account, and checked by deriving them again.

use super::Mechanism;
use crate::model::{AgentId, Revocations, UnixMs};
use crate::sasl::Stamp;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// The tokens of one client of an account.
#[derive(Clone, Copy, Debug)]
pub struct Tokens<'a> {
    /// The node's secret.
    pub secret: &'a [u8],
    /// How long a token is valid, in milliseconds.
    pub lifetime_ms: u64,
    /// The stamp of the account, from which all its tokens are derived.
    pub stamp: Stamp,
    /// Which tokens of the account were revoked.
    pub revocations: &'a Revocations,
    /// The client.
    pub agent: AgentId,
    /// The mechanism that they are valid for.
    pub mechanism: Mechanism,
}

/// A client's proof that it has a token.
#[derive(Debug)]
pub struct Proof {
    /// The user name that the client sent.
    pub username: String,
    hash: Vec<u8>,
}

/// A token that is given to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenToken {
    /// The token.
    pub token: String,
    /// Its name for counting uses.
    pub name: u64,
    /// When it expires.
    pub expires: UnixMs,
}

/// A proof that was right.
#[derive(Debug, PartialEq, Eq)]
pub struct Checked {
    /// The server's own proof.
    pub answer: Vec<u8>,
    /// The token's name for counting uses.
    pub token: u64,
    /// The token is of an earlier epoch: the client is to be given a newer one.
    pub is_old: bool,
}

/// Why a proof is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The token has expired.
    Expired,
    /// The token was never valid, or was revoked.
    Wrong,
}

impl Proof {
    /// Reads the client's message: its name, NUL, and an HMAC (draft-schmaus-kitten-sasl-ht §3.1).
    pub fn parse(message: &[u8]) -> Option<Proof> {
        let at = message.iter().position(|byte| *byte == 0)?;
        let (username, rest) = message.split_at_checked(at)?;
        let (username, hash) = (std::str::from_utf8(username).ok()?, rest.get(1..)?);
        let is_whole = !username.is_empty() && hash.len() == 32;
        is_whole.then(|| Proof { username: username.to_owned(), hash: hash.to_vec() })
    }
}

/// Epochs per lifetime of a token. It is valid in the epoch in which it was made and in the three that follow, so for three
/// quarters to all of the lifetime.
const EPOCHS: u64 = 4;

impl Tokens<'_> {
    /// The present token. It is the same throughout an epoch.
    pub fn give(&self, now: UnixMs) -> GivenToken {
        let epoch = self.epoch(now);
        let token = self.derive(epoch);
        GivenToken { name: name(&token), expires: UnixMs((epoch + EPOCHS) * self.epoch_ms()), token }
    }

    /// Checks a proof on a connection that yields `binding`.
    pub fn check(&self, proof: &Proof, binding: &[u8], now: UnixMs) -> Result<Checked, Refused> {
        let present = self.epoch(now);
        let mut refused = Refused::Wrong;
        // Every epoch is tried, so that the time it takes does not tell which.
        let mut right = None;
        for epoch in present.saturating_sub(EPOCHS)..=present {
            let token = self.derive(epoch);
            if !bool::from(hash(&token, b"Initiator", binding).ct_eq(&proof.hash)) {
                continue;
            }
            if epoch + EPOCHS <= present {
                refused = Refused::Expired;
                continue;
            }
            right = Some(Checked {
                answer: hash(&token, b"Responder", binding).to_vec(),
                token: name(&token),
                is_old: epoch < present,
            });
        }
        right.ok_or(refused)
    }

    fn epoch_ms(&self) -> u64 {
        (self.lifetime_ms / EPOCHS).max(1)
    }

    fn epoch(&self, now: UnixMs) -> u64 {
        now.0 / self.epoch_ms()
    }

    fn derive(&self, epoch: u64) -> String {
        let mut mac = keyed(self.secret);
        mac.update(b"\0fast token\0");
        mac.update(self.stamp.bytes());
        mac.update(&self.agent.0.to_be_bytes());
        mac.update(&self.revocations.generation(self.agent).to_be_bytes());
        // A change of the lifetime changes what an epoch is.
        mac.update(&self.epoch_ms().to_be_bytes());
        mac.update(&epoch.to_be_bytes());
        mac.update(self.mechanism.as_str().as_bytes());
        URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
    }
}

/// The name of a token for counting its uses, which does not reveal the token.
fn name(token: &str) -> u64 {
    u64::from_be_bytes(*hash(token, b"name", b"").first_chunk().expect("8 of 32 bytes"))
}

/// A message of the mechanism: the client's begins with `Initiator`, the server's with `Responder`.
fn hash(token: &str, role: &[u8], binding: &[u8]) -> [u8; 32] {
    let mut mac = keyed(token.as_bytes());
    mac.update(role);
    mac.update(binding);
    mac.finalize().into_bytes().into()
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes a key of any length")
}
