//! Notifications: what providers send to one account. Taken by command at the account's home, delivered to its sessions by
//! audience, and traced from acceptance to acknowledgement.

mod delivery;
mod home;
mod state;
mod xml;

pub use state::State;

pub use home::{answered, ended};

use crate::model::{Notification, UnixMs};
use crate::ports::store::notifications::NotificationChange;
use crate::session::hook::{Feature, Hooks, Service, Spec, Step, TimerHandler, TrackedHandler};
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
        tracked: &[TrackedHandler { kind: delivery::TRACKED, acknowledged: delivery::acknowledged_all }],
        timers: &[TimerHandler { timer: delivery::RECEIPT, handle: delivery::look }],
        describe: Some(|live, info| info.unacknowledged = live.state.notifications.unacknowledged() as u32),
        close: Some(delivery::close),
        ..Hooks::NONE
    },
    ..Feature::NONE
};

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
