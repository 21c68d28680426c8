use super::token::Refused;
use super::*;
use crate::model::{AgentId, Credentials, Revocations, ScramKeys, UnixMs};
use crate::sasl::{ChannelBinding, Stamp};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use carillon_wire::jid::BareJid;
use hmac::{Hmac, KeyInit, Mac};

const DAY: u64 = 86_400_000;
const NOW: UnixMs = UnixMs(1_795_167_000_000);

fn alice() -> BareJid {
    BareJid::new("alice@localhost").expect("a JID")
}

fn keys(n: u8) -> Credentials {
    let keys = ScramKeys {
        salt: [n; 16].into(),
        iterations: 4096,
        stored_key: [n; 32].into(),
        server_key: [n; 32].into(),
    };
    Credentials { sha1: None, sha256: Some(keys) }
}

fn tokens(stamp: Stamp, revocations: &Revocations) -> Tokens<'_> {
    let (agent, mechanism) = (AgentId(7), Mechanism::EndPoint);
    Tokens { secret: &[1; 32], lifetime_ms: 20 * DAY, stamp, revocations, agent, mechanism }
}

fn mac(key: &str, data: &[&[u8]]) -> Vec<u8> {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(key.as_bytes()).expect("any key");
    data.iter().for_each(|data| mac.update(data));
    mac.finalize().into_bytes().to_vec()
}

fn proof(token: &str, binding: &[u8]) -> Proof {
    let message = [b"alice\0", &mac(token, &[b"Initiator", binding])[..]].concat();
    Proof::parse(&message).expect("well-formed")
}

#[test]
fn a_token_is_good_for_its_lifetime_and_replaced_before() {
    let (stamp, none) = (Stamp::of(&[1; 32], &alice(), &keys(1)), Revocations::default());
    let tokens = tokens(stamp, &none);
    let GivenToken { token, expires, .. } = tokens.give(NOW);
    let life = expires.0 - NOW.0;
    assert!((15 * DAY..=20 * DAY).contains(&life), "{life}");

    let proof = proof(&token, b"certificate");
    let checked = tokens.check(&proof, b"certificate", NOW).expect("right");
    assert_eq!(checked.answer, mac(&token, &[b"Responder", b"certificate"]));
    assert!(!checked.is_old);
    let last = UnixMs(expires.0 - 1);
    assert!(tokens.check(&proof, b"certificate", last).expect("still good").is_old);
    assert_eq!(tokens.check(&proof, b"certificate", expires), Err(Refused::Expired));
    assert_eq!(tokens.check(&proof, b"certificate", expires.plus(20 * DAY)), Err(Refused::Wrong));
    assert_eq!(tokens.check(&proof, b"another", NOW), Err(Refused::Wrong));
}

/// What tokens are derived from stays as it is, or an update of the server ends those of all devices.
#[test]
fn tokens_that_were_given_stay_good() {
    let stamp = Stamp::of(&[1; 32], &alice(), &keys(1));
    let given = tokens(stamp, &Revocations::default()).give(NOW);
    assert_eq!(given.token, "b4F7xztcI1M2xW0TNctsdMYgcONCzi_KkorofIhFdmw");
}

#[test]
fn a_token_is_of_one_account_password_client_mechanism_and_generation() {
    let none = Revocations::default();
    let stamp = Stamp::of(&[1; 32], &alice(), &keys(1));
    let token = tokens(stamp, &none).give(NOW).token;
    let mut revoked = Revocations::default();
    revoked.revoke(AgentId(7));
    let mut all_revoked = Revocations::default();
    all_revoked.revoke_all();
    let bob = BareJid::new("bob@localhost").expect("a JID");
    let others = [
        tokens(Stamp::of(&[1; 32], &bob, &keys(1)), &none),
        tokens(Stamp::of(&[1; 32], &alice(), &keys(2)), &none),
        tokens(Stamp::of(&[1; 32], &alice(), &Credentials::default()), &none),
        Tokens { agent: AgentId(8), ..tokens(stamp, &none) },
        Tokens { mechanism: Mechanism::Unbound, ..tokens(stamp, &none) },
        Tokens { secret: &[2; 32], ..tokens(stamp, &none) },
        Tokens { lifetime_ms: DAY, ..tokens(stamp, &none) },
        tokens(stamp, &revoked),
        tokens(stamp, &all_revoked),
    ];
    for other in others {
        assert_ne!(other.give(NOW).token, token, "{other:?}");
        assert_eq!(other.check(&proof(&token, b""), b"", NOW), Err(Refused::Wrong), "{other:?}");
    }
}

#[test]
fn messages_are_a_name_and_a_hash() {
    let whole = [&b"alice\0"[..], &[9; 32]].concat();
    assert_eq!(Proof::parse(&whole).map(|p| p.username).as_deref(), Some("alice"));
    let wrong: [&[u8]; 5] = [b"", b"alice", b"alice\0short", &[0; 33], &[&[0xff, 0][..], &[1; 32]].concat()];
    for message in wrong {
        assert!(Proof::parse(message).is_none(), "{}", BASE64.encode(message));
    }
}

#[test]
fn only_what_the_connection_has_is_usable() {
    let names =
        |protection: &Protection| Mechanism::usable(protection).map(Mechanism::as_str).collect::<Vec<_>>();
    let exporter = ChannelBinding { exporter: Some([1; 32]), end_point: Some(b"hash"[..].into()) };
    assert_eq!(names(&Protection::Tls(exporter)), ["HT-SHA-256-EXPR", "HT-SHA-256-ENDP", "HT-SHA-256-NONE"]);
    assert_eq!(names(&Protection::Tls(ChannelBinding::default())), ["HT-SHA-256-NONE"]);
    assert_eq!(names(&Protection::Trusted), [""; 0]);
}
