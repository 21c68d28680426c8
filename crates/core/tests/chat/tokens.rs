//! Proofs of tokens (XEP-0484), as a client makes them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Replaces each `{ht USER TOKEN}` by the message of the mechanism HT-SHA-256-NONE.
pub(crate) fn fill(text: &str) -> String {
    let Some((before, rest)) = text.split_once("{ht ") else { return text.to_owned() };
    let Some((words, after)) = rest.split_once('}') else { return text.to_owned() };
    let (user, token) = words.split_once(' ').unwrap_or((words, ""));
    let mut mac = Hmac::<Sha256>::new_from_slice(token.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(b"Initiator");
    let message = [user.as_bytes(), b"\0", &mac.finalize().into_bytes()].concat();
    format!("{before}{}{}", BASE64.encode(message), fill(after))
}
