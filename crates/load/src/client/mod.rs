//! An XMPP client without I/O: [`Client`] takes bytes from the network and returns, in an [`Outbox`], bytes to send and
//! events.
//!
//! ```text
//! Profile ─► Options ─► Client::new ─► start ─► receive* ─► receive_end
//!                                        │         │             │
//!                                        └─────────┴── Outbox: bytes for the network, events for the owner
//! ```
//!
//! Layers from the network inwards: [`tls`], the framing of TCP or WebSocket (`channel`), then one of the states of
//! [`Client`]: a login (`login`, using [`sasl`]) or a session (`session`). An idle client holds no buffers.

#![deny(clippy::indexing_slicing, clippy::string_slice, clippy::unwrap_used)]

mod channel;
mod entropy;
mod event;
mod login;
mod management;
mod outbox;
mod profile;
mod resumable;
pub mod sasl;
mod session;
pub mod stanzas;
pub mod tls;
mod unacknowledged;
mod upgrade;

#[cfg(test)]
mod tests;

pub use entropy::Entropy;
pub use event::{AuthFailure, ClientEvent, End, Failure, Security};
pub use outbox::Outbox;
pub use profile::{ClientState, InitialPresence, Options, Profile, Settings, StreamManagement, Transport};
pub use resumable::Resumable;
pub use session::SendOutcome;
pub use upgrade::UpgradeError;

use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::{Framing, Stanza, Unit};
use carillon_wire::stream::{Condition, StreamError};

use channel::{Channel, Frame};
use login::{Login, Stage, Transition};
use session::Session;
use tls::PeerState;

/// A client's side of one stream.
pub struct Client {
    channel: Channel,
    state: Phase,
    /// The beginning of an element whose rest has not arrived.
    rest: Vec<u8>,
}

enum Phase {
    /// Nothing has been sent.
    New(Box<Login>),
    /// Logging in.
    Login(Box<Login>, Box<Stage>),
    /// In session.
    Session(Session),
    /// Our stream is closed, the server's is not.
    Closing,
    /// The stream is over; with what is needed to resume it, if it can be resumed.
    Over(Option<Box<Resumable>>),
}

impl Client {
    /// A client that has not sent anything.
    pub fn new(options: Options, entropy: Entropy) -> Self {
        Self::of_login(options, entropy, None)
    }

    /// A client that logs in to resume an earlier stream of the same account (XEP-0198 §5), and begins a new session if that
    /// is not possible.
    pub fn resuming(options: Options, entropy: Entropy, resumable: Box<Resumable>) -> Self {
        Self::of_login(options, entropy, Some(resumable))
    }

    fn of_login(options: Options, mut entropy: Entropy, resumable: Option<Box<Resumable>>) -> Self {
        let settings = &options.profile.settings;
        let channel = Channel::new(settings.transport.framing(), settings.limits, &mut entropy);
        let login = Login::new(options, entropy, resumable);
        Self { channel, state: Phase::New(Box::new(login)), rest: Vec::new() }
    }

    /// Begins when the connection is established. Does nothing the second time.
    pub fn start(&mut self, out: &mut Outbox) {
        match self.take_state() {
            Phase::New(mut login) => match login.start(&mut self.channel, out) {
                Ok(stage) => self.state = Phase::Login(login, Box::new(stage)),
                Err(failure) => self.fail(failure, out),
            },
            other => self.state = other,
        }
        self.channel.flush(out);
    }

    /// Processes bytes from the network.
    pub fn receive(&mut self, bytes: &[u8], out: &mut Outbox) {
        let mut inbound = std::mem::take(&mut out.inbound);
        inbound.clear();
        inbound.append(&mut self.rest);
        self.rest = Vec::new();
        if let Err(failure) = self.receive_text(bytes, &mut inbound, out) {
            self.fail(failure, out);
        }
        out.inbound = inbound;
        self.channel.flush(out);
    }

    /// The server closed the connection, or it was lost.
    pub fn receive_end(&mut self, out: &mut Outbox) {
        match self.state {
            Phase::Over(_) => {}
            Phase::Closing => self.end(End::ByClient, out),
            Phase::New(_) | Phase::Login(..) | Phase::Session(_) => self.end(End::Cut, out),
        }
    }

    /// The connection could not be established, or failed.
    pub fn connection_failed(&mut self, kind: std::io::ErrorKind, out: &mut Outbox) {
        if !self.is_over() {
            self.end(End::Network(kind), out);
            out.bytes.clear();
        }
    }

    /// Sends a stanza. Nothing is sent while there is no session, or while too much is unacknowledged on a stream that can be
    /// resumed.
    pub fn send(&mut self, stanza: &Stanza, out: &mut Outbox) -> SendOutcome {
        let Phase::Session(session) = &mut self.state else { return SendOutcome::NoSession };
        let sending = session.send(stanza, &mut self.channel, out);
        self.channel.flush(out);
        sending
    }

    /// Sends the text of a stanza, or of another element, whatever is unacknowledged. On WebSocket the namespace is added to
    /// it.
    pub fn send_xml(&mut self, stanza: &str, out: &mut Outbox) {
        self.channel.write_text(stanza.as_bytes(), out);
        if let Phase::Session(session) = &mut self.state
            && session.keeps_sent()
        {
            session.sent_text(stanza.as_bytes(), &mut self.channel, out);
        }
        self.channel.flush(out);
    }

    /// Sends any bytes at any time, inside TLS; on WebSocket as one message. A stanza in them is not counted, so it breaks
    /// the counts of a stream that can be resumed.
    pub fn send_raw(&mut self, bytes: &[u8], out: &mut Outbox) {
        self.channel.write(bytes, out);
        self.channel.flush(out);
    }

    /// Closes the stream; [`ClientEvent::Closed`] comes when the server has closed it too.
    pub fn close(&mut self, out: &mut Outbox) {
        match self.take_state() {
            Phase::Session(mut session) => {
                session.acknowledge(&mut self.channel, out);
                self.channel.close_stream(out);
                self.channel.flush(out);
                self.state = Phase::Closing;
            }
            Phase::Closing => self.state = Phase::Closing,
            Phase::Over(resumable) => self.state = Phase::Over(resumable),
            // There is no stream yet that could be closed.
            Phase::New(_) | Phase::Login(..) => self.end(End::ByClient, out),
        }
    }

    /// The full JID, once everything the profile asks for is done: a resource bound, stream management on.
    pub fn ready(&self) -> Option<&Jid> {
        match &self.state {
            Phase::Session(session) if session.is_settled() => Some(session.jid()),
            _ => None,
        }
    }

    /// What is needed to resume the session, if the server allows that.
    pub fn resumable(&self) -> Option<&Resumable> {
        match &self.state {
            Phase::Session(session) => session.resumable(),
            Phase::Over(resumable) => resumable.as_deref(),
            Phase::New(_) | Phase::Login(..) | Phase::Closing => None,
        }
    }

    /// Gives the connection up, if it is not lost already, and takes what is needed to resume the stream on another one. There
    /// is none where the server does not allow resumption, and after the stream was closed in order.
    pub fn take_resumable(&mut self) -> Option<Box<Resumable>> {
        match self.take_state() {
            Phase::Session(session) => session.into_resumable(),
            Phase::New(mut login) | Phase::Login(mut login, _) => login.take_resumable(),
            Phase::Over(resumable) => resumable,
            Phase::Closing => None,
        }
    }

    /// Whether the stream is over.
    pub fn is_over(&self) -> bool {
        matches!(self.state, Phase::Over(_))
    }

    fn receive_text(&mut self, bytes: &[u8], inbound: &mut Vec<u8>, out: &mut Outbox) -> Result<(), Failure> {
        let state = self.channel.open_records(bytes, inbound, out)?;
        self.after_tls(out);
        let mut text = inbound.as_slice();
        while let Some(frame) = self.next(&mut text, out)? {
            self.frame(frame, out)?;
            // RFC 6120 §5.4.3.3: bytes that an attacker inserted after <proceed/> must not be taken for the server's.
            if self.is_handshaking() && !text.is_empty() {
                return Err(Failure::Unexpected { element: "bytes".to_owned(), state: "starting TLS" });
            }
        }
        self.rest = text.to_vec();
        if state == PeerState::Closed {
            self.receive_end(out);
        }
        Ok(())
    }

    fn after_tls(&mut self, out: &mut Outbox) {
        if let Phase::Login(login, stage) = &mut self.state
            && matches!(**stage, Stage::Tls)
        {
            **stage = login.after_tls(&mut self.channel, out);
        }
    }

    fn is_handshaking(&self) -> bool {
        matches!(&self.state, Phase::Login(_, stage) if matches!(**stage, Stage::Tls))
    }

    /// The next frame of the stream, after the HTTP answer if one is awaited.
    fn next(&mut self, text: &mut &[u8], out: &mut Outbox) -> Result<Option<Frame>, Failure> {
        if let Phase::Login(login, stage) = &mut self.state
            && let Stage::Upgrade(upgrade) = &mut **stage
        {
            let Some(length) = upgrade.receive(text)? else {
                *text = &[];
                return Ok(None);
            };
            *text = text.get(length..).unwrap_or_default();
            **stage = login.upgraded(&mut self.channel, out);
        }
        if self.is_over() || self.is_handshaking() {
            *text = &[];
            return Ok(None);
        }
        self.channel.next(text, out)
    }

    fn frame(&mut self, frame: Frame, out: &mut Outbox) -> Result<(), Failure> {
        if let Frame::Unit(Unit::Nonza(element)) = &frame
            && let Some(error) = StreamError::parse(element)
        {
            out.events.push(ClientEvent::StreamError(error.clone()));
            return Err(Failure::Stream(error));
        }
        match (self.take_state(), frame) {
            (Phase::Closing, Frame::Close) => self.end(End::ByClient, out),
            (state @ (Phase::Login(..) | Phase::Session(_)), Frame::Close) => {
                self.state = state;
                self.channel.close_stream(out);
                self.end(End::ByServer, out);
            }
            (Phase::Login(mut login, stage), frame) => {
                match login.receive(*stage, frame, &mut self.channel, out) {
                    Ok(Transition::Stage(stage)) => self.state = Phase::Login(login, Box::new(stage)),
                    Ok(Transition::Session(session)) => self.state = Phase::Session(session),
                    Err(failure) => {
                        self.state = Phase::Over(login.take_resumable());
                        return Err(failure);
                    }
                }
            }
            (Phase::Session(mut session), Frame::Unit(unit)) => {
                let received = session.receive(unit, &mut self.channel, out);
                self.state = Phase::Session(session);
                received?;
            }
            (Phase::Session(session), Frame::Header(_)) => {
                self.state = Phase::Session(session);
                return Err(Failure::Unexpected { element: "stream".to_owned(), state: "in session" });
            }
            // The server may continue to send until it has received our end of the stream.
            (other, _) => self.state = other,
        }
        Ok(())
    }

    fn fail(&mut self, failure: Failure, out: &mut Outbox) {
        if let Failure::Auth(auth) = &failure {
            out.events.push(ClientEvent::AuthFailed(auth.clone()));
        }
        if let Failure::HandledOutOfRange { handled, sent } = failure {
            self.write_handled_count_too_high(handled, sent, out);
        }
        // RFC 6120 §4.4: the stream is closed before the connection, if there is one.
        if !matches!(failure, Failure::Tls(_) | Failure::ServerName(_) | Failure::Upgrade(_)) {
            self.channel.close_stream(out);
        }
        self.end(End::Failure(failure), out);
    }

    /// Tells the server that its count cannot be (XEP-0198 §4).
    fn write_handled_count_too_high(&mut self, handled: u32, sent: u32, out: &mut Outbox) {
        let is_framed = self.channel.framing() == Framing::WebSocket;
        let (handled, sent) = (handled.to_string(), sent.to_string());
        self.channel.write_element(out, |writer| {
            writer
                .start("stream:error")
                .attr_opt("xmlns:stream", is_framed.then_some(ns::STREAMS))
                .close_start();
            writer.empty(Condition::UndefinedCondition.as_str(), ns::STREAM_ERRORS);
            writer.start("handled-count-too-high").attr("xmlns", ns::SM);
            writer.attr("h", &handled).attr("send-count", &sent).close_empty().end("stream:error");
        });
    }

    fn end(&mut self, end: End, out: &mut Outbox) {
        self.state = Phase::Over(self.left_by(&end));
        self.rest = Vec::new();
        self.channel.close_connection(out);
        out.events.push(ClientEvent::Closed(end));
    }

    /// What an end leaves to be resumed. A session that was closed in order is over, and so is one that another has replaced
    /// (XEP-0198 §7, RFC 6120 §4.9.3.3); a login that ends leaves the earlier stream as it was.
    fn left_by(&mut self, end: &End) -> Option<Box<Resumable>> {
        let in_session = matches!(self.state, Phase::Session(_));
        let resumable = self.take_resumable();
        let closed = match end {
            End::ByServer | End::ByClient => true,
            End::Failure(Failure::Stream(error)) => error.condition == Condition::Conflict,
            End::Cut | End::Network(_) | End::Failure(_) => false,
        };
        resumable.filter(|_| !(in_session && closed))
    }

    /// The state, for a transition that consumes it and sets the next.
    fn take_state(&mut self) -> Phase {
        std::mem::replace(&mut self.state, Phase::Over(None))
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match &self.state {
            Phase::New(_) => "New",
            Phase::Login(..) => "Login",
            Phase::Session(_) => "Session",
            Phase::Closing => "Closing",
            Phase::Over(_) => "Over",
        };
        f.debug_struct("Client").field("state", &state).field("jid", &self.ready()).finish_non_exhaustive()
    }
}
