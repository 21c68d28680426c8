//! A client that says what it is told to.

use crate::world::World;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use carillon_core::Security;
use carillon_core::sasl::ChannelBinding;
use carillon_wire::Framing;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

const HEADER: &str = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' \
    to='localhost' version='1.0'>";
pub(crate) const BIND: &str = "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>";
const SASL: &str = "urn:ietf:params:xml:ns:xmpp-sasl";
const SASL2: &str = "urn:xmpp:sasl:2";

/// A connection of a client.
pub(crate) struct Client {
    conn: usize,
    /// The namespace of the exchange under way.
    ns: &'static str,
}

/// TLS that yields this.
pub(crate) fn secured(binding: ChannelBinding) -> Security {
    Security::Secured(binding)
}

impl Client {
    /// A connection with TLS, whose stream is open.
    pub(crate) fn open(world: &mut World, address: &str) -> Client {
        Client::open_as(world, address, secured(ChannelBinding::default()))
    }

    /// The same, secured in any way.
    pub(crate) fn open_as(world: &mut World, address: &str, security: Security) -> Client {
        let conn = world.open_from(address, Framing::Tcp, security);
        let mut client = Client { conn, ns: SASL };
        client.say(world, HEADER);
        client
    }

    /// What is offered before authentication.
    pub(crate) fn features(world: &mut World, security: Security) -> String {
        let conn = world.open_from("192.0.2.1", Framing::Tcp, security);
        Client { conn, ns: SASL }.say(world, HEADER)
    }

    /// Says something; what comes of it.
    pub(crate) fn say(&mut self, world: &mut World, words: &str) -> String {
        world.bytes(self.conn, words.as_bytes());
        self.received(world)
    }

    /// All that came since somebody looked.
    pub(crate) fn received(&self, world: &mut World) -> String {
        let mut text = String::new();
        while let Some(bytes) = world.received(self.conn) {
            text.push_str(std::str::from_utf8(&bytes).expect("text"));
        }
        text
    }

    /// `<auth/>` with an initial response.
    pub(crate) fn auth(&mut self, world: &mut World, mechanism: &str, message: &str) -> String {
        self.ns = SASL;
        let message = BASE64.encode(message);
        self.say(world, &format!("<auth xmlns='{SASL}' mechanism='{mechanism}'>{message}</auth>"))
    }

    /// A password in clear.
    pub(crate) fn plain(&mut self, world: &mut World, local: &str, password: &str) -> String {
        self.auth(world, "PLAIN", &format!("\0{local}\0{password}"))
    }

    /// The same by SASL2, with what comes inline.
    pub(crate) fn sasl2_plain(
        &mut self,
        world: &mut World,
        local: &str,
        password: &str,
        inline: &str,
    ) -> String {
        let message = BASE64.encode(format!("\0{local}\0{password}"));
        let response = format!("<initial-response>{message}</initial-response>");
        self.say(
            world,
            &format!("<authenticate xmlns='{SASL2}' mechanism='PLAIN'>{response}{inline}</authenticate>"),
        )
    }

    /// A token for its next login, if it is given one, and with it the account remembered.
    pub(crate) fn token(&mut self, world: &mut World, local: &str, password: &str) -> Option<String> {
        let inline = format!("{WANTS_TOKEN}<bind xmlns='urn:xmpp:bind:0'/>");
        let answer = self.sasl2_plain(world, local, password, &inline);
        let (_, token) = answer.split_once(" token='")?;
        Some(token.split_once('\'').expect("a quote").0.to_owned())
    }

    /// Logs in with a token.
    pub(crate) fn redeem(&mut self, world: &mut World, local: &str, token: &str) -> String {
        let proof = mac(token.as_bytes(), b"Initiator");
        let message = BASE64.encode([local.as_bytes(), b"\0", &proof].concat());
        let words = format!(
            "<authenticate xmlns='{SASL2}' mechanism='HT-SHA-256-NONE'><initial-response>{message}</initial-response>\
             <user-agent id='phone'/><fast xmlns='urn:xmpp:fast:0'/></authenticate>"
        );
        self.say(world, &words)
    }

    /// Registers an account.
    pub(crate) fn register(&mut self, world: &mut World, local: &str) -> String {
        let fields = format!("<username>{local}</username><password>secret</password>");
        self.say(
            world,
            &format!("<iq type='set' id='r'><query xmlns='jabber:iq:register'>{fields}</query></iq>"),
        )
    }

    /// Begins SCRAM; the nonce.
    pub(crate) fn scram_first(&mut self, world: &mut World, local: &str) -> String {
        let challenge = self.scram_challenge(world, local, "SCRAM-SHA-256");
        field(&challenge, "r=")
    }

    /// Begins SCRAM; the challenge.
    pub(crate) fn scram_challenge(&mut self, world: &mut World, local: &str, mechanism: &str) -> String {
        let answer = self.auth(world, mechanism, &format!("n,,n={local},r=abc"));
        challenge(&answer)
    }

    /// The same by SASL2, wanting a token.
    pub(crate) fn sasl2_scram(&mut self, world: &mut World, local: &str) -> String {
        self.ns = SASL2;
        let message = BASE64.encode(format!("n,,n={local},r=abc"));
        let answer = self.say(
            world,
            &format!(
                "<authenticate xmlns='{SASL2}' mechanism='SCRAM-SHA-256'><initial-response>{message}</initial-response>\
                 {WANTS_TOKEN}</authenticate>"
            ),
        );
        challenge(&answer)
    }

    /// A proof that is none.
    pub(crate) fn scram_guess(&mut self, world: &mut World, nonce: &str) -> String {
        let proof = BASE64.encode([7; 32]);
        self.respond(world, &format!("c=biws,r={nonce},p={proof}"))
    }

    /// The proof of a password, for alice.
    pub(crate) fn scram_prove(&mut self, world: &mut World, challenge: &str, password: &str) -> String {
        let salt = BASE64.decode(field(challenge, "s=")).expect("base 64");
        let iterations = field(challenge, "i=").parse().expect("a number");
        let mut salted = [0; 32];
        pbkdf2::pbkdf2_hmac::<Sha256>(password.as_bytes(), &salt, iterations, &mut salted);
        let client_key = mac(&salted, b"Client Key");
        let unproven = format!("c=biws,r={}", field(challenge, "r="));
        let transcript = format!("n=alice,r=abc,{challenge},{unproven}");
        let signature = mac(&Sha256::digest(&client_key), transcript.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
        self.respond(world, &format!("{unproven},p={}", BASE64.encode(proof)))
    }

    fn respond(&mut self, world: &mut World, message: &str) -> String {
        let message = BASE64.encode(message);
        self.say(world, &format!("<response xmlns='{}'>{message}</response>", self.ns))
    }
}

const WANTS_TOKEN: &str = "<user-agent id='phone'/>\
    <request-token xmlns='urn:xmpp:fast:0' mechanism='HT-SHA-256-NONE'/>";

/// What a challenge says.
fn challenge(answer: &str) -> String {
    let (_, rest) = answer.split_once('>').unwrap_or_else(|| panic!("no challenge: {answer}"));
    let text = BASE64.decode(rest.split_once('<').expect("an end").0).expect("base 64");
    String::from_utf8(text).expect("text")
}

/// A field of a SCRAM message.
fn field(message: &str, name: &str) -> String {
    let value = message.split(',').find_map(|field| field.strip_prefix(name));
    value.unwrap_or_else(|| panic!("no {name} in {message}")).to_owned()
}

fn mac(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(data);
    mac.finalize().into_bytes().to_vec()
}
