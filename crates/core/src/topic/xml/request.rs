//! What a client asks of the service.

use super::{Terms, bare, disco, form, refusal, reply, unsupported};
use crate::command::{About, TopicOp};
use crate::error::StanzaError;
use crate::model::{Affiliation, ConfigChange, Payload};
use crate::session::rsm;
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Kind, Stanza};
use carillon_wire::xml::Element;

/// Items or followers per answer at most.
const PAGE: u16 = 250;
/// Topics per answer at most.
const TOPICS: u16 = 1000;
/// Bytes of payloads per answer at most; the first item is given whatever its size.
pub(crate) const ITEMS_BYTES_MAX: usize = 1 << 20;
/// Bytes of a name or an id.
const NAME_MAX: usize = 1023;

/// What a client asks of the service.
#[derive(Debug)]
pub(crate) enum Request {
    /// An operation on one topic.
    Topic { name: Box<str>, op: TopicOp, about: About },
    /// To create a topic with this configuration and a name that the server makes.
    Instant { change: ConfigChange },
    /// The list of topics after `after`. `paged`: whether the answer says which part of the list it is.
    Topics { after: Option<Box<str>>, max: u16, paged: bool },
    /// The asker's subscriptions, or only that to one topic.
    Subscriptions { of: Option<Box<str>> },
    /// The asker's affiliations, or only that with one topic.
    Affiliations { of: Option<Box<str>> },
    /// An answer that needs no topic; none for an empty result.
    Known(Option<Element>),
}

/// Reads a request, made by `account`.
pub(crate) fn parse(stanza: &Stanza, account: &BareJid, terms: &Terms) -> Result<Request, StanzaError> {
    let child = stanza.payload.children().next().ok_or(bad_request("the IQ has no payload element"))?;
    let element = child.element();
    match (stanza.kind, child.name(), child.ns()) {
        (Kind::Iq(IqType::Set), "pubsub", ns::PUBSUB) => set(&element, account, terms),
        (Kind::Iq(IqType::Get), "pubsub", ns::PUBSUB) => get(&element),
        (Kind::Iq(IqType::Set), "pubsub", ns::PUBSUB_OWNER) => owner_set(&element, terms),
        (Kind::Iq(IqType::Get), "pubsub", ns::PUBSUB_OWNER) => owner_get(&element, terms),
        (Kind::Iq(IqType::Get), "query", ns::DISCO_INFO) => Ok(match element.attr("node") {
            Some(_) => topic(&element, TopicOp::Describe, About::Info)?,
            None => Request::Known(Some(disco::service())),
        }),
        (Kind::Iq(IqType::Get), "query", ns::DISCO_ITEMS) => Ok(match element.attr("node") {
            Some(_) => {
                let page = rsm::Page::of(&element)?;
                let op = TopicOp::ItemNames { from: page.from(), max: page.max(PAGE, PAGE).into() };
                topic(&element, op, About::ItemNames { paged: page.is_asked() })?
            }
            None => {
                let page = rsm::Page::of(&element)?;
                Request::Topics {
                    after: page.after()?,
                    max: page.max(TOPICS, TOPICS),
                    paged: page.is_asked(),
                }
            }
        }),
        _ => Err(StanzaError::new(Condition::ServiceUnavailable)),
    }
}

fn set(pubsub: &Element, account: &BareJid, terms: &Terms) -> Result<Request, StanzaError> {
    let child = pubsub.children().next().ok_or(bad_request("the request is empty"))?;
    match child.name() {
        "create" => create(child, pubsub, terms),
        "publish" => publish(child, pubsub, terms),
        "retract" => {
            let id = one_item(child)?;
            let notify = match child.attr("notify") {
                None => None,
                Some("1" | "true") => Some(true),
                Some("0" | "false") => Some(false),
                Some(_) => return Err(bad_request("notify is true or false")),
            };
            topic(child, TopicOp::Retract { id, notify }, About::Nothing)
        }
        "subscribe" if pubsub.child("options", ns::PUBSUB).is_some() => {
            Err(unsupported("subscription-options"))
        }
        "subscribe" => {
            let subscriber = subscriber(child)?;
            let op = TopicOp::Subscribe { account: subscriber.clone() };
            topic(child, op, About::Subscription(subscriber))
        }
        "unsubscribe" => {
            let account = match child.attr("jid") {
                Some(_) => subscriber(child)?,
                None => account.clone(),
            };
            topic(child, TopicOp::Unsubscribe { account }, About::Nothing)
        }
        "options" => Err(unsupported("subscription-options")),
        _ => Err(bad_request("there is no such request")),
    }
}

fn create(create: &Element, pubsub: &Element, terms: &Terms) -> Result<Request, StanzaError> {
    let change = match pubsub.child("configure", ns::PUBSUB).and_then(|c| c.child("x", ns::DATA_FORMS)) {
        Some(x) => form::parse_config(x, terms)?,
        None => ConfigChange::default(),
    };
    match create.attr("node") {
        None | Some("") => Ok(Request::Instant { change }),
        Some(node) => {
            let op = TopicOp::Create { config: change.apply(&terms.default_of(node)) };
            topic(create, op, About::Nothing)
        }
    }
}

fn publish(publish: &Element, pubsub: &Element, terms: &Terms) -> Result<Request, StanzaError> {
    let mut items = publish.children().filter(|child| child.is("item", ns::PUBSUB));
    let options = pubsub.child("publish-options", ns::PUBSUB);
    let Some(item) = items.next() else {
        let options = options.map_or(Ok(ConfigChange::default()), |x| form::parse_options(x, terms))?;
        return topic(publish, TopicOp::PublishNothing { options }, About::Nothing);
    };
    if items.next().is_some() {
        let error = refusal(Condition::BadRequest, "max-items-exceeded");
        return Err(error.with_text("a request has one item"));
    }
    let id = item.attr("id").filter(|id| !id.is_empty()).map(named).transpose()?;
    let mut payloads = item.children();
    let payload = payloads.next();
    // XEP-0060 §7.1.3.6: one payload, in a namespace.
    if payloads.next().is_some() || payload.is_some_and(|payload| payload.ns().is_empty()) {
        return Err(refusal(Condition::BadRequest, "invalid-payload"));
    }
    let mut bytes = Vec::with_capacity(256);
    // Wherever it will stand, it says its namespace itself.
    payload.into_iter().for_each(|payload| payload.write(&mut bytes, ""));
    let payload = Payload::Xml(bytes.into());
    let op = match options {
        Some(options) => TopicOp::PublishIf { id, payload, options: form::parse_options(options, terms)? },
        None => TopicOp::Publish { id, payload, operation: None },
    };
    topic(publish, op, About::Publication)
}

fn get(pubsub: &Element) -> Result<Request, StanzaError> {
    let child = pubsub.children().next().ok_or(bad_request("the request is empty"))?;
    let of = child.attr("node").map(Into::into);
    match child.name() {
        "items" => {
            let page = rsm::Page::of(pubsub)?;
            let ids = child.children().filter(|child| child.is("item", ns::PUBSUB));
            let ids: Vec<_> = ids.filter_map(|item| item.attr("id")).map(Into::into).collect();
            let max = match child.attr("max_items") {
                None => u32::from(PAGE),
                Some(max) => max.parse().map_err(|_| bad_request("max_items is a number"))?,
            };
            if ids.len() > usize::from(PAGE) {
                let text = format!("at most {PAGE} items by their ids in a request");
                return Err(StanzaError::new(Condition::NotAcceptable).with_text(text));
            }
            let max = Some(max.min(page.max(PAGE, PAGE).into()));
            let op = TopicOp::Items { ids, from: page.from(), max, bytes_max: ITEMS_BYTES_MAX };
            topic(child, op, About::Items { paged: page.is_asked() })
        }
        "subscriptions" => Ok(Request::Subscriptions { of }),
        "affiliations" => Ok(Request::Affiliations { of }),
        "options" | "default" => Err(unsupported("subscription-options")),
        _ => Err(bad_request("there is no such request")),
    }
}

fn owner_get(pubsub: &Element, terms: &Terms) -> Result<Request, StanzaError> {
    let child = pubsub.children().next().ok_or(bad_request("the request is empty"))?;
    match child.name() {
        "configure" => topic(child, TopicOp::Manage, About::Config),
        "default" => Ok(Request::Known(Some(reply::default_config(terms)))),
        "subscriptions" => {
            let op = TopicOp::Subscribers { after: None, max: PAGE };
            topic(child, op, About::Subscribers)
        }
        "affiliations" => topic(child, TopicOp::Manage, About::Affiliations),
        _ => Err(bad_request("there is no such request")),
    }
}

fn owner_set(pubsub: &Element, terms: &Terms) -> Result<Request, StanzaError> {
    let child = pubsub.children().next().ok_or(bad_request("the request is empty"))?;
    match child.name() {
        "configure" => {
            let x = child.child("x", ns::DATA_FORMS).ok_or(bad_request("a form is needed"))?;
            match x.attr("type") {
                // XEP-0060 §8.2.3: the topic stays as it is.
                Some("cancel") => Ok(Request::Known(None)),
                _ => {
                    let change = form::parse_config(x, terms)?;
                    topic(child, TopicOp::Amend { change }, About::Nothing)
                }
            }
        }
        "delete" => topic(child, TopicOp::Delete, About::Nothing),
        "purge" => topic(child, TopicOp::Purge, About::Nothing),
        "affiliations" => {
            let entries = child.children().filter(|child| child.is("affiliation", ns::PUBSUB_OWNER));
            let changes = entries.map(affiliation).collect::<Result<Vec<_>, _>>()?;
            if changes.is_empty() {
                return Err(bad_request("jid of the affiliation is missing"));
            }
            topic(child, TopicOp::SetAffiliations { changes }, About::Nothing)
        }
        "subscriptions" => Err(unsupported("manage-subscriptions")),
        _ => Err(bad_request("there is no such request")),
    }
}

/// A request about the topic that `element` names.
fn topic(element: &Element, op: TopicOp, about: About) -> Result<Request, StanzaError> {
    let node = element.attr("node").filter(|node| !node.is_empty());
    let name = named(node.ok_or(refusal(Condition::BadRequest, "nodeid-required"))?)?;
    Ok(Request::Topic { name, op, about })
}

fn named(name: &str) -> Result<Box<str>, StanzaError> {
    match name.len() <= NAME_MAX {
        true => Ok(name.into()),
        false => Err(StanzaError::new(Condition::NotAcceptable).with_text("a name is at most 1023 bytes")),
    }
}

/// The id of the one item that a request is about.
fn one_item(parent: &Element) -> Result<Box<str>, StanzaError> {
    let mut items = parent.children().filter(|child| child.is("item", ns::PUBSUB));
    let id = items.next().and_then(|item| item.attr("id")).filter(|id| !id.is_empty());
    match (id, items.next()) {
        (Some(id), None) => Ok(id.into()),
        (Some(_), Some(_)) => Err(bad_request("a request has one item")),
        (None, _) => Err(refusal(Condition::BadRequest, "item-required")),
    }
}

/// The account that a subscription is for; a resource is ignored.
fn subscriber(element: &Element) -> Result<BareJid, StanzaError> {
    let invalid = || refusal(Condition::BadRequest, "invalid-jid");
    bare(element.attr("jid").ok_or_else(invalid)?).map_err(|_| invalid())
}

fn affiliation(entry: &Element) -> Result<(BareJid, Affiliation), StanzaError> {
    let jid = bare(entry.attr("jid").ok_or(bad_request("jid of the affiliation is missing"))?)?;
    let affiliation = match entry.attr("affiliation") {
        Some("owner") => Affiliation::Owner,
        Some("publisher") => Affiliation::Publisher,
        Some("member") => Affiliation::Member,
        Some("none") => Affiliation::None,
        Some("outcast") => Affiliation::Outcast,
        Some("publish-only") => return Err(unsupported("publish-only-affiliation")),
        _ => return Err(bad_request("there is no such affiliation")),
    };
    Ok((jid, affiliation))
}

fn bad_request(text: &'static str) -> StanzaError {
    StanzaError::new(Condition::BadRequest).with_text(text)
}
