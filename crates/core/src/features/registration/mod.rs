//! In-band registration (XEP-0077) of an account that is logged in: it changes its password or removes itself. Creating one
//! comes before authentication, in `session::auth`. Both only where the domain's policy allows it.

use crate::error::{StanzaError, StreamError};
use crate::hook::{Feature, Flow, Hooks, Spec, Track};
use crate::model::ConnId;
use crate::node::{self, Cx, Sessions};
use crate::ports::{Answer, Ask};
use crate::session::{Live, auth::scram};
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
    server_features: &[],
    account_features: &[],
    inline_features: &[],
    hooks: Hooks { submit_iq: Some(submit), ..Hooks::NONE },
};

/// A request that waits for the store.
#[derive(Debug)]
pub struct Then {
    conn: ConnId,
    iq: Box<Stanza>,
    change: Change,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Password,
    Removal,
}

fn submit(live: &mut Live, stanza: &mut Stanza, cx: &mut Cx<'_>) -> Result<Flow, StanzaError> {
    let Kind::Iq(kind @ (IqType::Get | IqType::Set)) = stanza.kind else { return Ok(Flow::Pass) };
    let at_home = stanza
        .to
        .as_ref()
        .is_none_or(|to| to.as_str() == live.bare.as_str() || to.as_str() == live.bare.domain());
    let Some(query) = stanza.payload.find("query", ns::REGISTER).filter(|_| at_home) else {
        return Ok(Flow::Pass);
    };
    let query = query.element();
    let allowed = cx.hub.domains.named(live.bare.domain()).is_some_and(|domain| domain.policy.registration);
    if !allowed {
        return Err(StanzaError::new(Condition::ServiceUnavailable));
    }
    if kind == IqType::Get {
        let username =
            Element::new("username", ns::REGISTER).with_text(live.bare.local().unwrap_or_default());
        let form = Element::new("query", ns::REGISTER)
            .with_child(Element::new("registered", ns::REGISTER))
            .with_child(username)
            .with_child(Element::new("password", ns::REGISTER));
        live.send(&stanza.result_reply().with_payload(form), Track::Nothing, cx);
        return Ok(Flow::Taken);
    }
    let (change, ask) = change(live, &query, cx)?;
    let then = Then { conn: live.io.conn, iq: Box::new(stanza.clone()), change };
    cx.ask(ask, node::Then::Registration(then));
    Ok(Flow::Taken)
}

fn change(live: &Live, query: &Element, cx: &mut Cx<'_>) -> Result<(Change, Ask), StanzaError> {
    let (domain, local): (_, Box<str>) = (live.domain, live.bare.local().unwrap_or_default().into());
    if query.child("remove", ns::REGISTER).is_some() {
        return Ok((Change::Removal, Ask::DeleteAccount { domain, local, now: cx.now.unix }));
    }
    let field = |name| query.child(name, ns::REGISTER).map(Element::text);
    let (Some(username), Some(password)) = (field("username"), field("password")) else {
        return Err(StanzaError::new(Condition::BadRequest).with_text("username and password are needed"));
    };
    if carillon_wire::jid::prepare_local(&username).ok().as_deref() != Some(&*local) {
        return Err(StanzaError::new(Condition::NotAllowed).with_text("this is not your username"));
    }
    let salt = cx.hub.random.bytes();
    let credentials = scram::keys(&password, &salt[..16], cx.hub.settings.scram_iterations)
        .map_err(|_| StanzaError::new(Condition::NotAcceptable).with_text("this password cannot be used"))?;
    Ok((Change::Password, Ask::SetCredentials { domain, local, credentials }))
}

/// The store answered.
pub fn answered(then: &Then, answer: &Answer, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    if let Some(account) = &then.iq.from {
        cx.hub.changed(account.bare_str());
    }
    let Some(live) = sessions.live(then.conn) else { return };
    if !matches!(answer, Answer::Done) {
        return live.refuse(&then.iq, &StanzaError::new(Condition::InternalServerError), cx);
    }
    live.send(&then.iq.result_reply(), Track::Nothing, cx);
    if then.change == Change::Removal {
        let account = live.bare.clone();
        for slot in sessions.of(account.as_str()) {
            if let Some(live) = sessions.live_in(slot) {
                let error = StreamError::new(stream::Condition::NotAuthorized, "this account is gone");
                cx.end(live.io.conn, error);
            }
        }
    }
}
