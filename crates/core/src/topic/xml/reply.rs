//! Replies to clients.

use super::{Terms, disco, form, set};
use crate::command::{About, Refusal, TopicIq, TopicOutcome};
use crate::model::{Affiliation, Item, TopicId, TopicRecord, write_item};
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::{Payload, Stanza, StanzaError};
use carillon_wire::xml::Element;
use carillon_wire::xml::writer::Writer;
use std::sync::Arc;

/// The answer to an IQ about the topic `name`.
pub(crate) fn reply(iq: TopicIq, name: &str, result: Result<TopicOutcome, Refusal>, terms: &Terms) -> Stanza {
    let TopicIq { iq, about } = iq;
    let payload = result.map(|outcome| payload(about, name, outcome, iq.service(), terms));
    iq.reply(payload.map_err(StanzaError::from))
}

fn payload(about: About, name: &str, outcome: TopicOutcome, service: &str, terms: &Terms) -> Payload {
    let element = match (about, outcome) {
        (About::Instant, TopicOutcome::Record { .. }) => {
            pubsub(Element::new("create", ns::PUBSUB).with_attr("node", name))
        }
        (About::Config, TopicOutcome::Record { record, .. }) => {
            let configure = Element::new("configure", ns::PUBSUB_OWNER).with_attr("node", name);
            owner(configure.with_child(form::config(&record.config, terms)))
        }
        (About::Info, TopicOutcome::Record { record, .. }) => disco::topic(&record),
        (About::Affiliations, TopicOutcome::Record { record, .. }) => affiliations_of(&record),
        (About::Publication, TopicOutcome::Published(item)) => {
            let item = Element::new("item", ns::PUBSUB).with_attr("id", &*item.id);
            pubsub(Element::new("publish", ns::PUBSUB).with_attr("node", name).with_child(item))
        }
        (About::Subscription(account), TopicOutcome::Subscribed { .. }) => {
            pubsub(subscription(ns::PUBSUB, &account).with_attr("node", name))
        }
        (About::Subscribers, TopicOutcome::Jids(jids)) => {
            let mut list = Element::new("subscriptions", ns::PUBSUB_OWNER).with_attr("node", name);
            jids.iter().for_each(|jid| list.push(subscription(ns::PUBSUB_OWNER, jid)));
            owner(list)
        }
        (About::ItemNames { paged }, TopicOutcome::ItemNames { ids, count }) => {
            let mut query = disco::items(name, &ids, service);
            if paged {
                query.push(set(ids.first().map(|id| &**id), ids.last().map(|id| &**id), Some(count)));
            }
            query
        }
        (About::Items { paged }, TopicOutcome::Items(list)) => return items(name, &list, paged),
        _ => return Payload::empty(),
    };
    Payload::from_element(&element)
}

/// The subscriptions of an account (§5.6), or only that to the topic `of`.
pub(crate) fn subscriptions(names: &[(TopicId, Box<str>)], of: Option<&str>, account: &BareJid) -> Element {
    let mut list = Element::new("subscriptions", ns::PUBSUB);
    if let Some(of) = of {
        list.set_attr("node", of);
    }
    for (_, name) in names.iter().filter(|(_, name)| of.is_none_or(|of| *of == **name)) {
        list.push(subscription(ns::PUBSUB, account).with_attr("node", &**name));
    }
    pubsub(list)
}

/// The affiliations of an account (§5.7), or only that with the topic `of`.
pub(crate) fn affiliations(stands: &[(Box<str>, Affiliation)], of: Option<&str>) -> Element {
    let mut list = Element::new("affiliations", ns::PUBSUB);
    if let Some(of) = of {
        list.set_attr("node", of);
    }
    for (name, affiliation) in stands.iter().filter(|(name, _)| of.is_none_or(|of| *of == **name)) {
        let entry = Element::new("affiliation", ns::PUBSUB).with_attr("node", &**name);
        list.push(entry.with_attr("affiliation", word(*affiliation)));
    }
    pubsub(list)
}

fn affiliations_of(record: &TopicRecord) -> Element {
    let mut list = Element::new("affiliations", ns::PUBSUB_OWNER).with_attr("node", &*record.name);
    for (jid, affiliation) in &record.affiliations {
        let entry = Element::new("affiliation", ns::PUBSUB_OWNER).with_attr("jid", jid.as_str());
        list.push(entry.with_attr("affiliation", word(*affiliation)));
    }
    owner(list)
}

/// Items as a payload: theirs are copied as they are.
fn items(name: &str, items: &[Arc<Item>], paged: bool) -> Payload {
    let mut out = Vec::with_capacity(1024);
    let mut writer = Writer::new(&mut out);
    writer.start_in("pubsub", ns::PUBSUB).close_start();
    writer.start("items").attr("node", name).close_start();
    for item in items {
        write_item(&mut writer, item);
    }
    writer.end("items");
    if paged {
        let mut part = Vec::new();
        set(items.first().map(|item| &*item.id), items.last().map(|item| &*item.id), None)
            .write(&mut part, ns::PUBSUB);
        writer.raw(&part);
    }
    writer.end("pubsub");
    Payload::from_raw(out.into())
}

fn subscription(ns: &str, account: &BareJid) -> Element {
    Element::new("subscription", ns)
        .with_attr("jid", account.as_str())
        .with_attr("subscription", "subscribed")
}

fn pubsub(child: Element) -> Element {
    Element::new("pubsub", ns::PUBSUB).with_child(child)
}

fn owner(child: Element) -> Element {
    Element::new("pubsub", ns::PUBSUB_OWNER).with_child(child)
}

/// The name of an affiliation (§4.1).
fn word(affiliation: Affiliation) -> &'static str {
    match affiliation {
        Affiliation::Outcast => "outcast",
        Affiliation::None => "none",
        Affiliation::Member => "member",
        Affiliation::Publisher => "publisher",
        Affiliation::Owner => "owner",
    }
}

/// The default configuration of a topic (§8.3).
pub(super) fn default_config(terms: &Terms) -> Element {
    let config = form::config(&terms.default, terms);
    owner(Element::new("default", ns::PUBSUB_OWNER).with_child(config))
}
