//! Service discovery of the service and its topics (XEP-0060 §5).

use super::{form, set};
use crate::model::TopicRecord;
use carillon_wire::ns;
use carillon_wire::xml::Element;

/// The parts of XEP-0060 that are supported (§10).
const FEATURES: &[&str] = &[
    "access-open",
    "access-whitelist",
    "auto-create",
    "config-node",
    "config-node-max",
    "create-and-configure",
    "create-nodes",
    "delete-items",
    "delete-nodes",
    "instant-nodes",
    "item-ids",
    "last-published",
    "member-affiliation",
    "meta-data",
    "modify-affiliations",
    "multi-items",
    "outcast-affiliation",
    "persistent-items",
    "publish",
    "publish-options",
    "publisher-affiliation",
    "purge-nodes",
    "retract-items",
    "retrieve-affiliations",
    "retrieve-default",
    "retrieve-items",
    "retrieve-subscriptions",
    "subscribe",
];

/// The disco#info of the service.
pub(super) fn service() -> Element {
    let mut query = Element::new("query", ns::DISCO_INFO).with_child(identity("service", "Topics"));
    for ns in [ns::DISCO_INFO, ns::DISCO_ITEMS, ns::PUBSUB, ns::RSM] {
        query.push(feature(ns));
    }
    for name in FEATURES {
        query.push(feature(&format!("{}#{name}", ns::PUBSUB)));
    }
    query
}

/// The disco#info of a topic.
pub(super) fn topic(record: &TopicRecord) -> Element {
    Element::new("query", ns::DISCO_INFO)
        .with_attr("node", &*record.name)
        .with_child(identity("leaf", &record.config.title))
        .with_child(feature(ns::DISCO_INFO))
        .with_child(feature(ns::DISCO_ITEMS))
        .with_child(feature(ns::PUBSUB))
        .with_child(form::meta_data(record))
}

/// The topics of `records` that the asker may know of.
pub(crate) fn topics(
    records: &[TopicRecord],
    known: impl Fn(&TopicRecord) -> bool,
    service: &str,
    paged: bool,
) -> Element {
    let mut query = Element::new("query", ns::DISCO_ITEMS);
    for record in records.iter().filter(|record| known(record)) {
        let item = item(service).with_attr("node", &*record.name);
        query.push(match &*record.config.title {
            "" => item,
            title => item.with_attr("name", title),
        });
    }
    if paged {
        // Those that are left out are part of the list: the next page begins behind them.
        let name = |record: Option<&TopicRecord>| record.map(|record| record.name.clone());
        query.push(set(name(records.first()).as_deref(), name(records.last()).as_deref(), None));
    }
    query
}

/// The items that a topic keeps (§5.5).
pub(super) fn items(name: &str, ids: &[Box<str>], service: &str) -> Element {
    let mut query = Element::new("query", ns::DISCO_ITEMS).with_attr("node", name);
    for id in ids {
        query.push(item(service).with_attr("name", &**id));
    }
    query
}

fn item(service: &str) -> Element {
    Element::new("item", ns::DISCO_ITEMS).with_attr("jid", service)
}

fn identity(kind: &str, name: &str) -> Element {
    let identity =
        Element::new("identity", ns::DISCO_INFO).with_attr("category", "pubsub").with_attr("type", kind);
    if name.is_empty() { identity } else { identity.with_attr("name", name) }
}

fn feature(var: &str) -> Element {
    Element::new("feature", ns::DISCO_INFO).with_attr("var", var)
}
