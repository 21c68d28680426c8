//! The events of a client, and the reasons for the end of its stream.

use carillon_wire::frame::websocket;
use carillon_wire::jid::Jid;
use carillon_wire::stanza::{Stanza, StanzaError};
use carillon_wire::stream::StreamError;
use carillon_wire::xml;

use super::sasl::{Mechanism, SaslError};
use super::unacknowledged::OutOfRange;
use super::upgrade::UpgradeError;

/// Something that happened on a client's stream.
#[derive(Debug)]
pub enum ClientEvent {
    /// The server answered with a stream header: it speaks XMPP.
    Connected,
    /// The TLS handshake is complete.
    Secured(Security),
    /// The server says how many accounts one address may register, and in how many seconds.
    RegistrationLimit {
        /// The number of accounts.
        accounts: u32,
        /// The length of the window.
        seconds: u64,
    },
    /// The account was registered (XEP-0077).
    Registered,
    /// The server accepted the password, and proved that it knows it where the mechanism provides that.
    Authenticated {
        /// The mechanism used.
        mechanism: Mechanism,
    },
    /// The resource is bound.
    Bound {
        /// The full JID.
        jid: Jid,
    },
    /// Stream management is on (XEP-0198).
    Managed {
        /// The id for resuming the stream, if the server allows that.
        resumption: Option<String>,
    },
    /// The server refused stream management; the session continues without it.
    Unmanaged {
        /// The stanza error condition it gave.
        condition: String,
    },
    /// The earlier stream is resumed (XEP-0198 §5): the session goes on under its JID; [`ClientEvent::Ready`] follows.
    Resumed {
        /// Stanzas that the server had not handled, and that were sent again.
        resent: usize,
    },
    /// The earlier stream is not resumed; the login goes on to a new session.
    NotResumed {
        /// The stanza error condition of the server; `not-offered` if it did not answer the request.
        condition: String,
        /// How many stanzas the server had handled, modulo 2^32, if it said so.
        handled: Option<u32>,
        /// The stanzas that it had not handled, in order, as text for [`Client::send_xml`]; all unacknowledged ones if it
        /// did not say how many it had handled.
        ///
        /// [`Client::send_xml`]: super::Client::send_xml
        unhandled: Vec<Box<[u8]>>,
    },
    /// The login is complete: everything the profile asks for is done, the initial presence sent.
    Ready,
    /// The server has handled this many of our stanzas, modulo 2^32 (XEP-0198 §4).
    Acknowledged {
        /// `h` of the server's `<a/>`.
        handled: u32,
    },
    /// A stanza that the client did not answer itself.
    Stanza(Stanza),
    /// The server ends the stream with an error; [`ClientEvent::Closed`] follows.
    StreamError(StreamError),
    /// The server refused the credentials; [`ClientEvent::Closed`] follows.
    AuthFailed(AuthFailure),
    /// The stream is over; always the last event.
    Closed(End),
}

/// What a TLS handshake agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Security {
    /// `TLSv1_3`, for example.
    pub version: String,
    /// The ALPN protocol, if one was agreed on.
    pub alpn: Option<String>,
    /// Whether an earlier session was resumed by ticket.
    pub resumed: bool,
}

/// A SASL `<failure/>` (RFC 6120 §6.5).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("authentication failed: {condition}{}", parenthesised(text.as_deref()))]
pub struct AuthFailure {
    /// The defined condition, `not-authorized` for example; empty if the server gave none.
    pub condition: String,
    /// The server's explanation.
    pub text: Option<String>,
}

/// Why a stream ended.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum End {
    /// The server closed its stream.
    #[error("the server closed the stream")]
    ByServer,
    /// The client closed the stream, and the server closed its own.
    #[error("the client closed the stream")]
    ByClient,
    /// The connection was lost without a stream end.
    #[error("the connection was lost")]
    Cut,
    /// The connection could not be established, or failed.
    #[error("network: {0}")]
    Network(std::io::ErrorKind),
    /// An error ended the stream.
    #[error(transparent)]
    Failure(#[from] Failure),
}

/// Why a stream failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Failure {
    /// The server ended the stream with an error.
    #[error("stream error {}{}", .0.condition, parenthesised(.0.text.as_deref()))]
    Stream(StreamError),
    /// The server refused the credentials.
    #[error(transparent)]
    Auth(#[from] AuthFailure),
    /// The server did not prove its identity in SASL.
    #[error(transparent)]
    Sasl(#[from] SaslError),
    /// None of the server's mechanisms is acceptable.
    #[error("no acceptable SASL mechanism; the server offers: {}", offered.join(", "))]
    NoMechanism {
        /// The mechanisms that the server offers.
        offered: Vec<String>,
    },
    /// The profile requires STARTTLS, and the server does not offer it.
    #[error("the server does not offer STARTTLS")]
    TlsNotOffered,
    /// The server answered `<starttls/>` with a failure.
    #[error("the server refused STARTTLS")]
    TlsRefused,
    /// TLS failed, for example because of an untrusted certificate.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The domain is not a name for which a certificate can be checked.
    #[error("{0:?} is not a name that TLS can check")]
    ServerName(String),
    /// The server did not open a WebSocket.
    #[error(transparent)]
    Upgrade(#[from] UpgradeError),
    /// The server refused to bind the resource.
    #[error("resource binding failed: {}", .0.as_ref().map_or("no reason given".to_owned(), ToString::to_string))]
    Bind(Option<StanzaError>),
    /// The server refused to register the account.
    #[error("registration failed: {0}")]
    Registration(StanzaError),
    /// The server sent an invalid stanza.
    #[error("the server sent an invalid stanza: {0}")]
    Stanza(StanzaError),
    /// The server does not offer a necessary feature.
    #[error("the server does not offer {0}")]
    NotOffered(&'static str),
    /// What the server sent is not XMPP.
    #[error("the server sent something that is not XMPP: {0}")]
    Xml(xml::Error),
    /// What the server sent is not a valid WebSocket frame for a client.
    #[error("the server's WebSocket frames are broken: {0}")]
    WebSocket(websocket::Error),
    /// The server acknowledges stanzas that were not sent, or takes an acknowledgement back (XEP-0198 §4).
    #[error("the server acknowledges {handled} stanzas, but {sent} were sent")]
    HandledOutOfRange {
        /// The acknowledged number, modulo 2^32.
        handled: u32,
        /// The sent number, modulo 2^32.
        sent: u32,
    },
    /// The server does not acknowledge what it is sent, and the client keeps no more of it.
    #[error("the server does not acknowledge what it is sent")]
    Unacknowledged,
    /// The server sent an element that is not allowed in this state.
    #[error("unexpected <{element}/> while {state}")]
    Unexpected {
        /// The element's name.
        element: String,
        /// What the client was waiting for.
        state: &'static str,
    },
}

impl From<OutOfRange> for Failure {
    fn from(OutOfRange { handled, sent }: OutOfRange) -> Self {
        Self::HandledOutOfRange { handled, sent }
    }
}

impl End {
    /// The reason in a few words, by which ends are counted.
    pub fn kind(&self) -> String {
        match self {
            Self::Failure(Failure::Auth(failure)) if !failure.condition.is_empty() => {
                failure.condition.clone()
            }
            Self::Failure(Failure::Stream(error)) => format!("stream error {}", error.condition),
            Self::Failure(Failure::Bind(Some(error))) => format!("bind {}", error.condition),
            Self::Failure(Failure::Registration(error)) => {
                format!("registration failed: {}", error.condition)
            }
            other => other.to_string(),
        }
    }

    /// The server's explanation, if it gave one.
    pub fn words(&self) -> Option<&str> {
        match self {
            Self::Failure(Failure::Auth(failure)) if !failure.condition.is_empty() => failure.text.as_deref(),
            Self::Failure(Failure::Stream(error)) => error.text.as_deref(),
            Self::Failure(Failure::Bind(Some(error)) | Failure::Registration(error)) => error.text.as_deref(),
            _ => None,
        }
    }
}

fn parenthesised(text: Option<&str>) -> String {
    text.map(|text| format!(" ({text})")).unwrap_or_default()
}
