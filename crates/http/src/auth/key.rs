//! The text of API keys: `crl_` and 43 characters of base64url that stand for 32 random bytes.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// A new key: its text, shown once, and the hash that the store keeps.
pub fn generate() -> (String, [u8; 32]) {
    let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(crate::random::bytes::<32>()));
    let hash = digest(&text);
    (text, hash)
}

/// The hash of a key's text; none if it does not look like a key, which spares the store the question.
pub fn hash(text: &str) -> Option<[u8; 32]> {
    let random = text.strip_prefix(PREFIX)?;
    let plausible = random.len() == RANDOM_LEN
        && random.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_');
    plausible.then(|| digest(text))
}

fn digest(text: &str) -> [u8; 32] {
    // 256 random bits need no salt and no slow hash.
    Sha256::digest(text).into()
}

const PREFIX: &str = "crl_";
const RANDOM_LEN: usize = 43;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_keys_look_like_keys() {
        let (text, stored) = generate();
        assert_eq!(text.len(), 47);
        assert_eq!(hash(&text), Some(stored));
        assert_ne!(generate().0, text);
    }

    #[test]
    fn other_text_is_no_key() {
        let (text, _) = generate();
        for wrong in
            ["", "crl_", &text[1..], &text[..46], &format!("{text}A"), &format!("crl_{}", "!".repeat(43))]
        {
            assert_eq!(hash(wrong), None, "{wrong}");
        }
    }
}
