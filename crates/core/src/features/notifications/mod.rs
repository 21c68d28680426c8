//! Notifications: what providers send to one account. Taken by command at the account's home, delivered to its sessions by
//! audience, and traced from acceptance to acknowledgement.

mod delivery;
mod home;
mod xml;

pub use home::{answered, ended};

use crate::model::{Audience, Mono, Notification, NotificationId, UnixMs};
use crate::ports::NotificationChange;
use crate::session::backlog::Reading;
use crate::session::hook::{Feature, Hooks, Service, Spec, Step, TimerHandler};
use std::sync::Arc;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "notifications",
    about: "Delivers what providers send, kept until acknowledged where the audience is always.",
    specs: &[
        Spec {
            id: "urn:carillon:notification:0",
            title: "Notifications",
            version: "0",
            coverage: "docs/book/protocol.md: the element, its attributes, how a device acknowledges.",
        },
        Spec {
            id: "XEP-0184",
            title: "Message Delivery Receipts",
            version: "1.4.0",
            coverage: "Acknowledge a notification.",
        },
    ],
    services: &[Service {
        host: "push",
        name: "Notifications",
        identity: ("component", "generic"),
        submit: delivery::submit,
    }],
    hooks: Hooks {
        login: Some(|live, login, _| live.state.notifications.take_login(login.waiting.notifications)),
        command: Some(home::command),
        letter: Some(home::letter),
        in_flight: Some(|live| live.state.notifications.unacknowledged() > 0),
        available: Some(|live, _, _, _| match live.state.notifications.is_behind() {
            true => Step::Waits,
            false => Step::Done,
        }),
        catch_up: Some(delivery::ask),
        awaits_arrival: Some(delivery::owes_word),
        unacked: Some(delivery::unacked),
        timers: &[TimerHandler { timer: delivery::RECEIPT, handle: delivery::look }],
        describe: Some(|live, info| info.unacknowledged = live.state.notifications.unacknowledged() as u32),
        close: Some(delivery::close),
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// A session's notifications on their way.
#[derive(Debug, Default)]
pub struct State(Option<Box<Progress>>);

#[derive(Debug, Default)]
struct Progress {
    /// How far the session is with what the store holds for it.
    reading: Reading,
    /// Given to the connection and not yet acknowledged, oldest first.
    in_flight: Vec<InFlight>,
    /// Bytes of all that were given since this began.
    given: u64,
    /// Whether a timer runs that looks for receipts that did not come.
    timed: bool,
}

/// A notification given to the connection.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    id: NotificationId,
    audience: Audience,
    sent: UnixMs,
    /// When, by the clock of timers.
    at: Mono,
    /// [`Progress::given`] with this one.
    end: u64,
    /// Whether stream management counts it.
    managed: bool,
}

/// A question that waits for the store.
#[derive(Debug)]
pub enum Then {
    /// A notification is being kept, since then.
    Kept(Arc<Notification>, Option<crate::ReplyTo>, UnixMs),
    /// A notification that is not kept found no session; is there such an account at all?
    Known(Arc<Notification>, Option<crate::ReplyTo>),
    /// A notification was there already: what became of it?
    Again(Arc<Notification>, Option<crate::ReplyTo>),
    /// A page for this session.
    Page(crate::model::ConnId),
    /// What became of it, for whoever asked.
    Trace(crate::ReplyTo),
    /// It is being taken back, since then.
    Cancelled(crate::ReplyTo, UnixMs),
    /// An acknowledgement is being written.
    Ended(NotificationChange),
}

impl State {
    /// Takes note of what a login read: whether any wait.
    fn take_login(&mut self, waits: bool) {
        if waits {
            self.look_again();
        }
    }

    /// Takes note that the store may hold one that the session was not given.
    fn look_again(&mut self) {
        self.progress().reading.more = true;
    }

    /// How many are given and not acknowledged.
    fn unacknowledged(&self) -> usize {
        self.0.as_ref().map_or(0, |progress| progress.in_flight.len())
    }

    /// The oldest that only a receipt or the socket can acknowledge.
    fn unmanaged(&self) -> Option<&InFlight> {
        self.0.as_ref()?.in_flight.iter().find(|entry| !entry.managed)
    }

    /// Whether older ones are still to come from the store, so that newer ones must wait behind them there.
    fn is_behind(&self) -> bool {
        self.0.as_ref().is_some_and(|progress| progress.reading.is_behind())
    }

    fn progress(&mut self) -> &mut Progress {
        self.0.get_or_insert_default()
    }

    /// Drops the box when it holds nothing: an idle session keeps none.
    fn tidy(&mut self) {
        let idle = |p: &Progress| !p.reading.is_behind() && p.in_flight.is_empty() && !p.timed;
        if self.0.as_deref().is_some_and(idle) {
            self.0 = None;
        }
    }
}
