//! What clients ask of an account's nodes, at its home.

use crate::command::{About, NoRoom, PendingIq, Refusal, TopicIq, TopicOp, TopicOutcome};
use crate::error::StanzaError;
use crate::message::{AccountMessage, Requester};
use crate::model::{
    Access, Affiliation, ConfigChange, Node, NodeChange, NodeEdit, NodeRefusal, Reader, TopicConfig, TopicId,
    TopicRecord,
};
use crate::ports::store::items::ItemNamesAnswer;
use crate::ports::store::nodes::{EditNode, NodeItemNames, NodeItems};
use crate::ports::{Fault, Question};
use crate::session::home::node_edited;
use crate::session::homes::AtHome;
use crate::session::{Cx, Sessions};
use crate::topic::check_item;
use crate::topic::xml::{self, Request, Terms, unsupported};
use bytes::Bytes;
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, Payload, Stanza};
use std::sync::Arc;

/// Answers a request of one of the account's sessions about its nodes.
pub(super) fn own(
    _requester: Requester,
    request: &Stanza,
    home: &AtHome<'_>,
    _sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    answer(request, home, cx);
}

/// The same for another account, which may read the nodes that admit it. Whether the request was about nodes: then it is answered.
pub(super) fn others(stanza: &Stanza, home: &AtHome<'_>, _: &mut Sessions, cx: &mut Cx<'_>) -> bool {
    let info = stanza.payload.find("query", ns::DISCO_INFO).map(|query| query.element());
    if info.is_some_and(|query| query.attr("node").is_none()) {
        return false;
    }
    let Some(from) = &stanza.from else { return false };
    let pending = PendingIq::new(stanza, from);
    let terms = Terms::of_account(&cx.shard.settings.limits);
    let standing = home.standing_of(from, cx);
    let is_admitted = |node: &Node| node.config.access_model.admits(Reader::Other(standing));
    let refusal = match xml::parse(stanza, home.account, &terms) {
        Err(error) => error,
        Ok(Request::Topic { name, op, about }) if is_reading(&op) => match home.record.pep.get(&name) {
            Some(node) if is_admitted(node) => {
                operate(name, op, TopicIq { iq: pending, about }, home, &terms, cx);
                return true;
            }
            node => closed(node),
        },
        Ok(Request::Topics { paged, .. }) => {
            let nodes = home.record.pep.iter().filter(|node| is_admitted(node));
            let records: Vec<TopicRecord> = nodes.map(|node| record(node, home)).collect();
            if standing.from || !records.is_empty() {
                let list = xml::topics(&records, |_| true, home.account.as_str(), paged);
                cx.reply(pending.reply(Ok(Payload::from_element(&list))));
                return true;
            }
            StanzaError::new(Condition::ItemNotFound)
        }
        Ok(Request::Topic { op: TopicOp::Subscribe { .. } | TopicOp::Unsubscribe { .. }, .. }) => {
            unsupported("subscribe")
        }
        Ok(_) => StanzaError::new(Condition::Forbidden),
    };
    // Without a presence subscription the account seems not to exist, and a missing node and a forbidden one get the same answer.
    let is_items = stanza.payload.find("query", ns::DISCO_ITEMS).is_some();
    if is_items || !standing.from {
        return false;
    }
    stanza.error_reply(&refusal).into_iter().for_each(|reply| cx.reply(reply));
    true
}

fn is_reading(op: &TopicOp) -> bool {
    matches!(op, TopicOp::Describe | TopicOp::Items { .. } | TopicOp::ItemNames { .. })
}

/// Why an account that is given the owner's presence does not read a node.
fn closed(node: Option<&Node>) -> StanzaError {
    match node.map(|node| node.config.access_model) {
        Some(Access::Presence) => xml::refusal(Condition::NotAuthorized, "presence-subscription-required"),
        Some(Access::Roster) => xml::refusal(Condition::NotAuthorized, "not-in-roster-group"),
        Some(Access::Whitelist | Access::Open) => xml::refusal(Condition::NotAllowed, "closed-node"),
        None => StanzaError::new(Condition::ItemNotFound),
    }
}

/// Answers a request to the account.
fn answer(stanza: &Stanza, home: &AtHome<'_>, cx: &mut Cx<'_>) {
    let Some(from) = &stanza.from else { return };
    let pending = PendingIq::new(stanza, from);
    let terms = Terms::of_account(&cx.shard.settings.limits);
    let account = home.account.as_str();
    match xml::parse(stanza, home.account, &terms) {
        Err(error) => cx.reply(pending.reply(Err(error))),
        Ok(Request::Known(payload)) => {
            let payload = payload.map_or(Payload::empty(), |payload| Payload::from_element(&payload));
            cx.reply(pending.reply(Ok(payload)));
        }
        Ok(Request::Topics { paged, .. }) => {
            let records: Vec<TopicRecord> = home.record.pep.iter().map(|node| record(node, home)).collect();
            let list = xml::topics(&records, |_| true, account, paged);
            cx.reply(pending.reply(Ok(Payload::from_element(&list))));
        }
        Ok(Request::Instant { change }) => {
            let name = cx.shard.random.token().into();
            let op = TopicOp::Create { config: change.apply(&terms.default) };
            operate(name, op, TopicIq { iq: pending, about: About::Instant }, home, &terms, cx);
        }
        Ok(Request::Topic { name, op, about }) => {
            operate(name, op, TopicIq { iq: pending, about }, home, &terms, cx);
        }
        Ok(Request::Subscriptions { .. } | Request::Affiliations { .. }) => {
            cx.reply(pending.reply(Err(unsupported("retrieve-subscriptions"))));
        }
    }
}

/// Carries out an operation on a node, or has the store do it.
fn operate(name: Box<str>, op: TopicOp, iq: TopicIq, home: &AtHome<'_>, terms: &Terms, cx: &mut Cx<'_>) {
    let (domain, local) = (home.domain, Box::from(home.local));
    let (node, is_published) = (name.clone(), op.is_published());
    let edit = match op {
        TopicOp::Describe | TopicOp::Manage => {
            let record = home.record.pep.get(&name).map(|node| Arc::new(record(node, home)));
            let outcome = record.map(|record| TopicOutcome::Record { record, created: false });
            let result = outcome.ok_or(Refusal::NotFound);
            return cx.reply(xml::reply(iq, &name, result, terms));
        }
        TopicOp::Items { ids, from, max, bytes_max } => {
            let max = max.unwrap_or(terms.max_items);
            let question = NodeItems { domain, local, node, ids, from, max, bytes_max };
            return read(question, TopicOutcome::Items, name, iq, terms, cx);
        }
        TopicOp::ItemNames { from, max } => {
            let question = NodeItemNames { domain, local, node, from, max };
            let outcome =
                |names: ItemNamesAnswer| TopicOutcome::ItemNames { ids: names.ids, count: names.count };
            return read(question, outcome, name, iq, terms, cx);
        }
        op => {
            let is = home.record.pep.get(&name).map(|node| &node.config);
            edit(op, is, &terms.default_of(&name), terms, cx)
        }
    };
    let edit = match edit {
        Ok(edit) => edit,
        Err(error) => return cx.reply(iq.iq.reply(Err(error))),
    };
    if is_published && let Err(error) = cx.check_room(domain) {
        return cx.reply(iq.iq.reply(Err(error)));
    }
    let bounds = cx.shard.settings.limits.nodes;
    let question = EditNode { domain, local, node, edit, bounds, now: cx.now.unix };
    let (account, terms, edit) = (home.account.clone(), terms.clone(), question.edit.clone());
    cx.ask(question, move |answer, _, cx| {
        if let Some(change) = edited(answer, &account, &name, iq, &terms, cx) {
            node_edited(&change, &edit, account, cx);
        }
    });
}

/// The edit that an operation makes. `is`: the configuration of the node, if there is one; `default`: that of a new one.
fn edit(
    op: TopicOp,
    is: Option<&TopicConfig>,
    default: &TopicConfig,
    terms: &Terms,
    cx: &mut Cx<'_>,
) -> Result<NodeEdit, StanzaError> {
    let change = match &op {
        TopicOp::PublishIf { options, .. } | TopicOp::PublishNothing { options } => options.clone(),
        _ => ConfigChange::default(),
    };
    let created = change.apply(default);
    check_item(&op, is.unwrap_or(&created))?;
    Ok(match op {
        TopicOp::Create { config } => {
            check(&config, terms)?;
            NodeEdit::Create(config)
        }
        TopicOp::Publish { id, payload, .. } | TopicOp::PublishIf { id, payload, .. } => {
            check(&created, terms)?;
            publish(id, &payload, change, default, cx)
        }
        TopicOp::PublishNothing { .. } => {
            check(&created, terms)?;
            publish(None, &crate::model::Payload::Xml(Bytes::new()), change, default, cx)
        }
        TopicOp::Amend { change } => {
            check(&change.apply(&terms.default), terms)?;
            NodeEdit::Configure(change)
        }
        TopicOp::Retract { id, .. } => NodeEdit::Retract(id),
        TopicOp::Purge => NodeEdit::Purge,
        TopicOp::Delete => NodeEdit::Delete,
        TopicOp::SetAffiliations { .. } => return Err(unsupported("modify-affiliations")),
        _ => return Err(unsupported("subscribe")),
    })
}

fn publish(
    id: Option<Box<str>>,
    payload: &crate::model::Payload,
    options: ConfigChange,
    default: &TopicConfig,
    cx: &mut Cx<'_>,
) -> NodeEdit {
    let mut bytes = Vec::with_capacity(256);
    payload.write(&mut bytes);
    let id = id.unwrap_or_else(|| cx.shard.random.token().into());
    NodeEdit::Publish { id, payload: Bytes::from(bytes), options, default: default.clone() }
}

/// Checks that a node may have this configuration.
fn check(config: &TopicConfig, terms: &Terms) -> Result<(), StanzaError> {
    let refused = |text: &'static str| Err(StanzaError::new(Condition::NotAcceptable).with_text(text));
    if config.title.len() > 256 {
        return refused("a title is at most 256 bytes");
    }
    if config.max_items == 0 || config.max_items > terms.max_items {
        return refused("max_items is 0, or more than an account may keep");
    }
    Ok(())
}

/// Has the store read something.
fn read<Q, T>(
    question: Q,
    outcome: impl FnOnce(T) -> TopicOutcome + Send + 'static,
    name: Box<str>,
    iq: TopicIq,
    terms: &Terms,
    cx: &mut Cx<'_>,
) where
    Q: Question<Answer = Option<T>>,
{
    let terms = terms.clone();
    cx.ask(question, move |answer, _, cx| {
        let found = answer.map_err(Refusal::Fault).and_then(|found| found.ok_or(Refusal::NotFound));
        cx.reply(xml::reply(iq, &name, found.map(outcome), &terms));
    });
}

/// The store's answer: who asked is told.
fn edited(
    answer: Result<Result<Box<NodeChange>, NodeRefusal>, Fault>,
    account: &BareJid,
    name: &str,
    iq: TopicIq,
    terms: &Terms,
    cx: &mut Cx<'_>,
) -> Option<Arc<NodeChange>> {
    let result = match answer {
        Ok(Ok(change)) => Ok(Arc::<NodeChange>::from(change)),
        Ok(Err(refusal)) => Err(refused(refusal)),
        Err(fault) => {
            if fault == Fault::Unknown {
                cx.tell_account(account.clone(), AccountMessage::Reload);
            }
            Err(Refusal::Fault(fault))
        }
    };
    let outcome = result.as_ref().map_err(|refusal| *refusal).map(|change| outcome(change, account));
    cx.reply(xml::reply(iq, name, outcome, terms));
    result.ok()
}

fn outcome(change: &NodeChange, account: &BareJid) -> TopicOutcome {
    match (&change.item, &change.is) {
        (Some(item), _) => TopicOutcome::Published(item.clone()),
        (None, Some(node)) => {
            TopicOutcome::Record { record: Arc::new(record_of(node, account)), created: change.was.is_none() }
        }
        (None, None) => TopicOutcome::Done,
    }
}

fn refused(refusal: NodeRefusal) -> Refusal {
    match refusal {
        NodeRefusal::NoAccount | NodeRefusal::NoNode | NodeRefusal::NoItem => Refusal::NotFound,
        NodeRefusal::Exists => Refusal::Exists,
        NodeRefusal::Unmet(fields) => Refusal::PreconditionNotMet(fields),
        NodeRefusal::TooManyNodes => Refusal::NoRoom(NoRoom::Nodes),
        NodeRefusal::TooManyBytes => Refusal::NoRoom(NoRoom::NodeBytes),
    }
}

fn record(node: &Node, home: &AtHome<'_>) -> TopicRecord {
    record_of(node, home.account)
}

/// A node, as a topic is described.
fn record_of(node: &Node, account: &BareJid) -> TopicRecord {
    TopicRecord {
        id: TopicId::default(),
        domain: Default::default(),
        name: node.name.clone(),
        config: node.config.clone(),
        affiliations: vec![(account.clone(), Affiliation::Owner)],
        created: node.created,
    }
}
