//! XEP-0060 as elements: requests, replies, and the data forms in both; for topics, and for the nodes of accounts.

mod disco;
mod form;
mod reply;
mod request;
#[cfg(test)]
mod tests;

pub(crate) use crate::session::rsm::set;
pub(crate) use disco::topics;
pub(crate) use reply::{affiliations, reply, subscriptions};
#[cfg(test)]
pub(crate) use request::ITEMS_BYTES_MAX;
pub(crate) use request::{Request, parse};

use crate::error::StanzaError;
use crate::model::{Map, TopicConfig};
use crate::settings::Limits;
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, Stanza};
use carillon_wire::xml::Element;

/// What a service has: that of a domain's topics, or an account with its own nodes.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// Items per node: what `max` means.
    pub max_items: u32,
    /// How a node behaves of which nothing is said.
    pub default: TopicConfig,
    /// Whether it is an account.
    pub is_personal: bool,
}

impl Terms {
    /// Those of topics.
    pub(crate) fn of_topics(limits: &Limits) -> Terms {
        Terms { max_items: limits.topic_items, default: TopicConfig::default(), is_personal: false }
    }

    /// How a node of this name behaves of which nothing is said.
    pub(crate) fn default_of(&self, node: &str) -> TopicConfig {
        if self.is_personal { TopicConfig::of_node(node) } else { self.default.clone() }
    }

    /// Those of an account's own nodes (XEP-0163 §7.1.3).
    pub(crate) fn of_account(limits: &Limits) -> Terms {
        Terms { max_items: limits.nodes.items, default: TopicConfig::of_node(""), is_personal: true }
    }
}

/// The items that a device says it has, by topic: `<topics xmlns='urn:carillon:topics:0'/>` in its initial presence.
pub(crate) fn had(presence: &Stanza) -> Map<String, String> {
    let Some(topics) = presence.payload.find("topics", ns::TOPICS) else { return Map::default() };
    let topics = topics.element();
    let have = topics.children().filter(|child| child.is("have", ns::TOPICS));
    have.filter_map(|have| Some((have.attr("topic")?.to_owned(), have.attr("item")?.to_owned()))).collect()
}

/// An error with a condition of XEP-0060's own.
pub(crate) fn refusal(condition: Condition, name: &str) -> StanzaError {
    StanzaError::new(condition).with_app(Element::new(name, ns::PUBSUB_ERRORS))
}

/// The error for a feature of XEP-0060 that the service does not have.
pub(crate) fn unsupported(feature: &str) -> StanzaError {
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
