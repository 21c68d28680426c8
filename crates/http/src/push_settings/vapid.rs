//! How push services know this server (RFC 8292): by a key, with which it signs that it is the sender.

use super::jwt;
use aws_lc_rs::agreement::{ECDH_P256, PrivateKey};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use carillon_core::model::UnixMs;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The key by which push services know this server. Its `Debug` form shows the public part only.
#[derive(Clone)]
pub struct VapidKey(Arc<EcdsaKeyPair>);

impl fmt::Debug for VapidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VapidKey({})", self.public())
    }
}

impl VapidKey {
    /// The one that follows from a secret of the node.
    pub fn of_secret(secret: &[u8; 32]) -> VapidKey {
        let mut keys = (0..=u8::MAX).filter_map(|counter| {
            let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of any length");
            mac.update(b"carillon: key for push services\0");
            mac.update(&[counter]);
            VapidKey::of_scalar(&mac.finalize().into_bytes())
        });
        // Of 2^32 numbers of 32 bytes all but one are keys.
        keys.next().expect("one of 256 is a key")
    }

    /// The one in a file: as PEM (PKCS#8), or the number in base64url, as tools for Web Push make it.
    ///
    /// # Errors
    /// When it cannot be read, or holds no key of P-256.
    pub fn load(path: &Path) -> Result<VapidKey, String> {
        let failed = |error: &dyn fmt::Display| format!("push.vapid_key_file: {}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
        let no_key = || failed(&"there is no key of the curve P-256 in it");
        if text.contains("-----BEGIN") {
            let key = jwt::ec_key(text.as_bytes()).map_err(|error| failed(&error))?;
            return Ok(VapidKey(Arc::new(key)));
        }
        let scalar = BASE64.decode(text.trim().trim_end_matches('=')).map_err(|error| failed(&error))?;
        VapidKey::of_scalar(&scalar).ok_or_else(no_key)
    }

    fn of_scalar(scalar: &[u8]) -> Option<VapidKey> {
        let public = PrivateKey::from_private_key(&ECDH_P256, scalar).ok()?.compute_public_key().ok()?;
        let key = EcdsaKeyPair::from_private_key_and_public_key(
            &ECDSA_P256_SHA256_FIXED_SIGNING,
            scalar,
            public.as_ref(),
        );
        key.ok().map(|key| VapidKey(Arc::new(key)))
    }

    /// The public part in base64url, as browsers want it for a subscription (`applicationServerKey`).
    pub fn public(&self) -> String {
        BASE64.encode(self.0.public_key())
    }

    /// A token for the push service at `origin`, until `expires` (§2).
    fn token(&self, origin: &str, subject: &str, expires: UnixMs) -> String {
        let claims = serde_json::json!({ "aud": origin, "exp": expires.0 / 1000, "sub": subject });
        jwt::es256(&self.0, &serde_json::json!({}), &claims)
    }
}

/// Tokens for push services, each used for some hours: signing costs more than all else of a push.
#[derive(Debug)]
pub(crate) struct Tokens {
    key: VapidKey,
    /// Whom a push service asks if something is wrong (§2.1).
    subject: String,
    /// By the origins of the push services, with the time from which on another one is made.
    made: Mutex<HashMap<String, (String, UnixMs)>>,
}

impl Tokens {
    pub(crate) fn new(key: VapidKey, subject: String) -> Tokens {
        Tokens { key, subject, made: Mutex::default() }
    }

    /// The public part of the key.
    pub(crate) fn public(&self) -> String {
        self.key.public()
    }

    /// The header `Authorization` for a push service (§3).
    pub(crate) fn authorization(&self, origin: &str, now: UnixMs) -> String {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((header, renew)) = made.get(origin)
            && *renew > now
            && renew.0 <= now.plus(KEPT_MS).0
        {
            return header.clone();
        }
        let token = self.key.token(origin, &self.subject, now.plus(VALID_MS));
        let header = format!("vapid t={token}, k={}", self.key.public());
        if made.len() >= ORIGINS_MAX {
            made.clear();
        }
        made.insert(origin.to_owned(), (header.clone(), now.plus(KEPT_MS)));
        header
    }
}

/// For how long a token is valid: at most 24 hours (§2).
const VALID_MS: u64 = 12 * 3_600_000;
/// For how long it is used.
const KEPT_MS: u64 = 6 * 3_600_000;
/// Push services whose tokens are kept.
const ORIGINS_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    #[test]
    fn a_token_says_who_sends_and_to_whom_until_when() {
        let tokens = Tokens::new(VapidKey::of_secret(&[7; 32]), "mailto:a@b.example".to_owned());
        let (now, origin) = (UnixMs(1_795_000_000_000), "https://push.example");
        let header = tokens.authorization(origin, now);
        let (token, key) =
            header.strip_prefix("vapid t=").and_then(|rest| rest.split_once(", k=")).expect("both");
        let (signed, signature) = token.rsplit_once('.').expect("three parts");
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, BASE64.decode(key).expect("base64url"));
        key.verify(signed.as_bytes(), &BASE64.decode(signature).expect("base64url")).expect("it is signed");
        let claims = BASE64.decode(signed.split_once('.').expect("two parts").1).expect("base64url");
        let claims: serde_json::Value = serde_json::from_slice(&claims).expect("JSON");
        let expected = serde_json::json!({ "aud": origin, "exp": 1_795_000_000 + 12 * 3600, "sub": "mailto:a@b.example" });
        assert_eq!(claims, expected);
        // It is used again, for some hours, and by nobody else.
        assert_eq!(tokens.authorization(origin, now.plus(KEPT_MS - 1)), header);
        assert_ne!(tokens.authorization(origin, now.plus(KEPT_MS)), header);
        assert_ne!(tokens.authorization("https://other.example", now), header);
    }

    #[test]
    fn a_key_follows_from_the_secret_or_is_in_a_file() {
        assert_eq!(VapidKey::of_secret(&[1; 32]).public(), VapidKey::of_secret(&[1; 32]).public());
        assert_ne!(VapidKey::of_secret(&[1; 32]).public(), VapidKey::of_secret(&[2; 32]).public());
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("key");
        // RFC 8291 appendix A has this pair.
        std::fs::write(&path, "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw\n").expect("written");
        let public =
            "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8";
        assert_eq!(VapidKey::load(&path).expect("a key").public(), public);
        for wrong in ["", "AAAA", "!", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
            std::fs::write(&path, wrong).expect("written");
            assert!(
                VapidKey::load(&path).is_err_and(|error| error.contains("push.vapid_key_file")),
                "{wrong}"
            );
        }
        assert!(VapidKey::load(&dir.path().join("none")).is_err());
    }
}
