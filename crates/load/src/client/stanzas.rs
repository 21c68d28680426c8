//! Constructors of stanzas that a client often sends, and queries on those that it receives.

use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::{IqType, Kind, MessageType, Stanza, StanzaError};
use carillon_wire::xml::Element;

/// A chat message with a body.
pub fn message(to: impl Into<Jid>, body: &str) -> Stanza {
    let body = Element::new("body", ns::CLIENT).with_text(body);
    Stanza::message(MessageType::Chat).with_to(to).with_payload(body)
}

/// A ping (XEP-0199); to the server itself if `to` is none.
pub fn ping(to: Option<Jid>) -> Stanza {
    let mut iq = Stanza::iq(IqType::Get).with_payload(Element::new("ping", ns::PING));
    iq.to = to;
    iq
}

/// A request for what an entity is (XEP-0030 §3).
pub fn disco_info(to: impl Into<Jid>) -> Stanza {
    Stanza::iq(IqType::Get).with_to(to).with_payload(Element::new("query", ns::DISCO_INFO))
}

/// Asks for the account's roster (RFC 6121 §2.1.3).
pub fn roster() -> Stanza {
    Stanza::iq(IqType::Get).with_payload(Element::new("query", ns::ROSTER))
}

/// A contact on a roster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RosterItem {
    /// Its address.
    pub jid: Jid,
    /// Whether the account is subscribed to the contact's presence.
    pub to: bool,
    /// Whether the contact is subscribed to the account's presence.
    pub from: bool,
}

impl RosterItem {
    /// Whether both are subscribed to each other.
    pub fn is_mutual(&self) -> bool {
        self.to && self.from
    }
}

/// The contacts that an answer to [`roster`] names.
pub fn roster_items(answer: &Stanza) -> Vec<RosterItem> {
    let Some(query) = answer.payload.find("query", ns::ROSTER) else { return Vec::new() };
    let query = query.element();
    let item = |item: &Element| {
        let subscription = item.attr("subscription").unwrap_or("none");
        let is = |word: &str| subscription == word || subscription == "both";
        Some(RosterItem { jid: Jid::new(item.attr("jid")?).ok()?, to: is("to"), from: is("from") })
    };
    query.children().filter(|child| child.is("item", ns::ROSTER)).filter_map(item).collect()
}

/// Asks for a page of the account's archive (XEP-0313): the newest messages, or those before the one with this id.
pub fn archive_page(max: u32, before: Option<&str>) -> Stanza {
    let before = Element::new("before", ns::RSM).with_text(before.unwrap_or_default());
    let max = Element::new("max", ns::RSM).with_text(max.to_string());
    let set = Element::new("set", ns::RSM).with_child(max).with_child(before);
    Stanza::iq(IqType::Set).with_payload(Element::new("query", ns::MAM).with_child(set))
}

/// The id in the archive of a message on such a page.
pub fn archived_id(message: &Stanza) -> Option<String> {
    let result = message.payload.find("result", ns::MAM)?;
    result.element().attr("id").map(str::to_owned)
}

/// What the answer to [`archive_page`] says: the first id on the page, and whether there is nothing before it.
pub fn archive_page_end(answer: &Stanza) -> Option<(Option<String>, bool)> {
    let fin = answer.payload.find("fin", ns::MAM)?.element();
    let first = fin.child("set", ns::RSM).and_then(|set| set.child("first", ns::RSM)).map(Element::text);
    Some((first, fin.attr("complete") == Some("true")))
}

/// Subscribes `subscriber` to a node (XEP-0060 §6.1).
pub fn subscribe(service: impl Into<Jid>, node: &str, subscriber: &Jid) -> Stanza {
    let subscribe = Element::new("subscribe", ns::PUBSUB)
        .with_attr("node", node)
        .with_attr("jid", subscriber.bare().as_str());
    pubsub(IqType::Set, service, subscribe)
}

/// Ends a subscription (XEP-0060 §6.2).
pub fn unsubscribe(service: impl Into<Jid>, node: &str, subscriber: &Jid) -> Stanza {
    let unsubscribe = Element::new("unsubscribe", ns::PUBSUB)
        .with_attr("node", node)
        .with_attr("jid", subscriber.bare().as_str());
    pubsub(IqType::Set, service, unsubscribe)
}

/// Asks which nodes of a service the account is subscribed to (XEP-0060 §5.6).
pub fn subscriptions(service: impl Into<Jid>) -> Stanza {
    pubsub(IqType::Get, service, Element::new("subscriptions", ns::PUBSUB))
}

/// The nodes that an answer to [`subscriptions`] names.
pub fn subscribed_nodes(answer: &Stanza) -> Vec<String> {
    let Some(pubsub) = answer.payload.find("pubsub", ns::PUBSUB) else { return Vec::new() };
    let pubsub = pubsub.element();
    let nodes = pubsub.child("subscriptions", ns::PUBSUB).into_iter().flat_map(Element::children);
    let nodes = nodes.filter(|child| child.is("subscription", ns::PUBSUB));
    nodes.filter_map(|child| child.attr("node").map(str::to_owned)).collect()
}

/// Publishes an item (XEP-0060 §7.1); the service names it if `id` is none.
pub fn publish(service: impl Into<Jid>, node: &str, id: Option<&str>, payload: Element) -> Stanza {
    let mut item = Element::new("item", ns::PUBSUB);
    if let Some(id) = id {
        item.set_attr("id", id);
    }
    let publish =
        Element::new("publish", ns::PUBSUB).with_attr("node", node).with_child(item.with_child(payload));
    pubsub(IqType::Set, service, publish)
}

/// Asks for a node's last items (XEP-0060 §6.5); for all it has if `max` is none.
pub fn items(service: impl Into<Jid>, node: &str, max: Option<u32>) -> Stanza {
    let mut items = Element::new("items", ns::PUBSUB).with_attr("node", node);
    if let Some(max) = max {
        items.set_attr("max_items", max.to_string());
    }
    pubsub(IqType::Get, service, items)
}

/// Creates a node with the service's default configuration (XEP-0060 §8.1).
pub fn create(service: impl Into<Jid>, node: &str) -> Stanza {
    pubsub(IqType::Set, service, Element::new("create", ns::PUBSUB).with_attr("node", node))
}

/// A container of JSON text (XEP-0335).
pub fn json(text: &str) -> Element {
    Element::new("json", ns::JSON).with_text(text)
}

/// Whether a stanza is the result or error of the IQ request with this id.
pub fn is_response(stanza: &Stanza, id: &str) -> bool {
    matches!(stanza.kind, Kind::Iq(IqType::Result | IqType::Error)) && stanza.id.as_deref() == Some(id)
}

/// The error a stanza of type `error` carries.
pub fn error(stanza: &Stanza) -> Option<StanzaError> {
    let error = stanza.payload.find("error", ns::CLIENT).filter(|_| stanza.kind.is_error())?;
    StanzaError::parse(&error.element())
}

/// A refusal in words: its condition, and the server's text if there is one.
pub fn refusal(error: &StanzaError) -> String {
    let text = error.text.as_deref().map(|text| format!(" ({text})")).unwrap_or_default();
    format!("{}{text}", error.condition)
}

/// The text of a message's `<body/>`.
pub fn body(stanza: &Stanza) -> Option<String> {
    Some(stanza.payload.find("body", ns::CLIENT)?.element().text())
}

/// The node and the items a pubsub event brings (XEP-0060 §7.1.2).
pub fn event_items(stanza: &Stanza) -> Option<(String, Vec<Element>)> {
    let event = stanza.payload.find("event", ns::PUBSUB_EVENT)?.element();
    let items = event.child("items", ns::PUBSUB_EVENT)?;
    let node = items.attr("node")?.to_owned();
    let items = items.children().filter(|child| child.is("item", ns::PUBSUB_EVENT));
    Some((node, items.cloned().collect()))
}

fn pubsub(kind: IqType, service: impl Into<Jid>, action: Element) -> Stanza {
    Stanza::iq(kind).with_to(service).with_payload(Element::new("pubsub", ns::PUBSUB).with_child(action))
}
