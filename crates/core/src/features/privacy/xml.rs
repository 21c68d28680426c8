//! `<query/>` of `jabber:iq:privacy` (XEP-0016 §2.1).

use crate::error::StanzaError;
use crate::model::{
    PrivacyEdit, PrivacyList, PrivacyRule, RuleAbout, StanzaKind, StanzaKinds, SubscriptionState,
};
use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::Condition;
use carillon_wire::xml::Element;

/// What a client asks.
#[derive(Debug)]
pub(super) enum Question {
    /// The names of all lists.
    Names,
    /// The rules of one.
    Rules(Box<str>),
}

/// What a client wants.
#[derive(Debug)]
pub(super) enum Wish {
    /// This list decides for its session, or none of its own.
    Active(Option<Box<str>>),
    /// The account's lists are changed.
    Edit(PrivacyEdit),
}

fn bad(text: &'static str) -> StanzaError {
    StanzaError::new(Condition::BadRequest).with_text(text)
}

/// Reads a request of type `get`.
pub(super) fn question(query: &Element) -> Result<Question, StanzaError> {
    let mut children = query.children();
    match (children.next(), children.next()) {
        (None, _) => Ok(Question::Names),
        (Some(list), None) if list.is("list", ns::PRIVACY) => Ok(Question::Rules(named(list)?)),
        _ => Err(bad("ask for all names, or for one list")),
    }
}

/// Reads a request of type `set`.
pub(super) fn wish(query: &Element) -> Result<Wish, StanzaError> {
    let mut children = query.children();
    let (Some(child), None) = (children.next(), children.next()) else {
        return Err(bad("one of <active/>, <default/> and <list/>"));
    };
    let name = || child.attr("name").filter(|name| !name.is_empty()).map(Box::from);
    match child.name() {
        _ if child.ns() != ns::PRIVACY => Err(bad("one of <active/>, <default/> and <list/>")),
        "active" => Ok(Wish::Active(name())),
        "default" => Ok(Wish::Edit(PrivacyEdit::Default(name()))),
        "list" => list(child).map(Wish::Edit),
        _ => Err(bad("one of <active/>, <default/> and <list/>")),
    }
}

fn named(list: &Element) -> Result<Box<str>, StanzaError> {
    let name = list.attr("name").filter(|name| !name.is_empty());
    name.map(Box::from).ok_or_else(|| bad("a list without 'name'"))
}

/// A list that is put, or one without rules, which is removed.
fn list(element: &Element) -> Result<PrivacyEdit, StanzaError> {
    let name = named(element)?;
    let items = element.children().filter(|item| item.is("item", ns::PRIVACY));
    let mut rules = items.map(rule).collect::<Result<Vec<PrivacyRule>, _>>()?;
    if rules.is_empty() {
        return Ok(PrivacyEdit::Remove(name));
    }
    rules.sort_by_key(|rule| rule.order);
    if rules.iter().zip(rules.iter().skip(1)).any(|(one, next)| one.order == next.order) {
        return Err(bad("two items with the same 'order'"));
    }
    Ok(PrivacyEdit::Put(PrivacyList { name, rules }))
}

fn rule(item: &Element) -> Result<PrivacyRule, StanzaError> {
    let denies = match item.attr("action") {
        Some("deny") => true,
        Some("allow") => false,
        _ => return Err(bad("'action' is neither 'allow' nor 'deny'")),
    };
    let order = item.attr("order").and_then(|order| order.parse().ok());
    let order = order.ok_or_else(|| bad("'order' is no number of 32 bits"))?;
    let about = match (item.attr("type"), item.attr("value")) {
        (None, _) => RuleAbout::All,
        (Some("jid"), Some(jid)) => {
            RuleAbout::Jid(Jid::new(jid).map_err(|_| StanzaError::new(Condition::JidMalformed))?)
        }
        (Some("group"), Some(group)) => RuleAbout::Group(group.into()),
        (Some("subscription"), Some(state)) => RuleAbout::Subscription(subscription(state)?),
        (Some(_), None) => return Err(bad("an item with 'type' and without 'value'")),
        (Some(_), Some(_)) => return Err(bad("'type' is none of 'jid', 'group', 'subscription'")),
    };
    let named = item.children().filter(|kind| kind.ns() == ns::PRIVACY);
    let kinds = named.filter_map(|kind| KINDS.iter().find(|(name, _)| *name == kind.name()));
    let kinds = kinds.fold(StanzaKinds::ALL, |kinds, (_, kind)| kinds.and(*kind));
    Ok(PrivacyRule { order, about, denies, kinds })
}

const KINDS: [(&str, StanzaKind); 4] = [
    ("message", StanzaKind::Message),
    ("iq", StanzaKind::Iq),
    ("presence-in", StanzaKind::PresenceIn),
    ("presence-out", StanzaKind::PresenceOut),
];

const SUBSCRIPTIONS: [(&str, SubscriptionState); 4] = [
    ("both", SubscriptionState::Both),
    ("to", SubscriptionState::To),
    ("from", SubscriptionState::From),
    ("none", SubscriptionState::None),
];

fn subscription(name: &str) -> Result<SubscriptionState, StanzaError> {
    let known = SUBSCRIPTIONS.iter().find(|(known, _)| *known == name);
    known.map(|(_, state)| *state).ok_or_else(|| bad("'value' is none of 'both', 'to', 'from', 'none'"))
}

/// The names of all lists, and which of them decide.
pub(super) fn names(active: Option<&str>, default: Option<&str>, lists: &[Box<str>]) -> Element {
    let chosen = [("active", active), ("default", default)];
    let chosen = chosen.into_iter().filter_map(|(role, name)| Some((role, name?)));
    let lists = lists.iter().map(|name| ("list", &**name));
    chosen.chain(lists).fold(Element::new("query", ns::PRIVACY), |query, (role, name)| {
        query.with_child(Element::new(role, ns::PRIVACY).with_attr("name", name))
    })
}

/// A list with its rules; for one that has changed, without them.
pub(super) fn rules(name: &str, rules: &[PrivacyRule]) -> Element {
    let list = Element::new("list", ns::PRIVACY).with_attr("name", name);
    let list = rules.iter().fold(list, |list, rule| list.with_child(item(rule)));
    Element::new("query", ns::PRIVACY).with_child(list)
}

fn item(rule: &PrivacyRule) -> Element {
    let state = |state: &SubscriptionState| {
        SUBSCRIPTIONS.iter().find(|(_, known)| known == state).map_or("none", |(name, _)| *name)
    };
    let about = match &rule.about {
        RuleAbout::All => None,
        RuleAbout::Jid(jid) => Some(("jid", jid.as_str())),
        RuleAbout::Group(group) => Some(("group", &**group)),
        RuleAbout::Subscription(subscription) => Some(("subscription", state(subscription))),
    };
    let mut item = Element::new("item", ns::PRIVACY);
    if let Some((kind, value)) = about {
        item = item.with_attr("type", kind).with_attr("value", value);
    }
    item = item.with_attr("action", if rule.denies { "deny" } else { "allow" });
    item = item.with_attr("order", rule.order.to_string());
    let named = KINDS.iter().filter(|(_, kind)| rule.kinds != StanzaKinds::ALL && rule.kinds.has(*kind));
    named.fold(item, |item, (name, _)| item.with_child(Element::new(name, ns::PRIVACY)))
}
