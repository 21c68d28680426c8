//! Topics: named channels, seen over XMPP as the pubsub nodes (XEP-0060) of `pubsub.DOMAIN`.

use super::{DomainId, Revision, TopicId, UnixMs};
use bytes::Bytes;
use carillon_wire::jid::BareJid;
use std::sync::Arc;

/// One published item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The topic it belongs to.
    pub topic: TopicId,
    /// The topic's domain.
    pub domain: DomainId,
    /// The topic's name: an item describes itself, so that it can be delivered without looking its topic up.
    pub name: Arc<str>,
    /// Its id (XEP-0060 `id`), unique in the topic. A device names it to say which version it has.
    pub id: Box<str>,
    /// The account that published it; none when it came by HTTP.
    pub publisher: Option<BareJid>,
    /// When it was accepted.
    pub published: UnixMs,
    /// The payload element as XML in its own namespace (a XEP-0335 container when the provider sent JSON). May be empty.
    pub payload: Bytes,
    /// The topic's revision that its publication made; it orders the items of a topic.
    pub revision: Revision,
}

crate::form! { struct Item { topic, domain, name, id, publisher, published, payload, revision } }

/// A topic as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicRecord {
    /// Its number.
    pub id: TopicId,
    /// Its domain.
    pub domain: DomainId,
    /// Its name, the pubsub `node`: 1 to 1023 bytes of any text.
    pub name: Box<str>,
    /// How it behaves.
    pub config: TopicConfig,
    /// Its affiliations, sorted by JID; accounts that are not listed have [`Affiliation::None`].
    pub affiliations: Vec<(BareJid, Affiliation)>,
    /// When it was created.
    pub created: UnixMs,
}

crate::form! { struct TopicRecord { id, domain, name, config, affiliations, created } }

impl TopicRecord {
    /// The affiliation of `jid` with the topic.
    pub fn affiliation(&self, jid: &BareJid) -> Affiliation {
        self.affiliations
            .binary_search_by(|(j, _)| j.as_str().cmp(jid.as_str()))
            .ok()
            .and_then(|at| self.affiliations.get(at))
            .map_or(Affiliation::None, |(_, affiliation)| *affiliation)
    }
}

/// How a topic behaves. The names are those of XEP-0060's `pubsub#` form fields.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TopicConfig {
    /// A name for people, at most 256 bytes.
    pub title: String,
    /// Who may subscribe and read (`access_model`).
    pub access_model: Access,
    /// Who may publish over XMPP (`publish_model`).
    pub publish_model: PublishModel,
    /// How many items are kept where `persist_items` is on, 1 to 10,000 (`max_items`).
    pub max_items: u32,
    /// Whether items are kept (`persist_items`).
    pub persist_items: bool,
    /// Whether followers are sent items with their payloads (`deliver_payloads`); otherwise they are told that there is one (XEP-0060
    /// §4.3).
    pub deliver_payloads: bool,
    /// When the last item is sent without a request (`send_last_published_item`).
    pub send_last_published_item: SendLast,
    /// Whether subscribers are told that an item was retracted (`notify_retract`).
    pub notify_retract: bool,
    /// Whether subscribers are told that the topic was deleted (`notify_delete`).
    pub notify_delete: bool,
}

crate::form! {
    struct TopicConfig {
        title,
        access_model,
        publish_model,
        max_items,
        persist_items,
        send_last_published_item,
        notify_retract,
        notify_delete,
        deliver_payloads: since(4),
    }
}

impl Default for TopicConfig {
    fn default() -> TopicConfig {
        TopicConfig {
            title: String::new(),
            access_model: Access::Open,
            publish_model: PublishModel::Publishers,
            max_items: 1,
            persist_items: true,
            deliver_payloads: true,
            send_last_published_item: SendLast::OnSubAndPresence,
            notify_retract: true,
            notify_delete: true,
        }
    }
}

/// Where a page of a topic's items begins or ends, in the order of their publication, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemsFrom {
    /// It begins with the newest item.
    Newest,
    /// It begins with the next older item after this one.
    After(Box<str>),
    /// It ends with the next newer item before this one.
    Before(Box<str>),
    /// It ends with the oldest item.
    Oldest,
}

crate::form! { enum ItemsFrom { 0 = Newest, 1 = After(id), 2 = Before(id), 3 = Oldest } }

/// Who may subscribe to a topic and read its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Every account of the domain.
    Open,
    /// Accounts with affiliation member, publisher or owner. Of a node of an account, that account alone.
    Whitelist,
    /// Accounts that are given the owner's presence: of nodes of accounts only.
    #[serde(skip)]
    Presence,
    /// Those of them that the owner has in its roster: of nodes of accounts only.
    #[serde(skip)]
    Roster,
}

crate::form! { enum Access { 0 = Open, 1 = Whitelist, 2 = Presence, 3 = Roster } }

/// Who may publish over XMPP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PublishModel {
    /// Owners and publishers.
    Publishers,
    /// Also every subscriber.
    Subscribers,
    /// Every account of the domain.
    Open,
}

crate::form! { enum PublishModel { 0 = Publishers, 1 = Subscribers, 2 = Open } }

/// When the last item is sent without a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SendLast {
    /// Never.
    Never,
    /// To a new subscriber.
    OnSub,
    /// To a new subscriber, and to each subscriber after each login's initial presence.
    OnSubAndPresence,
}

crate::form! { enum SendLast { 0 = Never, 1 = OnSub, 2 = OnSubAndPresence } }

/// An account's affiliation with a topic (XEP-0060 §4.1).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Affiliation {
    /// May do nothing, not even subscribe.
    Outcast,
    /// No affiliation.
    #[default]
    None,
    /// May subscribe to a whitelist topic.
    Member,
    /// May also publish.
    Publisher,
    /// May do everything.
    Owner,
}

crate::form! { enum Affiliation { 0 = Outcast, 1 = None, 2 = Member, 3 = Publisher, 4 = Owner } }

/// A topic that a connection follows, and where it is in the shard's list of the topic's followers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The topic.
    pub topic: TopicId,
    /// The position in the list.
    pub position: u32,
}

/// A topic that a session follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// The topic.
    pub topic: TopicId,
    /// The session's position in the shard's list of the topic's followers.
    pub position: u32,
    /// The lower half of the revision of the last item that the session was given or is not to be given; 0 if there is none that is known.
    given: u32,
}

// The position is that in a list of this process. Until the session is in a list again, it is one at which nobody is.
crate::form! { struct Followed { topic, position: omitted(u32::MAX), given: since(5) } }

impl Followed {
    /// A topic of which items up to this revision are not for the session.
    pub fn new(topic: TopicId, position: u32, known: Revision) -> Followed {
        Followed { topic, position, given: known.0 as u32 }
    }

    /// Where it is listed.
    pub fn listed(self) -> Listed {
        Listed { topic: self.topic, position: self.position }
    }

    /// The session was given an item of this revision, or is not to be given it.
    pub fn note_given(&mut self, revision: Revision) {
        if self.is_newer(revision) {
            self.given = revision.0 as u32;
        }
    }

    /// Whether the session was not given an item. `since`: when it began.
    pub fn lacks(&self, item: &Item, since: UnixMs) -> bool {
        // Where nothing is known the topic may have had no item: those that came since would have been given.
        let is_known = self.given != 0;
        self.is_newer(item.revision) && (is_known || item.published >= since)
    }

    /// Whether an item of this revision comes after what the session was given. Half of a revision is enough: nobody is so many behind.
    pub fn is_newer(&self, revision: Revision) -> bool {
        self.given == 0 || (revision.0 as u32).wrapping_sub(self.given).cast_signed() > 0
    }
}

/// What followers are sent of an item (XEP-0060 §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// All of it.
    Payload,
    /// Its id: it is kept, and they may read it.
    Id,
    /// That something happened.
    Nothing,
}

impl Item {
    /// What followers of a topic of this configuration are sent of the item.
    pub fn shown(self: &Arc<Item>, config: &TopicConfig) -> Arc<Item> {
        match config.deliver_payloads {
            true => self.clone(),
            false => Arc::new(Item { payload: Bytes::new(), ..Item::clone(self) }),
        }
    }
}

impl TopicConfig {
    /// What followers are sent of an item.
    pub fn shows(&self) -> Shown {
        match (self.deliver_payloads, self.persist_items) {
            (true, _) => Shown::Payload,
            (false, true) => Shown::Id,
            (false, false) => Shown::Nothing,
        }
    }

    /// Whether the last item is given at every login.
    pub fn is_given_at_login(&self) -> bool {
        self.persist_items && self.send_last_published_item == SendLast::OnSubAndPresence
    }
}

/// The domain and name of a topic.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TopicKey {
    /// Its domain.
    pub domain: DomainId,
    /// Its name.
    pub name: Arc<str>,
}

/// The first label of the host at which topics have their addresses, in every domain.
pub const TOPIC_HOST: &str = "pubsub";

/// The address of a topic, from which its home is computed.
pub fn topic_address(name: &str, domain: &str) -> String {
    [name, "@", TOPIC_HOST, ".", domain].concat()
}
