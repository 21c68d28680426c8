//! The handshake: rustls, fed one record at a time, until the connection can be taken over.

use std::sync::Arc;

use rustls::server::Acceptor;
use rustls::{CipherSuite, ConnectionTrafficSecrets, HandshakeKind, ProtocolVersion, ServerConnection};
use zeroize::Zeroizing;

use carillon_wire::xml::is_space;

use super::buffered::{self, Buffered};
use super::capture::Captured;
use super::fault::{Fault, Violation};
use super::keys::{Half, Keys};
use super::link::Link;
use super::record::{self, Frame, HEADER_LEN};
use super::settings::Settings;
use super::suite::Suite;

/// A handshake in progress. Two words; the kilobytes that it points to are freed when it is done.
pub struct Handshake(HandshakeState);

/// The result of [`Handshake::feed`].
#[derive(Debug)]
pub enum Progress {
    /// More input is needed.
    Pending {
        /// The handshake, to be fed again.
        handshake: Handshake,
        /// How many bytes of the input are handled. The others are the beginning of a record: pass them again, unchanged,
        /// when more has come.
        consumed: usize,
    },
    /// The connection is secured.
    Done {
        /// The connection, for reading and writing.
        link: Link,
        /// What the handshake agreed on.
        secured: Box<Secured>,
        /// How many bytes of the input belong to the handshake. Those that follow are for [`Link::open`].
        consumed: usize,
    },
}

/// What a handshake agreed on.
pub struct Secured {
    /// The protocol version.
    pub version: Version,
    /// The cipher suite, by its IANA name.
    pub cipher: &'static str,
    /// Key material for the channel binding `tls-exporter` (RFC 9266). Only with TLS 1.3: before, it is safe only with
    /// an extension whose use rustls does not tell.
    pub exporter: Option<Zeroizing<[u8; 32]>>,
    /// The host the client asked for (SNI, RFC 6066 §3), in lower case.
    pub server_name: Option<Box<str>>,
    /// The application protocol chosen (ALPN, RFC 7301), if any was.
    pub alpn: Option<Box<[u8]>>,
    /// The session was resumed by a ticket.
    pub resumed: bool,
    /// Data for the channel binding `tls-server-end-point` (RFC 5929): see [`Settings::server_end_point`].
    pub end_point: Option<Arc<[u8]>>,
}

/// The versions of TLS that are supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// TLS 1.2 (RFC 5246)
    Tls12,
    /// TLS 1.3 (RFC 8446)
    Tls13,
}

impl Handshake {
    /// Starts a handshake that answers the client's first message by `settings`.
    pub fn new(settings: &Settings) -> Handshake {
        Handshake::begin(settings, Lead::Nothing)
    }

    /// Like [`Handshake::new`], for a client that asked for TLS in the clear. White space that it sent behind
    /// `<starttls/>` may come late, and is skipped (RFC 6120 §5.3.3).
    pub fn after_starttls(settings: &Settings) -> Handshake {
        Handshake::begin(settings, Lead::Space)
    }

    fn begin(settings: &Settings, lead: Lead) -> Handshake {
        Handshake(HandshakeState::Greeting(Box::new(Greeting {
            acceptor: Acceptor::default(),
            settings: settings.clone(),
            budget: Budget(HANDSHAKE_BYTES_MAX),
            lead,
        })))
    }

    /// Handles the whole records at the start of `input`, and appends what must be sent to `out`, including the alert of
    /// a fault.
    pub fn feed(self, input: &[u8], out: &mut Vec<u8>) -> Result<Progress, Fault> {
        let mut state = self.0;
        let mut consumed = state.pass_lead(input)?;
        loop {
            let rest = &input[consumed..];
            let record = match record::frame(rest) {
                Frame::Partial => {
                    return Ok(Progress::Pending { handshake: Handshake(state), consumed });
                }
                Frame::Whole(len) => &rest[..len],
                Frame::Malformed => return Err(state.refuse(&rest[..HEADER_LEN], out)),
            };
            state = state.record(record, out)?;
            consumed += record.len();
            if let HandshakeState::Answered(answered) = &state
                && !answered.connection.is_handshaking()
            {
                break;
            }
        }
        let HandshakeState::Answered(answered) = state else {
            return Err(Fault::Extraction("a handshake done before it began"));
        };
        let (link, secured) = answered.take_over()?;
        Ok(Progress::Done { link, secured: Box::new(secured), consumed })
    }
}

impl std::fmt::Debug for Handshake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handshake").finish_non_exhaustive()
    }
}

enum HandshakeState {
    /// The client's first message has not come yet, so it is not known which configuration answers it.
    Greeting(Box<Greeting>),
    /// The first message has been answered.
    Answered(Box<Answered>),
}

struct Greeting {
    acceptor: Acceptor,
    settings: Settings,
    budget: Budget,
    lead: Lead,
}

/// What may precede the client's first message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lead {
    Nothing,
    Space,
}

struct Answered {
    connection: ServerConnection,
    captured: Captured,
    budget: Budget,
    /// Of the certificate that was shown; a reload may replace it meanwhile.
    end_point: Option<Arc<[u8]>>,
}

impl HandshakeState {
    /// Skips what may precede the client's first message; how many bytes of `input` that is.
    fn pass_lead(&mut self, input: &[u8]) -> Result<usize, Violation> {
        let HandshakeState::Greeting(greeting) = self else { return Ok(0) };
        if greeting.lead == Lead::Nothing {
            return Ok(0);
        }
        let length = input.iter().take_while(|byte| is_space(**byte)).count();
        greeting.budget.spend(&input[..length])?;
        if length < input.len() {
            greeting.lead = Lead::Nothing;
        }
        Ok(length)
    }

    /// Handles one record.
    fn record(self, record: &[u8], out: &mut Vec<u8>) -> Result<HandshakeState, Fault> {
        match self {
            HandshakeState::Greeting(greeting) => greeting.record(record, out),
            HandshakeState::Answered(mut answered) => {
                answered.record(record, out)?;
                Ok(HandshakeState::Answered(answered))
            }
        }
    }

    /// Refuses a malformed header. rustls does it, so that the alert is encrypted if it has to be.
    fn refuse(self, header: &[u8], out: &mut Vec<u8>) -> Fault {
        match self.record(header, out) {
            Err(fault) => fault,
            Ok(_) => Violation::NotTls.into(),
        }
    }
}

impl Greeting {
    /// Handles a record of the client's first message and, when the message is whole, answers it.
    fn record(mut self: Box<Self>, mut record: &[u8], out: &mut Vec<u8>) -> Result<HandshakeState, Fault> {
        self.budget.spend(record).inspect_err(|_| out.extend(UNEXPECTED_MESSAGE))?;
        while !record.is_empty() {
            if let Err(error) = self.acceptor.read_tls(&mut record) {
                return Err(rustls::Error::General(error.to_string()).into());
            }
        }
        let mut captured = Captured::default();
        let answered = self.acceptor.accept().and_then(|accepted| {
            let Some(accepted) = accepted else {
                return Ok(None);
            };
            let hello = accepted.client_hello();
            let config = Arc::clone(self.settings.config_for(&hello));
            let end_point = self.settings.server_end_point(hello.server_name()).cloned();
            captured
                .during(|| accepted.into_connection(config))
                .map(|connection| Some((connection, end_point)))
        });
        match answered {
            Ok(None) => Ok(HandshakeState::Greeting(self)),
            Ok(Some((mut connection, end_point))) => {
                buffered::drain(&mut connection, out);
                let budget = self.budget;
                Ok(HandshakeState::Answered(Box::new(Answered { connection, captured, budget, end_point })))
            }
            Err((error, mut alert)) => {
                let silent = out.len();
                // Writing to a `Vec` does not fail.
                let _ = alert.write_all(out);
                let fault = Fault::from(error);
                if out.len() == silent && !matches!(fault, Fault::Alerted(_)) {
                    // If rustls sends no alert, the message is not a ClientHello.
                    out.extend(UNEXPECTED_MESSAGE);
                }
                Err(fault)
            }
        }
    }
}

impl Answered {
    fn record(&mut self, record: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        self.budget.spend(record)?;
        let connection = &mut self.connection;
        self.captured.during(|| buffered::process(connection, record, out))?;
        Ok(())
    }

    /// Takes over the finished connection from rustls.
    fn take_over(self) -> Result<(Link, Secured), Fault> {
        let Answered { connection, captured, end_point, .. } = self;
        let suite = connection.negotiated_cipher_suite().ok_or(Fault::Extraction("no cipher suite"))?.suite();
        let secured = Secured::read(&connection, suite, end_point)?;
        let link = match secured.version {
            Version::Tls13 => Link::Extracted(Box::new(extract(connection, suite, &captured)?)),
            Version::Tls12 => Link::Buffered(Box::new(Buffered::new(connection))),
        };
        Ok((link, secured))
    }
}

impl Secured {
    fn read(
        connection: &ServerConnection,
        suite: CipherSuite,
        end_point: Option<Arc<[u8]>>,
    ) -> Result<Secured, Fault> {
        let version = match connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => Version::Tls13,
            _ => Version::Tls12,
        };
        Ok(Secured {
            version,
            cipher: suite.as_str().unwrap_or("unknown"),
            exporter: match version {
                Version::Tls13 => Some(exporter(connection)?),
                Version::Tls12 => None,
            },
            server_name: connection.server_name().map(Into::into),
            alpn: connection.alpn_protocol().map(Into::into),
            resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
            end_point,
        })
    }
}

impl std::fmt::Debug for Secured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the exporter: who knows it can take over an authentication bound to it.
        f.debug_struct("Secured")
            .field("version", &self.version)
            .field("cipher", &self.cipher)
            .field("server_name", &self.server_name)
            .field("resumed", &self.resumed)
            .finish_non_exhaustive()
    }
}

/// How many bytes the client may still send for its handshake.
struct Budget(usize);

impl Budget {
    fn spend(&mut self, record: &[u8]) -> Result<(), Violation> {
        self.0 = self.0.checked_sub(record.len()).ok_or(Violation::HandshakeOverflow)?;
        Ok(())
    }
}

/// `tls-exporter` (RFC 9266 §2). It has to be read while rustls still has the connection.
fn exporter(connection: &ServerConnection) -> Result<Zeroizing<[u8; 32]>, Fault> {
    let exported = connection.export_keying_material([0; 32], b"EXPORTER-Channel-Binding", Some(b""))?;
    Ok(Zeroizing::new(exported))
}

/// Gets everything that a TLS 1.3 connection needs out of rustls. Nothing is left in it: all that it had to send (tickets
/// count in its sequence number) is drained, and it was given no record beyond the client's last one.
fn extract(connection: ServerConnection, suite: CipherSuite, captured: &Captured) -> Result<Keys, Fault> {
    let suite = Suite::from_iana(suite).ok_or(Fault::Extraction("an unknown cipher suite"))?;
    let (Some(client), Some(server)) = (&captured.client, &captured.server) else {
        return Err(Fault::Extraction("no traffic secrets"));
    };
    let extracted = connection.dangerous_extract_secrets()?;
    let half = |(seq, keyed): (u64, ConnectionTrafficSecrets), secret: &[u8]| {
        let half = Half::from_secret(suite, secret, seq)?;
        match is_same_key(&half, suite, &keyed) {
            true => Ok(half),
            false => Err(Fault::Extraction("the traffic secrets of another connection")),
        }
    };
    Ok(Keys::new(suite, half(extracted.rx, client)?, half(extracted.tx, server)?))
}

fn is_same_key(half: &Half, suite: Suite, keyed: &ConnectionTrafficSecrets) -> bool {
    match (suite, keyed) {
        (Suite::Aes128Gcm, ConnectionTrafficSecrets::Aes128Gcm { key, iv })
        | (Suite::Aes256Gcm, ConnectionTrafficSecrets::Aes256Gcm { key, iv })
        | (Suite::Chacha20Poly1305, ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv }) => {
            half.is_keyed_with(suite, key.as_ref(), iv.as_ref())
        }
        _ => false,
    }
}

/// How many bytes a client may send for its handshake. With a post-quantum key share and a ticket it sends 2 KiB.
const HANDSHAKE_BYTES_MAX: usize = 32 * 1024;

/// An alert in the clear: fatal, unexpected_message.
const UNEXPECTED_MESSAGE: [u8; 7] = [21, 3, 3, 0, 2, 2, 10];
