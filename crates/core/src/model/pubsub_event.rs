//! Something that happened on a topic, serialised once for all who are told.

use super::{Domains, Item, Revision, TopicId, TopicRecord, UnixMs};
use bytes::Bytes;
use carillon_wire::jid::BareJid;
use carillon_wire::xml::writer::Writer;
use carillon_wire::{Framing, ns};
use std::ops::Range;
use std::sync::Arc;

/// Something that happened on a topic, serialised once for all who are told: each recipient adds only its own `to`.
#[derive(Debug)]
pub struct PubsubEvent {
    topic: TopicId,
    revision: Revision,
    /// When it was accepted, for the delivery latency.
    accepted: UnixMs,
    retained: Retained,
    kind: Kind,
    /// From ` from='…'` to before ` to='`.
    head: Bytes,
    /// From behind the value of `to` to the end.
    tail: Bytes,
}

/// What an event means for logins to come.
#[derive(Clone, Debug)]
pub enum Retained {
    /// This is what they are given from now on.
    Last(Arc<PubsubEvent>),
    /// There is nothing to give any more.
    Nothing,
    /// What they are given stays what it was.
    Unchanged,
}

/// What an event is about.
#[derive(Debug)]
enum Kind {
    /// An item, as it was published.
    Item(Name),
    /// The last item, as it is given to whoever comes; at every login, or only to new followers.
    Last { name: Name, at_login: bool },
    /// Followers are told that an item was taken back.
    Retracted(Box<str>),
    /// Followers are told that all items were.
    Purged,
    /// Only what later logins are given changes.
    Silent,
    /// The topic is gone; whether its followers are told.
    End { told: bool },
}

/// The names by which a device says which item it has, and where in the event the item's payload is.
#[derive(Debug)]
struct Name {
    topic: Arc<str>,
    item: Box<str>,
    /// In [`PubsubEvent::tail`].
    payload: Range<usize>,
}

/// What an event tells those who follow a topic, for whoever writes it in another way than XMPP does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News<'a> {
    /// An item, as it was published.
    Item {
        /// Its id.
        id: &'a str,
        /// Its payload, as in [`Item::payload`].
        payload: &'a [u8],
    },
    /// The last item, as it is given to whoever comes.
    Last {
        /// Its id.
        id: &'a str,
        /// Its payload, as in [`Item::payload`].
        payload: &'a [u8],
    },
    /// An item was taken back.
    Retracted {
        /// Its id.
        id: &'a str,
    },
    /// All items were.
    Purged,
    /// The topic is gone.
    Deleted,
}

/// What happens on a topic besides new items.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change<'a> {
    /// An item was taken back; whether followers are told.
    Retracted { item: &'a str, told: bool },
    /// Every item was removed.
    Purged,
    /// It is gone.
    Deleted,
    /// What it gives at login changed.
    Silent,
}

impl PubsubEvent {
    /// The last item of a topic, as given at login, with the stamp of its publication (XEP-0203). None when its domain is
    /// gone.
    pub fn last(item: &Arc<Item>, domains: &Domains) -> Option<PubsubEvent> {
        domains.numbered(item.domain).map(|domain| PubsubEvent::last_item(item, &domain.name, true))
    }

    /// The last item of a topic of `domain`. `at_login`: whether it is for every login, and not only for new followers.
    pub(crate) fn last_item(item: &Item, domain: &str, at_login: bool) -> PubsubEvent {
        PubsubEvent::of_item(item, domain, Retained::Unchanged, Some(item.published), |name| Kind::Last {
            name,
            at_login,
        })
    }

    /// An item that was published just now.
    pub(crate) fn published(item: &Item, domain: &str, retained: Retained) -> PubsubEvent {
        PubsubEvent::of_item(item, domain, retained, None, Kind::Item)
    }

    /// A change of a topic. `known` is the highest revision of any item that it concerns, `id` names the message.
    pub(crate) fn changed(
        record: &TopicRecord,
        domain: &str,
        event: Change<'_>,
        known: Revision,
        retained: Retained,
        (id, now): (&str, UnixMs),
    ) -> PubsubEvent {
        let kind = match event {
            Change::Retracted { told: true, item } => Kind::Retracted(item.into()),
            Change::Purged => Kind::Purged,
            Change::Retracted { told: false, .. } | Change::Silent => Kind::Silent,
            Change::Deleted => Kind::End { told: record.config.notify_delete },
        };
        let node = &record.name;
        let tail = tail(None, |writer| match event {
            Change::Retracted { item, .. } => {
                writer.start("items").attr("node", node).close_start();
                writer.start("retract").attr("id", item).close_empty().end("items");
            }
            Change::Purged => drop(writer.start("purge").attr("node", node).close_empty()),
            Change::Deleted => drop(writer.start("delete").attr("node", node).close_empty()),
            Change::Silent => {}
        });
        let head = head(domain, id);
        PubsubEvent { topic: record.id, revision: known, accepted: now, retained, kind, head, tail }
    }

    fn of_item(
        item: &Item,
        domain: &str,
        retained: Retained,
        delayed_since: Option<UnixMs>,
        kind: impl FnOnce(Name) -> Kind,
    ) -> PubsubEvent {
        let mut payload = 0..0;
        let tail = tail(delayed_since.map(|at| (domain, at)), |writer| {
            writer.start("items").attr("node", &item.name).close_start();
            payload = write_item(writer, item);
            writer.end("items");
        });
        let kind = kind(Name { topic: item.name.clone(), item: item.id.clone(), payload });
        let head = head(domain, &format!("{}-{}", item.topic, item.revision));
        let (topic, revision, accepted) = (item.topic, item.revision, item.published);
        PubsubEvent { topic, revision, accepted, retained, kind, head, tail }
    }

    /// The topic.
    pub fn topic(&self) -> TopicId {
        self.topic
    }

    /// The revision that made it.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// When it was accepted.
    pub fn accepted(&self) -> UnixMs {
        self.accepted
    }

    /// What it means for logins to come.
    pub fn retained(&self) -> &Retained {
        &self.retained
    }

    /// Whether the topic's followers are told.
    pub fn is_told(&self) -> bool {
        !matches!(self.kind, Kind::Silent | Kind::End { told: false })
    }

    /// Whether it is an item, and not another change.
    pub fn is_item(&self) -> bool {
        matches!(self.kind, Kind::Item(_) | Kind::Last { .. })
    }

    /// Whether the topic is gone: nobody follows it any more.
    pub fn is_end(&self) -> bool {
        matches!(self.kind, Kind::End { .. })
    }

    /// Whether it is given at every login.
    pub fn is_for_logins(&self) -> bool {
        matches!(self.kind, Kind::Last { at_login: true, .. })
    }

    /// The name of the topic and the id of the item, when it is one.
    pub fn names(&self) -> Option<(&str, &str)> {
        match &self.kind {
            Kind::Item(name) | Kind::Last { name, .. } => Some((&name.topic, &name.item)),
            Kind::Retracted(_) | Kind::Purged | Kind::Silent | Kind::End { .. } => None,
        }
    }

    /// The memory of its text, and of what it leaves to later logins.
    pub fn bytes(&self) -> usize {
        let left = match &self.retained {
            Retained::Last(last) => last.bytes(),
            Retained::Nothing | Retained::Unchanged => 0,
        };
        size_of::<PubsubEvent>() + self.head.len() + self.tail.len() + left
    }

    /// What followers are told, if they are told anything.
    pub fn news(&self) -> Option<News<'_>> {
        let payload = |name: &Name| &self.tail[name.payload.clone()];
        match &self.kind {
            Kind::Item(name) => Some(News::Item { id: &name.item, payload: payload(name) }),
            Kind::Last { name, .. } => Some(News::Last { id: &name.item, payload: payload(name) }),
            Kind::Retracted(item) => Some(News::Retracted { id: item }),
            Kind::Purged => Some(News::Purged),
            Kind::End { told: true } => Some(News::Deleted),
            Kind::End { told: false } | Kind::Silent => None,
        }
    }

    /// Appends the message for one recipient.
    pub fn write(&self, out: &mut Vec<u8>, to: &str, framing: Framing) {
        let mut writer = Writer::new(out);
        match framing {
            Framing::Tcp => writer.start("message"),
            Framing::WebSocket => writer.start_in("message", ns::CLIENT),
        };
        writer.raw(&self.head).attr("to", to).raw(&self.tail);
    }
}

/// Appends `<item/>` (XEP-0060 §7.1.2.1), in whatever namespace is the default where it stands. Where in the buffer its payload is.
pub fn write_item(writer: &mut Writer<'_>, item: &Item) -> Range<usize> {
    writer.start("item").attr("id", &item.id);
    writer.attr_opt("publisher", item.publisher.as_ref().map(BareJid::as_str));
    if item.payload.is_empty() {
        writer.close_empty();
        return 0..0;
    }
    let start = writer.close_start().position();
    let payload = start..writer.raw(&item.payload).position();
    writer.end("item");
    payload
}

fn head(domain: &str, id: &str) -> Bytes {
    let mut out = Vec::with_capacity(96);
    let mut writer = Writer::new(&mut out);
    writer.attr("from", &format!("pubsub.{domain}")).attr("type", "headline").attr("id", id);
    out.into()
}

/// `inside` writes what is in `<event/>`; `stamp` tells whose delay it was, and since when.
fn tail(stamp: Option<(&str, UnixMs)>, inside: impl FnOnce(&mut Writer<'_>)) -> Bytes {
    let mut out = Vec::with_capacity(512);
    let mut writer = Writer::new(&mut out);
    writer.close_start().start_in("event", ns::PUBSUB_EVENT).close_start();
    inside(&mut writer);
    writer.end("event");
    if let Some((domain, at)) = stamp {
        // XEP-0060 §6.1.7, XEP-0203 §4
        let from = format!("pubsub.{domain}");
        writer.start_in("delay", ns::DELAY).attr("from", &from).attr("stamp", &at.to_xmpp()).close_empty();
    }
    writer.end("message");
    out.into()
}
