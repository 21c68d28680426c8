//! How clients connect and behave: a [`Profile`] that many clients share, and the [`Options`] of one.

use std::sync::Arc;

use carillon_wire::jid::BareJid;
use carillon_wire::stanza::Framing;
use carillon_wire::xml::Limits;
use rustls::ClientConfig;
use serde::{Deserialize, Serialize};

use super::sasl::{KeyCache, Mechanism, TokenStore};
use super::tls::{self, TlsSetupError, Trust};

/// The transport of the stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// TCP, encrypted by STARTTLS (RFC 6120 §5); without it the login fails.
    #[default]
    StartTls,
    /// TLS from the first byte, with the ALPN protocol `xmpp-client` (XEP-0368).
    DirectTls,
    /// TCP without encryption, even if the server offers it.
    Plain,
    /// WebSocket (RFC 7395) without encryption.
    WebSocket {
        /// The path of the endpoint, usually `/xmpp-websocket`.
        path: String,
    },
    /// WebSocket (RFC 7395) in TLS.
    SecureWebSocket {
        /// The path of the endpoint, usually `/xmpp-websocket`.
        path: String,
    },
}

/// The requested stream management (XEP-0198).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamManagement {
    /// None.
    #[default]
    Off,
    /// Acknowledgements.
    On,
    /// Acknowledgements and a stream that can be resumed.
    Resumable,
}

/// The presence sent as soon as the stream is bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InitialPresence {
    /// None: the client gets no messages to its bare JID.
    None,
    /// Available.
    #[default]
    Available,
    /// Available, with `<show>away</show>`: connected, and asleep.
    Away,
}

/// The client state that is sent right after login (XEP-0352).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientState {
    /// No state is sent.
    #[default]
    Unsaid,
    /// In use.
    Active,
    /// In the background.
    Inactive,
}

/// The settings of a [`Profile`]; every field has a sensible default.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The transport of the stream.
    pub transport: Transport,
    /// How the server's certificate is checked.
    pub trust: Trust,
    /// Whether TLS sessions are resumed by ticket, shared by all clients of the profile.
    pub tls_resumption: bool,
    /// Acceptable SASL mechanisms, the preferred first.
    pub mechanisms: Vec<Mechanism>,
    /// Whether to log in by SASL2 with Bind 2 (XEP-0388, XEP-0386) if the server offers it.
    pub sasl2: bool,
    /// Whether to ask for a token at the first login and to use it from then on (XEP-0484), with SASL2. A client that has
    /// one asks for STARTTLS and proves the token without waiting for what the server offers (XEP-0305).
    pub fast: bool,
    /// The requested stream management.
    pub stream_management: StreamManagement,
    /// The most bytes of stanzas that are kept until the server acknowledges them, where streams can be resumed. A client asks
    /// for an acknowledgement before that, and takes nothing more to send when it is reached.
    pub unacknowledged_bytes_max: usize,
    /// The initial presence.
    pub presence: InitialPresence,
    /// Whether to answer requests for delivery receipts (XEP-0184).
    pub receipts: bool,
    /// The client state to send.
    pub client_state: ClientState,
    /// The cache of derived keys; profiles of the same accounts share one.
    pub keys: Arc<KeyCache>,
    /// The limits of what the server may send.
    pub limits: Limits,
}

/// Checked settings, ready for use; clients share it by `Arc`.
#[derive(Debug)]
pub struct Profile {
    pub(crate) settings: Settings,
    pub(crate) tls: Arc<ClientConfig>,
    pub(crate) tokens: TokenStore,
}

/// The options of one client: its account and its profile.
#[derive(Clone)]
pub struct Options {
    /// The account.
    pub jid: BareJid,
    /// Its password. Without one (empty) only a token logs in; should it be refused, no password is tried.
    pub password: String,
    /// The resource to ask for; the server chooses when there is none. With Bind 2 it is the client's tag, which
    /// the server completes.
    pub resource: Option<String>,
    /// Whether to register the account first (XEP-0077).
    pub register: bool,
    /// Whether to ask before that how many accounts one address may register.
    pub asks_limit: bool,
    /// The profile.
    pub profile: Arc<Profile>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            transport: Transport::default(),
            trust: Trust::default(),
            tls_resumption: false,
            mechanisms: Mechanism::ALL.to_vec(),
            sasl2: false,
            fast: false,
            stream_management: StreamManagement::default(),
            unacknowledged_bytes_max: 256 * 1024,
            presence: InitialPresence::default(),
            receipts: false,
            client_state: ClientState::default(),
            keys: Arc::default(),
            limits: Limits::default(),
        }
    }
}

impl Transport {
    pub(crate) fn framing(&self) -> Framing {
        if self.path().is_some() { Framing::WebSocket } else { Framing::Tcp }
    }

    /// Path of the WebSocket endpoint.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::WebSocket { path } | Self::SecureWebSocket { path } => Some(path),
            Self::StartTls | Self::DirectTls | Self::Plain => None,
        }
    }

    fn alpn(&self) -> Option<&'static [u8]> {
        match self {
            Self::DirectTls => Some(b"xmpp-client"),
            Self::SecureWebSocket { .. } => Some(b"http/1.1"),
            Self::StartTls | Self::Plain | Self::WebSocket { .. } => None,
        }
    }
}

impl Profile {
    /// Checks the settings and prepares TLS.
    pub fn new(settings: Settings) -> Result<Arc<Self>, TlsSetupError> {
        let tls = tls::config(&settings.trust, settings.transport.alpn(), settings.tls_resumption)?;
        Ok(Arc::new(Self { settings, tls, tokens: TokenStore::default() }))
    }

    /// The settings the profile was made from.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The tokens that the clients of the profile were given (XEP-0484).
    pub fn tokens(&self) -> &TokenStore {
        &self.tokens
    }
}

impl std::fmt::Debug for Options {
    // Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("jid", &self.jid)
            .field("resource", &self.resource)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// A client of an account, with a resource the server chooses.
    pub fn new(jid: BareJid, password: impl Into<String>, profile: &Arc<Profile>) -> Self {
        Self {
            jid,
            password: password.into(),
            resource: None,
            register: false,
            asks_limit: false,
            profile: Arc::clone(profile),
        }
    }

    /// The same client with a resource of its own.
    #[must_use]
    pub fn with_resource(mut self, resource: impl Into<String>) -> Self {
        self.resource = Some(resource.into());
        self
    }

    /// The same client, which asks, before it makes its account, how many one address may make: [`ClientEvent::RegistrationLimit`].
    ///
    /// [`ClientEvent::RegistrationLimit`]: super::ClientEvent::RegistrationLimit
    #[must_use]
    pub fn with_limit_asked(mut self) -> Self {
        self.asks_limit = true;
        self
    }

    /// The same client, which makes its account first if that is wanted.
    #[must_use]
    pub fn with_registration(mut self, register: bool) -> Self {
        self.register = register;
        self
    }
}
