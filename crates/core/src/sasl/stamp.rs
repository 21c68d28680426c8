//! A keyed hash of an account's keys, for use where the keys are not kept.

use crate::model::{Credentials, ScramKeys};
use carillon_wire::jid::BareJid;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// A hash of an account's name and keys under the node's secret. A new password makes another stamp, which invalidates what was
/// cached with the old one or derived from it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Stamp([u8; 16]);

impl Stamp {
    /// The stamp of an account with these keys.
    pub fn of(secret: &[u8], account: &BareJid, credentials: &Credentials) -> Stamp {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes a key of any length");
        // A NUL stands in no JID, so this is no input of any other use of the secret.
        mac.update(b"\0fast stamp\0");
        mac.update(account.as_str().as_bytes());
        for keys in [&credentials.sha1, &credentials.sha256] {
            mac.update(b"\0");
            if let Some(ScramKeys { salt, stored_key, .. }) = keys {
                mac.update(salt);
                mac.update(stored_key);
            }
        }
        let bytes: [u8; 32] = mac.finalize().into_bytes().into();
        Stamp(*bytes.first_chunk().expect("16 of 32 bytes"))
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

// Tokens are derived from it: it never reaches a log.
impl std::fmt::Debug for Stamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stamp")
    }
}
