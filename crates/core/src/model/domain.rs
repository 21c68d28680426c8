//! Domains: the tenants. All of them are known to every shard, as one immutable table swapped whole.

use super::{ArchiveBounds, DomainId, Map};
use std::sync::Arc;

/// One tenant: an XMPP host with its own accounts, topics and policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Its number in the store.
    pub id: DomainId,
    /// The XMPP host name, prepared (RFC 7622 §3.2).
    pub name: Arc<str>,
    /// What its accounts may do.
    pub policy: Policy,
    /// What the operator grants the domain: its own administrators choose a policy within this ([`Policy::beyond`]).
    pub granted: Policy,
    /// Bytes that are stored of its accounts and topics, when that was measured last; 0 where its policy has no bound.
    pub stored_bytes: u64,
    /// In which words devices show its pushes, where its administrators have said so: JSON that the HTTP side writes and reads.
    pub push_templates: Option<Arc<str>>,
    /// Whether parts of it were removed, and the rest is being removed.
    pub is_being_removed: bool,
}

impl Domain {
    /// A domain whose policy is what it is granted.
    pub fn new(id: DomainId, name: impl Into<Arc<str>>, policy: Policy) -> Domain {
        Domain {
            id,
            name: name.into(),
            policy,
            granted: policy,
            stored_bytes: 0,
            push_templates: None,
            is_being_removed: false,
        }
    }

    /// Whether as much is stored of it as its policy allows.
    pub fn is_full(&self) -> bool {
        self.policy.stored_bytes_max > 0 && self.stored_bytes >= self.policy.stored_bytes_max
    }
}

/// What a domain allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// What happens when an account logs in a second time.
    pub sessions: SessionPolicy,
    /// In-band registration (XEP-0077).
    pub registration: bool,
    /// Whether accounts change their passwords and remove themselves over XMPP (XEP-0077 §3.2, §3.3).
    pub account_management: bool,
    /// Who may create topics over XMPP.
    pub pubsub_create: PubsubCreate,
    /// Sessions one account may hold under [`SessionPolicy::Multi`], 1 to 1000.
    pub sessions_max: u16,
    /// Whether a chat message is acknowledged to its sender (XEP-0198) when it is stored or the recipient's client has acknowledged it;
    /// otherwise it is when it was routed, so that a crash can lose it.
    pub messages_durable: bool,
    /// How long a session whose connection is lost is parked at most (XEP-0198 §5), 0 to [`Policy::RESUMPTION_MS_MAX`]; 0 where
    /// sessions end with their connections. The node's own bound applies as well.
    pub resumption_ms_max: u32,
    /// Whether chat messages of its accounts are kept in their archives (XEP-0313), as far as their preferences want it.
    pub archive: bool,
    /// Days for which an archive keeps a message; 0 for ever.
    pub archive_days: u32,
    /// Messages that an archive keeps; 0 for any number.
    pub archive_messages_max: u32,
    /// Bytes of messages that an archive keeps; 0 for any number.
    pub archive_bytes_max: u64,
    /// API keys that are bound to the domain, 1 to [`Policy::KEYS_MAX`].
    pub keys_max: u32,
    /// Whether its accounts exchange stanzas with those of other domains that allow it, too.
    pub other_domains: bool,
    /// Requests per second to the HTTP APIs by all keys that are bound to the domain, up to [`Policy::RATE_MAX`]; 0 for any number.
    pub requests_per_second: u32,
    /// Stanzas per second, and other elements that are answered, that the clients of the domain may send together, up to
    /// [`Policy::RATE_MAX`]; 0 for any number.
    pub stanzas_per_second: u32,
    /// Bytes per second that they may send together; 0 for any number.
    pub bytes_per_second: u32,
    /// Who may create rooms over XMPP.
    pub rooms_create: RoomsCreate,
    /// Rooms that one account may own by creating them, up to [`Policy::ROOMS_MAX`]; 0 for any number. The node's own bound applies as well.
    pub rooms_owned_max: u32,
    /// Rooms of either kind that the domain may have, up to [`Policy::ROOMS_MAX`]; 0 for any number.
    pub rooms_max: u32,
    /// Accounts that the domain may have, up to [`Policy::ACCOUNTS_MAX`]; 0 for any number.
    pub accounts_max: u32,
    /// Topics that the domain may have, up to [`Policy::TOPICS_MAX`]; 0 for any number.
    pub topics_max: u32,
    /// Topics that one account may own by creating them, up to [`Policy::TOPICS_MAX`]; 0 for any number. The node's own bound applies as well.
    pub topics_owned_max: u32,
    /// Topics that one account may be subscribed to, also by API keys, up to [`Policy::TOPICS_MAX`]; 0 for any number. The node's own bound
    /// applies as well to what clients subscribe to.
    pub subscriptions_max: u32,
    /// Sessions that all accounts of the domain may hold together on a node, up to [`Policy::SESSIONS_TOTAL_MAX`]; 0 for any number.
    pub sessions_total_max: u32,
    /// Bytes per second that the clients of the domain may be sent together; 0 for any number.
    pub bytes_out_per_second: u32,
    /// Bytes that may be stored of the domain's accounts and topics; 0 for any number. They are measured from time to time.
    pub stored_bytes_max: u64,
    /// What others are told of its rooms.
    pub room_events: RoomEvents,
    /// Days for which archives of rooms keep a message, up to [`Policy::ARCHIVE_DAYS_MAX`]; 0 for as long as other archives do ([`Policy::archive_days`]).
    pub room_archive_days: u32,
}

impl Policy {
    /// The highest [`Policy::resumption_ms_max`]: a day, which is as much as a node allows.
    pub const RESUMPTION_MS_MAX: u32 = 24 * 60 * 60 * 1000;
    /// The highest [`Policy::archive_days`] and [`Policy::room_archive_days`]: a hundred years.
    pub const ARCHIVE_DAYS_MAX: u32 = 36_500;
    /// The highest [`Policy::keys_max`].
    pub const KEYS_MAX: u32 = 10_000;
    /// The highest [`Policy::requests_per_second`] and [`Policy::stanzas_per_second`].
    pub const RATE_MAX: u32 = 1_000_000;
    /// The highest [`Policy::rooms_max`] and [`Policy::rooms_owned_max`].
    pub const ROOMS_MAX: u32 = 1_000_000;
    /// The highest [`Policy::accounts_max`].
    pub const ACCOUNTS_MAX: u32 = 100_000_000;
    /// The highest [`Policy::topics_max`], [`Policy::topics_owned_max`] and [`Policy::subscriptions_max`].
    pub const TOPICS_MAX: u32 = 10_000_000;
    /// The highest [`Policy::sessions_total_max`].
    pub const SESSIONS_TOTAL_MAX: u32 = 100_000_000;

    /// How much the archives of its accounts keep.
    pub fn archive_bounds(&self) -> ArchiveBounds {
        ArchiveBounds {
            days: self.archive_days,
            messages: self.archive_messages_max,
            bytes: self.archive_bytes_max,
        }
    }

    /// Days for which archives of rooms keep a message; 0 for ever.
    pub fn days_of_rooms(&self) -> u32 {
        if self.room_archive_days == 0 { self.archive_days } else { self.room_archive_days }
    }

    /// How much the archive of a room keeps that says so many days itself, 0 for none: the shorter time holds.
    pub fn room_archive_bounds(&self, own_days: u32) -> ArchiveBounds {
        let days = or_any(self.days_of_rooms()).min(or_any(own_days));
        ArchiveBounds { days: if days == u32::MAX { 0 } else { days }, ..self.archive_bounds() }
    }

    /// How many rooms one account may own by creating them; [`u32::MAX`] for any number.
    pub fn rooms_owned(&self) -> u32 {
        or_any(self.rooms_owned_max)
    }

    /// How many rooms the domain may have; [`u32::MAX`] for any number.
    pub fn rooms(&self) -> u32 {
        or_any(self.rooms_max)
    }

    /// How many accounts the domain may have; [`u32::MAX`] for any number.
    pub fn accounts(&self) -> u32 {
        or_any(self.accounts_max)
    }

    /// How many topics the domain may have; [`u32::MAX`] for any number.
    pub fn topics(&self) -> u32 {
        or_any(self.topics_max)
    }

    /// How many topics one account may own by creating them; [`u32::MAX`] for any number.
    pub fn topics_owned(&self) -> u32 {
        or_any(self.topics_owned_max)
    }

    /// How many topics one account may be subscribed to; [`u32::MAX`] for any number.
    pub fn subscriptions(&self) -> u32 {
        or_any(self.subscriptions_max)
    }
}

/// A bound of which 0 is none.
fn or_any(most: u32) -> u32 {
    if most == 0 { u32::MAX } else { most }
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            sessions: SessionPolicy::Multi,
            registration: false,
            account_management: true,
            pubsub_create: PubsubCreate::Any,
            sessions_max: 20,
            messages_durable: true,
            resumption_ms_max: Policy::RESUMPTION_MS_MAX,
            archive: false,
            archive_days: 0,
            archive_messages_max: 0,
            archive_bytes_max: 1 << 30,
            keys_max: 100,
            other_domains: false,
            requests_per_second: 0,
            stanzas_per_second: 0,
            bytes_per_second: 0,
            rooms_create: RoomsCreate::Any,
            rooms_owned_max: 0,
            rooms_max: 0,
            accounts_max: 0,
            topics_max: 0,
            topics_owned_max: 0,
            subscriptions_max: 0,
            sessions_total_max: 0,
            bytes_out_per_second: 0,
            stored_bytes_max: 0,
            room_events: RoomEvents::Off,
            room_archive_days: 0,
        }
    }
}

/// What happens when an account logs in a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionPolicy {
    /// The new session replaces the old one, which is closed with `<conflict/>`: what a console wants.
    Single,
    /// Sessions exist side by side, one per resource: a new session replaces the one with the same resource (RFC 6120
    /// §7.7.2.2).
    Multi,
}

/// Who may create topics over XMPP. Over HTTP a key with scope `topics` always may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PubsubCreate {
    /// Every account of the domain.
    Any,
    /// No account: only API keys.
    Admin,
}

/// Who may create rooms over XMPP. Over HTTP a key with scope `rooms` always may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RoomsCreate {
    /// Every account of the domain.
    Any,
    /// No account: only API keys.
    Admin,
}

/// What event streams and webhooks are told of a domain's rooms: what is told is stored with what it tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RoomEvents {
    /// Nothing.
    Off,
    /// That they are created and destroyed, and what accounts are to them.
    Membership,
    /// That, and what is said in those that have archives.
    All,
}

/// Every domain of the node.
#[derive(Clone, Debug, Default)]
pub struct Domains {
    by_name: Map<Arc<str>, Arc<Domain>>,
    by_number: Map<DomainId, Arc<Domain>>,
}

impl Domains {
    /// A table of these domains.
    pub fn new(domains: impl IntoIterator<Item = Domain>) -> Domains {
        let all: Vec<_> = domains.into_iter().map(Arc::new).collect();
        Domains {
            by_name: all.iter().map(|d| (d.name.clone(), d.clone())).collect(),
            by_number: all.iter().map(|d| (d.id, d.clone())).collect(),
        }
    }

    /// The domain with this name, which must be prepared (RFC 7622 §3.2).
    pub fn named(&self, name: &str) -> Option<&Arc<Domain>> {
        self.by_name.get(name)
    }

    /// The domain with this name, if accounts of the domain that is named first may exchange stanzas with its accounts: it is the same, or
    /// the policies of both say so.
    pub fn reachable(&self, from: &str, name: &str) -> Option<&Arc<Domain>> {
        let domain = self.named(name)?;
        let is_open = |domain: &Domain| domain.policy.other_domains;
        (from == name || is_open(domain) && self.named(from).is_some_and(|from| is_open(from)))
            .then_some(domain)
    }

    /// The domain with this number.
    pub fn numbered(&self, id: DomainId) -> Option<&Arc<Domain>> {
        self.by_number.get(&id)
    }

    /// All domains, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Domain>> {
        self.by_name.values()
    }
}
