//! A session: what a client answers itself, and what it counts.

use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::{Framing, IqType, Kind, MessageType, PresenceType, Stanza, Unit};
use carillon_wire::xml::Element;

use super::channel::Channel;
use super::event::{ClientEvent, Failure};
use super::management::Management;
use super::outbox::Outbox;
use super::profile::{ClientState, InitialPresence, Options};
use super::resumable::Resumable;
use super::unacknowledged::Unacknowledged;

/// A bound session. An idle client keeps it, so it is small.
#[derive(Debug)]
pub(crate) struct Session {
    jid: Jid,
    management: Management,
    receipts: bool,
    unacknowledged_bytes_max: usize,
}

/// Whether a stanza was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// It was sent, or at least handed to the connection.
    Sent,
    /// There is no session.
    NoSession,
    /// The server has not acknowledged enough of what it was sent before; [`ClientEvent::Acknowledged`] tells when it has.
    Full,
}

impl Session {
    /// Begins the session and sends what the profile requires.
    pub(crate) fn begin(
        jid: Jid,
        management: Management,
        options: &Options,
        channel: &mut Channel,
        out: &mut Outbox,
    ) -> Self {
        let settings = &options.profile.settings;
        let mut session = Self::new(jid, management, options);
        write_client_state(settings.client_state, channel, out);
        let presence = Stanza::presence(PresenceType::Available);
        match settings.presence {
            InitialPresence::None => {}
            InitialPresence::Available => session.write(&presence, channel, out),
            InitialPresence::Away => {
                let away = Element::new("show", ns::CLIENT).with_text("away");
                session.write(&presence.with_payload(away), channel, out);
            }
        }
        out.events.push(ClientEvent::Bound { jid: session.jid.clone() });
        if session.is_settled() {
            out.events.push(ClientEvent::Ready);
        }
        session
    }

    /// Goes on with an earlier session: sends again what the server has not handled.
    pub(crate) fn resume(
        mut resumable: Box<Resumable>,
        options: &Options,
        channel: &mut Channel,
        out: &mut Outbox,
    ) -> Self {
        let settings = &options.profile.settings;
        // XEP-0198 §5 restores presence, but XEP-0352 §5 does not restore the client state, which is active then.
        if settings.client_state == ClientState::Inactive {
            write_client_state(settings.client_state, channel, out);
        }
        let resent = resumable.sent.stanzas().len();
        resumable.sent.stanzas().for_each(|stanza| channel.write_text(stanza, out));
        if resent > 0 {
            request(&mut resumable.sent, channel, out);
        }
        out.events.push(ClientEvent::Resumed { resent });
        out.events.push(ClientEvent::Ready);
        Self::new(resumable.jid.clone(), Management::Resumable(resumable), options)
    }

    fn new(jid: Jid, management: Management, options: &Options) -> Self {
        let settings = &options.profile.settings;
        let unacknowledged_bytes_max = settings.unacknowledged_bytes_max;
        Self { jid, management, receipts: settings.receipts, unacknowledged_bytes_max }
    }

    /// The full JID.
    pub(crate) fn jid(&self) -> &Jid {
        &self.jid
    }

    /// What is needed to resume the session, if the server allows that.
    pub(crate) fn resumable(&self) -> Option<&Resumable> {
        match &self.management {
            Management::Resumable(resumable) => Some(resumable),
            Management::Off | Management::Asked(_) | Management::On { .. } => None,
        }
    }

    /// The same, taken out.
    pub(crate) fn into_resumable(self) -> Option<Box<Resumable>> {
        match self.management {
            Management::Resumable(resumable) => Some(resumable),
            Management::Off | Management::Asked(_) | Management::On { .. } => None,
        }
    }

    /// Whether everything that the profile requests is done.
    pub(crate) fn is_settled(&self) -> bool {
        !matches!(self.management, Management::Asked(_))
    }

    /// Reports the number of handled stanzas, if stream management is enabled (XEP-0198 §4).
    pub(crate) fn acknowledge(&mut self, channel: &mut Channel, out: &mut Outbox) {
        if let Some(handled) = self.management.handled() {
            channel.write_element(out, |writer| {
                writer.start("a").attr("xmlns", ns::SM).attr("h", &handled.to_string()).close_empty();
            });
        }
    }

    /// Sends a stanza of the owner, if there is room for it.
    pub(crate) fn send(&mut self, stanza: &Stanza, channel: &mut Channel, out: &mut Outbox) -> SendOutcome {
        let bytes_max = self.unacknowledged_bytes_max;
        let enabled = self.is_settled();
        let Some(sent) = self.management.sent() else {
            channel.write_stanza(stanza, out);
            return SendOutcome::Sent;
        };
        let mut text = Vec::new();
        stanza.write(&mut text, Framing::Tcp);
        if !sent.has_room(text.len(), bytes_max) {
            if enabled && sent.is_unrequested() {
                request(sent, channel, out);
            }
            return SendOutcome::Full;
        }
        self.write_text(&text, channel, out);
        SendOutcome::Sent
    }

    /// Notes that the owner has sent the text of a stanza, or of another element, in its own way.
    pub(crate) fn sent_text(&mut self, text: &[u8], channel: &mut Channel, out: &mut Outbox) {
        let is_stanza = Element::parse(text, ns::CLIENT).is_ok_and(|element| {
            element.ns() == ns::CLIENT && matches!(element.name(), "message" | "presence" | "iq")
        });
        if is_stanza {
            self.keep(text, channel, out);
        }
    }

    /// Whether stanzas that are sent are kept until they are acknowledged.
    pub(crate) fn keeps_sent(&mut self) -> bool {
        self.management.sent().is_some()
    }

    /// Sends a stanza of the client's own.
    fn write(&mut self, stanza: &Stanza, channel: &mut Channel, out: &mut Outbox) {
        if !self.keeps_sent() {
            return channel.write_stanza(stanza, out);
        }
        let mut text = Vec::new();
        stanza.write(&mut text, Framing::Tcp);
        self.write_text(&text, channel, out);
    }

    fn write_text(&mut self, text: &[u8], channel: &mut Channel, out: &mut Outbox) {
        channel.write_text(text, out);
        self.keep(text, channel, out);
    }

    /// Keeps a stanza that was just sent, and asks for an acknowledgement when it is time.
    fn keep(&mut self, text: &[u8], channel: &mut Channel, out: &mut Outbox) {
        let (bytes_max, enabled) = (self.unacknowledged_bytes_max, self.is_settled());
        if let Some(sent) = self.management.sent() {
            sent.push(text);
            if enabled && sent.wants_request(bytes_max) {
                request(sent, channel, out);
            }
        }
    }

    /// Processes one unit of the stream.
    pub(crate) fn receive(
        &mut self,
        unit: Unit,
        channel: &mut Channel,
        out: &mut Outbox,
    ) -> Result<(), Failure> {
        match unit {
            Unit::Stanza(stanza) => self.stanza(stanza, channel, out),
            Unit::Nonza(element) => self.element(&element, channel, out),
            Unit::Refused { error, .. } => Err(Failure::Stanza(error)),
        }
    }

    fn stanza(&mut self, stanza: Stanza, channel: &mut Channel, out: &mut Outbox) -> Result<(), Failure> {
        if let Some(handled) = self.management.handled() {
            *handled = handled.wrapping_add(1);
        }
        if stanza.kind == Kind::Iq(IqType::Get) && stanza.payload.find("ping", ns::PING).is_some() {
            return self.answer(&stanza.result_reply(), channel, out);
        }
        let receipt = receipt(&stanza).filter(|_| self.receipts);
        // The owner is told of the stanza even if the answer has no room: it has arrived.
        out.events.push(ClientEvent::Stanza(stanza));
        receipt.map_or(Ok(()), |receipt| self.answer(&receipt, channel, out))
    }

    /// Sends an answer of the client's own. The server decides how many it provokes, so they are bounded, too.
    fn answer(&mut self, answer: &Stanza, channel: &mut Channel, out: &mut Outbox) -> Result<(), Failure> {
        let bytes_max = self.unacknowledged_bytes_max;
        if self.management.sent().is_some_and(|sent| sent.is_overfull(bytes_max)) {
            return Err(Failure::Unacknowledged);
        }
        self.write(answer, channel, out);
        Ok(())
    }

    fn element(&mut self, element: &Element, channel: &mut Channel, out: &mut Outbox) -> Result<(), Failure> {
        match (element.ns(), element.name(), &mut self.management) {
            (ns::SM, "r", Management::On { .. } | Management::Resumable(_)) => self.acknowledge(channel, out),
            (ns::SM, "a", Management::On { .. } | Management::Resumable(_)) => {
                let handled = element.attr("h").and_then(|h| h.parse().ok());
                let handled = handled.ok_or_else(|| unexpected(element))?;
                if let Some(sent) = self.management.sent() {
                    sent.acknowledge(handled)?;
                }
                out.events.push(ClientEvent::Acknowledged { handled });
            }
            (ns::SM, "enabled" | "failed", Management::Asked(sent)) => {
                self.management = Management::answered(element, &self.jid, sent.take(), out);
                out.events.push(ClientEvent::Ready);
            }
            // XEP-0388 §2.6.1: features follow the success of SASL2; nothing else is requested.
            (ns::STREAMS, "features", _) => {}
            _ => return Err(unexpected(element)),
        }
        Ok(())
    }
}

/// Requests an acknowledgement.
fn request(sent: &mut Unacknowledged, channel: &mut Channel, out: &mut Outbox) {
    sent.requested();
    channel.write_element(out, |writer| {
        writer.empty("r", ns::SM);
    });
}

fn write_client_state(state: ClientState, channel: &mut Channel, out: &mut Outbox) {
    let state = match state {
        ClientState::Unsaid => return,
        ClientState::Active => "active",
        ClientState::Inactive => "inactive",
    };
    channel.write_element(out, |writer| {
        writer.empty(state, ns::CSI);
    });
}

/// The receipt a message asks for (XEP-0184 §5.1), if it asks for one.
fn receipt(stanza: &Stanza) -> Option<Stanza> {
    let Kind::Message(kind) = stanza.kind else { return None };
    if kind == MessageType::Error || stanza.payload.find("request", ns::RECEIPTS).is_none() {
        return None;
    }
    let received = Element::new("received", ns::RECEIPTS).with_attr("id", stanza.id.as_deref()?);
    Some(Stanza::message(kind).with_to(stanza.from.clone()?).with_payload(received))
}

fn unexpected(element: &Element) -> Failure {
    Failure::Unexpected { element: element.name().to_owned(), state: "in session" }
}
