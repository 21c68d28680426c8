//! XEP-0060 as elements: requests, replies, and the data forms in both.

mod disco;
mod form;
mod reply;
mod request;
#[cfg(test)]
mod tests;

pub(super) use crate::session::rsm::set;
pub(super) use disco::topics;
pub(super) use reply::{affiliations, reply, subscriptions};
pub(super) use request::{Request, parse};

use crate::model::Map;
use carillon_wire::ns;
use carillon_wire::stanza::Stanza;

/// The items that a device says it has, by topic: `<topics xmlns='urn:carillon:topics:0'/>` in its initial presence.
pub(super) fn had(presence: &Stanza) -> Map<String, String> {
    let Some(topics) = presence.payload.find("topics", ns::TOPICS) else { return Map::default() };
    let topics = topics.element();
    let have = topics.children().filter(|child| child.is("have", ns::TOPICS));
    have.filter_map(|have| Some((have.attr("topic")?.to_owned(), have.attr("item")?.to_owned()))).collect()
}
