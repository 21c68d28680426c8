//! Notifications: those that wait, the traces of those that ended, and the events that tell others of their ends.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::questions;
use super::{Page, Part};
use crate::model::{
    self, AcknowledgedBy, DomainId, DropReason, Event, EventFilter, KeyId, Notification, NotificationId,
    NotificationState, States, UnixMs, Wake,
};
use std::sync::Arc;

questions! {
    Notifications,
    reads {
        Trace => Option<Box<model::Trace>>,
        NotificationQuery => Listing,
        Pending => Part<Notification>,
        Unended => Part<Notification>,
        Events => EventsAnswer,
    }
    writes {
        StoreNotification => StoreNotificationAnswer,
        EndNotifications => Vec<NotificationId>,
    }
    once {
        CancelNotification => CancelNotificationAnswer,
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

crate::form! { struct NotificationQuery { whose, states, key, from, before, limit } }
crate::form! { enum Whose { 0 = Anyones, 1 = Domain(domain), 2 = Account(domain, local) } }

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
        is_theirs && self.states.contains(trace.shown()) && self.spans(trace.id, trace.key)
    }
}

/// The next waiting notifications of an account whose audience is always, in delivery order, leaving out `except`: at most `page`. With a
/// `resource` those that are for other clients of the account alone ([`Payload::is_for`](crate::model::Payload::is_for)) are left out, too.
///
/// Delivery order is high priority first, and within a priority the order in which they began to wait: that of the commits that stored
/// them, or, of scheduled ones, that handed them over ([`ClaimDue`]). No clock has a part in it.
#[derive(Clone, Debug)]
pub struct Pending {
    pub domain: DomainId,
    pub local: Box<str>,
    pub resource: Option<Box<str>>,
    pub except: Vec<NotificationId>,
    pub page: Page,
    pub now: UnixMs,
}

/// The notifications of an account that have not ended, those that are scheduled included, in the order of their ids: those with an id above `after`, at most
/// `page`.
#[derive(Clone, Debug)]
pub struct Unended {
    pub domain: DomainId,
    pub local: Box<str>,
    pub after: NotificationId,
    pub page: Page,
    pub now: UnixMs,
}

/// Events after number `after`, oldest first: how notifications ended, that their links were followed, and what happened to rooms. Those that are `wanted`; those of a
/// domain or all; at most `max`, and no further than [`EVENT_BYTES_MAX`]. A store limits what it examines for one answer, and says how far it came.
///
/// They are kept as long as the traces of notifications, and no more than [`EVENTS_MAX`] of them. One of a message has what it says as long as that is kept.
#[derive(Clone, Debug)]
pub struct Events {
    pub after: u64,
    pub domain: Option<DomainId>,
    pub wanted: EventFilter,
    pub max: u16,
}

/// What [`Events`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventsAnswer {
    /// Each with its number.
    pub events: Vec<(u64, Event)>,
    /// The number up to which they were examined: the `after` of the next question.
    pub examined: u64,
    /// The number of the oldest event that is kept, whatever it is about; 0 when none is.
    pub oldest: u64,
    /// The number of the newest event that there ever was; 0 when there was none yet.
    pub newest: u64,
}

impl EventsAnswer {
    /// Who asked for what comes after this event has missed some that are forgotten: the number of the next that there is or will be.
    pub fn next_after_gap(&self, after: u64) -> Option<u64> {
        match self.oldest {
            0 => (self.newest > after).then_some(self.newest + 1),
            oldest => (oldest > after + 1).then_some(oldest),
        }
    }
}

/// How many events a store keeps. [`Sweep`] forgets the oldest beyond it.
pub const EVENTS_MAX: u64 = 1_000_000;
/// Bytes of events after which an answer ends ([`Event::bytes`]).
pub const EVENT_BYTES_MAX: usize = 1 << 20;

/// Keeps a notification; those of the same account and `collapse_key` that are still stored or scheduled end as replaced, and
/// when the account then has over `queue_max` waiting, the first of the lowest priority in delivery order end as
/// [`DropReason::QueueFull`].
///
/// One that is known is left as it is and where it is, with one exception: one that is scheduled and due by `now` becomes stored, behind
/// those that wait already, which ends the claim on it ([`ClaimDue`]).
#[derive(Clone, Debug)]
pub struct StoreNotification {
    pub notification: Arc<Notification>,
    pub queue_max: u32,
    pub now: UnixMs,
    /// When it is pushed to the account's registrations, if it is.
    pub wake: Option<Wake>,
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

/// Ends notifications. Returns those that these changes did not end: they had ended otherwise before, or are not there. What is asked
/// again is answered the same.
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

impl NotificationChange {
    /// Whether it is this change that ended the notification with this trace.
    pub fn made(&self, trace: &model::Trace) -> bool {
        let said = (trace.state, trace.ended, trace.acknowledged_by, trace.reason);
        said == (self.state, Some(self.at), self.acknowledged_by, self.reason)
    }
}

/// Cancels a notification that has not ended.
#[derive(Clone, Debug)]
pub struct CancelNotification {
    pub id: NotificationId,
    pub now: UnixMs,
}

/// What became of [`CancelNotification`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CancelNotificationAnswer {
    /// This ended it.
    Cancelled(Box<model::Trace>),
    /// It had ended before, perhaps by being cancelled.
    Ended(Box<model::Trace>),
    /// There is none with this id.
    Missing,
}

/// Claims scheduled notifications that are due by `now`, the first ones that `page` has room for, and returns them. Until `until` they are
/// handed out to nobody else; then they are due again, unless their homes have stored them by then ([`StoreNotification`]). So nothing
/// is lost with the node that claimed it.
#[derive(Clone, Debug)]
pub struct ClaimDue {
    pub now: UnixMs,
    pub until: UnixMs,
    pub page: Page,
}

/// Ends notifications that expired by `now`, claimed or not, and forgets traces that ended, and links that expired, before `forget`: at most
/// `max` of each.
/// Returns the traces of those it ended. Nodes may ask side by side: each notification is ended, and returned, once.
#[derive(Clone, Debug)]
pub struct Sweep {
    pub now: UnixMs,
    pub forget: UnixMs,
    pub max: u32,
}
