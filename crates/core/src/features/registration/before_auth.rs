//! In-band registration before authentication (XEP-0077 §3.1): where the domain's policy allows it, or for a client that has shown an
//! invitation.

use super::{busy, full, invited, refuse, taken, unusable};
use crate::model::Domain;
use crate::ports::store::accounts::{CreateAccount, CreateAccountAnswer};
use crate::ports::{Derivation, Derived, Fault, Hashes, Password};
use crate::session::auth::Authenticating;
use crate::session::{Cx, Session};
use carillon_wire::jid::AccountJid;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Kind, Stanza, StanzaError};
use carillon_wire::xml::Element;

/// The stream feature.
pub(super) fn offer(domain: &Domain, cx: &Cx<'_>, features: &mut Vec<Element>) {
    if domain.policy.registration {
        features.push(Element::new("register", ns::REGISTER_FEATURE));
    }
    if cx.shard.settings.invitations.enabled {
        features.push(Element::new("register", ns::REGISTER_BY_TOKEN));
    }
}

/// Takes the stanzas that are allowed before authentication.
pub(super) fn stanza(
    client: Box<Authenticating>,
    iq: &Stanza,
    cx: &mut Cx<'_>,
) -> Result<Session, Box<Authenticating>> {
    if let (Kind::Iq(IqType::Set), Some(preauth)) = (iq.kind, iq.payload.find("preauth", ns::PREAUTH)) {
        return invited::show(client, iq, &preauth.element(), cx);
    }
    let query = iq.payload.find("query", ns::REGISTER).map(|query| query.element());
    match (iq.kind, query) {
        _ if !client.domain().policy.registration && client.invited().is_none() => Err(client),
        (Kind::Iq(IqType::Get), Some(_)) => {
            // The name that an invitation is for is filled in.
            let name = client.invited().and_then(|invited| invited.local.as_deref()).unwrap_or_default();
            let form = [("instructions", ""), ("username", name), ("password", "")];
            let query = form.iter().fold(Element::new("query", ns::REGISTER), |query, (field, text)| {
                let field = Element::new(field, ns::REGISTER);
                query.with_child(if text.is_empty() { field } else { field.with_text(*text) })
            });
            let query = bound(cx).into_iter().fold(query, Element::with_child);
            Ok(client.reply(&iq.result_reply().with_payload(query), cx))
        }
        (Kind::Iq(IqType::Set), Some(query)) => Ok(register(client, iq, &query, cx)),
        _ => Err(client),
    }
}

/// How many accounts one address may register in which time, where that has a bound: whoever is about to register more need not try.
fn bound(cx: &Cx<'_>) -> Option<Element> {
    let limits = &cx.shard.settings.limits;
    let accounts = Some(limits.registrations_per_address).filter(|accounts| *accounts > 0)?;
    let seconds = limits.auth_window_ms.div_ceil(1000);
    let limit = Element::new("limit", ns::REGISTRATION).with_attr("accounts", accounts.to_string());
    Some(limit.with_attr("seconds", seconds.to_string()))
}

fn register(client: Box<Authenticating>, iq: &Stanza, query: &Element, cx: &mut Cx<'_>) -> Session {
    let (local, derivation) = match creation(&client, query, cx) {
        Ok(creation) => creation,
        Err(error) => return refuse(client, iq, &error, cx),
    };
    // Each counts against the address, or anyone could fill the store.
    cx.registered(client.address());
    let iq = iq.clone();
    client.derive_then(derivation, move |client, derived, cx| create(client, iq, local, derived, cx), cx)
}

/// The name of the new account, and the derivation of its keys.
fn creation(
    client: &Authenticating,
    query: &Element,
    cx: &mut Cx<'_>,
) -> Result<(Box<str>, Derivation), StanzaError> {
    let field = |name| query.child(name, ns::REGISTER).map(Element::text).filter(|text| !text.is_empty());
    let (Some(username), Some(password)) = (field("username"), field("password")) else {
        return Err(StanzaError::new(Condition::NotAcceptable).with_text("username and password are needed"));
    };
    let account = AccountJid::from_parts(&username, &client.domain().name).map_err(|_| {
        StanzaError::new(Condition::NotAcceptable).with_text("this username cannot be a localpart")
    })?;
    let password = Password::new(&password).ok_or_else(unusable)?;
    let (shard, now) = (&mut *cx.shard, cx.now.mono);
    if !shard.logins.throttle.admits_registration(client.address(), now, &shard.settings.limits) {
        return Err(too_many());
    }
    let salt = shard.random.bytes()[..16].into();
    let iterations = shard.settings.scram_iterations;
    let domain = client.domain().id;
    let derivation = Derivation { domain, password, salt, iterations, hashes: Hashes::Both };
    Ok((account.local().into(), derivation))
}

/// The keys of the password were derived.
fn create(
    client: Box<Authenticating>,
    iq: Stanza,
    local: Box<str>,
    derived: Derived,
    cx: &mut Cx<'_>,
) -> Session {
    // By now this shard has heard of what others began at the same time.
    let (shard, now) = (&mut *cx.shard, cx.now.mono);
    if shard.logins.throttle.has_too_many_registrations(client.address(), now, &shard.settings.limits) {
        return refuse(client, &iq, &too_many(), cx);
    }
    let credentials = match derived {
        Derived::Keys(credentials) => credentials,
        Derived::Unusable => return refuse(client, &iq, &unusable(), cx),
        Derived::Busy => return refuse(client, &iq, &busy(), cx),
    };
    if client.invited().is_some() {
        return invited::register(client, iq, local, credentials, cx);
    }
    let domain = client.domain().id;
    let ask = CreateAccount { domain, local, credentials, is_in_band: true, now: cx.now.unix };
    client.ask_then(ask, move |client, answer, cx| created(client, &iq, answer, cx), cx)
}

fn created(
    client: Box<Authenticating>,
    iq: &Stanza,
    answer: Result<CreateAccountAnswer, Fault>,
    cx: &mut Cx<'_>,
) -> Session {
    let error = match answer {
        Ok(CreateAccountAnswer::Created(_)) => return client.reply(&iq.result_reply(), cx),
        // That somebody had it is nobody's business.
        Ok(CreateAccountAnswer::Exists | CreateAccountAnswer::Held) => taken(),
        Ok(CreateAccountAnswer::DomainFull) => full(&client, cx),
        Ok(CreateAccountAnswer::NoDomain) | Err(_) => StanzaError::new(Condition::InternalServerError),
    };
    refuse(client, iq, &error, cx)
}

fn too_many() -> StanzaError {
    StanzaError::new(Condition::ResourceConstraint).with_text("too many registrations from your address")
}
