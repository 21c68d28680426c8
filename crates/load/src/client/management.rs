//! Stream management (XEP-0198) of a session: whether it is enabled, and what it keeps.

use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::xml::Element;
use carillon_wire::xml::writer::Writer;

use super::channel::Channel;
use super::event::ClientEvent;
use super::outbox::Outbox;
use super::profile::StreamManagement;
use super::resumable::Resumable;
use super::unacknowledged::Unacknowledged;

/// Stream management (XEP-0198) on this stream.
#[derive(Debug)]
pub(crate) enum Management {
    /// Not wanted, not offered or refused.
    Off,
    /// Requested; with what was sent since then, if the stream is to be resumable.
    Asked(Option<Box<Unacknowledged>>),
    /// Enabled.
    On {
        /// Stanzas received since then, modulo 2^32.
        handled: u32,
    },
    /// Enabled on a stream that can be resumed.
    Resumable(Box<Resumable>),
}

impl StreamManagement {
    /// What keeps sent stanzas, if the stream is to be resumable.
    pub(super) fn queue(self) -> Option<Box<Unacknowledged>> {
        (self == Self::Resumable).then(Box::default)
    }
}

impl Management {
    /// Requests stream management.
    pub(crate) fn ask(wanted: StreamManagement, channel: &mut Channel, out: &mut Outbox) -> Self {
        channel.write_element(out, |writer| write_enable(wanted, writer));
        Self::Asked(wanted.queue())
    }

    /// Takes the server's answer: `<enabled/>` or `<failed/>`.
    pub(crate) fn answered(
        answer: &Element,
        jid: &Jid,
        sent: Option<Box<Unacknowledged>>,
        out: &mut Outbox,
    ) -> Self {
        if answer.name() != "enabled" {
            out.events.push(ClientEvent::Unmanaged { condition: condition(answer) });
            return Self::Off;
        }
        let resumable = sent.and_then(|sent| Resumable::enabled(answer, jid, *sent));
        let resumption = resumable.as_ref().map(|resumable| resumable.id().to_owned());
        out.events.push(ClientEvent::Managed { resumption });
        match resumable {
            Some(resumable) => Self::Resumable(Box::new(resumable)),
            // XEP-0198 §4: our count of what we receive starts when we receive <enabled/>.
            None => Self::On { handled: 0 },
        }
    }

    /// The count of received stanzas, once it is enabled.
    pub(crate) fn handled(&mut self) -> Option<&mut u32> {
        match self {
            Self::On { handled } => Some(handled),
            Self::Resumable(resumable) => Some(&mut resumable.handled),
            Self::Off | Self::Asked(_) => None,
        }
    }

    /// What was sent and not acknowledged, where the stream is or may become resumable.
    pub(crate) fn sent(&mut self) -> Option<&mut Unacknowledged> {
        match self {
            Self::Asked(sent) => sent.as_deref_mut(),
            Self::Resumable(resumable) => Some(&mut resumable.sent),
            Self::Off | Self::On { .. } => None,
        }
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

/// The stanza error condition in a `<failed/>`; empty if there is none.
pub(crate) fn condition(failed: &Element) -> String {
    let condition = failed.children().find(|child| child.ns() == ns::STANZA_ERRORS);
    condition.map(|child| child.name().to_owned()).unwrap_or_default()
}
