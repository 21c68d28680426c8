//! Advanced message processing (XEP-0079): a sender says by rules what is to be done if so much becomes of its message.
//!
//! A client's rules are read and refused where its session is, and marked with both addresses. At the recipient's home routing asks, by
//! [`RulesHandler`], whether a rule ends the message. A message without rules is asked for them by one look into the index of its children.

mod rule;
mod xml;

use crate::error::StanzaError;
use crate::model::UnixMs;
use crate::session::hook::{Feature, Flow, Handling, Hooks, RulesHandler, ServerNode, Spec};
use crate::session::{BoundSession, Cx};
use carillon_wire::ns;
use carillon_wire::stanza::{Kind, MessageType, Stanza};
use rule::{Action, Rule};

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "amp",
    about: "Carries out the rules that senders give with their messages.",
    specs: &[Spec {
        id: "XEP-0079",
        title: "Advanced Message Processing",
        version: "1.2",
        coverage: "Messages to accounts: `deliver` (`forward` and `gateway` are never met), `match-resource`, `expire-at`; `drop`, `alert`, `error`, `notify`; at most 8 \
                   rules, of which the first that is met counts. `deliver` and `match-resource` are decided when a message comes; a stored \
                   message whose time is over ends within a second of it, and its sender is told after the commit. Rules that would tell of presence need a subscription (§9). \
                   `per-hop` is refused (`<invalid-rules/>`). Not there: rules of messages to rooms and services, the stream feature.",
    }],
    server_features: &[ns::AMP],
    server_nodes: &[ServerNode {
        node: ns::AMP,
        name: "Advanced Message Processing",
        features: &[
            ns::AMP,
            "http://jabber.org/protocol/amp?action=alert",
            "http://jabber.org/protocol/amp?action=drop",
            "http://jabber.org/protocol/amp?action=error",
            "http://jabber.org/protocol/amp?action=notify",
            "http://jabber.org/protocol/amp?condition=deliver",
            "http://jabber.org/protocol/amp?condition=expire-at",
            "http://jabber.org/protocol/amp?condition=match-resource",
        ],
    }],
    hooks: Hooks { submit_message: Some(submit), rules: Some(&RULES), ..Hooks::NONE },
    ..Feature::NONE
};

const RULES: RulesHandler = RulesHandler { has, reveals, ends, became, expires };

/// Rules of a client are checked, and marked with its address and the one that it gave.
fn submit(session: &mut BoundSession, stanza: &mut Stanza, _: &mut Cx<'_>) -> Result<Flow, StanzaError> {
    let Some(amp) = stanza.payload.find("amp", ns::AMP) else { return Ok(Flow::Pass) };
    // What a server told, and a client returns or passes on.
    if stanza.kind == Kind::Message(MessageType::Error) {
        return Ok(Flow::Pass);
    }
    let rules = xml::request(&amp.element(), stanza.id.as_deref())?;
    let to = stanza.to.clone().unwrap_or_else(|| session.bare.to_jid());
    let marked = xml::marked(&rules, &session.jid, &to);
    stanza.payload.remove("amp", ns::AMP);
    stanza.payload.push_element(&marked);
    Ok(Flow::Pass)
}

fn has(message: &Stanza) -> bool {
    message.payload.find("amp", ns::AMP).is_some() && message.kind != Kind::Message(MessageType::Error)
}

/// All rules but those that drop a message in silence tell of presence (XEP-0079 §9).
fn reveals(message: &Stanza) -> Option<StanzaError> {
    let amp = xml::of(message)?;
    let telling: Vec<&Rule> = amp.rules.iter().filter(|rule| rule.action != Action::Drop).collect();
    (!telling.is_empty()).then(|| {
        xml::invalid(telling.into_iter().map(xml::rule))
            .with_text("you do not see the presence of the recipient, of which these rules would tell")
    })
}

fn ends(message: &Stanza, would: Handling<'_>, cx: &mut Cx<'_>) -> bool {
    let Some(amp) = xml::of(message) else { return false };
    let Some(rule) = amp.first_met(would, cx.now.unix).filter(|rule| rule.action != Action::Notify) else {
        return false;
    };
    tell(message, &amp, rule, cx);
    true
}

fn became(message: &Stanza, became: Handling<'_>, cx: &mut Cx<'_>) {
    let Some(amp) = xml::of(message) else { return };
    if let Some(rule) = amp.first_met(became, cx.now.unix).filter(|rule| rule.action == Action::Notify) {
        tell(message, &amp, rule, cx);
    }
}

fn expires(message: &Stanza) -> Option<UnixMs> {
    xml::of(message)?.expires()
}

/// Tells the sender that a rule was met; nothing where the rule says so.
fn tell(message: &Stanza, amp: &rule::Rules, rule: &Rule, cx: &mut Cx<'_>) {
    if let Some(told) = xml::told(message, amp, rule) {
        cx.reply(told);
    }
}
