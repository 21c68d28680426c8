//! The login, from the first byte to a bound resource: [`Login`] takes each frame of the server with the [`Stage`] that
//! awaits it, and returns the next stage. All of it is dropped when the session begins.
//!
//! ```text
//! Upgrade ──┐ (WebSocket)
//! TLS ──────┤ (direct TLS)          ┌────────────── TLS ◄── StartTls ◄┐
//!           ▼                       ▼                                 │
//!        Header ──► Features ──► Sasl ──► Header ──► Features ──► Bind ──► live
//!                       └──────► Sasl2 ──────────► Features ──┴──────────► live
//! (Resume comes before Bind for a client that resumes an earlier stream, and leads to live, too.)
//! (Register comes between Features and Sasl for a client that registers its account first.)
//! ```

mod bind;
mod features;
mod register;
mod resume;
mod sasl;
mod sasl2;
mod token;

use carillon_wire::ns;
use carillon_wire::stanza::Unit;
use carillon_wire::stream::Header;
use carillon_wire::xml::Element;

use super::channel::{Channel, Frame};
use super::entropy::Entropy;
use super::event::{ClientEvent, Failure};
use super::outbox::Outbox;
use super::profile::{Options, Transport};
use super::resumable::Resumable;
use super::sasl::{Exchange, Mechanism};
use super::session::Session;
use super::upgrade::Upgrade;
use features::{Features, Sasl2Offer};

/// The state of a login in all stages.
pub(crate) struct Login {
    options: Options,
    entropy: Entropy,
    /// Keying material of the TLS connection, for channel binding.
    exporter: Option<[u8; 32]>,
    secured: bool,
    connected: bool,
    /// STARTTLS was asked for along with the stream header, before it was offered.
    tls_ahead: bool,
    /// The proof of a token that was sent along with the stream header, before anything was offered.
    ahead: Option<(Mechanism, Exchange)>,
    /// What SASL2 offered, should the token be refused.
    fallback: Option<Sasl2Offer>,
    /// The earlier stream that is to be resumed.
    resumable: Option<Box<Resumable>>,
}

/// What is awaited from the server.
pub(crate) enum Stage {
    /// The answer to the WebSocket request.
    Upgrade(Upgrade),
    /// The rest of the TLS handshake.
    Tls,
    /// The server's stream header.
    Header(AuthState),
    /// What the server offers on this stream.
    Features(AuthState),
    /// The permission to begin the TLS handshake.
    StartTls,
    /// The result of registration, on a stream that offers this.
    Register(Features),
    /// The form of registration, which says how many accounts one address may have.
    RegistrationForm(Features),
    /// Challenge or outcome of classic SASL.
    Sasl(Mechanism, Exchange),
    /// Challenge or outcome of SASL2.
    Sasl2(Mechanism, Exchange),
    /// The result of resumption, on a stream that offers this.
    Resume(Features),
    /// The result of resource binding, on a stream that offers this.
    Bind(Features),
}

/// Whether the client has authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthState {
    /// Not yet.
    Fresh,
    /// The password is accepted.
    Authenticated,
}

/// The result of a step.
pub(crate) enum Transition {
    /// The login continues.
    Stage(Stage),
    /// The session begins.
    Session(Session),
}

impl Login {
    pub(crate) fn new(options: Options, entropy: Entropy, resumable: Option<Box<Resumable>>) -> Self {
        Self {
            options,
            entropy,
            exporter: None,
            secured: false,
            connected: false,
            tls_ahead: false,
            ahead: None,
            fallback: None,
            resumable,
        }
    }

    /// Begins on a connection that has just been established.
    pub(crate) fn start(&mut self, channel: &mut Channel, out: &mut Outbox) -> Result<Stage, Failure> {
        match self.options.profile.settings.transport {
            Transport::StartTls | Transport::Plain => Ok(self.open(AuthState::Fresh, channel, out)),
            Transport::WebSocket { .. } => Ok(self.upgrade(channel, out)),
            Transport::DirectTls | Transport::SecureWebSocket { .. } => self.handshake(channel, out),
        }
    }

    /// Continues if the TLS handshake is complete.
    pub(crate) fn after_tls(&mut self, channel: &mut Channel, out: &mut Outbox) -> Stage {
        let Some(tls) = channel.tls().filter(|tls| !tls.is_handshaking()) else { return Stage::Tls };
        let Some(security) = tls.security() else { return Stage::Tls };
        self.exporter = tls.take_exporter();
        self.secured = true;
        out.events.push(ClientEvent::Secured(security));
        match self.options.profile.settings.transport {
            Transport::SecureWebSocket { .. } => self.upgrade(channel, out),
            _ => self.open(AuthState::Fresh, channel, out),
        }
    }

    /// Continues when the server has opened the WebSocket.
    pub(crate) fn upgraded(&mut self, channel: &mut Channel, out: &mut Outbox) -> Stage {
        self.open(AuthState::Fresh, channel, out)
    }

    /// Processes one frame.
    pub(crate) fn receive(
        &mut self,
        stage: Stage,
        frame: Frame,
        channel: &mut Channel,
        out: &mut Outbox,
    ) -> Result<Transition, Failure> {
        match frame {
            Frame::Header(header) => self.header(&stage, &header, out).map(Transition::Stage),
            Frame::Unit(Unit::Nonza(element)) => self.element(stage, &element, channel, out),
            Frame::Unit(Unit::Stanza(stanza)) => match stage {
                Stage::Bind(offered) => self.bound(&stanza, &offered, channel, out).map(Transition::Session),
                Stage::RegistrationForm(offered) => {
                    self.form(&stanza, offered, channel, out).map(Transition::Stage)
                }
                Stage::Register(offered) => {
                    self.registered(&stanza, offered, channel, out).map(Transition::Stage)
                }
                other => Err(other.unexpected(stanza.name())),
            },
            Frame::Unit(Unit::Refused { error, .. }) => Err(Failure::Stanza(error)),
            Frame::Close => Err(stage.unexpected("close")),
        }
    }

    fn header(&mut self, stage: &Stage, header: &Header, out: &mut Outbox) -> Result<Stage, Failure> {
        let Stage::Header(progress) = *stage else { return Err(stage.unexpected("stream")) };
        // RFC 6120 §4.7.5: without a version there are no features to wait for.
        if header.version.is_none_or(|(major, _)| major < 1) {
            return Err(Failure::NotOffered("XMPP 1.0"));
        }
        if !std::mem::replace(&mut self.connected, true) {
            out.events.push(ClientEvent::Connected);
        }
        Ok(Stage::Features(progress))
    }

    fn element(
        &mut self,
        stage: Stage,
        element: &Element,
        channel: &mut Channel,
        out: &mut Outbox,
    ) -> Result<Transition, Failure> {
        match stage {
            Stage::Features(progress) if element.is("features", ns::STREAMS) => {
                self.features(progress, Features::parse(element), channel, out).map(Transition::Stage)
            }
            Stage::StartTls if element.is("proceed", ns::TLS) => {
                self.handshake(channel, out).map(Transition::Stage)
            }
            Stage::StartTls if element.is("failure", ns::TLS) => Err(Failure::TlsRefused),
            Stage::Sasl(mechanism, exchange) if element.ns() == ns::SASL => {
                self.sasl(mechanism, exchange, element, channel, out).map(Transition::Stage)
            }
            Stage::Sasl2(mechanism, exchange) if element.ns() == ns::SASL2 => {
                self.sasl2(mechanism, exchange, element, channel, out)
            }
            Stage::Resume(offered) => self.resume_answered(element, offered, channel, out),
            other => Err(other.unexpected(element.name())),
        }
    }

    fn features(
        &mut self,
        progress: AuthState,
        offered: Features,
        channel: &mut Channel,
        out: &mut Outbox,
    ) -> Result<Stage, Failure> {
        if progress == AuthState::Authenticated {
            return self.resume_or_bind(offered, channel, out);
        }
        let settings = &self.options.profile.settings;
        if settings.transport == Transport::StartTls && !self.secured {
            if !offered.starttls {
                return Err(Failure::TlsNotOffered);
            }
            if !self.tls_ahead {
                request_tls(channel, out);
            }
            return Ok(Stage::StartTls);
        }
        if self.options.register {
            return Ok(self.register(offered, channel, out));
        }
        self.offered(offered, channel, out)
    }

    /// Authenticates by the best way offered.
    fn offered(
        &mut self,
        offered: Features,
        channel: &mut Channel,
        out: &mut Outbox,
    ) -> Result<Stage, Failure> {
        if let Some((mechanism, exchange)) = self.ahead.take() {
            self.fallback = offered.sasl2;
            return Ok(Stage::Sasl2(mechanism, exchange));
        }
        let settings = &self.options.profile.settings;
        match (&offered.sasl2, offered.sasl) {
            (Some(sasl2), _) if settings.sasl2 && sasl2.bind2 => self.authenticate2(sasl2, channel, out),
            (_, Some(sasl)) => self.authenticate(&sasl, channel, out),
            _ => Err(Failure::NotOffered("SASL")),
        }
    }

    /// Opens or restarts the stream (RFC 6120 §4.3.3).
    fn open(&mut self, progress: AuthState, channel: &mut Channel, out: &mut Outbox) -> Stage {
        channel.open(self.options.jid.domain(), out);
        if progress == AuthState::Fresh && self.secured {
            self.begin_with_token(channel, out);
        } else if progress == AuthState::Fresh && self.has_been_here() {
            request_tls(channel, out);
            self.tls_ahead = true;
        }
        Stage::Header(progress)
    }

    /// Whether the server is known to offer STARTTLS: it has given this client a token (XEP-0305).
    fn has_been_here(&self) -> bool {
        let profile = &self.options.profile;
        profile.settings.fast
            && profile.settings.transport == Transport::StartTls
            && profile.tokens.has(&self.options.jid)
    }

    fn handshake(&mut self, channel: &mut Channel, out: &mut Outbox) -> Result<Stage, Failure> {
        channel.secure(&self.options.profile.tls, self.options.jid.domain(), out)?;
        Ok(Stage::Tls)
    }

    fn upgrade(&mut self, channel: &mut Channel, out: &mut Outbox) -> Stage {
        let path = self.options.profile.settings.transport.path().unwrap_or("/");
        let key = self.entropy.websocket_key();
        let (upgrade, request) = Upgrade::request(self.options.jid.domain(), path, key);
        channel.write_unframed(request.as_bytes(), out);
        Stage::Upgrade(upgrade)
    }
}

impl Stage {
    fn unexpected(&self, element: &str) -> Failure {
        let state = match self {
            Self::Upgrade(_) => "waiting for the WebSocket",
            Self::Tls => "waiting for TLS",
            Self::Header(_) => "waiting for the stream header",
            Self::Features(_) => "waiting for stream features",
            Self::Register(_) | Self::RegistrationForm(_) => "registering",
            Self::StartTls => "waiting for the answer to STARTTLS",
            Self::Sasl(..) | Self::Sasl2(..) => "authenticating",
            Self::Resume(_) => "resuming the stream",
            Self::Bind(_) => "binding the resource",
        };
        Failure::Unexpected { element: element.to_owned(), state }
    }
}

fn request_tls(channel: &mut Channel, out: &mut Outbox) {
    channel.write_element(out, |writer| {
        writer.empty("starttls", ns::TLS);
    });
}
