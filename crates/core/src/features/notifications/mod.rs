//! Notifications: what providers send to one account. Taken by command at the account's home, delivered to its sessions by
//! audience, and traced from acceptance to acknowledgement.

mod broadcast;
mod delivery;
mod ends;
mod flight;
mod giving;
mod home;
mod hops;
mod lookup;
mod report;
mod xml;

#[cfg(test)]
mod tests;

use crate::session::backlog;
use crate::session::hook::{
    CatchUp, Feature, Hooks, LoginPart, Service, Spec, TimerHandler, TracesHandler, TrackedHandler,
};

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
        place: None,
        is_for_others: false,
    }],
    hooks: Hooks {
        login: &[LoginPart::Notifications(|session, wait| session.state.notifications.take_login(wait))],
        command: Some(home::command),
        message: Some(home::message),
        in_flight: Some(|session| session.state.notifications.in_flight().next().is_some()),
        available: Some(|session, _, _, cx| {
            broadcast::came(session, cx);
            match session.state.notifications.is_behind() {
                true => CatchUp::Waits,
                false => CatchUp::Done,
            }
        }),
        catch_up: Some(|session, cx| {
            broadcast::made_room(session, cx);
            backlog::catch_up::<delivery::Kept>(session, cx)
        }),
        awaits_arrival: Some(|session| session.state.notifications.unmanaged().is_some()),
        unacked: Some(delivery::unacked),
        retry: Some(home::retry),
        given_up: Some(|write, cx| {
            ends::given_up(write, cx);
            broadcast::given_up(write, cx);
        }),
        tick: Some(|cx| {
            ends::note_sent(cx);
            broadcast::tick(cx);
        }),
        walk: Some(broadcast::walk),
        resumed: Some(|session, cx| broadcast::came(session, cx)),
        tracked: &[TrackedHandler {
            kind: giving::TRACKED,
            acknowledged: delivery::acknowledged_all,
            is_over: delivery::is_over,
        }],
        timers: &[TimerHandler { timer: giving::RECEIPT, handle: delivery::check_receipts }],
        describe: Some(|session, info| {
            info.unacknowledged = session.state.notifications.in_flight().count() as u32;
        }),
        close: Some(delivery::close),
        traces: Some(&TracesHandler {
            take: |have_ended, bytes_max, cx| cx.features.notifications.take_traces(have_ended, bytes_max),
            take_of: |account, cx| cx.features.notifications.take_traces_of(account),
            take_where: |is_wanted, cx| cx.features.notifications.take_traces_where(is_wanted),
            knows: |id, cx| cx.features.notifications.trace(id).is_some(),
            put: report::keep_trace,
        }),
        parked: Some(delivery::parked),
        // One may have been stored while it was in no process.
        restored: Some(|session, _, cx| {
            broadcast::came(session, cx);
            // While it has its connection the store gets nothing for it.
            if session.is_parked() {
                session.state.notifications.look_again();
            }
        }),
        ..Hooks::NONE
    },
    ..Feature::NONE
};
