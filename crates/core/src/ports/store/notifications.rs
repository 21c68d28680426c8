//! Notifications: those that wait, and the traces of those that ended.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::questions;
use super::{Page, Part};
use crate::model::{
    self, AcknowledgedBy, DomainId, DropReason, KeyId, Notification, NotificationId, NotificationState,
    States, UnixMs,
};
use std::sync::Arc;

questions! {
    Notifications,
    reads {
        Trace => Option<Box<model::Trace>>,
        NotificationQuery => Listing,
        Pending => Part<Notification>,
    }
    writes {
        StoreNotification => StoreNotificationAnswer,
        EndNotifications => (),
        CancelNotification => Option<Box<model::Trace>>,
        EndClaim => (),
    }
    once {
        ClaimDue => Part<Notification>,
        Sweep => Part<model::Trace>,
    }
}

/// A notification's trace.
#[derive(Clone, Debug)]
pub struct Trace {
    pub id: NotificationId,
}

/// Notifications that wait or have ended, newest first, within all of these bounds. A store limits what it examines for one
/// answer: it may return fewer than there are, and says where to go on.
///
/// The order is that of the ids, which begin with the time of acceptance, and not that of the commits. Whoever reads page after page may
/// miss what is committed meanwhile at a place that was passed: a request is committed some time after it was accepted, and one that
/// is sent again by its idempotency key has the ids of its first time, up to 24 hours before. What is older is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationQuery {
    /// Whose notifications.
    pub whose: Whose,
    /// In one of these states.
    pub states: States,
    /// Sent by this API key; by any sender if there is none.
    pub key: Option<KeyId>,
    /// Not older than this id.
    pub from: NotificationId,
    /// Older than this id.
    pub before: NotificationId,
    /// The most that are returned.
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

/// What a [`NotificationQuery`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Newest first.
    pub traces: Vec<model::Trace>,
    /// The value of `before` for the next ones; none when there are no more.
    pub next: Option<NotificationId>,
}

impl NotificationQuery {
    /// Whether a notification with this id, of this sender, is within the bounds of time and sender.
    pub fn spans(&self, id: NotificationId, key: Option<KeyId>) -> bool {
        (self.from..self.before).contains(&id) && self.key.is_none_or(|wanted| key == Some(wanted))
    }

    /// Whether a notification is to be listed. `domain` is the number of its account's domain.
    pub fn matches(&self, trace: &model::Trace, domain: DomainId) -> bool {
        let is_theirs = match &self.whose {
            Whose::Anyones => true,
            Whose::Domain(wanted) => *wanted == domain,
            Whose::Account(wanted, local) => *wanted == domain && trace.to.local() == Some(local),
        };
        is_theirs && self.states.contains(trace.state) && self.spans(trace.id, trace.key)
    }
}

/// The next waiting notifications of an account, in delivery order, leaving out `except`: at most `page`.
#[derive(Clone, Debug)]
pub struct Pending {
    pub domain: DomainId,
    pub local: Box<str>,
    pub except: Vec<NotificationId>,
    pub page: Page,
    pub now: UnixMs,
}

/// Keeps a notification; those of the same account and `collapse_key` that are still stored or scheduled end as replaced, and
/// when the account then has over `queue_max` waiting, the oldest of the lowest priority end as [`DropReason::QueueFull`].
///
/// One that is known is left as it is, with one exception: without a `send_at` it is not to wait any longer, and if it is scheduled and its
/// audience is always, it becomes stored, which ends the claim on it ([`ClaimDue`]).
#[derive(Clone, Debug)]
pub struct StoreNotification {
    pub notification: Arc<Notification>,
    pub queue_max: u32,
    pub now: UnixMs,
}

/// What became of [`StoreNotification`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreNotificationAnswer {
    /// It is kept. These notifications ended because of it; it may be among them.
    Stored { ended: Vec<model::Trace> },
    /// There is or was one with this id.
    Known,
    /// There is no such account.
    NoAccount,
}

/// Ends notifications; a change of one that has ended otherwise, or does not exist, is skipped.
#[derive(Clone, Debug)]
pub struct EndNotifications {
    pub changes: Vec<NotificationChange>,
}

/// How a notification of the store ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationChange {
    /// The notification.
    pub id: NotificationId,
    /// [`NotificationState::Acknowledged`], `Expired` or `Dropped`; `Sent` only notes the time.
    pub state: NotificationState,
    /// When a connection took it.
    pub sent: Option<UnixMs>,
    /// When it ended.
    pub at: UnixMs,
    /// Who acknowledged it.
    pub acknowledged_by: Option<AcknowledgedBy>,
    /// Why it was dropped.
    pub reason: Option<DropReason>,
}

/// Cancels a notification. Its trace afterwards: `Cancelled`, or the state in which it had ended.
#[derive(Clone, Debug)]
pub struct CancelNotification {
    pub id: NotificationId,
    pub now: UnixMs,
}

/// Claims scheduled notifications that are due by `now`, the first ones that `page` has room for, and returns them. Until `until` they are
/// handed out to nobody else; then they are due again, unless they were handed over by then: by [`StoreNotification`] those
/// whose audience is always, by [`EndClaim`] the others. So nothing is lost with the node that claimed it.
#[derive(Clone, Debug)]
pub struct ClaimDue {
    pub now: UnixMs,
    pub until: UnixMs,
    pub page: Page,
}

/// Removes scheduled notifications that were handed over. Those whose audience is always stay as they are, and so does what is not
/// scheduled or not there.
#[derive(Clone, Debug)]
pub struct EndClaim {
    pub ids: Vec<NotificationId>,
}

/// Ends notifications that expired by `now`, claimed or not, and forgets traces that ended before `forget`: at most `max` of each.
/// Returns the traces of those it ended. Nodes may ask side by side: each notification is ended, and returned, once.
#[derive(Clone, Debug)]
pub struct Sweep {
    pub now: UnixMs,
    pub forget: UnixMs,
    pub max: u32,
}
