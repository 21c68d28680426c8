//! Logins over a plain connection.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::talk::*;
use crate::client::sasl::{Derivation, HashFunction, Mechanism};
use crate::client::{Entropy, InitialPresence, Profile, Settings, StreamManagement, Transport};

const OFFER_SCRAM: &str = "<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>\
    <mechanism>SCRAM-SHA-256</mechanism></mechanisms></stream:features>";
const CLOSE: &str = "</stream:stream>";

#[test]
fn plain_login_with_everything_asked_for() {
    let settings = Settings {
        presence: InitialPresence::Away,
        stream_management: StreamManagement::Resumable,
        ..only(Mechanism::Plain)
    };
    Talk::new(settings)
        .client(OPEN)
        .server(HEADER)
        .events(&["connected"])
        .server(OFFER_PLAIN)
        .client(AUTH_PLAIN)
        .server(SUCCESS)
        .events(&["authenticated by PLAIN"])
        .client(OPEN)
        .server(HEADER)
        .server(OFFER_BIND)
        .client(BIND)
        .server(BOUND)
        .client("<enable xmlns='urn:xmpp:sm:3' resume='true'/><presence><show>away</show></presence>")
        .events(&["bound alice@example.org/r"])
        .server("<enabled xmlns='urn:xmpp:sm:3' id='x' resume='true'/>")
        .events(&["managed Some(\"x\")", "ready"])
        .client("");
}

#[test]
fn one_byte_at_a_time_is_the_same() {
    let mut talk = Talk::new(bare());
    for line in [HEADER, OFFER_PLAIN, SUCCESS, HEADER, OFFER_BIND, BOUND] {
        for byte in line.as_bytes() {
            talk.server([*byte]);
        }
    }
    talk.client(&[OPEN, AUTH_PLAIN, OPEN, BIND].concat());
    talk.events(&["connected", "authenticated by PLAIN", "bound alice@example.org/r", "ready"]);
}

/// The server's side of SCRAM-SHA-256, for one exchange.
fn scram(last: impl FnOnce(String) -> String) -> Talk {
    let nonce = Entropy::from_seed(SEED).nonce();
    let named = format!("n=alice,r={nonce}");
    let challenge = format!("r={nonce}server,s={},i=2", BASE64.encode("salt"));
    let without_proof = format!("c=biws,r={nonce}server");
    let auth = format!("{named},{challenge},{without_proof}");
    let hash = HashFunction::Sha256;
    let keys = Derivation { hash, password: "secret", salt: b"salt", iterations: 2 }.derive();
    let stored = hash.hash(keys.client.as_bytes());
    let proof = keys.client.xor(&hash.hmac(stored.as_bytes(), auth.as_bytes()));
    let signature = hash.hmac(keys.server.as_bytes(), auth.as_bytes());

    let sasl = |name: &str, text: String| {
        format!("<{name} xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>{}</{name}>", BASE64.encode(text))
    };
    let mut talk = Talk::new(bare());
    talk.server(HEADER).server(OFFER_SCRAM);
    let auth = format!(
        "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='SCRAM-SHA-256'>{}</auth>",
        BASE64.encode(format!("n,,{named}"))
    );
    talk.client(&[OPEN, &auth].concat()).events(&["connected"]);
    talk.server(sasl("challenge", challenge));
    let proof = format!("{without_proof},p={}", BASE64.encode(proof.as_bytes()));
    talk.client(&sasl("response", proof));
    talk.server(sasl("success", last(format!("v={}", BASE64.encode(signature.as_bytes())))));
    talk
}

#[test]
fn scram_login() {
    scram(|signature| signature).client(OPEN).events(&["authenticated by SCRAM-SHA-256"]);
}

#[test]
fn a_server_that_does_not_know_the_password_is_left() {
    scram(|signature| signature.replace("v=", "v=AAAA"))
        .client(CLOSE)
        .events(&["closed: the server's signature is wrong"]);
    scram(|_| String::new()).events(&["closed: the server's SCRAM message is malformed"]);
}

#[test]
fn refused_credentials() {
    Talk::new(bare())
        .server(HEADER)
        .server(OFFER_PLAIN)
        .server(
            "<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><not-authorized/><text>no</text></failure>",
        )
        .client(&[OPEN, AUTH_PLAIN, CLOSE].concat())
        .events(&[
            "connected",
            "refused: not-authorized",
            "closed: authentication failed: not-authorized (no)",
        ]);
}

#[test]
fn nothing_acceptable_is_offered() {
    Talk::new(only(Mechanism::ScramSha1))
        .server(HEADER)
        .server(OFFER_PLAIN)
        .events(&["connected", "closed: no acceptable SASL mechanism; the server offers: PLAIN"]);
    Talk::new(bare())
        .server(HEADER)
        .server("<stream:features/>")
        .events(&["connected", "closed: the server does not offer SASL"]);
    Talk::new(Settings { transport: Transport::StartTls, ..bare() })
        .server(HEADER)
        .server(OFFER_PLAIN)
        .client(&[OPEN, CLOSE].concat())
        .events(&["connected", "closed: the server does not offer STARTTLS"]);
}

#[test]
fn sasl2_with_bind2_is_one_round_trip() {
    let settings = Settings { sasl2: true, presence: InitialPresence::Available, ..managed() };
    let mut talk = Talk::new(settings);
    talk.client(OPEN).server(HEADER).server(
        "<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism>\
         </mechanisms><authentication xmlns='urn:xmpp:sasl:2'><mechanism>PLAIN</mechanism><inline>\
         <bind xmlns='urn:xmpp:bind:0'><inline><feature var='urn:xmpp:sm:3'/></inline></bind></inline>\
         </authentication></stream:features>",
    );
    talk.client(
        "<authenticate xmlns='urn:xmpp:sasl:2' mechanism='PLAIN'>\
         <initial-response>AGFsaWNlAHNlY3JldA==</initial-response>\
         <bind xmlns='urn:xmpp:bind:0'><tag>r</tag><enable xmlns='urn:xmpp:sm:3'/></bind></authenticate>",
    );
    talk.server(
        "<success xmlns='urn:xmpp:sasl:2'><authorization-identifier>alice@example.org/r.1\
         </authorization-identifier><bound xmlns='urn:xmpp:bind:0'><enabled xmlns='urn:xmpp:sm:3'/></bound>\
         </success><stream:features/>",
    );
    talk.client("<presence/>").events(&[
        "connected",
        "authenticated by PLAIN",
        "managed None",
        "bound alice@example.org/r.1",
        "ready",
    ]);
}

#[test]
fn who_has_a_token_asks_for_tls_at_once() {
    const STARTTLS: &str = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>";
    let settings = Settings { transport: Transport::StartTls, sasl2: true, fast: true, ..bare() };
    let profile = Profile::new(settings).expect("valid settings");
    let offer = ["<stream:features>", STARTTLS, "</stream:features>"].concat();
    Talk::of(&profile).client(OPEN).server(HEADER).server(&offer).client(STARTTLS);

    let alice = "alice@example.org".parse().expect("a JID");
    profile.tokens.put(&alice, "s".to_owned(), Mechanism::HtSha256Expr);
    let mut back = Talk::of(&profile);
    back.client(&[OPEN, STARTTLS].concat()).server(HEADER).server(&offer).client("");
    back.server("<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>");
    assert_eq!(back.out.bytes.first(), Some(&22), "a TLS handshake");
    // A server that has given STARTTLS up is left, token or not.
    Talk::of(&profile)
        .server(HEADER)
        .server("<stream:features/>")
        .client(&[OPEN, STARTTLS, CLOSE].concat())
        .events(&["connected", "closed: the server does not offer STARTTLS"]);
}

#[test]
fn sasl2_failure() {
    Talk::new(Settings { sasl2: true, ..bare() })
        .server(HEADER)
        .server(
            "<stream:features><authentication xmlns='urn:xmpp:sasl:2'><mechanism>PLAIN</mechanism><inline>\
             <bind xmlns='urn:xmpp:bind:0'/></inline></authentication></stream:features>",
        )
        .server(
            "<failure xmlns='urn:xmpp:sasl:2'>\
             <account-disabled xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/></failure>",
        )
        .events(&[
            "connected",
            "refused: account-disabled",
            "closed: authentication failed: account-disabled",
        ]);
}

#[test]
fn a_refused_resource_ends_the_login() {
    Talk::new(bare())
        .server([HEADER, OFFER_PLAIN, SUCCESS, HEADER, OFFER_BIND].concat())
        .server(
            "<iq id='bind' type='error'><error type='wait'>\
             <resource-constraint xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>",
        )
        .events(&[
            "connected",
            "authenticated by PLAIN",
            "closed: resource binding failed: resource-constraint",
        ]);
}

#[test]
fn what_has_no_place_ends_the_login() {
    for (line, end) in [
        ("<message/>", "closed: unexpected <message/> while waiting for stream features"),
        (
            "<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>",
            "closed: unexpected <proceed/> while waiting for stream features",
        ),
        ("<!-- -->", "closed: the server sent something that is not XMPP: restricted XML: comment"),
        (
            "<stream:error><host-unknown xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>",
            "closed: stream error host-unknown",
        ),
    ] {
        let mut talk = Talk::new(bare());
        talk.server(HEADER).server(line);
        talk.out.events.retain(|event| matches!(event, crate::client::ClientEvent::Closed(_)));
        talk.client(&[OPEN, CLOSE].concat()).events(&[end]);
        assert!(talk.client.is_over());
    }
}

#[test]
fn a_lost_connection_is_told_once() {
    let mut talk = Talk::new(bare());
    talk.client.receive_end(&mut talk.out);
    talk.client.receive_end(&mut talk.out);
    talk.client.connection_failed(std::io::ErrorKind::ConnectionReset, &mut talk.out);
    talk.events(&["closed: the connection was lost"]);
}
