//! Resource binding (RFC 6120 §7).

use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::{IqType, Kind, Stanza, StanzaError};
use carillon_wire::xml::Element;

use super::features::Features;
use super::{Login, Stage};
use crate::client::channel::Channel;
use crate::client::event::Failure;
use crate::client::management::Management;
use crate::client::outbox::Outbox;
use crate::client::profile::StreamManagement;
use crate::client::session::Session;
use crate::client::stanzas;

/// The id of the request. It is the only request in flight.
const ID: &str = "bind";

impl Login {
    /// Requests the resource.
    pub(super) fn bind(
        &mut self,
        offered: Features,
        channel: &mut Channel,
        out: &mut Outbox,
    ) -> Result<Stage, Failure> {
        if !offered.bind {
            return Err(Failure::NotOffered("resource binding"));
        }
        let mut bind = Element::new("bind", ns::BIND);
        if let Some(resource) = &self.options.resource {
            bind.push(Element::new("resource", ns::BIND).with_text(&**resource));
        }
        let request = Stanza::iq(IqType::Set).with_id(ID).with_payload(bind);
        channel.write_stanza(&request, out);
        Ok(Stage::Bind(offered))
    }

    /// Processes the answer.
    pub(super) fn bound(
        &mut self,
        answer: &Stanza,
        offered: &Features,
        channel: &mut Channel,
        out: &mut Outbox,
    ) -> Result<Session, Failure> {
        if !stanzas::is_response(answer, ID) {
            return Err(Failure::Unexpected {
                element: answer.name().to_owned(),
                state: "binding the resource",
            });
        }
        if answer.kind == Kind::Iq(IqType::Error) {
            let error = answer.payload.find("error", ns::CLIENT);
            let error = error.and_then(|child| StanzaError::parse(&child.element()));
            return Err(Failure::Bind(error));
        }
        let bind = answer.payload.find("bind", ns::BIND).map(|child| child.element());
        let jid = bind.and_then(|bind| Jid::new(bind.child("jid", ns::BIND)?.text().trim()).ok());
        let jid = jid.ok_or(Failure::NotOffered("an address in its answer to resource binding"))?;
        let wanted = self.options.profile.settings.stream_management;
        let management = match wanted {
            StreamManagement::Off => Management::Off,
            _ if !offered.stream_management => Management::Off,
            StreamManagement::On | StreamManagement::Resumable => Management::ask(wanted, channel, out),
        };
        Ok(Session::begin(jid, management, &self.options, channel, out))
    }
}
