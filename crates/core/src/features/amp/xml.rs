//! `<amp/>` and its rules (XEP-0079 §4, §6).

use super::rule::{Action, Condition, Deliver, Match, Rule, Rules};
use crate::error::StanzaError;
use crate::model::UnixMs;
use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition as Refusal, ErrorType, MessageType, Stanza};
use carillon_wire::xml::Element;

/// Rules of one message.
const RULES_MAX: usize = 8;

/// Why a rule cannot be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unfit {
    Action,
    Condition,
    Value,
}

/// The rules that a client gives with a message of this id; or the error that names those that are at fault.
pub(super) fn request(amp: &Element, id: Option<&str>) -> Result<Vec<Rule>, StanzaError> {
    let bad = |text| Err(StanzaError::new(Refusal::BadRequest).with_text(text));
    if id.is_none_or(str::is_empty) {
        return bad("a message with rules needs an id");
    }
    if amp.attr("status").is_some() {
        return bad("it is the server's to say what became of a message");
    }
    let elements: Vec<&Element> = rules(amp).collect();
    match amp.attr("per-hop") {
        None | Some("false") => {}
        Some("true") => {
            let all = elements.into_iter().take(RULES_MAX).map(said);
            return Err(invalid(all).with_text("rules are not carried out at each hop"));
        }
        Some(_) => return bad("'per-hop' is neither true nor false"),
    }
    if elements.is_empty() {
        return bad("there are no rules");
    }
    if elements.len() > RULES_MAX {
        let further = elements.into_iter().skip(RULES_MAX).take(RULES_MAX).map(said);
        return Err(invalid(further).with_text("a message has at most 8 rules"));
    }
    let read: Vec<_> = elements.iter().map(|element| read(element)).collect();
    let unfit = |why| {
        let pairs = elements.iter().zip(&read).filter(move |(_, read)| **read == Err(why));
        pairs.map(|(element, _)| said(element)).collect::<Vec<_>>()
    };
    for (why, name) in [(Unfit::Action, "unsupported-actions"), (Unfit::Condition, "unsupported-conditions")]
    {
        let rules = unfit(why);
        if !rules.is_empty() {
            return Err(StanzaError::new(Refusal::BadRequest).with_app(list(name, ns::AMP, rules)));
        }
    }
    let invalid_rules = unfit(Unfit::Value);
    read.into_iter().collect::<Result<_, _>>().map_err(|_| invalid(invalid_rules))
}

/// Rules as they go on with their message: with the addresses that its sender gave.
pub(super) fn marked(rules: &[Rule], from: &Jid, to: &Jid) -> Element {
    rules.iter().map(rule).fold(addressed(from, to), Element::with_child)
}

/// The rules of a message that has passed its sender's session.
pub(super) fn of(message: &Stanza) -> Option<Rules> {
    let amp = message.payload.find("amp", ns::AMP)?.element();
    if amp.attr("status").is_some() {
        return None;
    }
    let jid = |name| Jid::new(amp.attr(name)?).ok();
    let rules = rules(&amp).map(read).collect::<Result<_, _>>().ok()?;
    Some(Rules { from: jid("from")?, to: jid("to")?, rules })
}

/// The error that names rules which are not acceptable (XEP-0079 §6.1).
pub(super) fn invalid(rules: impl IntoIterator<Item = Element>) -> StanzaError {
    StanzaError::new(Refusal::NotAcceptable).with_app(list("invalid-rules", ns::AMP, rules))
}

/// What the sender of a message is told of a rule that was met, if it is told (XEP-0079 §3.4).
pub(super) fn told(message: &Stanza, amp: &Rules, met: &Rule) -> Option<Stanza> {
    let kind = match met.action {
        Action::Drop => return None,
        Action::Alert | Action::Notify => MessageType::Normal,
        Action::Error => MessageType::Error,
    };
    let event = addressed(&amp.from, &amp.to).with_attr("status", met.action.word()).with_child(rule(met));
    let server = Jid::new(message.to.as_ref()?.domain()).ok()?;
    let mut told = Stanza::message(kind).with_from(server).with_to(amp.from.clone()).with_payload(event);
    told.id.clone_from(&message.id);
    if met.action == Action::Error {
        let failed = list("failed-rules", ns::AMP_ERRORS, [rule_in(ns::AMP_ERRORS, met)]);
        let error =
            StanzaError::new(Refusal::UndefinedCondition).with_kind(ErrorType::Modify).with_app(failed);
        told.payload.push_element(&error.to_element());
    }
    Some(told)
}

/// A rule, as its sender gave it.
pub(super) fn rule(rule: &Rule) -> Element {
    rule_in(ns::AMP, rule)
}

fn rule_in(ns: &str, rule: &Rule) -> Element {
    Element::new("rule", ns)
        .with_attr("action", rule.action.word())
        .with_attr("condition", rule.condition.word())
        .with_attr("value", &*rule.value)
}

fn addressed(from: &Jid, to: &Jid) -> Element {
    Element::new("amp", ns::AMP).with_attr("from", from.as_str()).with_attr("to", to.as_str())
}

fn list(name: &str, ns: &str, rules: impl IntoIterator<Item = Element>) -> Element {
    rules.into_iter().fold(Element::new(name, ns), Element::with_child)
}

fn rules(amp: &Element) -> impl Iterator<Item = &Element> {
    amp.children().filter(|child| child.is("rule", ns::AMP))
}

/// A rule as it came, without what does not belong to it.
fn said(element: &Element) -> Element {
    ["action", "condition", "value"].into_iter().fold(Element::new("rule", ns::AMP), |rule, name| {
        match element.attr(name) {
            Some(value) => rule.with_attr(name, value),
            None => rule,
        }
    })
}

fn read(rule: &Element) -> Result<Rule, Unfit> {
    let action = rule.attr("action").and_then(Action::of).ok_or(Unfit::Action)?;
    let value = rule.attr("value").unwrap_or_default();
    let condition = match rule.attr("condition").unwrap_or_default() {
        "deliver" => Condition::Deliver(match value {
            "direct" => Deliver::Direct,
            "stored" => Deliver::Stored,
            "none" => Deliver::None,
            "forward" | "gateway" => Deliver::Never,
            _ => return Err(Unfit::Value),
        }),
        "match-resource" => Condition::MatchResource(match value {
            "any" => Match::Any,
            "exact" => Match::Exact,
            "other" => Match::Other,
            _ => return Err(Unfit::Value),
        }),
        "expire-at" => Condition::ExpireAt(time(value).ok_or(Unfit::Value)?),
        _ => return Err(Unfit::Condition),
    };
    Ok(Rule { action, condition, value: value.into() })
}

/// A time, which must be UTC.
fn time(value: &str) -> Option<UnixMs> {
    let is_utc = value.ends_with('Z') || value.ends_with("+00:00");
    UnixMs::from_rfc3339(value).filter(|_| is_utc)
}

impl Action {
    fn of(word: &str) -> Option<Action> {
        [Action::Alert, Action::Drop, Action::Error, Action::Notify].into_iter().find(|a| a.word() == word)
    }

    fn word(self) -> &'static str {
        match self {
            Action::Alert => "alert",
            Action::Drop => "drop",
            Action::Error => "error",
            Action::Notify => "notify",
        }
    }
}

impl Condition {
    fn word(self) -> &'static str {
        match self {
            Condition::Deliver(_) => "deliver",
            Condition::MatchResource(_) => "match-resource",
            Condition::ExpireAt(_) => "expire-at",
        }
    }
}
