//! `<query xmlns='jabber:iq:roster'/>` (RFC 6121 §2.1).

use crate::error::StanzaError;
use crate::feature_state::roster::Contacts;
use crate::model::{Contact, Generation, Set as HashSet, SubscriptionAction};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, PresenceType};
use carillon_wire::xml::Element;

/// What a client wants changed.
pub(super) enum Set {
    Put { contact: BareJid, name: Box<str>, groups: Vec<Box<str>> },
    Remove(BareJid),
}

/// Bytes of a name, or of a group.
const TEXT_BYTES_MAX: usize = 1023;

/// Groups that a contact is in.
const GROUPS_MAX: usize = 64;

/// A roster as the client asked for it.
pub(super) fn roster(contacts: &Contacts) -> Element {
    let listed = contacts.iter().filter(|entry| entry.is_listed).filter_map(|entry| entry.contact());
    let query = query(contacts.version());
    listed.fold(query, |query, contact| query.with_child(item(&contact)))
}

/// A change of it.
pub(super) fn push(contact: &BareJid, is: Option<&Contact>, version: Generation) -> Element {
    let item = match is {
        Some(contact) => item(contact),
        None => Element::new("item", ns::ROSTER)
            .with_attr("jid", contact.as_str())
            .with_attr("subscription", "remove"),
    };
    query(version).with_child(item)
}

fn query(version: Generation) -> Element {
    Element::new("query", ns::ROSTER).with_attr("ver", version.to_string())
}

fn item(contact: &Contact) -> Element {
    let standing = contact.standing;
    let subscription = match (standing.to, standing.from) {
        (false, false) => "none",
        (true, false) => "to",
        (false, true) => "from",
        (true, true) => "both",
    };
    let mut item = Element::new("item", ns::ROSTER).with_attr("jid", contact.jid.as_str());
    if !contact.name.is_empty() {
        item.set_attr("name", &*contact.name);
    }
    item.set_attr("subscription", subscription);
    if standing.pending_out {
        item.set_attr("ask", "subscribe");
    }
    if standing.approved {
        item.set_attr("approved", "true");
    }
    let groups = contact.groups.iter().map(|group| Element::new("group", ns::ROSTER).with_text(&**group));
    groups.fold(item, Element::with_child)
}

/// Reads a roster set (RFC 6121 §2.3, §2.5).
pub(super) fn set(query: &Element) -> Result<Set, StanzaError> {
    let bad = |text| StanzaError::new(Condition::BadRequest).with_text(text);
    let mut items = query.children();
    let (Some(item), None) = (items.next(), items.next()) else {
        return Err(bad("a roster set has one item"));
    };
    if !item.is("item", ns::ROSTER) {
        return Err(bad("a roster set has one item"));
    }
    let jid = item.attr("jid").ok_or_else(|| bad("an item without 'jid'"))?;
    let jid = Jid::new(jid).map_err(|_| StanzaError::new(Condition::JidMalformed))?;
    if item.attr("subscription") == Some("remove") {
        return Ok(Set::Remove(jid.bare()));
    }
    let unacceptable = |text| StanzaError::new(Condition::NotAcceptable).with_text(text);
    let name = item.attr("name").unwrap_or_default();
    if name.len() > TEXT_BYTES_MAX {
        return Err(unacceptable("a name has at most 1023 bytes"));
    }
    let mut groups: Vec<Box<str>> = Vec::new();
    let mut named: HashSet<Box<str>> = HashSet::default();
    for group in item.children().filter(|child| child.is("group", ns::ROSTER)) {
        if groups.len() == GROUPS_MAX {
            return Err(unacceptable("a contact is in at most 64 groups"));
        }
        let group: Box<str> = group.text().into();
        if group.is_empty() || group.len() > TEXT_BYTES_MAX {
            return Err(unacceptable("the name of a group has 1 to 1023 bytes"));
        }
        if !named.insert(group.clone()) {
            return Err(bad("a group is named twice"));
        }
        groups.push(group);
    }
    Ok(Set::Put { contact: jid.bare(), name: name.into(), groups })
}

/// What a presence says about subscriptions, if anything.
pub(super) fn action(kind: PresenceType) -> Option<SubscriptionAction> {
    match kind {
        PresenceType::Subscribe => Some(SubscriptionAction::Subscribe),
        PresenceType::Subscribed => Some(SubscriptionAction::Subscribed),
        PresenceType::Unsubscribe => Some(SubscriptionAction::Unsubscribe),
        PresenceType::Unsubscribed => Some(SubscriptionAction::Unsubscribed),
        PresenceType::Available | PresenceType::Unavailable | PresenceType::Probe | PresenceType::Error => {
            None
        }
    }
}
