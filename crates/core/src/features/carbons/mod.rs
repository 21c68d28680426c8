//! Message carbons (XEP-0280): messages that one session of an account sends or receives are copied to the others.

mod xml;

use crate::error::StanzaError;
use crate::feature_state::carbons::Carbons;
use crate::session::hook::{
    At, Delivery, Feature, Flow, Hooks, IqAnswer, IqHandler, NonzaHandler, Plan, Request, Spec,
};
use crate::session::{BoundSession, Cx};
use crate::shard::Track;
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::{IqType, Kind, Stanza};

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "carbons",
    about: "Copies an account's messages to its other sessions.",
    specs: &[Spec {
        id: "XEP-0280",
        title: "Message Carbons",
        version: "1.0.1",
        coverage: "Sent and received copies, private and no-copy, also inline in Bind 2.",
    }],
    server_features: &[ns::CARBONS],
    account_features: &[ns::CARBONS],
    inline_features: &[ns::CARBONS],
    hooks: Hooks {
        submit_message: Some(sent),
        acted: Some(acted),
        deliver: Some(unmark),
        routed: Some(received),
        iq: &[
            IqHandler { kind: IqType::Set, name: "enable", ns: ns::CARBONS, at: At::Account, handle: enable },
            IqHandler {
                kind: IqType::Set,
                name: "disable",
                ns: ns::CARBONS,
                at: At::Account,
                handle: disable,
            },
        ],
        nonza: &[NonzaHandler {
            name: "enable",
            ns: ns::CARBONS,
            handle: |session, _, _| {
                session.state.carbons = Carbons::On;
                Ok(None)
            },
            unbound: None,
            unauthenticated: None,
        }],
        ..Hooks::NONE
    },
    ..Feature::NONE
};

fn enable(
    session: &mut BoundSession,
    _request: &Request<'_>,
    _cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    session.state.carbons = Carbons::On;
    Ok(IqAnswer::Empty)
}

fn disable(
    session: &mut BoundSession,
    _request: &Request<'_>,
    _cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    session.state.carbons = Carbons::Off;
    Ok(IqAnswer::Empty)
}

/// A message from one session is copied to the account, whose other sessions get it if they want copies. All sessions of an
/// account are at its home, and so is this one.
fn sent(session: &mut BoundSession, stanza: &mut Stanza, cx: &mut Cx<'_>) -> Result<Flow, StanzaError> {
    if cx.shard.accounts.multi_session.contains(&session.account) && xml::is_copied(stanza) {
        let mut inner = stanza.clone();
        inner.to.get_or_insert_with(|| session.bare.to_jid());
        cx.route(xml::wrap("sent", &inner, &session.bare, None, Some(&session.jid)));
    }
    Ok(Flow::Pass)
}

/// A message that no session sent is copied to all that want copies.
fn acted(account: &BareJid, stanza: &mut Stanza, has_session: bool, cx: &mut Cx<'_>) {
    if has_session && xml::is_copied(stanza) {
        cx.route(xml::wrap("sent", stanza, account, None, Some(&account.to_jid())));
    }
}

/// XEP-0280 §6: the mark of a private message is removed before it is delivered.
fn unmark(_session: &mut BoundSession, stanza: &mut Stanza, _cx: &mut Cx<'_>) {
    if matches!(stanza.kind, Kind::Message(_)) && stanza.payload.find("private", ns::CARBONS).is_some() {
        stanza.payload.remove("private", ns::CARBONS);
    }
}

/// A message to one session is copied to the others that want copies; a copy of a sent message goes only to those.
fn received(stanza: &Stanza, sessions: &[&BoundSession], plan: &mut Plan, _cx: &mut Cx<'_>) {
    let wants = |session: &&&BoundSession| session.state.carbons == Carbons::On;
    if let Some(sender) = xml::sender_of_copy(stanza) {
        plan.clear();
        let others = sessions.iter().filter(wants).filter(|session| session.jid.as_str() != sender);
        plan.extend(others.map(|session| {
            let mut copy = stanza.clone();
            xml::unmark(&mut copy);
            delivery(session, copy.with_to(session.jid.clone()))
        }));
        return;
    }
    if plan.is_empty() || !xml::is_copied(stanza) {
        return;
    }
    let misses = |session: &&&BoundSession| !plan.iter().any(|delivery| delivery.slot == session.id.slot);
    let copies: Plan = sessions
        .iter()
        .filter(wants)
        .filter(misses)
        .map(|session| {
            delivery(session, xml::wrap("received", stanza, &session.bare, Some(&session.jid), None))
        })
        .collect();
    plan.extend(copies);
}

fn delivery(session: &BoundSession, copy: Stanza) -> Delivery {
    Delivery { slot: session.id.slot, instead: Some(copy), track: Track::Nothing }
}
