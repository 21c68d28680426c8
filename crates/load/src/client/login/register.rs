//! In-band registration (XEP-0077 §3) on the same stream on which the client then logs in.

use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Stanza};
use carillon_wire::xml::Element;

use super::features::Features;
use super::{Login, Stage};
use crate::client::channel::Channel;
use crate::client::event::{ClientEvent, Failure};
use crate::client::outbox::Outbox;
use crate::client::stanzas;

/// The id of the request: nothing else is asked before it is answered.
const ID: &str = "register";

impl Login {
    /// Requests the account, before authentication.
    pub(super) fn register(&mut self, offered: Features, channel: &mut Channel, out: &mut Outbox) -> Stage {
        self.options.register = false;
        let member = |name: &str, text: &str| Element::new(name, ns::REGISTER).with_text(text);
        let query = Element::new("query", ns::REGISTER)
            .with_child(member("username", self.options.jid.local().unwrap_or_default()))
            .with_child(member("password", &self.options.password));
        let request = Stanza::iq(IqType::Set).with_id(ID).with_payload(query);
        channel.write_stanza(&request, out);
        Stage::Register(offered)
    }

    /// Processes the answer and continues with the login. An account that exists already is no error: the login will show.
    pub(super) fn registered(
        &mut self,
        answer: &Stanza,
        offered: Features,
        channel: &mut Channel,
        out: &mut Outbox,
    ) -> Result<Stage, Failure> {
        if !stanzas::is_response(answer, ID) {
            return Err(Stage::Register(offered).unexpected(answer.name()));
        }
        match stanzas::error(answer) {
            Some(error) if error.condition != Condition::Conflict => {
                return Err(Failure::Registration(error));
            }
            Some(_) => {}
            None if answer.kind.is_error() => return Err(Failure::NotOffered("registration")),
            None => out.events.push(ClientEvent::Registered),
        }
        self.offered(offered, channel, out)
    }
}
