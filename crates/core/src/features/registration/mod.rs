//! In-band registration (XEP-0077): an account is created before authentication (`before_auth.rs`), and one that is logged in
//! changes its password or removes itself. All of it only where the domain's policy allows it.

mod before_auth;
mod state;

pub use state::State;

use crate::error::{StanzaError, StreamError};
use crate::model::{ConnId, DomainId};
use crate::ports::store::accounts::{DeleteAccount, SetCredentials};
use crate::ports::{Derivation, Derived, Hashes, Password};
use crate::session::hook::{Feature, Flow, Hooks, Spec};
use crate::session::{BoundSession, Cx, Sessions};
use crate::shard::Track;
use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Kind, Stanza};
use carillon_wire::stream;
use carillon_wire::xml::Element;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "registration",
    about: "Accounts register, change their password and remove themselves, where the domain allows it.",
    specs: &[Spec {
        id: "XEP-0077",
        title: "In-Band Registration",
        version: "2.4",
        coverage: "Registration with username and password, password change, removal. Off by default, a domain's policy.",
    }],
    hooks: Hooks {
        offer_before_auth: Some(before_auth::offer),
        stanza_before_auth: Some(before_auth::stanza),
        submit_iq: Some(submit),
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// What an account asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Password,
    Removal,
}

fn submit(session: &mut BoundSession, stanza: &mut Stanza, cx: &mut Cx<'_>) -> Result<Flow, StanzaError> {
    let Kind::Iq(kind @ (IqType::Get | IqType::Set)) = stanza.kind else { return Ok(Flow::Pass) };
    let at_home = stanza
        .to
        .as_ref()
        .is_none_or(|to| to.as_str() == session.bare.as_str() || to.as_str() == session.bare.domain());
    let Some(query) = stanza.payload.find("query", ns::REGISTER).filter(|_| at_home) else {
        return Ok(Flow::Pass);
    };
    let query = query.element();
    let allowed =
        cx.shard.domains.named(session.bare.domain()).is_some_and(|domain| domain.policy.registration);
    if !allowed {
        return Err(StanzaError::new(Condition::ServiceUnavailable));
    }
    if kind == IqType::Get {
        let username =
            Element::new("username", ns::REGISTER).with_text(session.bare.local().unwrap_or_default());
        let form = Element::new("query", ns::REGISTER)
            .with_child(Element::new("registered", ns::REGISTER))
            .with_child(username)
            .with_child(Element::new("password", ns::REGISTER));
        session.send(&stanza.result_reply().with_payload(form), &Track::Nothing, cx);
        return Ok(Flow::Taken);
    }
    let (conn, iq) = (session.io.conn, Box::new(stanza.clone()));
    if query.child("remove", ns::REGISTER).is_some() {
        let (domain, local) = account(session);
        let ask = DeleteAccount { domain, local, now: cx.now.unix };
        cx.ask(ask, move |answer, sessions, cx| {
            done(conn, &iq, Change::Removal, matches!(answer, Ok(Ok(()))), sessions, cx);
        });
        return Ok(Flow::Taken);
    }
    let derivation = derivation(session, &query, cx)?;
    cx.derive(derivation, move |derived, sessions, cx| set(conn, iq, derived, sessions, cx));
    session.state.registration.changing = true;
    Ok(Flow::Taken)
}

fn account(session: &BoundSession) -> (DomainId, Box<str>) {
    (session.domain, session.bare.local().unwrap_or_default().into())
}

/// The keys of the password that the client wants.
fn derivation(session: &BoundSession, query: &Element, cx: &mut Cx<'_>) -> Result<Derivation, StanzaError> {
    let field = |name| query.child(name, ns::REGISTER).map(Element::text);
    let (Some(username), Some(password)) = (field("username"), field("password")) else {
        return Err(StanzaError::new(Condition::BadRequest).with_text("username and password are needed"));
    };
    if carillon_wire::jid::prepare_local(&username).ok().as_deref() != session.bare.local() {
        return Err(StanzaError::new(Condition::NotAllowed).with_text("this is not your username"));
    }
    if session.state.registration.changing {
        return Err(busy());
    }
    let password = Password::new(&password).ok_or_else(unusable)?;
    let salt = cx.shard.random.bytes()[..16].into();
    Ok(Derivation { password, salt, iterations: cx.shard.settings.scram_iterations, hashes: Hashes::Both })
}

/// The keys of a new password are there.
fn set(conn: ConnId, iq: Box<Stanza>, derived: Derived, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let Some(session) = sessions.bound(conn) else { return };
    let error = match derived {
        Derived::Keys(credentials) => {
            let (domain, local) = account(session);
            return cx.ask(SetCredentials { domain, local, credentials }, move |answer, sessions, cx| {
                done(conn, &iq, Change::Password, matches!(answer, Ok(Ok(()))), sessions, cx);
            });
        }
        Derived::Unusable => unusable(),
        Derived::Busy => busy(),
    };
    session.state.registration.changing = false;
    session.refuse(&iq, &error, cx);
}

/// The store did it, or not.
fn done(conn: ConnId, iq: &Stanza, change: Change, is_done: bool, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let Some(account) = iq.from.as_ref().map(Jid::bare) else { return };
    cx.shard.altered(account.as_str());
    if let Some(session) = sessions.bound(conn) {
        session.state.registration.changing = false;
        match is_done {
            true => session.send(&iq.result_reply(), &Track::Nothing, cx),
            false => session.refuse(iq, &StanzaError::new(Condition::InternalServerError), cx),
        }
    }
    if !is_done {
        return;
    }
    let why = match change {
        Change::Password => "your credentials were changed",
        Change::Removal => "this account is gone",
    };
    for slot in sessions.of(account.as_str()) {
        let Some(session) = sessions.bound_in(slot) else { continue };
        // Who changed the password knows it, and goes on.
        if change == Change::Removal || session.io.conn != conn {
            cx.end(session.io.conn, StreamError::new(stream::Condition::NotAuthorized, why));
        }
    }
}

/// What is said of a password that SCRAM has no keys for.
fn unusable() -> StanzaError {
    StanzaError::new(Condition::NotAcceptable).with_text("this password cannot be used")
}

/// What is said while too many passwords wait for their keys.
fn busy() -> StanzaError {
    StanzaError::new(Condition::ResourceConstraint).with_text("too busy; try again later")
}
