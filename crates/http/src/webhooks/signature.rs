//! Signatures of requests, and the secrets they are made with, as Standard Webhooks has them.

use crate::random;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use carillon_core::model::WebhookSecret;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// A secret that nobody can guess.
pub(crate) fn new_secret() -> WebhookSecret {
    WebhookSecret(Box::new(random::bytes::<32>()))
}

/// The secret that somebody wrote: `whsec_` and the base64 of 24 to 64 bytes.
pub(crate) fn read_secret(text: &str) -> Option<WebhookSecret> {
    let bytes = STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
    (24..=64).contains(&bytes.len()).then(|| WebhookSecret(bytes.into()))
}

/// The secret, as its owner is shown it.
pub(crate) fn write_secret(secret: &WebhookSecret) -> String {
    format!("{PREFIX}{}", STANDARD.encode(&secret.0))
}

/// The headers of a message whose body is JSON.
pub(crate) fn headers(
    secret: &WebhookSecret,
    id: &str,
    timestamp: u64,
    body: &[u8],
) -> Vec<(&'static str, String)> {
    vec![
        ("content-type", "application/json".to_owned()),
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", timestamp.to_string()),
        ("webhook-signature", sign(secret, id, timestamp, body)),
    ]
}

/// The header `webhook-signature` of a message.
fn sign(secret: &WebhookSecret, id: &str, timestamp: u64, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(&secret.0).expect("HMAC takes keys of any length");
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

const PREFIX: &str = "whsec_";

#[cfg(test)]
mod tests {
    use super::*;

    /// The example that the libraries of Standard Webhooks are tested with.
    #[test]
    fn signatures_are_those_of_the_standard() {
        let secret = read_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a secret");
        let signature =
            sign(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn secrets_have_a_form_and_a_length() {
        let secret = new_secret();
        assert_eq!(read_secret(&write_secret(&secret)), Some(secret));
        let of = |length: usize| format!("whsec_{}", STANDARD.encode(vec![1; length]));
        assert!(read_secret(&of(24)).is_some() && read_secret(&of(64)).is_some());
        for text in [of(23), of(65), STANDARD.encode([1; 32]), "whsec_!".to_owned(), String::new()] {
            assert_eq!(read_secret(&text), None, "{text}");
        }
    }
}
