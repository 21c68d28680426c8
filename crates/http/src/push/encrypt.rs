//! Encryption of pushes to one app (RFC 8291), in the content coding `aes128gcm` (RFC 8188).

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::agreement::{ECDH_P256, ParsedPublicKey, PrivateKey, UnparsedPublicKey, agree};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The longest plaintext: what push services must take is 4096 bytes (RFC 8030 §7.2), among them the head, the delimiter and the tag.
pub(super) const PLAINTEXT_MAX: usize = RECORD - HEAD - 1 - TAG;

/// Why a push cannot be encrypted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`p256dh` is no point of the curve P-256")]
pub(super) struct BadKey;

/// Whether these bytes are a point of the curve.
pub(super) fn is_point(p256dh: &[u8; 65]) -> bool {
    p256dh[0] == 4 && ParsedPublicKey::try_from(UnparsedPublicKey::new(&ECDH_P256, p256dh)).is_ok()
}

/// Encrypts `plaintext`, at most [`PLAINTEXT_MAX`] bytes, for the app with this public key and authentication secret.
pub(super) fn encrypt(plaintext: &[u8], p256dh: &[u8; 65], auth: &[u8]) -> Result<Vec<u8>, BadKey> {
    let own = PrivateKey::generate(&ECDH_P256).expect("the operating system gives randomness");
    encrypt_with(plaintext, p256dh, auth, &own, crate::random::bytes())
}

fn encrypt_with(
    plaintext: &[u8],
    p256dh: &[u8; 65],
    auth: &[u8],
    own: &PrivateKey,
    salt: [u8; 16],
) -> Result<Vec<u8>, BadKey> {
    debug_assert!(plaintext.len() <= PLAINTEXT_MAX);
    let public = own.compute_public_key().map_err(|_| BadKey)?;
    // RFC 8291 §3.3 and §3.4: each key is the first block of an HKDF.
    let secret =
        agree(own, UnparsedPublicKey::new(&ECDH_P256, p256dh), BadKey, |secret| Ok(hmac(auth, &[secret])))?;
    let material = hmac(&secret, &[b"WebPush: info\0", p256dh, public.as_ref(), &[1]]);
    let random = hmac(&salt, &[&material]);
    let key = hmac(&random, &[b"Content-Encoding: aes128gcm\0\x01"]);
    let nonce = hmac(&random, &[b"Content-Encoding: nonce\0\x01"]);
    // RFC 8188 §2: the head, then one record, which ends with the delimiter of the last.
    let mut out = Vec::with_capacity(HEAD + plaintext.len() + 1 + TAG);
    out.extend_from_slice(&salt);
    out.extend_from_slice(&(RECORD as u32).to_be_bytes());
    out.push(public.as_ref().len() as u8);
    out.extend_from_slice(public.as_ref());
    let mut record = [plaintext, &[2]].concat();
    let nonce: [u8; 12] = *nonce.first_chunk().expect("12 of 32 bytes");
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key[..16]).expect("16 bytes"));
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut record)
        .expect("a record is short");
    out.extend_from_slice(&record);
    Ok(out)
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

const RECORD: usize = 4096;
const HEAD: usize = 16 + 4 + 1 + 65;
const TAG: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;

    fn bytes(text: &str) -> Vec<u8> {
        BASE64.decode(text).expect("base64url")
    }

    /// RFC 8291 §5 and appendix A.
    #[test]
    fn it_is_as_the_example_of_the_rfc() {
        let p256dh =
            bytes("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4");
        let own = bytes("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw");
        let own = PrivateKey::from_private_key(&ECDH_P256, &own).expect("a key");
        let salt = bytes("DGv6ra1nlYgDCS1FRnbzlw").try_into().expect("16 bytes");
        let auth = bytes("BTBZMqHH6r4Tts7J_aSIgg");
        let plaintext = b"When I grow up, I want to be a watermelon";
        let sent =
            encrypt_with(plaintext, &p256dh.try_into().expect("65 bytes"), &auth, &own, salt).expect("a key");
        assert_eq!(
            BASE64.encode(sent),
            "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
        );
    }

    #[test]
    fn the_longest_is_as_long_as_push_services_take() {
        let own = PrivateKey::generate(&ECDH_P256).expect("a key");
        let p256dh = own.compute_public_key().expect("a key").as_ref().try_into().expect("65 bytes");
        let sent = encrypt(&[b'a'; PLAINTEXT_MAX], &p256dh, &[1; 16]).expect("a key");
        assert_eq!(sent.len(), 4096);
        assert_ne!(encrypt(b"a", &p256dh, &[1; 16]), encrypt(b"a", &p256dh, &[1; 16]));
    }

    #[test]
    fn what_is_no_point_of_the_curve_is_refused() {
        assert_eq!(encrypt(b"a", &[4; 65], &[1; 16]), Err(BadKey));
        let own = PrivateKey::generate(&ECDH_P256).expect("a key");
        let p256dh = own.compute_public_key().expect("a key").as_ref().try_into().expect("65 bytes");
        assert!(is_point(&p256dh) && !is_point(&[4; 65]) && !is_point(&[0; 65]));
    }
}
