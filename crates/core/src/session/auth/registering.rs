//! In-band registration before authentication (XEP-0077 §3.1), where the domain's policy allows it.

use super::Authenticating;
use super::exchange::Stage;
use crate::node::Cx;
use crate::ports::{Answer, Ask, Derivation, Derived, Hashes, Password};
use crate::session::Session;
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Kind, Stanza, StanzaError};
use carillon_wire::xml::Element;

/// An account that is being created.
#[derive(Debug)]
pub(super) struct Registering {
    iq: Stanza,
    local: Box<str>,
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

    fn register(mut self: Box<Self>, iq: &Stanza, query: &Element, cx: &mut Cx<'_>) -> Session {
        match self.creation(query, cx) {
            Ok((local, derivation)) => {
                // Each counts against the address, or anyone could fill the store.
                cx.registered(self.io.address);
                self.stage = Stage::Registering(Box::new(Registering { iq: iq.clone(), local }));
                self.derive(derivation, cx)
            }
            Err(error) => self.refuse_iq(iq, &error, cx),
        }
    }

    fn creation(&self, query: &Element, cx: &mut Cx<'_>) -> Result<(Box<str>, Derivation), StanzaError> {
        let field = |name| query.child(name, ns::REGISTER).map(Element::text).filter(|text| !text.is_empty());
        let (Some(username), Some(password)) = (field("username"), field("password")) else {
            return Err(
                StanzaError::new(Condition::NotAcceptable).with_text("username and password are needed")
            );
        };
        let account = BareJid::from_parts(Some(&username), &self.domain.name).map_err(|_| {
            StanzaError::new(Condition::NotAcceptable).with_text("this username cannot be a localpart")
        })?;
        let password = Password::new(&password).ok_or_else(unusable)?;
        let (hub, now) = (&mut *cx.hub, cx.now.mono);
        if !hub.throttle.admits_registration(self.io.address, now, &hub.settings.limits) {
            return Err(StanzaError::new(Condition::ResourceConstraint)
                .with_text("too many registrations from your address"));
        }
        let salt = hub.random.bytes()[..16].into();
        let iterations = hub.settings.scram_iterations;
        let derivation = Derivation { password, salt, iterations, hashes: Hashes::Both };
        Ok((account.local().unwrap_or_default().into(), derivation))
    }

    /// The keys of its password are there.
    pub(super) fn create(
        mut self: Box<Self>,
        registering: Box<Registering>,
        derived: Derived,
        cx: &mut Cx<'_>,
    ) -> Session {
        let credentials = match derived {
            Derived::Keys(credentials) => credentials,
            Derived::Unusable => return self.refuse_iq(&registering.iq, &unusable(), cx),
            Derived::Busy => return self.refuse_iq(&registering.iq, &busy(), cx),
        };
        let (domain, local) = (self.domain.id, registering.local.clone());
        self.stage = Stage::Registering(registering);
        self.ask(Ask::CreateAccount { domain, local, credentials, now: cx.now.unix }, cx)
    }

    pub(super) fn registered(
        self: Box<Self>,
        registering: &Registering,
        answer: &Answer,
        cx: &mut Cx<'_>,
    ) -> Session {
        let error = match answer {
            Answer::Account(_) => {
                self.io.send_stanza(&registering.iq.result_reply(), cx);
                return Session::Authenticating(self);
            }
            Answer::Exists => StanzaError::new(Condition::Conflict).with_text("this username is taken"),
            _ => StanzaError::new(Condition::InternalServerError),
        };
        self.refuse_iq(&registering.iq, &error, cx)
    }

    fn refuse_iq(self: Box<Self>, iq: &Stanza, error: &StanzaError, cx: &mut Cx<'_>) -> Session {
        if let Some(reply) = iq.error_reply(error) {
            self.io.send_stanza(&reply, cx);
        }
        Session::Authenticating(self)
    }
}

/// What is said of a password that SCRAM has no keys for.
pub fn unusable() -> StanzaError {
    StanzaError::new(Condition::NotAcceptable).with_text("this password cannot be used")
}

/// What is said while too many passwords wait for their keys.
pub fn busy() -> StanzaError {
    StanzaError::new(Condition::ResourceConstraint).with_text("too busy; try again later")
}
