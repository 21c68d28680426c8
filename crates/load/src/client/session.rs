//! A session: what a client answers itself, and what it counts.

use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::{IqType, Kind, MessageType, PresenceType, Stanza, Unit};
use carillon_wire::xml::Element;
use carillon_wire::xml::writer::Writer;

use super::channel::Channel;
use super::event::{ClientEvent, Failure};
use super::outbox::Outbox;
use super::profile::{ClientState, InitialPresence, Options, StreamManagement};

/// A bound session. An idle client keeps it, so it is small.
#[derive(Debug)]
pub(crate) struct Session {
    jid: Jid,
    management: Management,
    receipts: bool,
}

/// Stream management (XEP-0198) on this stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Management {
    /// Not wanted, not offered or refused.
    Off,
    /// Requested.
    Asked,
    /// Enabled.
    On {
        /// Stanzas received since then, modulo 2^32.
        handled: u32,
    },
}

impl Management {
    /// Requests stream management.
    pub(crate) fn ask(wanted: StreamManagement, channel: &mut Channel, out: &mut Outbox) -> Self {
        channel.write_element(out, |writer| write_enable(wanted, writer));
        Self::Asked
    }

    /// Takes the server's answer: `<enabled/>` or `<failed/>`.
    pub(crate) fn answered(answer: &Element, out: &mut Outbox) -> Self {
        if answer.name() == "enabled" {
            let resumable = matches!(answer.attr("resume"), Some("true" | "1"));
            let resumption = answer.attr("id").filter(|_| resumable).map(str::to_owned);
            out.events.push(ClientEvent::Managed { resumption });
            // XEP-0198 §4: our count of what we receive starts when we receive <enabled/>.
            Self::On { handled: 0 }
        } else {
            let condition = answer.children().find(|child| child.ns() == ns::STANZA_ERRORS);
            let condition = condition.map(|child| child.name().to_owned()).unwrap_or_default();
            out.events.push(ClientEvent::Unmanaged { condition });
            Self::Off
        }
    }
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
        let state = match settings.client_state {
            ClientState::Unsaid => None,
            ClientState::Active => Some("active"),
            ClientState::Inactive => Some("inactive"),
        };
        if let Some(state) = state {
            channel.write_element(out, |writer| {
                writer.empty(state, ns::CSI);
            });
        }
        let presence = Stanza::presence(PresenceType::Available);
        match settings.presence {
            InitialPresence::None => {}
            InitialPresence::Available => channel.write_stanza(&presence, out),
            InitialPresence::Away => {
                let away = Element::new("show", ns::CLIENT).with_text("away");
                channel.write_stanza(&presence.with_payload(away), out);
            }
        }
        out.events.push(ClientEvent::Bound { jid: jid.clone() });
        if management != Management::Asked {
            out.events.push(ClientEvent::Ready);
        }
        Self { jid, management, receipts: settings.receipts }
    }

    /// The full JID.
    pub(crate) fn jid(&self) -> &Jid {
        &self.jid
    }

    /// Whether everything that the profile requests is done.
    pub(crate) fn is_settled(&self) -> bool {
        self.management != Management::Asked
    }

    /// Reports the number of handled stanzas, if stream management is enabled (XEP-0198 §4).
    pub(crate) fn acknowledge(&self, channel: &mut Channel, out: &mut Outbox) {
        if let Management::On { handled } = self.management {
            channel.write_element(out, |writer| {
                writer.start("a").attr("xmlns", ns::SM).attr("h", &handled.to_string()).close_empty();
            });
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
            Unit::Stanza(stanza) => {
                self.stanza(stanza, channel, out);
                Ok(())
            }
            Unit::Nonza(element) => self.element(&element, channel, out),
            Unit::Refused { error, .. } => Err(Failure::Stanza(error)),
        }
    }

    fn stanza(&mut self, stanza: Stanza, channel: &mut Channel, out: &mut Outbox) {
        if let Management::On { handled } = &mut self.management {
            *handled = handled.wrapping_add(1);
        }
        if stanza.kind == Kind::Iq(IqType::Get) && stanza.payload.find("ping", ns::PING).is_some() {
            channel.write_stanza(&stanza.result_reply(), out);
            return;
        }
        if self.receipts
            && let Some(receipt) = receipt(&stanza)
        {
            channel.write_stanza(&receipt, out);
        }
        out.events.push(ClientEvent::Stanza(stanza));
    }

    fn element(&mut self, element: &Element, channel: &mut Channel, out: &mut Outbox) -> Result<(), Failure> {
        match (element.ns(), element.name(), self.management) {
            (ns::SM, "r", Management::On { .. }) => self.acknowledge(channel, out),
            (ns::SM, "a", Management::On { .. }) => {
                let handled = element.attr("h").and_then(|h| h.parse().ok());
                let handled = handled.ok_or_else(|| unexpected(element))?;
                out.events.push(ClientEvent::Acknowledged { handled });
            }
            (ns::SM, "enabled" | "failed", Management::Asked) => {
                self.management = Management::answered(element, out);
                out.events.push(ClientEvent::Ready);
            }
            // XEP-0388 §2.6.1: features follow the success of SASL2; nothing else is requested.
            (ns::STREAMS, "features", _) => {}
            _ => return Err(unexpected(element)),
        }
        Ok(())
    }
}

/// Writes `<enable/>` of XEP-0198, if stream management is requested.
pub(crate) fn write_enable(wanted: StreamManagement, writer: &mut Writer<'_>) {
    let resume = match wanted {
        StreamManagement::Off => return,
        StreamManagement::On => None,
        StreamManagement::Resumable => Some("true"),
    };
    writer.start("enable").attr("xmlns", ns::SM).attr_opt("resume", resume).close_empty();
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
