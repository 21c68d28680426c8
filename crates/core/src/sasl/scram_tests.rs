use super::*;
use crate::sasl::ChannelBinding;

const SHA256: (Mechanism, Hash) = (Mechanism::ScramSha256, Hash::Sha256);

fn first(message: &str) -> Result<ClientFirst, Failure> {
    ClientFirst::parse(SHA256.0, SHA256.1, message, false)
}

/// RFC 7677 §3.
#[test]
fn rfc_7677_example() {
    let salt = BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").expect("base 64");
    let keys = keys("pencil", &salt, 4096).expect("a password").sha256.expect("both hashes");
    let client = first("n,,n=user,r=rOprNGfwEbeRWgbNEkqO").expect("well-formed");
    assert_eq!(client.username, "user");
    let (server, challenged) = client.challenge(keys, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0");
    assert_eq!(
        server,
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    );
    let answer = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                  p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
    assert_eq!(challenged.verify(answer).as_deref(), Ok("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
}

/// RFC 5802 §5.
#[test]
fn rfc_5802_example() {
    let salt = BASE64.decode("QSXCR+Q6sek8bf92").expect("base 64");
    let keys = keys("pencil", &salt, 4096).expect("a password").sha1.expect("both hashes");
    let client =
        ClientFirst::parse(Mechanism::ScramSha1, Hash::Sha1, "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL", false)
            .expect("ok");
    let (_, challenged) = client.challenge(keys, "3rfcNHYJY1ZVvWVs7j");
    let answer = "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=";
    assert_eq!(challenged.verify(answer).as_deref(), Ok("v=rmF9pqV8S7suAoZWja4dJRkFsKQ="));
}

#[test]
fn a_wrong_proof_nonce_or_binding_is_refused() {
    let keys = || keys("pencil", b"0123456789abcdef", 4096).expect("a password").sha256.expect("both hashes");
    let challenged = || {
        let client = first("n,,n=user,r=abc").expect("well-formed");
        client.challenge(keys(), "def").1
    };
    let proof = BASE64.encode([7u8; 32]);
    assert_eq!(challenged().verify(&format!("c=biws,r=abcdef,p={proof}")), Err(Failure::NotAuthorized));
    assert_eq!(challenged().verify(&format!("c=biws,r=abcxyz,p={proof}")), Err(Failure::NotAuthorized));
    assert_eq!(challenged().verify(&format!("c=eSws,r=abcdef,p={proof}")), Err(Failure::NotAuthorized));
    assert_eq!(challenged().verify("c=biws,r=abcdef,p=!!"), Err(Failure::IncorrectEncoding));
    assert_eq!(challenged().verify("c=biws,r=abcdef,p=AAAA"), Err(Failure::MalformedRequest));
    assert_eq!(challenged().verify("c=biws"), Err(Failure::MalformedRequest));
}

#[test]
fn first_messages_are_parsed_strictly() {
    assert_eq!(first("n,,n=a=2Cb=3Dc,r=x").map(|f| f.username), Ok("a,b=c".into()));
    assert_eq!(first("n,a=alice,n=bob,r=x").map(|f| f.authzid), Ok(Some("alice".into())));
    for bad in [
        "",
        "n",
        "n,,",
        "n,,m=x,n=a,r=b",
        "n,,n=,r=b",
        "n,,n=a=2",
        "n,,n=a=41,r=x",
        "n,,n=a",
        "n,,n=a,r=",
        "x,,n=a,r=b",
        "n,alice,n=a,r=b",
        "p=tls-exporter,,n=a,r=b",
        "n,,n=a,r=\u{e9}",
    ] {
        assert_eq!(first(bad).map(|f| f.username), Err(Failure::MalformedRequest), "{bad}");
    }
}

#[test]
fn a_downgrade_of_channel_binding_is_noticed() {
    let parse = |plus| ClientFirst::parse(SHA256.0, SHA256.1, "y,,n=a,r=b", plus).map(|f| f.username);
    assert_eq!(parse(true), Err(Failure::NotAuthorized));
    assert_eq!(parse(false), Ok("a".into()));
}

#[test]
fn the_channel_is_bound() {
    let keys = keys("pencil", b"0123456789abcdef", 4096).expect("a password").sha256.expect("both hashes");
    let plus = |name: &str| {
        let message = format!("p={name},,n=user,r=abc");
        ClientFirst::parse(Mechanism::ScramSha256Plus, Hash::Sha256, &message, true).expect("well-formed")
    };
    let channel = ChannelBinding { exporter: Some([9; 32]), end_point: None };
    let mut known = plus("tls-exporter");
    assert_eq!(known.bind(&channel), Ok(()));
    let (_, challenged) = known.challenge(keys, "def");
    assert_eq!(challenged.binding, BASE64.encode([&b"p=tls-exporter,,"[..], &[9; 32]].concat()));
    assert_eq!(plus("tls-unique").bind(&channel), Err(Failure::UnknownBinding));
    assert_eq!(plus("tls-server-end-point").bind(&channel), Err(Failure::UnknownBinding));
}

#[test]
fn a_first_message_is_bounded() {
    let message = format!("n,,n=a,r={}", "x".repeat(FIRST_BYTES_MAX));
    assert_eq!(first(&message).map(|f| f.username), Err(Failure::MalformedRequest));
}

#[test]
fn passwords_are_compared_prepared() {
    let credentials = keys("I\u{ad}X", b"0123456789abcdef", 4096).expect("a password");
    assert!(is_password("IX", &credentials));
    assert!(!is_password("ix", &credentials));
    assert!(!is_password("", &credentials));
    assert_eq!(keys("", b"salt", 4096).map(|_| ()), Err(UnusablePassword));
    assert_eq!(keys("\u{7}", b"salt", 4096).map(|_| ()), Err(UnusablePassword));
}
