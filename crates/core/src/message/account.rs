//! What the home of an account is told, by the account's own sessions and by the homes of others.

use crate::model::{
    Access, BlockListChange, Generation, NodeChange, NodeEvent, PrivacyChange, RosterChange, SessionId,
    Settlement, StanzaKind,
};
use carillon_wire::jid::Jid;
use carillon_wire::stanza::Stanza;
use std::sync::Arc;

/// What the home of an account is told. Messages are dealt with in the order in which they come, each with the account's record at hand.
#[derive(Clone, Debug)]
pub enum AccountMessage {
    /// A request of the account itself that is decided by the record.
    Request {
        /// Who is answered.
        requester: Requester,
        /// The request: an IQ, or a presence that says something about a subscription.
        stanza: Box<Stanza>,
    },
    /// A message that somebody outside sends in the account's name.
    Sent {
        /// Who is told what becomes of it ([`SendAs`](crate::shard::SendAs)).
        number: u32,
        /// The message.
        stanza: Box<Stanza>,
    },
    /// A session of the account says how available it is, to whom it concerns.
    Announced {
        /// Its presence.
        presence: Arc<Stanza>,
        /// What that is to the others.
        step: Announcement,
        /// The privacy list that the session has chosen.
        list: Option<Box<str>>,
    },
    /// The presence of somebody else, for the account's available sessions.
    Presence(Arc<Stanza>),
    /// The session with this address wants to know the account's presence.
    Probe(Jid),
    /// The client with this address asks for the account's presence, or for that of one of its sessions.
    Asks {
        /// Who asks.
        from: Jid,
        /// Whom.
        of: Jid,
    },
    /// The account's roster has changed, in the store.
    RosterChanged {
        /// The change.
        change: Arc<RosterChange>,
        /// What made it.
        cause: RosterCause,
    },
    /// The account's block list has changed, in the store.
    BlockListChanged(Arc<BlockListChange>),
    /// The account's privacy lists have changed, in the store.
    PrivacyChanged(Arc<PrivacyChange>),
    /// The account's nodes have changed, in the store.
    NodesChanged(Arc<NodeChange>),
    /// Something happened on one of the account's nodes, which these may read: those are told who want to know.
    Published {
        /// What happened.
        event: Arc<NodeEvent>,
        /// Who may read the node.
        access: Access,
        /// The generation of the record with it.
        at: Generation,
    },
    /// Something happened on a node of another account.
    Event(Arc<NodeEvent>),
    /// A session wants to know of nodes ([`WantsHook`](crate::session::hook::WantsHook)): it is given their last items.
    Wants(SessionId),
    /// Another account asks something of this one, by an IQ to its bare JID.
    Asked(Box<Stanza>),
    /// A stanza to the account, or to one of its sessions.
    Stanza {
        /// The stanza.
        stanza: Box<Stanza>,
        /// Who waits until it is settled.
        settlement: Option<Settlement>,
    },
    /// The account's record may have changed in the store, or not.
    Reload,
}

crate::form! {
    enum AccountMessage {
        0 = Request { requester, stanza },
        1 = Sent { number, stanza },
        2 = Announced { presence, step, list: since(5) },
        3 = Presence(stanza),
        4 = Probe(session),
        5 = Asks { from, of },
        6 = RosterChanged { change, cause },
        7 = BlockListChanged(change),
        8 = NodesChanged(change),
        9 = Published { event, access, at },
        10 = Event(event),
        11 = Wants(session),
        12 = Asked(stanza),
        13 = Stanza { stanza, settlement },
        14 = Reload,
        15 = PrivacyChanged(change),
    }
}

/// Who makes a request of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requester {
    /// One of its sessions.
    Session(SessionId),
    /// Somebody outside, by a command ([`SendAs`](crate::shard::SendAs)).
    Command(u32),
}

crate::form! { enum Requester { 0 = Session(session), 1 = Command(number) } }

/// What changes a roster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RosterCause {
    /// The account itself.
    Own,
    /// The contact.
    Contact,
    /// The contact's account was removed.
    Removal,
}

crate::form! { enum RosterCause { 0 = Own, 1 = Contact, 2 = Removal } }

/// How a session's presence follows the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// It becomes available.
    Initial,
    /// It stays available.
    Update,
    /// It is not available any more.
    Gone,
}

crate::form! { enum Announcement { 0 = Initial, 1 = Update, 2 = Gone } }

impl AccountMessage {
    /// Whether it is of no interest to an account that has no session.
    pub fn is_for_sessions(&self) -> bool {
        match self {
            AccountMessage::Presence(_)
            | AccountMessage::Probe(_)
            | AccountMessage::RosterChanged { .. }
            | AccountMessage::BlockListChanged(_)
            | AccountMessage::PrivacyChanged(_)
            | AccountMessage::NodesChanged(_)
            | AccountMessage::Event(_)
            | AccountMessage::Wants(_)
            | AccountMessage::Reload => true,
            AccountMessage::Request { .. }
            | AccountMessage::Sent { .. }
            | AccountMessage::Announced { .. }
            | AccountMessage::Asks { .. }
            | AccountMessage::Published { .. }
            | AccountMessage::Asked(_)
            | AccountMessage::Stanza { .. } => false,
        }
    }

    /// Whether it tells that the record changed, or may have.
    pub fn is_of_record(&self) -> bool {
        self.generations().is_some_and(|(before, after)| before != after)
            || matches!(self, AccountMessage::Reload)
    }

    /// Whether nobody waits for an answer to it.
    pub fn can_wait(&self) -> bool {
        !matches!(
            self,
            AccountMessage::Request { .. }
                | AccountMessage::Sent { .. }
                | AccountMessage::Asked(_)
                | AccountMessage::Stanza { .. }
        )
    }

    /// The generations of the record before and after what it tells of, if it has a place among the changes.
    pub fn generations(&self) -> Option<(Generation, Generation)> {
        match self {
            AccountMessage::RosterChanged { change, .. } => Some((change.before, change.after)),
            AccountMessage::BlockListChanged(change) => Some((change.before, change.after)),
            AccountMessage::PrivacyChanged(change) => Some((change.before, change.after)),
            AccountMessage::NodesChanged(change) => Some((change.before, change.after)),
            AccountMessage::Published { at, .. } => Some((*at, *at)),
            _ => None,
        }
    }

    /// Who sends it, if it passes only from somebody whom the account hears.
    pub fn sender(&self) -> Option<&Jid> {
        match self {
            AccountMessage::Presence(stanza) => stanza.from.as_ref(),
            AccountMessage::Stanza { stanza, .. } => stanza.from.as_ref(),
            AccountMessage::Probe(from) | AccountMessage::Asks { from, .. } => Some(from),
            AccountMessage::Event(event) => Some(&event.owner),
            _ => None,
        }
    }

    /// What it is to the rules of an account, if it has a sender.
    pub fn kind(&self) -> StanzaKind {
        match self {
            AccountMessage::Presence(_) => StanzaKind::PresenceIn,
            AccountMessage::Event(_) => StanzaKind::Message,
            AccountMessage::Stanza { stanza, .. } => StanzaKind::received(stanza),
            _ => StanzaKind::Other,
        }
    }

    /// Whoever it is decided by what the record says of them, and of nobody else.
    pub fn asker(&self) -> Option<&Jid> {
        match self {
            AccountMessage::Stanza { stanza, .. } | AccountMessage::Asked(stanza) => stanza.from.as_ref(),
            _ => None,
        }
    }

    /// Bytes that it takes in memory, as far as somebody chose them.
    pub fn memory_bytes(&self) -> usize {
        match self {
            AccountMessage::Request { stanza, .. }
            | AccountMessage::Sent { stanza, .. }
            | AccountMessage::Asked(stanza)
            | AccountMessage::Stanza { stanza, .. } => stanza.memory_bytes(),
            AccountMessage::BlockListChanged(change) => {
                change.blocked.iter().chain(&change.unblocked).map(|jid| jid.as_str().len()).sum()
            }
            AccountMessage::Announced { presence, .. } | AccountMessage::Presence(presence) => {
                presence.memory_bytes()
            }
            AccountMessage::Probe(from) => from.as_str().len(),
            AccountMessage::Asks { from, of } => from.as_str().len() + of.as_str().len(),
            AccountMessage::RosterChanged { change, .. } => {
                [&change.was, &change.is].into_iter().flatten().map(crate::model::Contact::bytes).sum()
            }
            AccountMessage::PrivacyChanged(change) => change.lists.bytes(),
            AccountMessage::NodesChanged(change) => change.bytes(),
            AccountMessage::Published { event, .. } | AccountMessage::Event(event) => event.bytes(),
            AccountMessage::Wants(_) | AccountMessage::Reload => 0,
        }
    }
}
