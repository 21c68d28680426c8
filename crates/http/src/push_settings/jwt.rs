//! Signed tokens (RFC 7519) by which push services know who sends.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair as RsaKeyPair;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA256};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;

/// A key of P-256, of a text in PEM.
pub(crate) fn ec_key(pem: &[u8]) -> Result<EcdsaKeyPair, String> {
    let der = PrivateKeyDer::from_pem_slice(pem).map_err(|error| error.to_string())?;
    EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_FIXED_SIGNING, der.secret_der())
        .map_err(|_| "there is no key of the curve P-256 in it".to_owned())
}

/// A key of RSA, of a text in PEM.
pub(crate) fn rsa_key(pem: &[u8]) -> Result<RsaKeyPair, String> {
    let bad = || "there is no key of RSA in it, with 2048 bits or more".to_owned();
    match PrivateKeyDer::from_pem_slice(pem).map_err(|error| error.to_string())? {
        PrivateKeyDer::Pkcs8(der) => RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).map_err(|_| bad()),
        PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der()).map_err(|_| bad()),
        _ => Err(bad()),
    }
}

/// A token signed by ES256 (RFC 7518 §3.4). `head` is what its header has besides the algorithm.
pub(crate) fn es256(key: &EcdsaKeyPair, head: &Value, claims: &Value) -> String {
    let signed = unsigned("ES256", head, claims);
    let signature = key.sign(&SystemRandom::new(), signed.as_bytes()).expect("the key is whole");
    format!("{signed}.{}", BASE64.encode(signature))
}

/// A token signed by RS256 (RFC 7518 §3.3).
pub(crate) fn rs256(key: &RsaKeyPair, head: &Value, claims: &Value) -> String {
    let signed = unsigned("RS256", head, claims);
    let mut signature = vec![0; key.public_modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
        .expect("the key is whole, and the signature as long as its modulus");
    format!("{signed}.{}", BASE64.encode(signature))
}

fn unsigned(algorithm: &str, head: &Value, claims: &Value) -> String {
    let mut whole = serde_json::json!({ "typ": "JWT", "alg": algorithm });
    if let (Some(whole), Some(head)) = (whole.as_object_mut(), head.as_object()) {
        whole.extend(head.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    format!("{}.{}", BASE64.encode(whole.to_string()), BASE64.encode(claims.to_string()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
    use aws_lc_rs::rsa::KeySize;
    use aws_lc_rs::signature::{
        ECDSA_P256_SHA256_FIXED, KeyPair, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
    };
    use base64::engine::general_purpose::STANDARD;

    /// A key as PEM.
    fn pem(der: &[u8]) -> String {
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(der))
    }

    /// A new key of P-256, as PEM.
    pub(crate) fn ec_pem() -> String {
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        pem(key.expect("it is made").as_ref())
    }

    /// A new key of RSA, as PEM.
    pub(crate) fn rsa_pem() -> String {
        let key = RsaKeyPair::generate(KeySize::Rsa2048).expect("it is made");
        let der: Pkcs8V1Der<'_> = key.as_der().expect("it has a form");
        pem(der.as_ref())
    }

    #[test]
    fn tokens_are_signed_and_say_what_is_claimed() {
        let (head, claims) =
            (serde_json::json!({ "kid": "K1" }), serde_json::json!({ "iss": "me", "iat": 7 }));
        let (ec, rsa) =
            (ec_key(ec_pem().as_bytes()).expect("a key"), rsa_key(rsa_pem().as_bytes()).expect("a key"));
        let ec_public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, ec.public_key().as_ref().to_vec());
        let rsa_public =
            UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, rsa.public_key().as_ref().to_vec());
        for (token, public, algorithm) in [
            (es256(&ec, &head, &claims), ec_public, "ES256"),
            (rs256(&rsa, &head, &claims), rsa_public, "RS256"),
        ] {
            let (signed, signature) = token.rsplit_once('.').expect("three parts");
            let signature = BASE64.decode(signature).expect("base64url");
            public.verify(signed.as_bytes(), &signature).expect("it is signed");
            let (head, claimed) = signed.split_once('.').expect("two parts");
            let read = |part| {
                serde_json::from_slice::<Value>(&BASE64.decode(part).expect("base64url")).expect("JSON")
            };
            assert_eq!(read(head), serde_json::json!({ "typ": "JWT", "alg": algorithm, "kid": "K1" }));
            assert_eq!(read(claimed), claims);
        }
    }

    #[test]
    fn a_key_of_another_kind_is_refused() {
        assert!(ec_key(rsa_pem().as_bytes()).is_err() && rsa_key(ec_pem().as_bytes()).is_err());
        assert!(ec_key(b"").is_err() && rsa_key(b"nothing").is_err());
    }
}
