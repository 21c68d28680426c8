//! Something that happened on a topic, serialised once for all recipients.

use super::pubsub_xml::{head, tail, write_items};
use super::{Domains, Item, Revision, Shown, TopicId, TopicRecord, UnixMs};
use bytes::Bytes;
use carillon_wire::stanza::{self, Context, Unit};
use carillon_wire::xml::Limits;
use carillon_wire::xml::writer::Writer;
use carillon_wire::{Framing, ns};
use std::ops::Range;
use std::sync::Arc;

/// Something that happened on a topic, serialised once for all recipients: only `to` is added for each.
#[derive(Debug)]
pub struct PubsubEvent {
    topic: TopicId,
    revision: Revision,
    /// When it was accepted, for the delivery latency.
    accepted: UnixMs,
    retained: Retained,
    kind: Kind,
    /// The message from its attribute `from` up to where `to` is added.
    head: Bytes,
    /// The message from behind `to` to its end.
    tail: Bytes,
}

crate::form! {
    struct PubsubEvent { topic, revision, accepted, retained, kind, head, tail }
        if PubsubEvent::is_sound, "the event of a topic is no message"
}

/// What an event changes for later logins.
#[derive(Clone, Debug)]
pub enum Retained {
    /// They are given this item from now on.
    Last(Arc<PubsubEvent>),
    /// They are given nothing any more.
    Nothing,
    /// Nothing changes for them.
    Unchanged,
}

crate::form! { enum Retained { 0 = Last(event), 1 = Nothing, 2 = Unchanged } }

/// What an event is about.
#[derive(Debug)]
enum Kind {
    /// An item, as it was published.
    Item(Name),
    /// The last item, as it is given at every login (`at_login`), or only to new followers.
    Last { name: Name, at_login: bool },
    /// An item was retracted, and followers are told.
    Retracted(Box<str>),
    /// All items were removed, and followers are told.
    Purged,
    /// Followers are told nothing: it changes only what later logins are given.
    Silent,
    /// The topic was deleted. `told`: whether its followers are told.
    End { told: bool },
}

crate::form! {
    enum Kind {
        0 = Item(name),
        1 = Last { name, at_login },
        2 = Retracted(item),
        3 = Purged,
        4 = Silent,
        5 = End { told },
    }
}

/// The names by which a device says which item it has, and where in the event the item's payload is.
#[derive(Debug)]
struct Name {
    topic: Arc<str>,
    item: Box<str>,
    /// In [`PubsubEvent::tail`].
    payload: Range<usize>,
}

crate::form! { struct Name { topic, item, payload } }

/// What an event tells followers, for a protocol other than XMPP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News<'a> {
    /// An item, as it was published.
    Item {
        /// Its id.
        id: &'a str,
        /// Its payload, as in [`Item::payload`].
        payload: &'a [u8],
    },
    /// The last item, as it is given to a new follower.
    Last {
        /// Its id.
        id: &'a str,
        /// Its payload, as in [`Item::payload`].
        payload: &'a [u8],
    },
    /// An item was retracted.
    Retracted {
        /// Its id.
        id: &'a str,
    },
    /// All items were removed.
    Purged,
    /// The topic was deleted.
    Deleted,
}

/// What happens on a topic besides new items.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change<'a> {
    /// An item was retracted. `told`: whether followers are told.
    Retracted { item: &'a str, told: bool },
    /// Every item was removed.
    Purged,
    /// The topic was deleted.
    Deleted,
    /// What the topic gives at login changed.
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
        let (shown, stamp) = (Shown::Payload, Some(item.published));
        PubsubEvent::of_item(item, domain, Retained::Unchanged, (shown, stamp), |name| Kind::Last {
            name,
            at_login,
        })
    }

    /// An item that was published just now.
    pub(crate) fn published(item: &Item, domain: &str, retained: Retained) -> PubsubEvent {
        PubsubEvent::of_item(item, domain, retained, (Shown::Payload, None), Kind::Item)
    }

    /// Something was published of which followers are told that, and no more.
    pub(crate) fn notified(item: &Item, domain: &str) -> PubsubEvent {
        PubsubEvent::of_item(item, domain, Retained::Unchanged, (Shown::Nothing, None), Kind::Item)
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
        (shown, delayed_since): (Shown, Option<UnixMs>),
        kind: impl FnOnce(Name) -> Kind,
    ) -> PubsubEvent {
        let mut payload = 0..0;
        let tail = tail(delayed_since.map(|at| (domain, at)), |writer| {
            payload = write_items(writer, item, shown);
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

    /// What it changes for later logins.
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

    /// Whether it is a change for which the topic was given a revision, as it is for each item, and that is told with no item.
    pub(crate) fn makes_revision(&self) -> bool {
        match self.kind {
            Kind::Retracted(_) => true,
            // Where there was no item nothing changed.
            Kind::Purged => self.revision > Revision(0),
            Kind::Item(_) | Kind::Last { .. } | Kind::Silent | Kind::End { .. } => false,
        }
    }

    /// Whether the topic was deleted.
    pub fn is_end(&self) -> bool {
        matches!(self.kind, Kind::End { .. })
    }

    /// Whether it is a last item that is given at every login.
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

    /// Bytes that it takes in memory, with what it leaves for later logins.
    pub fn bytes(&self) -> usize {
        let left = match &self.retained {
            Retained::Last(last) => last.bytes(),
            Retained::Nothing | Retained::Unchanged => 0,
        };
        size_of::<PubsubEvent>() + self.head.len() + self.tail.len() + left
    }

    /// What followers are told; none when they are told nothing.
    #[expect(clippy::indexing_slicing, reason = "the range was noted when the tail was written")]
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

    /// Whether clients can be sent it, as is true of every event that was made here: one that was read may be anything.
    fn is_sound(&self) -> bool {
        let payload = match &self.kind {
            Kind::Item(name) | Kind::Last { name, .. } => name.payload.clone(),
            Kind::Retracted(_) | Kind::Purged | Kind::Silent | Kind::End { .. } => 0..0,
        };
        let mut message = Vec::new();
        self.write(&mut message, "a", Framing::Tcp);
        let read = stanza::read(&message, &Context::new(Framing::Tcp, Limits::trusted()));
        self.tail.get(payload).is_some()
            && matches!(read, Ok(Unit::Stanza(stanza)) if stanza.name() == "message")
    }
}
