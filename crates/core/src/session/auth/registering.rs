//! In-band registration before authentication (XEP-0077 §3.1), where the domain's policy allows it.

use super::Authenticating;
use super::scram;
use crate::node::{Cx, Letter};
use crate::ports::{Answer, Ask};
use crate::session::Session;
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Kind, Stanza, StanzaError};
use carillon_wire::xml::Element;

/// A registration that waits for the store.
#[derive(Debug)]
pub struct RegisterRequest {
    iq: Stanza,
}

impl Authenticating {
    /// The one stanza that is listened to before authentication.
    pub(super) fn stanza(self: Box<Self>, iq: &Stanza, cx: &mut Cx<'_>) -> Session {
        let query = iq.payload.find("query", ns::REGISTER).map(|query| query.element());
        match (iq.kind, query) {
            _ if !self.domain.policy.registration => self.stranger(cx),
            (Kind::Iq(IqType::Get), Some(_)) => {
                let form = ["instructions", "username", "password"];
                let query = form.iter().fold(Element::new("query", ns::REGISTER), |query, name| {
                    query.with_child(Element::new(name, ns::REGISTER))
                });
                self.io.send_stanza(&iq.result_reply().with_payload(query), cx);
                Session::Authenticating(self)
            }
            (Kind::Iq(IqType::Set), Some(query)) => self.register(iq, &query, cx),
            _ => self.stranger(cx),
        }
    }

    fn register(self: Box<Self>, iq: &Stanza, query: &Element, cx: &mut Cx<'_>) -> Session {
        match self.creation(query, cx) {
            Ok(ask) => {
                // Each counts against the address, or anyone could fill the store.
                let (address, account) = (self.io.address, self.anyone());
                cx.post_all(|| Letter::LoginFailed { address, account: account.clone() });
                self.registering(RegisterRequest { iq: iq.clone() }, ask, cx)
            }
            Err(error) => self.refuse(iq, &error, cx),
        }
    }

    fn creation(&self, query: &Element, cx: &mut Cx<'_>) -> Result<Ask, StanzaError> {
        let field = |name| query.child(name, ns::REGISTER).map(Element::text).filter(|text| !text.is_empty());
        let (Some(username), Some(password)) = (field("username"), field("password")) else {
            return Err(
                StanzaError::new(Condition::NotAcceptable).with_text("username and password are needed")
            );
        };
        let account = BareJid::from_parts(Some(&username), &self.domain.name).map_err(|_| {
            StanzaError::new(Condition::NotAcceptable).with_text("this username cannot be a localpart")
        })?;
        let limits = cx.hub.settings.limits.clone();
        let anyone = self.anyone();
        cx.hub
            .throttle
            .check(
                self.io.address,
                anyone.as_str(),
                cx.now.mono,
                &crate::settings::Limits { auth_failures_per_account: u32::MAX, ..limits },
            )
            .map_err(|_| {
                StanzaError::new(Condition::ResourceConstraint).with_text("too many registrations")
            })?;
        let salt = cx.hub.random.bytes();
        let credentials =
            scram::keys(&password, &salt[..16], cx.hub.settings.scram_iterations).map_err(|_| {
                StanzaError::new(Condition::NotAcceptable).with_text("this password cannot be used")
            })?;
        let local = account.local().unwrap_or_default().into();
        Ok(Ask::CreateAccount { domain: self.domain.id, local, credentials, now: cx.now.unix })
    }

    pub(super) fn registered(
        self: Box<Self>,
        request: &RegisterRequest,
        answer: &Answer,
        cx: &mut Cx<'_>,
    ) -> Session {
        let error = match answer {
            Answer::Account(_) => {
                self.io.send_stanza(&request.iq.result_reply(), cx);
                return Session::Authenticating(self);
            }
            Answer::Exists => StanzaError::new(Condition::Conflict).with_text("this username is taken"),
            _ => StanzaError::new(Condition::InternalServerError),
        };
        self.refuse(&request.iq, &error, cx)
    }

    fn refuse(self: Box<Self>, iq: &Stanza, error: &StanzaError, cx: &mut Cx<'_>) -> Session {
        if let Some(reply) = iq.error_reply(error) {
            self.io.send_stanza(&reply, cx);
        }
        Session::Authenticating(self)
    }

    /// The name under which registrations of an address are counted: the domain's own.
    fn anyone(&self) -> BareJid {
        BareJid::from_parts(None, &self.domain.name).expect("a domain's name is prepared")
    }
}
