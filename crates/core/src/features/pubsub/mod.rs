//! Topics as the nodes of a pubsub service (XEP-0060), `pubsub.DOMAIN`. Requests go to the topic's home ([`crate::topic`])
//! and are answered from there; events reach followers by `follow.rs`.

mod follow;
mod missed;
#[cfg(test)]
mod tests;

use crate::command::{About, Actor, Asker, PendingIq, Refusal, TopicIq, TopicOp};
use crate::error::StanzaError;
use crate::message::ShardMessage;
use crate::model::{TOPIC_HOST, TopicConfig, topic_address};
use crate::ports::Question;
use crate::ports::store::subscriptions::SubscriptionsOf;
use crate::ports::store::topics::{AffiliationsOf, Topics};
use crate::session::hook::{Feature, Flow, Hooks, LoginPart, Service, Spec, Taken};
use crate::session::{BoundSession, Cx, Sessions, Wait, account_reads};
use crate::shard::Track;
use crate::topic;
use crate::topic::xml::{self, Request, Terms};
use carillon_wire::stanza::{Condition, IqType, Kind, Payload, Stanza};
use carillon_wire::xml::Element;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "pubsub",
    about: "Topics as the nodes of a pubsub service.",
    specs: &[
        Spec {
            id: "XEP-0060",
            title: "Publish-Subscribe",
            version: "1.26.0",
            coverage: "Leaf nodes: create (also instant, and by publishing), configure, delete, purge; publish with \
                       publish-options, retract; subscribe, unsubscribe, the last item on subscription and after \
                       initial presence; items, subscriptions and affiliations; access models open and whitelist. \
                       Subscribers are accounts (bare JIDs). Not there: collections, subscription options and ids, \
                       authorize, presence and roster access, changing the subscriptions of others by owners: an account \
                       subscribes itself only.",
        },
        Spec {
            id: "XEP-0004",
            title: "Data Forms",
            version: "2.13.1",
            coverage: "The forms of node configuration, publish-options and meta-data.",
        },
        Spec {
            id: "XEP-0059",
            title: "Result Set Management",
            version: "1.0.1",
            coverage: "Items of a topic and their names: max, after, before, the last page, and the count of names. The list \
                       of topics: max and after. Not there: pages by their index.",
        },
        Spec {
            id: "XEP-0203",
            title: "Delayed Delivery",
            version: "2.0",
            coverage: "The stamp of a last item.",
        },
        Spec {
            id: "urn:carillon:topics:0",
            title: "Topics",
            version: "0",
            coverage: "Initial presence names the items a device has already; they are not sent again.",
        },
    ],
    services: &[SERVICE],
    hooks: Hooks {
        open: Some(follow::open),
        restored: Some(missed::restored),
        available: Some(follow::available),
        catch_up: Some(follow::give_rest),
        login: &[LoginPart::Subscriptions(follow::login)],
        publication: Some(follow::deliver),
        tick: Some(missed::tick),
        walk: Some(missed::walk),
        message: Some(message),
        topic_answer: Some(|iq, name, result, cx| {
            let terms = Terms::of_topics(&cx.shard.settings.limits);
            cx.reply(xml::reply(iq, name, result, &terms));
        }),
        describe: Some(|session, info| info.topics = session.topics.len() as u32),
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// Its address. The home of a topic follows from the topic's own address.
const SERVICE: Service = Service {
    host: TOPIC_HOST,
    name: "Topics",
    identity: ("pubsub", "service"),
    submit,
    place: Some(topic_address),
    is_for_others: false,
};

/// Reads a list of the store's, and answers with it.
fn read<Q: Question>(
    question: Q,
    pending: PendingIq,
    print: impl FnOnce(Q::Answer, &PendingIq) -> Element + Send + 'static,
) -> Flow {
    Flow::Wait(Wait::ask(question, move |session, _, answer, cx| {
        let printed = answer.map(|answer| Payload::from_element(&print(answer, &pending)));
        let reply = pending.reply(printed.map_err(|fault| Refusal::Fault(fault).into()));
        session.deliver(reply, Track::Nothing, cx);
        Ok(Flow::Taken(Taken::Request))
    }))
}

fn submit(session: &mut BoundSession, stanza: &mut Stanza, cx: &mut Cx<'_>) -> Result<Flow, StanzaError> {
    let kind = match stanza.kind {
        Kind::Message(_) => return Err(StanzaError::new(Condition::ServiceUnavailable)),
        // Subscriptions do not depend on presence here: XEP-0060 §12.1 leaves that to the service.
        Kind::Presence(_) => return Ok(Flow::Taken(Taken::Ignored)),
        Kind::Iq(kind) => kind,
    };
    if matches!(kind, IqType::Result | IqType::Error) {
        return Ok(Flow::Taken(Taken::Ignored));
    }
    if !stanza.to.as_ref().is_some_and(|to| to.local().is_none() && to.is_bare()) {
        return Err(StanzaError::new(Condition::ServiceUnavailable));
    }
    let request = xml::parse(stanza, &session.bare, &Terms::of_topics(&cx.shard.settings.limits))?;
    Ok(dispatch(session, request, PendingIq::new(stanza, &session.jid), cx))
}

/// An account began or stopped following a topic.
fn message(message: ShardMessage, sessions: &mut Sessions, cx: &mut Cx<'_>) -> Option<ShardMessage> {
    match message {
        ShardMessage::Subscribed { account, topic, last } => {
            follow::subscribed(&account, topic, last, sessions, cx);
        }
        ShardMessage::Unsubscribed { account, topic } => follow::unsubscribed(&account, topic, sessions, cx),
        other => return Some(other),
    }
    None
}

/// Carries out a request, or sends it where that is done.
fn dispatch(session: &mut BoundSession, request: Request, pending: PendingIq, cx: &mut Cx<'_>) -> Flow {
    let (domain, local) = (session.domain, session.bare.local().into());
    match request {
        Request::Topic { name, op, about } => return to_home(session, name, op, about, pending, cx),
        Request::Instant { change } => {
            let name = cx.shard.random.token().into();
            let op = TopicOp::Create { config: change.apply(&TopicConfig::default()) };
            return to_home(session, name, op, About::Instant, pending, cx);
        }
        Request::Topics { after, max, paged } => {
            let question = Topics { domain, after, limit: max };
            return read(question, pending, move |records, pending| {
                let account = pending.from.bare();
                let readable = |record: &_| topic::is_readable(&account, record);
                xml::topics(&records, readable, pending.service(), paged)
            });
        }
        Request::Subscriptions { of } => {
            return read(SubscriptionsOf { domain, local }, pending, move |names, pending| {
                xml::subscriptions(&names, of.as_deref(), &pending.from.bare())
            });
        }
        Request::Affiliations { of } => {
            let question = AffiliationsOf { domain, jid: session.bare.to_bare() };
            return read(question, pending, move |list, _| xml::affiliations(&list, of.as_deref()));
        }
        Request::Known(payload) => {
            let payload = payload.map_or(Payload::empty(), |payload| Payload::from_element(&payload));
            cx.reply(pending.reply(Ok(payload)));
        }
    }
    Flow::Taken(Taken::Request)
}

fn to_home(
    session: &BoundSession,
    name: Box<str>,
    op: TopicOp,
    about: About,
    pending: PendingIq,
    cx: &mut Cx<'_>,
) -> Flow {
    let at = SERVICE.home(&name, session.bare.domain(), cx);
    let (domain, actor) = (session.domain, Actor::Account(pending.from.clone()));
    let id = (!is_read(&op)).then(|| account_reads::id_elsewhere(&pending, at, cx));
    let send = move |id: Box<str>, cx: &mut Cx<'_>| {
        let iq = PendingIq { id, ..pending };
        let asker = Asker::Iq(Box::new(TopicIq { iq, about }));
        cx.post(at, ShardMessage::Topic { domain, name, actor, op, asker });
    };
    let Some(id) = id else { return Flow::Wait(Wait::reply(at.node, send)) };
    send(id, cx);
    Flow::Taken(Taken::Request)
}

/// Whether an operation is waited for because it reads items: what it changes, if anything, is the same when it is repeated.
fn is_read(op: &TopicOp) -> bool {
    match op {
        TopicOp::Describe
        | TopicOp::Manage
        | TopicOp::Items { .. }
        | TopicOp::ItemNames { .. }
        | TopicOp::Subscribers { .. }
        | TopicOp::Subscribe { .. }
        | TopicOp::Listen => true,
        TopicOp::Publish { .. }
        | TopicOp::PublishNothing { .. }
        | TopicOp::PublishIf { .. }
        | TopicOp::Unsubscribe { .. }
        | TopicOp::Create { .. }
        | TopicOp::Put { .. }
        | TopicOp::Configure { .. }
        | TopicOp::Amend { .. }
        | TopicOp::Delete
        | TopicOp::Retract { .. }
        | TopicOp::Purge
        | TopicOp::SetAffiliations { .. } => false,
    }
}
