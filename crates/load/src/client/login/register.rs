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
/// That of the question for the form.
const FORM_ID: &str = "register-form";

impl Login {
    /// Requests the account, before authentication, or the form, where the limit in it is asked for.
    pub(super) fn register(&mut self, offered: Features, channel: &mut Channel, out: &mut Outbox) -> Stage {
        if std::mem::take(&mut self.options.asks_limit) {
            let request = Stanza::iq(IqType::Get).with_id(FORM_ID);
            channel.write_stanza(&request.with_payload(Element::new("query", ns::REGISTER)), out);
            return Stage::RegistrationForm(offered);
        }
        self.options.register = false;
        let member = |name: &str, text: &str| Element::new(name, ns::REGISTER).with_text(text);
        let query = Element::new("query", ns::REGISTER)
            .with_child(member("username", self.options.jid.local().unwrap_or_default()))
            .with_child(member("password", &self.options.password));
        let request = Stanza::iq(IqType::Set).with_id(ID).with_payload(query);
        channel.write_stanza(&request, out);
        Stage::Register(offered)
    }

    /// Processes the form, if there is one, and requests the account.
    pub(super) fn form(
        &mut self,
        answer: &Stanza,
        offered: Features,
        channel: &mut Channel,
        out: &mut Outbox,
    ) -> Result<Stage, Failure> {
        if !stanzas::is_response(answer, FORM_ID) {
            return Err(Stage::RegistrationForm(offered).unexpected(answer.name()));
        }
        let query = answer.payload.find("query", ns::REGISTER).map(|query| query.element());
        let limit = query.as_ref().and_then(|query| query.child("limit", ns::REGISTRATION));
        let number = |name: &str| limit?.attr(name)?.parse::<u64>().ok();
        if let (Some(accounts), Some(seconds)) = (number("accounts"), number("seconds")) {
            let accounts = u32::try_from(accounts).unwrap_or(u32::MAX);
            out.events.push(ClientEvent::RegistrationLimit { accounts, seconds });
        }
        Ok(self.register(offered, channel, out))
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
