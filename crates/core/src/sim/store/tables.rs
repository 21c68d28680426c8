//! What is on disk.

use crate::model::PrivacyLists;
use crate::model::{
    AccountId, AccountState, Affiliation, ApiKey, ArchiveId, ArchivePreferences, ArchivedMessage, Contact,
    Conversation, Credentials, DeadLetter, Domain, DomainId, EntryKind, Generation, Item, KeyId, Link,
    LinkFile, LinkId, Node, Notification, NotificationId, OfflineMessage, OperationId, Priority, Revision,
    Revocations, RoomFact, RoomId, TopicConfig, TopicId, TopicRecord, Trace, UnixMs, Webhook, WebhookId,
};
use crate::ports::store::leases::Held;
use crate::ports::store::parked::ParkedGroup;
use crate::ports::{Answer, Missing};
use bytes::Bytes;
use carillon_wire::jid::{BareJid, Jid};
use std::any::TypeId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is on disk. Iterates the same for the same history: nothing here is ordered by a hash or an address.
#[derive(Clone, Debug, Default)]
pub struct Committed {
    /// The last number that was given, of anything: so that no number names two things.
    pub(super) numbered: u32,
    pub(super) domains: BTreeMap<DomainId, Domain>,
    pub(super) accounts: BTreeMap<AccountId, Account>,
    pub(super) account_names: BTreeMap<(DomainId, Box<str>), AccountId>,
    /// Accounts and domains that are being removed, and when the last part of each was.
    pub(super) removals: BTreeMap<(DomainId, Option<AccountId>), UnixMs>,
    /// Names that nobody registers in-band, and until when.
    pub(super) held_names: BTreeMap<(DomainId, Box<str>), UnixMs>,
    pub(super) topics: BTreeMap<TopicId, Topic>,
    pub(super) topic_names: BTreeMap<(DomainId, Box<str>), TopicId>,
    pub(super) waiting: BTreeMap<NotificationId, Waiting>,
    pub(super) ended: BTreeMap<NotificationId, (DomainId, Trace)>,
    /// Events, by their numbers.
    pub(super) events: BTreeMap<u64, Told>,
    /// The number of the newest event.
    pub(super) last_event: u64,
    pub(super) keys: BTreeMap<KeyId, Key>,
    /// Operations that were done: what was asked, and the answer.
    pub(super) operations: BTreeMap<OperationId, (TypeId, Answer)>,
    pub(super) reserved: BTreeMap<(KeyId, Box<str>), Reserved>,
    pub(super) webhooks: BTreeMap<WebhookId, Hook>,
    pub(super) leases: BTreeMap<Box<str>, Held>,
    pub(super) parked: BTreeMap<u32, ParkedGroup>,
    pub(super) links: BTreeMap<LinkId, Link>,
    pub(super) link_secrets: BTreeMap<DomainId, [u8; 32]>,
    pub(super) link_files: BTreeMap<(DomainId, LinkFile), Bytes>,
    /// When the newest message of any archive was received.
    pub(super) archived_at: UnixMs,
    /// Those of nouns that keep their own.
    pub(super) own: super::Tables,
}

/// What an event tells.
#[derive(Clone, Debug)]
pub(super) enum Told {
    /// How a notification ended; or where that is true, that its link was followed.
    End(NotificationId, bool),
    /// What happened to a room, of which number.
    Room(RoomId, RoomFact),
}

impl Committed {
    /// Adds an event.
    pub(super) fn tell(&mut self, told: Told) {
        self.last_event += 1;
        self.events.insert(self.last_event, told);
    }
}

/// An account and what belongs to it alone.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub(super) jid: BareJid,
    pub(super) domain: DomainId,
    pub(super) created: UnixMs,
    pub(super) credentials: Credentials,
    pub(super) state: AccountState,
    pub(super) revocations: Revocations,
    pub(super) topics: BTreeSet<TopicId>,
    pub(super) generation: Generation,
    pub(super) messages: BTreeMap<u64, OfflineMessage>,
    /// The generation of its record.
    pub(super) record: Generation,
    /// The one that last changed its roster.
    pub(super) roster_version: Generation,
    pub(super) roster: BTreeMap<BareJid, Contact>,
    /// The generation at which those asked who are not listed.
    pub(super) asked: BTreeMap<BareJid, Generation>,
    pub(super) blocked: BTreeSet<Jid>,
    pub(super) privacy: PrivacyLists,
    /// Its nodes, by their names.
    pub(super) nodes: BTreeMap<Box<str>, HeldNode>,
    /// Its archive: the other side of each message, what it is to its conversation, and the message.
    pub(super) archive: BTreeMap<ArchiveId, (Jid, EntryKind, ArchivedMessage)>,
    /// How its conversations stand, except for what follows from the messages.
    pub(super) conversations: BTreeMap<BareJid, Conversation>,
    pub(super) archive_preferences: ArchivePreferences,
    /// What its clients keep, by namespace and name.
    pub(super) private: BTreeMap<(Box<str>, Box<str>), Bytes>,
    /// What it tells of itself; empty for nothing.
    pub(super) vcard: Bytes,
    /// Its notifications that have not ended, in delivery order.
    pub(super) queue: BTreeMap<Place, NotificationId>,
}

/// A node of an account, with its items by the revision that made them.
#[derive(Clone, Debug)]
pub(super) struct HeldNode {
    pub(super) node: Node,
    pub(super) revision: Revision,
    pub(super) items: BTreeMap<Revision, Arc<Item>>,
}

/// A notification's place in delivery order: by priority, then by the number that the store gave it when it began to wait.
pub(super) type Place = (Reverse<Priority>, u32);

/// A notification that has not ended.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) notification: Arc<Notification>,
    pub(super) account: AccountId,
    pub(super) place: Place,
    /// When it is to be handed out, if it is scheduled.
    pub(super) due: Option<UnixMs>,
    pub(super) stored: Option<UnixMs>,
    pub(super) sent: Option<UnixMs>,
}

/// A topic and what belongs to it.
#[derive(Clone, Debug)]
pub(super) struct Topic {
    pub(super) id: TopicId,
    pub(super) domain: DomainId,
    pub(super) name: Box<str>,
    pub(super) created: UnixMs,
    pub(super) revision: Revision,
    pub(super) config: TopicConfig,
    pub(super) affiliations: BTreeMap<BareJid, Affiliation>,
    /// By the revision that made them: the last is the newest.
    pub(super) items: BTreeMap<Revision, Arc<Item>>,
    pub(super) followers: BTreeSet<AccountId>,
}

/// An API key.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) hash: [u8; 32],
    pub(super) key: ApiKey,
}

/// A request that may be sent again.
#[derive(Clone, Debug)]
pub(super) struct Reserved {
    pub(super) body_hash: [u8; 32],
    pub(super) since: UnixMs,
    pub(super) at: UnixMs,
    pub(super) response: Option<Bytes>,
    /// Digests of its lines, by their numbers.
    pub(super) lines: BTreeMap<u64, u64>,
}

/// A webhook and what belongs to it.
#[derive(Clone, Debug)]
pub(super) struct Hook {
    pub(super) webhook: Webhook,
    /// Who holds it, and until when.
    pub(super) claim: Option<(u64, UnixMs)>,
    /// What its receiver did not take, by the numbers of the events.
    pub(super) letters: BTreeMap<u64, DeadLetter>,
}

impl Committed {
    /// A number that nothing had before.
    pub(super) fn number(&mut self) -> u32 {
        self.numbered += 1;
        self.numbered
    }

    pub(super) fn account_id(&self, domain: DomainId, local: &str) -> Option<AccountId> {
        // The map is asked with a key that it could own.
        self.account_names.get(&(domain, local.into())).copied()
    }

    pub(super) fn account(&self, domain: DomainId, local: &str) -> Option<&Account> {
        self.accounts.get(&self.account_id(domain, local)?)
    }

    pub(super) fn account_mut(&mut self, domain: DomainId, local: &str) -> Option<&mut Account> {
        let id = self.account_id(domain, local)?;
        self.accounts.get_mut(&id)
    }

    /// An account that is not being removed.
    pub(super) fn account_to_change(
        &mut self,
        domain: DomainId,
        local: &str,
    ) -> Result<&mut Account, Missing> {
        let id = self.account_id(domain, local).ok_or(Missing)?;
        match self.removals.contains_key(&(domain, Some(id))) {
            true => Err(Missing),
            false => self.accounts.get_mut(&id).ok_or(Missing),
        }
    }

    /// A domain that is not being removed.
    pub(super) fn domain_to_fill(&self, domain: DomainId) -> Option<&Domain> {
        self.domains.get(&domain).filter(|_| !self.removals.contains_key(&(domain, None)))
    }

    pub(super) fn topic_named(&self, domain: DomainId, name: &str) -> Option<&Topic> {
        self.topics.get(self.topic_names.get(&(domain, name.into()))?)
    }
}

impl Account {
    /// Notes a change of what a login reads of it.
    pub(super) fn advance(&mut self) {
        self.generation.0 += 1;
    }
}

impl Topic {
    /// The revision that a change of it makes.
    pub(super) fn advance(&mut self) -> Revision {
        self.revision.0 += 1;
        self.revision
    }

    pub(super) fn record(&self) -> TopicRecord {
        TopicRecord {
            id: self.id,
            domain: self.domain,
            name: self.name.clone(),
            config: self.config.clone(),
            affiliations: self.affiliations.iter().map(|(jid, a)| (jid.clone(), *a)).collect(),
            created: self.created,
        }
    }

    pub(super) fn last(&self) -> Option<&Arc<Item>> {
        self.items.last_key_value().map(|(_, item)| item)
    }

    /// Removes the oldest items over `keep`.
    pub(super) fn trim(&mut self, keep: u32) {
        while self.items.len() > keep as usize {
            self.items.pop_first();
        }
    }

    /// The item of this id.
    pub(super) fn item(&self, id: &str) -> Option<&Arc<Item>> {
        self.items.values().find(|item| *item.id == *id)
    }
}
