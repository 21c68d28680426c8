//! In-band registration (XEP-0077): an account is created before authentication (`before_auth.rs`), by an invitation where one is needed
//! (`invited.rs`, XEP-0445), and one that is logged in changes its password or removes itself. These are two rights: a domain's policy gives
//! the one to anybody, and the other to its accounts.

mod before_auth;
mod invited;
#[cfg(test)]
mod tests;

use crate::command::PendingIq;
use crate::error::{StanzaError, StreamError};
use crate::model::{DomainId, SessionId};
use crate::ports::store::accounts::SetCredentials;
use crate::ports::{Derivation, Derived, Hashes, Password};
use crate::session::auth::Authenticating;
use crate::session::hook::{At, Feature, Hooks, IqAnswer, IqHandler, Request, Spec};
use crate::session::{BoundSession, Cx, Session, Sessions, Wait, removal};
use crate::shard::DomainQuota;
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Payload, Stanza};
use carillon_wire::stream;
use carillon_wire::xml::Element;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "registration",
    about: "Accounts register, change their password and remove themselves, as far as the domain allows it.",
    specs: &[
        Spec {
            id: "XEP-0077",
            title: "In-Band Registration",
            version: "2.4",
            coverage: "Registration with username and password, off by default; password change and removal, on by default: two policies of a domain.",
        },
        Spec {
            id: "XEP-0445",
            title: "Pre-Authenticated In-Band Registration",
            version: "0.2.0",
            coverage: "With `invitations.enabled`, off by default: a token shown by `<preauth/>` before the registration, also where the domain does not let \
                       anybody register. The name that an invitation is for is in the form. Whoever registers and whoever invited them become contacts.",
        },
    ],
    hooks: Hooks {
        offer_before_auth: Some(before_auth::offer),
        stanza_before_auth: Some(before_auth::stanza),
        iq: &[
            IqHandler { kind: IqType::Get, name: "query", ns: ns::REGISTER, at: At::Both, handle: form },
            IqHandler { kind: IqType::Set, name: "query", ns: ns::REGISTER, at: At::Both, handle: change },
        ],
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// The form for an account, or that the domain does not let accounts change anything.
fn form(
    session: &mut BoundSession,
    _request: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    allowed(session, cx)?;
    let username = Element::new("username", ns::REGISTER).with_text(session.bare.local());
    let form = Element::new("query", ns::REGISTER)
        .with_child(Element::new("registered", ns::REGISTER))
        .with_child(username)
        .with_child(Element::new("password", ns::REGISTER));
    Ok(IqAnswer::Payload(form))
}

/// Changes the password, or removes the account.
fn change(
    session: &mut BoundSession,
    request: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    allowed(session, cx)?;
    if request.payload.child("remove", ns::REGISTER).is_some() {
        let requester = Requester::of(session, request.stanza);
        let then = move |answer, cx: &mut Cx<'_>| requester.answer(matches!(answer, Ok(Ok(()))), cx);
        removal::remove(session.domain, session.bare.to_bare(), then, cx);
        return Ok(IqAnswer::Later);
    }
    // The input waits, so that nobody keeps those who derive keys busy alone.
    Ok(IqAnswer::Wait(Wait::derive(derivation(session, request.payload, cx)?, set)))
}

fn allowed(session: &BoundSession, cx: &Cx<'_>) -> Result<(), StanzaError> {
    let domain = cx.shard.domains.named(session.bare.domain());
    match domain.is_some_and(|domain| domain.policy.account_management) {
        true => Ok(()),
        false => Err(StanzaError::new(Condition::ServiceUnavailable)),
    }
}

fn account(session: &BoundSession) -> (DomainId, Box<str>) {
    (session.domain, session.bare.local().into())
}

/// Has the keys of the new password derived.
fn derivation(session: &BoundSession, query: &Element, cx: &mut Cx<'_>) -> Result<Derivation, StanzaError> {
    let field = |name| query.child(name, ns::REGISTER).map(Element::text);
    let (Some(username), Some(password)) = (field("username"), field("password")) else {
        return Err(StanzaError::new(Condition::BadRequest).with_text("username and password are needed"));
    };
    if carillon_wire::jid::prepare_local(&username).ok().as_deref() != Some(session.bare.local()) {
        return Err(StanzaError::new(Condition::NotAllowed).with_text("this is not your username"));
    }
    let password = Password::new(&password).ok_or_else(unusable)?;
    let salt = cx.shard.random.bytes()[..16].into();
    let iterations = cx.shard.settings.scram_iterations;
    Ok(Derivation { domain: session.domain, password, salt, iterations, hashes: Hashes::Both })
}

/// The keys of a new password are there.
fn set(
    session: &mut BoundSession,
    request: &mut Stanza,
    derived: Derived,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    let credentials = match derived {
        Derived::Keys(credentials) => credentials,
        Derived::Unusable => return Err(unusable()),
        Derived::Busy => return Err(busy()),
    };
    let (domain, local) = account(session);
    let requester = Requester::of(session, request);
    cx.ask(SetCredentials { domain, local, credentials }, move |answer, sessions, cx| {
        requester.done(matches!(answer, Ok(Ok(()))), sessions, cx);
    });
    Ok(IqAnswer::Later)
}

/// The account that asked for a change, which is carried out even if the session ends.
struct Requester {
    session: SessionId,
    account: BareJid,
    iq: PendingIq,
}

impl Requester {
    fn of(session: &BoundSession, request: &Stanza) -> Requester {
        let iq = PendingIq::new(request, &session.jid);
        Requester { session: session.id, account: session.bare.to_bare(), iq }
    }

    /// The store's answer.
    fn answer(self, is_done: bool, cx: &mut Cx<'_>) {
        let error = StanzaError::new(Condition::InternalServerError);
        cx.reply(self.iq.reply(if is_done { Ok(Payload::empty()) } else { Err(error) }));
    }

    /// The store's answer to a new password.
    fn done(self, is_done: bool, sessions: &mut Sessions, cx: &mut Cx<'_>) {
        let (own, account) = (self.session, self.account.clone());
        cx.shard.accounts.altered(account.as_str());
        self.answer(is_done, cx);
        for slot in sessions.of(account.as_str()).into_iter().filter(|_| is_done) {
            let Some(session) = sessions.bound_in(slot) else { continue };
            // Who changed the password knows it, and goes on.
            if session.id != own {
                let why = "your credentials were changed";
                cx.end(session.id, StreamError::new(stream::Condition::NotAuthorized, why));
            }
        }
    }
}

/// The error for a password that SCRAM does not allow.
fn unusable() -> StanzaError {
    StanzaError::new(Condition::NotAcceptable).with_text("this password cannot be used")
}

/// The error while too many derivations wait.
fn busy() -> StanzaError {
    StanzaError::new(Condition::ResourceConstraint).with_text("too busy; try again later")
}

/// The domain has as many accounts as it may.
fn full(client: &Authenticating, cx: &mut Cx<'_>) -> StanzaError {
    cx.shard.counters.domains.of(client.domain().id).refused.count(DomainQuota::Accounts);
    StanzaError::new(Condition::ResourceConstraint)
        .with_text("the domain has as many accounts as its policy's `accounts_max` allows")
}

/// Somebody has this name.
fn taken() -> StanzaError {
    StanzaError::new(Condition::Conflict).with_text("this username is taken")
}

/// Refuses a request of a client that has not authenticated.
fn refuse(client: Box<Authenticating>, iq: &Stanza, error: &StanzaError, cx: &mut Cx<'_>) -> Session {
    match iq.error_reply(error) {
        Some(reply) => client.reply(&reply, cx),
        None => Session::Authenticating(client),
    }
}
