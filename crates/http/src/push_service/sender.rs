//! Who sends a push (RFC 8292), where an endpoint takes pushes of one sender alone.

use crate::problem::{Code, Problem};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use carillon_core::model::{SenderKey, UnixMs};

/// What a token says of itself (RFC 7519).
#[derive(serde::Deserialize)]
struct Head {
    alg: String,
}

/// What a token claims (RFC 8292 §2).
#[derive(serde::Deserialize)]
struct Claims {
    aud: String,
    exp: u64,
}

/// Whether a push is of the sender with this key, said to the push service at `origin`.
pub(super) fn check(headers: &HeaderMap, key: &SenderKey, origin: &str, now: UnixMs) -> Result<(), Problem> {
    let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let vapid = header
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("vapid"));
    let Some((_, parameters)) = vapid else {
        let detail = "the endpoint is for one sender, who says that it is by `Authorization: vapid t=…, k=…`";
        let problem = Problem::new(Code::MissingSender, detail);
        return Err(problem.with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("vapid")));
    };
    let parameter = |name: &str| {
        let mut all = parameters.split(',').filter_map(|part| part.trim().split_once('='));
        all.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().trim_matches('"'))
    };
    let (Some(token), Some(given)) = (parameter("t"), parameter("k")) else {
        return Err(other("`t` and `k` are the token and the key of the sender"));
    };
    if BASE64.decode(given.trim_end_matches('=')).ok().as_deref() != Some(&key[..]) {
        return Err(other("the endpoint is for another sender"));
    }
    let claims =
        signed_by(token, key).ok_or_else(|| other("the token is not signed with the key by ES256"))?;
    if claims.aud != origin {
        return Err(other(format!("`aud` of the token has to be `{origin}`")));
    }
    let (now, latest) = (now.0 / 1000, now.0 / 1000 + VALID_MAX);
    // Clocks differ a little.
    if claims.exp + LATE < now || claims.exp > latest + LATE {
        return Err(other("the token has expired, or is valid for more than 24 hours"));
    }
    Ok(())
}

/// What a token claims that is signed with this key.
fn signed_by(token: &str, key: &SenderKey) -> Option<Claims> {
    let (signed, signature) = token.rsplit_once('.')?;
    let (head, claims) = signed.split_once('.')?;
    let head: Head = serde_json::from_slice(&BASE64.decode(head).ok()?).ok()?;
    if head.alg != "ES256" {
        return None;
    }
    let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key);
    public.verify(signed.as_bytes(), &BASE64.decode(signature).ok()?).ok()?;
    serde_json::from_slice(&BASE64.decode(claims).ok()?).ok()
}

fn other(detail: impl Into<String>) -> Problem {
    Problem::new(Code::OtherSender, detail)
}

/// The longest time for which a token may be valid, seconds (RFC 8292 §2).
const VALID_MAX: u64 = 24 * 3600;
/// How much clocks may differ, seconds.
const LATE: u64 = 60;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push_settings::jwt;
    use aws_lc_rs::signature::{EcdsaKeyPair, KeyPair};
    use serde_json::json;

    const NOW: UnixMs = UnixMs(1_795_000_000_000);
    const ORIGIN: &str = "https://push.example";

    fn key() -> EcdsaKeyPair {
        jwt::ec_key(jwt::tests::ec_pem().as_bytes()).expect("a key")
    }

    fn public(key: &EcdsaKeyPair) -> SenderKey {
        key.public_key().as_ref().try_into().expect("65 bytes")
    }

    fn said(authorization: Option<&str>, key: &EcdsaKeyPair) -> Result<(), Code> {
        let value = authorization.map(|text| HeaderValue::from_str(text).expect("ASCII"));
        let headers = value.map(|value| (header::AUTHORIZATION, value)).into_iter().collect();
        check(&headers, &public(key), ORIGIN, NOW).map_err(|problem| problem.code())
    }

    fn token(key: &EcdsaKeyPair, aud: &str, exp: u64) -> String {
        jwt::es256(key, &json!({}), &json!({ "aud": aud, "exp": exp, "sub": "mailto:a@b.example" }))
    }

    #[test]
    fn the_sender_of_the_key_is_let_through() {
        let key = key();
        let k = BASE64.encode(public(&key));
        let t = token(&key, ORIGIN, NOW.0 / 1000 + 3600);
        for header in [
            format!("vapid t={t}, k={k}"),
            format!("vapid k={k},t={t}"),
            format!("Vapid t=\"{t}\", k=\"{k}\""),
            format!("vapid t={t}, k={k}="),
        ] {
            assert_eq!(said(Some(&header), &key), Ok(()), "{header}");
        }
    }

    #[test]
    fn all_others_are_refused() {
        let (key, another, at) = (key(), key(), NOW.0 / 1000);
        let k = BASE64.encode(public(&key));
        let header = |token: &str, k: &str| format!("vapid t={token}, k={k}");
        let good = token(&key, ORIGIN, at + 60);
        assert_eq!(said(None, &key), Err(Code::MissingSender));
        assert_eq!(said(Some("Bearer abc"), &key), Err(Code::MissingSender));
        let of_another = header(&token(&another, ORIGIN, at + 60), &BASE64.encode(public(&another)));
        let (head, rest) = good.split_once('.').expect("three parts");
        let none = format!("{}.{rest}", BASE64.encode(r#"{"alg":"none"}"#));
        for wrong in [
            of_another,
            header(&token(&another, ORIGIN, at + 60), &k),
            header(&token(&key, "https://other.example", at + 60), &k),
            header(&token(&key, ORIGIN, at - 61), &k),
            header(&token(&key, ORIGIN, at + 24 * 3600 + 61), &k),
            header(&none, &k),
            header(head, &k),
            header("", &k),
            format!("vapid t={good}"),
            "vapid x".to_owned(),
        ] {
            assert_eq!(said(Some(&wrong), &key), Err(Code::OtherSender), "{wrong}");
        }
        assert_eq!(said(Some(&header(&good, &k)), &key), Ok(()));
    }
}
