//! The same login inside TLS, and inside WebSocket frames.

use std::io::{Read, Write};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use carillon_wire::frame::websocket::{Decoder, FrameEvent, Role, encode_text};
use carillon_wire::xml::Limits;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection};
use sha1::{Digest as _, Sha1};

use super::talk::*;
use crate::client::sasl::{HashFunction, Mechanism};
use crate::client::tls::Trust;
use crate::client::{
    Client, Entropy, Options, Outbox, Profile, Resumable, Settings, StreamManagement, Transport,
};

const FEATURES: &str =
    "<stream:features><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/></stream:features>";
const PROCEED: &str = "<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>";

/// A server's end of TLS.
struct Tls(ServerConnection);

impl Tls {
    fn new() -> (Self, Trust) {
        let certified = rcgen::generate_simple_self_signed(vec!["example.org".to_owned()]).expect("valid");
        let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).expect("PKCS #8");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has them")
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .expect("the key is the certificate's");
        let server = ServerConnection::new(Arc::new(config)).expect("a server");
        (Self(server), Trust::Certificates(vec![certified.cert.der().clone()]))
    }

    /// Carries what the client said to the server, and the server's records back; gives the text said.
    fn carry(&mut self, talk: &mut Talk) -> String {
        let mut said = Vec::new();
        loop {
            let bytes = std::mem::take(&mut talk.out.bytes);
            let mut records = bytes.as_slice();
            while !records.is_empty() {
                self.0.read_tls(&mut records).expect("memory");
                self.0.process_new_packets().expect("the client is correct");
                // It ends with an error that says that there is no more.
                let _ = self.0.reader().read_to_end(&mut said);
            }
            let mut answer = Vec::new();
            while self.0.wants_write() {
                self.0.write_tls(&mut answer).expect("memory");
            }
            if answer.is_empty() {
                return String::from_utf8(said).expect("text");
            }
            talk.server(answer);
        }
    }

    fn say(&mut self, text: &str) {
        self.0.writer().write_all(text.as_bytes()).expect("connected");
    }
}

#[test]
fn starttls_and_channel_binding() {
    let (mut tls, trust) = Tls::new();
    let mut talk = Talk::new(Settings { transport: Transport::StartTls, trust, ..bare() });
    talk.server(HEADER).server(FEATURES);
    talk.client(&[OPEN, "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"].concat());
    talk.server(PROCEED);
    assert_eq!(tls.carry(&mut talk), OPEN);
    talk.events(&["connected", "secured by TLSv1_3"]);

    tls.say(HEADER);
    tls.say(
        "<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>\
         <mechanism>SCRAM-SHA-256-PLUS</mechanism><mechanism>SCRAM-SHA-256</mechanism></mechanisms>\
         <sasl-channel-binding xmlns='urn:xmpp:sasl-cb:0'><channel-binding type='tls-exporter'/>\
         </sasl-channel-binding></stream:features>",
    );
    let nonce = Entropy::from_seed(SEED).nonce();
    let first = BASE64.encode(format!("p=tls-exporter,,n=alice,r={nonce}"));
    assert_eq!(
        tls.carry(&mut talk),
        format!(
            "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='SCRAM-SHA-256-PLUS'>{first}</auth>"
        )
    );

    let challenge = BASE64.encode(format!("r={nonce}x,s=AAAA,i=1"));
    tls.say(&format!("<challenge xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>{challenge}</challenge>"));
    let response = tls.carry(&mut talk);
    let response = response.split(['>', '<']).nth(2).expect("there is text in it");
    let response = String::from_utf8(BASE64.decode(response).expect("base64")).expect("text");
    let exporter =
        tls.0.export_keying_material([0; 32], b"EXPORTER-Channel-Binding", Some(&[])).expect("TLS 1.3");
    let bound = BASE64.encode([b"p=tls-exporter,,".as_slice(), &exporter].concat());
    assert!(response.starts_with(&format!("c={bound},r={nonce}x,p=")), "{response}");
}

#[test]
fn what_is_slipped_in_before_tls_is_not_believed() {
    let (_, trust) = Tls::new();
    let mut talk = Talk::new(Settings { transport: Transport::StartTls, trust, ..bare() });
    talk.server(HEADER).server(FEATURES);
    talk.server([PROCEED, "<stream:features/>"].concat());
    talk.events(&["connected", "closed: unexpected <bytes/> while starting TLS"]);
}

#[test]
fn direct_tls_says_nothing_before_it_is_secured() {
    let (mut tls, trust) = Tls::new();
    let mut talk = Talk::new(Settings { transport: Transport::DirectTls, trust, ..bare() });
    assert_eq!(tls.carry(&mut talk), OPEN);
    for line in [HEADER, OFFER_PLAIN, SUCCESS, HEADER, OFFER_BIND, BOUND] {
        tls.say(line);
        tls.carry(&mut talk);
    }
    talk.events(&[
        "secured by TLSv1_3",
        "connected",
        "authenticated by PLAIN",
        "bound alice@example.org/r",
        "ready",
    ]);
    tls.0.send_close_notify();
    tls.carry(&mut talk);
    talk.events(&["closed: the connection was lost"]);
}

/// A server's end of a WebSocket.
struct WebSocket(Decoder);

impl WebSocket {
    /// Accepts the request the client has sent.
    fn accept(talk: &mut Talk, request: &str) -> Self {
        let key = request.split("Sec-WebSocket-Key: ").nth(1).and_then(|rest| rest.split("\r\n").next());
        let key = key.expect("the request has a key");
        let accept = Sha1::digest(format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11"));
        talk.server(format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {}\r\nSec-WebSocket-Protocol: xmpp\r\n\r\n",
            BASE64.encode(accept)
        ));
        Self(Decoder::new(Role::Server, Limits::default()))
    }

    /// What the client said, one message a line.
    fn heard(&mut self, talk: &mut Talk) -> Vec<String> {
        let bytes = std::mem::take(&mut talk.out.bytes);
        let mut frames = bytes.as_slice();
        let mut heard = Vec::new();
        while let Some(event) = self.0.poll(&mut frames).expect("the client is correct") {
            heard.push(match event {
                FrameEvent::Text(text) => String::from_utf8(text).expect("text"),
                other => format!("{other:?}"),
            });
        }
        heard
    }

    fn say(talk: &mut Talk, text: &str) {
        let mut frame = Vec::new();
        encode_text(&mut frame, text.as_bytes());
        talk.server(frame);
    }
}

const FRAMED_OPEN: &str =
    "<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' to='example.org' version='1.0' xml:lang='en'/>";
const FRAMED_HEADER: &str =
    "<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' from='example.org' version='1.0'/>";

/// The same element as a WebSocket message: it declares its namespaces itself.
fn framed(line: &str) -> String {
    line.replace("<stream:features>", "<stream:features xmlns:stream='http://etherx.jabber.org/streams'>")
        .replace("<iq ", "<iq xmlns='jabber:client' ")
}

#[test]
fn websocket_from_request_to_close() {
    let transport = Transport::WebSocket { path: "/ws".to_owned() };
    let mut talk = Talk::new(Settings { transport, ..bare() });
    let request = String::from_utf8(std::mem::take(&mut talk.out.bytes)).expect("text");
    assert!(request.starts_with("GET /ws HTTP/1.1\r\nHost: example.org\r\n"));
    let mut socket = WebSocket::accept(&mut talk, &request);
    assert_eq!(socket.heard(&mut talk), [FRAMED_OPEN]);
    for line in [FRAMED_HEADER, OFFER_PLAIN, SUCCESS, FRAMED_HEADER, OFFER_BIND, BOUND] {
        WebSocket::say(&mut talk, &framed(line));
    }
    assert_eq!(socket.heard(&mut talk), [AUTH_PLAIN, FRAMED_OPEN, &framed(BIND)]);
    talk.events(&["connected", "authenticated by PLAIN", "bound alice@example.org/r", "ready"]);

    talk.client.send_xml("<message><body>hi</body></message>", &mut talk.out);
    talk.server(b"\x89\x02hi");
    assert_eq!(
        socket.heard(&mut talk),
        ["<message xmlns='jabber:client'><body>hi</body></message>", "Pong([104, 105])"]
    );
    WebSocket::say(&mut talk, "<message xmlns='jabber:client'/>");
    WebSocket::say(&mut talk, "<close xmlns='urn:ietf:params:xml:ns:xmpp-framing'/>");
    talk.events(&["<message/>", "closed: the server closed the stream"]);
    assert_eq!(
        socket.heard(&mut talk),
        ["<close xmlns='urn:ietf:params:xml:ns:xmpp-framing'/>", "Close { code: Some(1000), reason: \"\" }"]
    );
}

/// alice's state after she sent a message over TCP and was cut.
fn cut_after_a_message() -> Box<Resumable> {
    let mut talk = Talk::session(Settings { stream_management: StreamManagement::Resumable, ..bare() });
    talk.server("<enabled xmlns='urn:xmpp:sm:3' id='x' resume='1'/>");
    talk.client.send_xml("<message><body>hi</body></message>", &mut talk.out);
    talk.client.take_resumable().expect("the server allows it")
}

fn back(settings: Settings) -> (Talk, Arc<Profile>) {
    let settings = Settings { stream_management: StreamManagement::Resumable, ..settings };
    let profile = Profile::new(settings).expect("valid settings");
    let options = Options::new("alice@example.org".parse().expect("a JID"), "secret", &profile);
    let client = Client::resuming(options, Entropy::from_seed(SEED), cut_after_a_message());
    (Talk { client, out: Outbox::default() }, profile)
}

#[test]
fn a_stream_of_tcp_is_resumed_on_a_websocket() {
    let transport = Transport::WebSocket { path: "/ws".to_owned() };
    let (mut talk, _) = back(Settings { transport, ..bare() });
    talk.client.start(&mut talk.out);
    let request = String::from_utf8(std::mem::take(&mut talk.out.bytes)).expect("text");
    let mut socket = WebSocket::accept(&mut talk, &request);
    for line in [FRAMED_HEADER, OFFER_PLAIN, SUCCESS, FRAMED_HEADER, OFFER_BIND] {
        WebSocket::say(&mut talk, &framed(line));
    }
    socket.heard(&mut talk);
    WebSocket::say(&mut talk, "<resumed xmlns='urn:xmpp:sm:3' previd='x' h='0'/>");
    assert_eq!(
        socket.heard(&mut talk),
        ["<message xmlns='jabber:client'><body>hi</body></message>", "<r xmlns='urn:xmpp:sm:3'/>"]
    );
}

#[test]
fn a_token_and_resumption_are_one_round_trip() {
    let (mut tls, trust) = Tls::new();
    let (mut talk, profile) =
        back(Settings { transport: Transport::DirectTls, trust, sasl2: true, fast: true, ..bare() });
    let alice = "alice@example.org".parse().expect("a JID");
    profile.tokens.put(&alice, "s".to_owned(), Mechanism::HtSha256Expr);
    talk.client.start(&mut talk.out);
    let said = tls.carry(&mut talk);
    assert!(
        said.contains(
            "<fast xmlns='urn:xmpp:fast:0' count='1'/><resume xmlns='urn:xmpp:sm:3' h='0' previd='x'/><bind "
        ),
        "{said}"
    );

    let exporter =
        tls.0.export_keying_material([0; 32], b"EXPORTER-Channel-Binding", Some(&[])).expect("TLS 1.3");
    let proof = HashFunction::Sha256.hmac(b"s", &[&b"Responder"[..], &exporter].concat());
    let proof = BASE64.encode(proof.as_bytes());
    tls.say(&format!(
        "{HEADER}<stream:features/><success xmlns='urn:xmpp:sasl:2'><additional-data>{proof}</additional-data>\
         <authorization-identifier>alice@example.org</authorization-identifier>\
         <resumed xmlns='urn:xmpp:sm:3' previd='x' h='0'/></success><stream:features/>"
    ));
    assert_eq!(tls.carry(&mut talk), "<message><body>hi</body></message><r xmlns='urn:xmpp:sm:3'/>");
    talk.events(&[
        "secured by TLSv1_3",
        "connected",
        "authenticated by HT-SHA-256-EXPR",
        "resumed, 1 sent again",
        "ready",
    ]);
}

#[test]
fn a_server_without_websocket_is_named() {
    let transport = Transport::WebSocket { path: "/ws".to_owned() };
    let mut talk = Talk::new(Settings { transport, ..bare() });
    talk.server("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
    talk.events(&["closed: the WebSocket request was answered with HTTP status 404"]);
}
