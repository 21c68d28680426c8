//! A conversation with a client, line by line.

use std::sync::Arc;

use carillon_wire::stanza::Framing;

use crate::client::sasl::Mechanism;
use crate::client::{
    Client, ClientEvent, Entropy, InitialPresence, Options, Outbox, Profile, Settings, StreamManagement,
    Transport,
};

/// The seed of every client's randomness.
pub(super) const SEED: [u8; 32] = [7; 32];
/// A server's header as it comes first on each stream.
pub(super) const HEADER: &str = "<?xml version='1.0'?><stream:stream xmlns='jabber:client' \
    xmlns:stream='http://etherx.jabber.org/streams' from='example.org' id='1' version='1.0'>";
/// A client's header.
pub(super) const OPEN: &str = "<?xml version='1.0'?><stream:stream xmlns='jabber:client' \
    xmlns:stream='http://etherx.jabber.org/streams' to='example.org' version='1.0' xml:lang='en'>";
pub(super) const OFFER_PLAIN: &str = "<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>\
    <mechanism>PLAIN</mechanism></mechanisms></stream:features>";
pub(super) const AUTH_PLAIN: &str =
    "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGFsaWNlAHNlY3JldA==</auth>";
pub(super) const SUCCESS: &str = "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>";
pub(super) const OFFER_BIND: &str = "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>\
    <sm xmlns='urn:xmpp:sm:3'/></stream:features>";
pub(super) const BIND: &str = "<iq id='bind' type='set'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>\
    <resource>r</resource></bind></iq>";
pub(super) const BOUND: &str = "<iq id='bind' type='result'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>\
    <jid>alice@example.org/r</jid></bind></iq>";

/// Settings under which nothing is sent but what a login needs.
pub(super) fn bare() -> Settings {
    Settings { transport: Transport::Plain, presence: InitialPresence::None, ..Settings::default() }
}

pub(super) fn managed() -> Settings {
    Settings { stream_management: StreamManagement::On, ..bare() }
}

pub(super) fn only(mechanism: Mechanism) -> Settings {
    Settings { mechanisms: vec![mechanism], ..bare() }
}

/// One client and what it has said and told.
pub(super) struct Talk {
    pub(super) client: Client,
    pub(super) out: Outbox,
}

impl Talk {
    /// alice@example.org, who has just connected.
    pub(super) fn new(settings: Settings) -> Self {
        Self::of(&Profile::new(settings).expect("valid settings"))
    }

    /// The same, of a profile that may know her.
    pub(super) fn of(profile: &Arc<Profile>) -> Self {
        let options = Options::new("alice@example.org".parse().expect("a JID"), "secret", profile);
        let client = Client::new(options.with_resource("r"), Entropy::from_seed(SEED));
        let mut talk = Self { client, out: Outbox::default() };
        talk.client.start(&mut talk.out);
        talk
    }

    /// The same, in session.
    pub(super) fn session(settings: Settings) -> Self {
        let mut talk = Self::new(settings);
        for line in [HEADER, OFFER_PLAIN, SUCCESS, HEADER, OFFER_BIND, BOUND] {
            talk.server(line);
        }
        talk.out.bytes.clear();
        talk.out.events.clear();
        talk
    }

    /// The server says something.
    pub(super) fn server(&mut self, text: impl AsRef<[u8]>) -> &mut Self {
        self.client.receive(text.as_ref(), &mut self.out);
        self
    }

    /// The client has said exactly this since it was last listened to.
    pub(super) fn client(&mut self, text: &str) -> &mut Self {
        assert_eq!(String::from_utf8_lossy(&std::mem::take(&mut self.out.bytes)), text);
        self
    }

    /// Exactly this has happened since it was last asked for.
    pub(super) fn events(&mut self, expected: &[&str]) -> &mut Self {
        let events: Vec<_> = self.out.events.drain(..).map(|event| brief(&event)).collect();
        assert_eq!(events, expected);
        self
    }
}

fn brief(event: &ClientEvent) -> String {
    match event {
        ClientEvent::Connected => "connected".to_owned(),
        ClientEvent::Secured(security) => format!("secured by {}", security.version),
        ClientEvent::RegistrationLimit { accounts, seconds } => {
            format!("{accounts} accounts in {seconds} s from one address")
        }
        ClientEvent::Registered => "registered".to_owned(),
        ClientEvent::Authenticated { mechanism } => format!("authenticated by {}", mechanism.name()),
        ClientEvent::Bound { jid } => format!("bound {jid}"),
        ClientEvent::Managed { resumption } => format!("managed {resumption:?}"),
        ClientEvent::Unmanaged { condition } => format!("unmanaged {condition}"),
        ClientEvent::Resumed { resent } => format!("resumed, {resent} sent again"),
        ClientEvent::NotResumed { condition, handled, unhandled } => {
            let unhandled: Vec<_> = unhandled.iter().map(|text| String::from_utf8_lossy(text)).collect();
            format!("not resumed: {condition}, {handled:?} handled, not {unhandled:?}")
        }
        ClientEvent::Ready => "ready".to_owned(),
        ClientEvent::Acknowledged { handled } => format!("acknowledged {handled}"),
        ClientEvent::Stanza(stanza) => {
            let mut text = Vec::new();
            stanza.write(&mut text, Framing::Tcp);
            String::from_utf8(text).expect("stanzas are UTF-8")
        }
        ClientEvent::StreamError(error) => format!("stream error {}", error.condition),
        ClientEvent::AuthFailed(failure) => format!("refused: {}", failure.condition),
        ClientEvent::Closed(end) => format!("closed: {end}"),
    }
}
