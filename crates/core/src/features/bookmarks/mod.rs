//! Bookmarks in two forms. Clients of XEP-0402 publish an item for each room; older ones keep one list of all (XEP-0048), in private storage
//! (XEP-0049) or as the only item of a node. Only the items are kept: a list is made of them when a client asks for it, and a list that a client
//! stores becomes items. What a list has besides rooms stays in private storage.

mod convert;
mod xml;

use self::convert::{Owner, settle};
use self::xml::{LIST, List, NODE};
use crate::command::{PendingIq, Refusal, TopicIq, TopicOp, TopicOutcome};
use crate::error::StanzaError;
use crate::message::AccountMessage;
use crate::model::{ConfigChange, DomainId, Item, NodeEvent, Revision, TopicId, UnixMs};
use crate::ports::store::nodes::NodeItems;
use crate::session::homes::AtHome;
use crate::session::hook::{Feature, Hooks, InsteadHandler, Spec};
use crate::session::{Cx, Sessions};
use crate::settings::Settings;
use crate::topic::xml::{Request, Terms, parse, refusal, reply};
use carillon_wire::ns;
use carillon_wire::stanza::{Child, Condition, IqType, Kind, Payload, Stanza};
use carillon_wire::xml::Element;
use std::sync::Arc;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "bookmarks",
    about: "Old and new clients of an account see the same bookmarks.",
    specs: &[Spec {
        id: "XEP-0048",
        title: "Bookmarks",
        version: "1.2",
        coverage: "The list of rooms, in private storage (XEP-0049) and as an item of the node `storage:bookmarks`, is a view of the items of XEP-0402 \
                   (`#compat`, `#compat-pep`). Addresses of web pages stay in private storage.",
    }],
    account_features: &["urn:xmpp:bookmarks:1#compat", "urn:xmpp:bookmarks:1#compat-pep"],
    is_on: has_both_forms,
    hooks: Hooks {
        instead: Some(&InsteadHandler { takes, answer }),
        account_message: Some(published),
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// The id of the item that is the list (XEP-0048 §3).
const ITEM: &str = "current";

/// There is nothing to convert where clients have one of the forms only.
fn has_both_forms(settings: &Settings) -> bool {
    let is_disabled = |name: &str| settings.features_disabled.iter().any(|disabled| disabled == name);
    !is_disabled("pep") && !is_disabled("private")
}

/// Whether a request is about bookmarks in the old form, or reads them in the new one. A request to private storage that is about several elements is not: a
/// list among them becomes items when bookmarks are read.
fn takes(kind: IqType, payload: &Child<'_>) -> bool {
    let is_of = |element: &Element, action: &str, nodes: &[&str]| {
        let asked = element.children().next().filter(|child| child.is(action, ns::PUBSUB));
        asked.and_then(|child| child.attr("node")).is_some_and(|node| nodes.contains(&node))
    };
    // Most requests are about something else, and need not be read for that.
    let mentions = || std::str::from_utf8(payload.bytes()).is_ok_and(|text| text.contains("bookmarks"));
    match (kind, payload.name(), payload.ns()) {
        (_, "query", ns::PRIVATE) | (_, "pubsub", ns::PUBSUB) if !mentions() => false,
        (_, "query", ns::PRIVATE) => {
            let query = payload.element();
            let mut children = query.children();
            children.next().is_some_and(|child| child.is("storage", LIST)) && children.next().is_none()
        }
        (IqType::Get, "pubsub", ns::PUBSUB) => is_of(&payload.element(), "items", &[NODE, LIST]),
        (IqType::Set, "pubsub", ns::PUBSUB) => is_of(&payload.element(), "publish", &[LIST]),
        _ => false,
    }
}

/// Answers such a request, at the account's home.
fn answer(request: &Stanza, home: &AtHome<'_>, cx: &mut Cx<'_>) {
    let (Some(from), Some(payload)) = (&request.from, request.payload.children().next()) else { return };
    let pending = PendingIq::new(request, from);
    let owner = Owner::of(home);
    if payload.ns() != ns::PRIVATE {
        return pubsub(request, pending, owner, cx);
    }
    let query = payload.element();
    let is_set = request.kind == Kind::Iq(IqType::Set);
    let wanted = query.children().next().filter(|_| is_set).map(List::of);
    let then = move |list: Result<List, StanzaError>, cx: &mut Cx<'_>| {
        let shown = |list: List| {
            Payload::from_element(&Element::new("query", ns::PRIVATE).with_child(list.to_element()))
        };
        let result = list.map(|list| if is_set { Payload::empty() } else { shown(list) });
        cx.reply(pending.reply(result));
    };
    settle(owner, wanted, Box::new(then), cx);
}

/// The same for a request about a node.
fn pubsub(request: &Stanza, pending: PendingIq, owner: Owner, cx: &mut Cx<'_>) {
    let terms = Terms::of_account(&cx.shard.settings.limits);
    let (name, op, about) = match parse(request, &owner.account, &terms) {
        Ok(Request::Topic { name, op, about }) => (name, op, about),
        Ok(_) => return cx.reply(pending.reply(Err(StanzaError::new(Condition::BadRequest)))),
        Err(error) => return cx.reply(pending.reply(Err(error))),
    };
    let iq = TopicIq { iq: pending, about };
    match op {
        TopicOp::Items { ids, from, max, bytes_max } if *name == *NODE => {
            let max = max.unwrap_or(terms.max_items);
            let (domain, local, node) = (owner.domain, owner.local(), NODE.into());
            let question = NodeItems { domain, local, node, ids, from, max, bytes_max };
            read(question, iq, owner, terms, cx);
        }
        TopicOp::Items { ids, .. } => show(ids, iq, owner, terms, cx),
        TopicOp::Publish { id, payload, .. } => {
            store(id, &payload, &ConfigChange::default(), iq, owner, terms, cx);
        }
        TopicOp::PublishIf { id, payload, options } => store(id, &payload, &options, iq, owner, terms, cx),
        _ => cx.reply(iq.iq.reply(Err(refusal(Condition::BadRequest, "item-required")))),
    }
}

/// Reads the items, when lists of before have become items.
fn read(question: NodeItems, iq: TopicIq, owner: Owner, terms: Terms, cx: &mut Cx<'_>) {
    let then = move |list: Result<List, StanzaError>, cx: &mut Cx<'_>| {
        if let Err(error) = list {
            return cx.reply(iq.iq.reply(Err(error)));
        }
        cx.ask(question, move |answer, _, cx| {
            let found = answer.map_err(Refusal::Fault).and_then(|found| found.ok_or(Refusal::NotFound));
            cx.reply(reply(iq, NODE, found.map(TopicOutcome::Items), &terms));
        });
    };
    settle(owner, None, Box::new(then), cx);
}

/// Shows the list as an item.
fn show(ids: Vec<Box<str>>, iq: TopicIq, owner: Owner, terms: Terms, cx: &mut Cx<'_>) {
    let domain = owner.domain;
    let then = move |list: Result<List, StanzaError>, cx: &mut Cx<'_>| {
        let list = match list {
            Ok(list) => list,
            Err(error) => return cx.reply(iq.iq.reply(Err(error))),
        };
        let is_asked = ids.is_empty() || ids.iter().any(|id| **id == *ITEM);
        let result = match list.is_empty() {
            true => Err(Refusal::NotFound),
            false if !is_asked => Ok(Vec::new()),
            false => Ok(vec![Arc::new(item(&list, ITEM.into(), domain, cx.now.unix))]),
        };
        cx.reply(reply(iq, LIST, result.map(TopicOutcome::Items), &terms));
    };
    settle(owner, None, Box::new(then), cx);
}

/// Stores the list that a client publishes.
fn store(
    id: Option<Box<str>>,
    payload: &crate::model::Payload,
    options: &ConfigChange,
    iq: TopicIq,
    owner: Owner,
    terms: Terms,
    cx: &mut Cx<'_>,
) {
    let mut bytes = Vec::new();
    payload.write(&mut bytes);
    let storage = Element::parse(&bytes, "").ok().filter(|storage| storage.is("storage", LIST));
    let Some(storage) = storage else {
        return cx.reply(iq.iq.reply(Err(refusal(Condition::BadRequest, "invalid-payload"))));
    };
    // Whoever else were to read it is not let in: the node is not there.
    let access = ConfigChange { access_model: options.access_model, ..ConfigChange::default() };
    if let Err(fields) = access.check_met_by(&terms.default_of(LIST)) {
        return cx.reply(reply(iq, LIST, Err(Refusal::PreconditionNotMet(fields)), &terms));
    }
    let domain = owner.domain;
    let then = move |list: Result<List, StanzaError>, cx: &mut Cx<'_>| match list {
        Ok(list) => {
            let item = item(&list, id.unwrap_or_else(|| ITEM.into()), domain, cx.now.unix);
            cx.reply(reply(iq, LIST, Ok(TopicOutcome::Published(Arc::new(item))), &terms));
        }
        Err(error) => cx.reply(iq.iq.reply(Err(error))),
    };
    settle(owner, Some(List::of(&storage)), Box::new(then), cx);
}

fn item(list: &List, id: Box<str>, domain: DomainId, published: UnixMs) -> Item {
    let mut payload = Vec::with_capacity(1024);
    list.to_element().write(&mut payload, "");
    let (topic, revision) = (TopicId::default(), Revision::default());
    Item {
        topic,
        domain,
        name: LIST.into(),
        id,
        publisher: None,
        published,
        payload: payload.into(),
        revision,
    }
}

/// Bookmarks were changed: sessions that want to know of the list are told the new one.
fn published(
    message: AccountMessage,
    home: &mut AtHome<'_>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) -> Option<AccountMessage> {
    if let AccountMessage::Published { event, .. } = &message
        && *event.node == *NODE
    {
        let bound = sessions.bound_of(home.account.as_str());
        let wants = |session| cx.wants(session).is_some_and(|wants| wants.iter().any(|node| **node == *LIST));
        if bound.iter().any(|session| wants(session.id)) {
            changed(Owner::of(home), cx);
        }
    }
    Some(message)
}

/// Tells the list, unless it is being made already: then it is told once more.
fn changed(owner: Owner, cx: &mut Cx<'_>) {
    if cx.features.bookmarks.begin(&owner.account) {
        tell(owner, cx);
    }
}

fn tell(owner: Owner, cx: &mut Cx<'_>) {
    let of = owner.clone();
    let then = move |list: Result<List, StanzaError>, cx: &mut Cx<'_>| {
        if cx.features.bookmarks.end(&of.account) {
            return changed(of, cx);
        }
        // Without an answer they learn of it when they ask.
        let Ok(list) = list else { return };
        let item = item(&list, ITEM.into(), of.domain, cx.now.unix);
        let event = Arc::new(NodeEvent::new(&of.account, &item));
        cx.tell_account(of.account, AccountMessage::Event(event));
    };
    settle(owner, None, Box::new(then), cx);
}
