//! Broadcasts: notifications for every account of a domain, and which accounts have acknowledged them.
//!
//! A broadcast is one thing, however many accounts there are; of an account there is something once it has acknowledged it.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::{Load, Loads, questions};
use super::{Page, Part};
use crate::model::{
    self, AccountId, AcknowledgedBy, BroadcastEnd, BroadcastPace, BroadcastReport, DomainId, NotificationId,
    UnixMs,
};
use std::sync::Arc;

questions! {
    Broadcasts,
    reads {
        Broadcast => Option<Box<BroadcastReport>>,
        Broadcasts => Vec<BroadcastReport>,
        ChangedBroadcasts => Part<model::Broadcast>,
        EndedBroadcasts => Vec<(NotificationId, AccountId)>,
        BroadcastEndOf => Option<BroadcastEnd>,
        CountAccounts => u64,
    }
    writes {
        CreateBroadcast => CreateBroadcastAnswer,
        ChangeBroadcast => ChangeBroadcastAnswer,
        EndBroadcasts => (),
    }
    once {}
    loads {
        CreateBroadcast,
        EndBroadcasts,
    }
}

/// A broadcast of a domain, and how far it has come.
#[derive(Clone, Debug)]
pub struct Broadcast {
    pub domain: DomainId,
    pub id: NotificationId,
}

/// Broadcasts of a domain, newest first: those whose id is below `before`, at most `limit`.
#[derive(Clone, Debug)]
pub struct Broadcasts {
    pub domain: DomainId,
    pub before: NotificationId,
    pub limit: u16,
}

/// Broadcasts of all domains that were changed after this revision, in the order of their revisions: all, or those that have not ended. Whoever asks
/// with the highest revision that it has seen misses no change.
#[derive(Clone, Debug)]
pub struct ChangedBroadcasts {
    pub after: u64,
    pub only_open: bool,
    pub page: Page,
}

/// Which of these accounts have acknowledged which of these broadcasts, in no order.
#[derive(Clone, Debug)]
pub struct EndedBroadcasts {
    pub broadcasts: Vec<NotificationId>,
    pub accounts: Vec<AccountId>,
}

/// Whether an account has acknowledged a broadcast.
#[derive(Clone, Debug)]
pub struct BroadcastEndOf {
    pub id: NotificationId,
    pub account: AccountId,
}

/// How many accounts a domain has. It counts them: their number makes it take longer.
#[derive(Clone, Debug)]
pub struct CountAccounts {
    pub domain: DomainId,
}

/// Creates a broadcast. One with an id that is known is left as it is.
#[derive(Clone, Debug)]
pub struct CreateBroadcast {
    pub broadcast: Arc<model::Broadcast>,
    pub bounds: BroadcastBounds,
}

/// How many broadcasts of a domain may be open at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BroadcastBounds {
    /// Broadcasts.
    pub open: u32,
    /// What they take up ([`model::Broadcast::bytes`]).
    pub bytes: u64,
}

/// What became of [`CreateBroadcast`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateBroadcastAnswer {
    /// It is there, as it is now.
    Created(Box<model::Broadcast>),
    /// As many are open as may be.
    TooMany,
    /// Those that are open take up as much as they may.
    Full,
    /// There is no such domain.
    NoDomain,
}

/// Changes a broadcast that is open. What is the same as before is no change.
#[derive(Clone, Debug)]
pub struct ChangeBroadcast {
    pub domain: DomainId,
    pub id: NotificationId,
    pub change: BroadcastChange,
    pub now: UnixMs,
}

/// A change of a broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BroadcastChange {
    /// What it does, if that is given, and how it is given, member by member.
    Steer {
        paused: Option<bool>,
        rate: Option<Option<u32>>,
        not_before: Option<Option<UnixMs>>,
        window: Option<Option<model::DayWindow>>,
    },
    /// Its sender ends it.
    Abort,
}

/// What became of [`ChangeBroadcast`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeBroadcastAnswer {
    /// It is as asked for now.
    Changed(Box<BroadcastReport>),
    /// It had ended, and is left as it is. Aborting one that was aborted is not this.
    Ended(Box<BroadcastReport>),
    /// There is none.
    Missing,
}

/// Accounts acknowledged broadcasts, and broadcasts were given to connections. The first end of an account counts; an end of a broadcast that
/// is forgotten is none.
#[derive(Clone, Debug)]
pub struct EndBroadcasts {
    pub ends: Vec<AccountEnd>,
    pub given: Vec<GivenCount>,
}

/// That an account acknowledged a broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountEnd {
    pub id: NotificationId,
    pub account: AccountId,
    pub at: UnixMs,
    pub by: AcknowledgedBy,
}

/// How often a broadcast was given by one counter, since this began to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenCount {
    pub id: NotificationId,
    /// A number that nobody else counts under.
    pub counter: u64,
    pub given: u64,
}

impl BroadcastChange {
    /// Whether it is as if it had been done to this broadcast, which has ended.
    pub fn is_done(self, ended: &model::Broadcast) -> bool {
        self == BroadcastChange::Abort && ended.state == model::BroadcastState::Aborted
    }

    /// What a broadcast that is open is changed to; none if it stays as it is.
    pub fn apply(self, was: &model::Broadcast, now: UnixMs) -> Option<model::Broadcast> {
        let mut changed = was.clone();
        match self {
            BroadcastChange::Steer { paused, rate, not_before, window } => {
                changed.state = match paused {
                    Some(true) => model::BroadcastState::Paused,
                    Some(false) => model::BroadcastState::Running,
                    None => was.state,
                };
                changed.pace = BroadcastPace {
                    rate: rate.unwrap_or(was.pace.rate),
                    not_before: not_before.unwrap_or(was.pace.not_before),
                    window: window.unwrap_or(was.pace.window),
                };
            }
            BroadcastChange::Abort => {
                changed.state = model::BroadcastState::Aborted;
                changed.ended = Some(now);
            }
        }
        (changed != *was).then_some(changed)
    }
}

impl Loads for CreateBroadcast {
    fn load(&self) -> Load<'_> {
        Load { bytes: self.broadcast.bytes(), account: None }
    }
}

impl Loads for EndBroadcasts {
    fn load(&self) -> Load<'_> {
        let bytes = size_of_val(&self.ends[..]) + size_of_val(&self.given[..]);
        Load { bytes, account: None }
    }
}
