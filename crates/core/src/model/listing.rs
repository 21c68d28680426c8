//! Which notifications somebody wants to see.

use super::{DomainId, KeyId, NotificationId, States, Trace};

/// Which notifications are listed: newest first, those that are in all of these bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationQuery {
    /// Whose.
    pub whose: Whose,
    /// In one of these states.
    pub states: States,
    /// Sent by this API key; by anyone when there is none.
    pub key: Option<KeyId>,
    /// Not older than this id.
    pub from: NotificationId,
    /// Older than this id.
    pub before: NotificationId,
    /// How many at most.
    pub limit: u16,
}

/// Whose notifications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// All of the node's.
    Anyones,
    /// Those of a domain's accounts.
    Domain(DomainId),
    /// Those of one account, by its domain and its prepared local part.
    Account(DomainId, Box<str>),
}

impl NotificationQuery {
    /// Whether a notification with this id, of this sender, is within the bounds of time and sender.
    pub fn spans(&self, id: NotificationId, key: Option<KeyId>) -> bool {
        (self.from..self.before).contains(&id) && self.key.is_none_or(|wanted| key == Some(wanted))
    }

    /// Whether a notification is to be listed. `domain` is the number of its account's domain.
    pub fn matches(&self, trace: &Trace, domain: DomainId) -> bool {
        let is_theirs = match &self.whose {
            Whose::Anyones => true,
            Whose::Domain(wanted) => *wanted == domain,
            Whose::Account(wanted, local) => *wanted == domain && trace.to.local() == Some(local),
        };
        is_theirs && self.states.contains(trace.state) && self.spans(trace.id, trace.key)
    }
}
