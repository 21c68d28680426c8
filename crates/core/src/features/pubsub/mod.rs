//! Topics as the nodes of a pubsub service (XEP-0060), `pubsub.DOMAIN`. What is asked of the service goes to the topic's home
//! ([`crate::topic`]) and is answered from there; what happens on a topic comes to its followers by `follow.rs`.

mod follow;
#[cfg(test)]
mod tests;
mod xml;

pub use follow::{State, deliver, give_rest, has_rest, initial, subscribed, unsubscribed};
pub use xml::{About, reply};

use crate::command::{Actor, TopicOp};
use crate::error::StanzaError;
use crate::hook::{Feature, Flow, Hooks, Spec};
use crate::model::{ConnId, TopicConfig};
use crate::node::{self, Cx, Letter, Sessions, home};
use crate::ports::{Answer, Ask, Fault};
use crate::session::Live;
use crate::topic::{self, Asker, Refusal};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Kind, Stanza};
use xml::Request;

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
    server_features: &[],
    account_features: &[],
    inline_features: &[],
    hooks: Hooks {
        open: Some(follow::open),
        submit_message: Some(submit_message),
        submit_presence: Some(submit_presence),
        submit_iq: Some(submit_iq),
        ..Hooks::NONE
    },
};

/// A question about no one topic that waits for the store.
#[derive(Debug)]
pub enum Then {
    /// Which topics there are.
    Topics {
        /// Who asked.
        pending: Pending,
        /// Whether the answer is to say what part of the list it is.
        paged: bool,
    },
    /// What the asker follows; of one topic, when it named one.
    Subscriptions(Pending, Option<Box<str>>),
    /// How the asker stands to topics; to one, when it named one.
    Affiliations(Pending, Option<Box<str>>),
    /// What the account of this session follows, because that changed while it logged in.
    Following(ConnId),
}

/// An IQ that waits for its answer.
#[derive(Debug)]
pub struct Pending {
    from: Jid,
    service: Jid,
    id: Box<str>,
}

/// The store answered.
pub fn answered(then: Then, answer: Answer, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let (pending, payload) = match (then, answer) {
        (Then::Following(conn), answer) => return follow::answered(conn, answer, sessions, cx),
        (Then::Topics { pending, paged }, Answer::Topics(records)) => {
            let account = pending.from.bare();
            let readable = |record: &_| topic::is_readable(&account, record);
            let payload = xml::topics(&records, readable, &pending.service, paged);
            (pending, payload)
        }
        (Then::Subscriptions(pending, of), Answer::TopicNames(names)) => {
            let payload = xml::subscriptions(&names, of.as_deref(), &pending.from.bare());
            (pending, payload)
        }
        (Then::Affiliations(pending, of), Answer::Affiliations(list)) => {
            (pending, xml::affiliations(&list, of.as_deref()))
        }
        (
            Then::Topics { pending, .. } | Then::Subscriptions(pending, _) | Then::Affiliations(pending, _),
            answer,
        ) => {
            let fault = if let Answer::Failed(fault) = answer { fault } else { Fault::Broken };
            return cx.reply(pending.refuse(&Refusal::Fault(fault).into()));
        }
    };
    cx.reply(pending.result().with_payload(payload));
}

impl Pending {
    fn result(self) -> Stanza {
        Stanza::iq(IqType::Result).with_to(self.from).with_from(self.service).with_id(self.id)
    }

    fn refuse(self, error: &StanzaError) -> Stanza {
        let reply = Stanza::iq(IqType::Error).with_to(self.from).with_from(self.service).with_id(self.id);
        reply.with_payload(error.to_element())
    }
}

fn submit_message(live: &mut Live, stanza: &mut Stanza, cx: &mut Cx<'_>) -> Result<Flow, StanzaError> {
    match service(live, stanza, cx) {
        None => Ok(Flow::Pass),
        Some(_) => Err(StanzaError::new(Condition::ServiceUnavailable)),
    }
}

fn submit_presence(live: &mut Live, stanza: &mut Stanza, cx: &mut Cx<'_>) -> Result<Flow, StanzaError> {
    match service(live, stanza, cx) {
        None => Ok(Flow::Pass),
        // Subscriptions do not depend on presence here: XEP-0060 §12.1 leaves that to the service.
        Some(_) => Ok(Flow::Taken),
    }
}

fn submit_iq(live: &mut Live, stanza: &mut Stanza, cx: &mut Cx<'_>) -> Result<Flow, StanzaError> {
    let (Some(service), Kind::Iq(kind)) = (service(live, stanza, cx), stanza.kind) else {
        return Ok(Flow::Pass);
    };
    if matches!(kind, IqType::Result | IqType::Error) {
        return Ok(Flow::Taken);
    }
    let to = service?;
    let request = xml::parse(stanza, &live.bare, &cx.hub.settings.limits)?;
    let id = stanza.id.clone().unwrap_or_default();
    let pending = Pending { from: live.jid.clone(), service: to, id };
    dispatch(live, request, pending, cx);
    Ok(Flow::Taken)
}

/// The pubsub service that a stanza is for, if it is for one, or why its sender may not use it.
fn service(live: &Live, stanza: &Stanza, cx: &Cx<'_>) -> Option<Result<Jid, StanzaError>> {
    let to = stanza.to.as_ref()?;
    let domain = cx.hub.domains.of_pubsub(to.domain())?;
    if cx.hub.domains.named(to.domain()).is_some() {
        // A domain that happens to be called so comes first.
        return None;
    }
    Some(if domain.id != live.domain {
        Err(StanzaError::new(Condition::Forbidden).with_text("the topics of another domain"))
    } else if to.local().is_some() || !to.is_bare() {
        Err(StanzaError::new(Condition::ServiceUnavailable))
    } else {
        Ok(to.clone())
    })
}

/// Has a request carried out, wherever that is done.
fn dispatch(live: &mut Live, request: Request, pending: Pending, cx: &mut Cx<'_>) {
    let (domain, local) = (live.domain, live.bare.local().unwrap_or_default().into());
    match request {
        Request::Topic { name, op, about } => to_home(live, name, op, about, pending, cx),
        Request::Instant { change } => {
            let name = cx.hub.random.token().into();
            let op = TopicOp::Create { config: change.apply(&TopicConfig::default()) };
            to_home(live, name, op, About::Instant, pending, cx);
        }
        Request::Topics { after, max, paged } => {
            let ask = Ask::Topics { domain, after, limit: max };
            cx.ask(ask, node::Then::Pubsub(Then::Topics { pending, paged }));
        }
        Request::Subscriptions { of } => {
            let ask = Ask::SubscriptionsOf { domain, local };
            cx.ask(ask, node::Then::Pubsub(Then::Subscriptions(pending, of)));
        }
        Request::Affiliations { of } => {
            let ask = Ask::AffiliationsOf { domain, jid: live.bare.clone() };
            cx.ask(ask, node::Then::Pubsub(Then::Affiliations(pending, of)));
        }
        Request::Known(payload) => {
            let mut result = pending.result();
            if let Some(payload) = payload {
                result.payload.push_element(&payload);
            }
            cx.reply(result);
        }
    }
}

fn to_home(live: &Live, name: Box<str>, op: TopicOp, about: About, pending: Pending, cx: &mut Cx<'_>) {
    let at = home(&topic::address(&name, live.bare.domain()), cx.hub.shards);
    let Pending { from, service, id } = pending;
    let actor = Actor::Account(from.clone());
    let asker = Asker::Iq { from, service, id, about };
    cx.post(at, Letter::Topic { domain: live.domain, name, actor, op, asker });
}

/// An error with a condition of XEP-0060's own.
fn refusal(condition: Condition, name: &str) -> StanzaError {
    StanzaError::new(condition).with_app(carillon_wire::xml::Element::new(name, ns::PUBSUB_ERRORS))
}

/// What XEP-0060 calls a feature, and this service does not have.
fn unsupported(feature: &str) -> StanzaError {
    let mut error = refusal(Condition::FeatureNotImplemented, "unsupported");
    if let Some(app) = &mut error.app {
        app.set_attr("feature", feature);
    }
    error
}

/// The bare JID of an address that a client wrote.
fn bare(text: &str) -> Result<BareJid, StanzaError> {
    let malformed = |_| StanzaError::new(Condition::JidMalformed).with_text("the JID is malformed");
    Jid::new(text).map(|jid| jid.bare()).map_err(malformed)
}
