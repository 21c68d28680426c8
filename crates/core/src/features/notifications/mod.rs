//! Notifications: what providers send to one account. Taken by command at the account's home, delivered to its sessions by
//! audience, and traced from acceptance to acknowledgement.

mod delivery;
mod home;
mod xml;

pub use delivery::{acknowledged, initial, reach};
pub use home::{answered, cancel, notify, remembered, tell_end_of, trace};
pub(crate) use xml::container;

use crate::hook::{Feature, Hooks, Spec};
use crate::model::{Audience, Mono, Notification, NotificationId, Pending, UnixMs};
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
    server_features: &[],
    account_features: &[],
    inline_features: &[],
    hooks: Hooks {
        submit_message: Some(delivery::submit),
        flushed: Some(delivery::flushed),
        wake: Some(delivery::wake),
        close: Some(delivery::close),
        ..Hooks::NONE
    },
};

/// Notifications read at once.
pub const PAGE: u16 = 100;

/// A session's notifications on their way.
#[derive(Debug, Default)]
pub struct State(Option<Box<Progress>>);

#[derive(Debug, Default)]
struct Progress {
    /// What the login brought, until initial presence.
    waiting: Vec<Pending>,
    /// Whether the store has more than is here.
    more: bool,
    /// Whether a page is on its way from the store: newer ones wait behind it.
    asking: bool,
    /// Given to the connection and not yet acknowledged, oldest first.
    in_flight: Vec<InFlight>,
    /// Acknowledged, and not yet ended in the store: until they are, the next page would bring them again.
    ending: u32,
}

/// A notification given to the connection.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    id: NotificationId,
    audience: Audience,
    sent: UnixMs,
    /// When the socket took it, for a client without stream management.
    taken: Option<Mono>,
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
    /// An acknowledgement by this session is being written.
    Ended(NotificationId, crate::model::ConnId),
}

impl State {
    /// Keeps what a login brought.
    pub fn take_login(&mut self, waiting: Vec<Pending>, more: bool) {
        if !waiting.is_empty() || more {
            self.0 = Some(Box::new(Progress { waiting, more, ..Progress::default() }));
        }
    }

    /// How many are given and not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.0.as_ref().map_or(0, |progress| progress.in_flight.len())
    }

    fn progress(&mut self) -> &mut Progress {
        self.0.get_or_insert_default()
    }

    /// Drops the box when it holds nothing: an idle session keeps none.
    fn tidy(&mut self) {
        let idle = |p: &Progress| {
            p.waiting.is_empty() && !p.more && !p.asking && p.in_flight.is_empty() && p.ending == 0
        };
        if self.0.as_deref().is_some_and(idle) {
            self.0 = None;
        }
    }
}
